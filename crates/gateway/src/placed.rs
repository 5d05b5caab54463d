//! Where the partitions of a table lie and what they take, from what the store tells of them.
//!
//! Not here: what follows from it (`heatsink_heat::policy`).

use std::collections::{BTreeSet, HashMap};

use heatsink_heat::policy::{Partitions, Units};
use heatsink_layout::encode;
use heatsink_physics::position;
use serde_json::Value as Json;

/// The partitions of a table or of a global index.
pub(crate) struct Placed {
    /// The first position of each, ascending; its load; and the number that the store gives it.
    partitions: Vec<(u64, Units, u64)>,
}

impl Placed {
    /// Those of the table or index in the store's document of the table; `None` if it is not there.
    pub(crate) fn of(told: &Json, index: Option<&str>) -> Option<Self> {
        let resources = told["resources"].as_array()?;
        let resource = resources.iter().find(|one| one["index"].as_str() == index)?;
        let read = |one: &Json| {
            let first = u64::from_str_radix(one["first_position"].as_str()?, 16).ok()?;
            let number = one["id"].as_u64()?;
            let (writes, reads) = (one["write_units_per_s"].as_f64()?, one["read_units_per_s"].as_f64()?);
            // A refused request is as likely one of the kind that there is more of.
            let refused = one["throttled_per_s"].as_f64()?;
            let writes_most = writes >= reads;
            Some((
                first,
                Units {
                    writes: writes + if writes_most { refused } else { 0.0 },
                    reads: reads + if writes_most { 0.0 } else { refused },
                },
                number,
            ))
        };
        let mut partitions: Vec<(u64, Units, u64)> =
            resource["partitions"].as_array()?.iter().map(read).collect::<Option<_>>()?;
        partitions.sort_by_key(|(first, ..)| *first);
        (!partitions.is_empty()).then_some(Placed { partitions })
    }

    /// The numbers of the partitions on which a key lies that has these slots, ascending.
    pub(crate) fn numbers(&self, key: &[u8], slots: &[u16]) -> Vec<u64> {
        let number =
            |slot: &u16| self.partitions.get(Partitions::of(self, key, *slot)).map(|(.., number)| *number);
        let numbers: BTreeSet<u64> = slots.iter().filter_map(number).collect();
        numbers.into_iter().collect()
    }
}

impl Partitions for Placed {
    fn count(&self) -> usize {
        self.partitions.len()
    }

    fn of(&self, key: &[u8], slot: u16) -> usize {
        // A key that is too long for a slot has none there.
        let physical = encode(key, slot).unwrap_or_else(|_| key.to_vec());
        let position = position(&physical);
        // Of partitions that begin at one position, which part a key by sort key, the first.
        let last = self.partitions.partition_point(|(first, ..)| *first <= position).saturating_sub(1);
        let begins = self.partitions.get(last).map_or(0, |(first, ..)| *first);
        self.partitions.partition_point(|(first, ..)| *first < begins)
    }

    fn load(&self, partition: usize) -> Units {
        self.partitions.get(partition).map(|(_, units, _)| *units).unwrap_or_default()
    }
}

/// The partitions of several tables. They are told once for each: that is work.
pub(crate) struct PlacedTables<'a> {
    told: Option<&'a crate::Partitions>,
    tables: HashMap<String, Option<Placed>>,
}

impl<'a> PlacedTables<'a> {
    /// Those that the store tells, if it does.
    pub(crate) fn of(told: Option<&'a crate::Partitions>) -> Self {
        PlacedTables { told, tables: HashMap::new() }
    }

    /// The partitions of a table, its indexes not counted; `None` where the store does not tell.
    pub(crate) fn table(&mut self, table: &str) -> Option<&Placed> {
        let told = self.told?;
        let placed = || Placed::of(&told(table)?, None);
        self.tables.entry(table.to_owned()).or_insert_with(placed).as_ref()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn partition(first: u64, writes: f64, throttled: f64) -> Json {
        json!({
            "id": first >> 60, "first_position": format!("{first:016x}"), "write_units_per_s": writes,
            "read_units_per_s": 1.0, "throttled_per_s": throttled,
        })
    }

    #[test]
    fn a_slot_lies_in_the_partition_whose_positions_hold_its_physical_key() {
        let half = 1 << 63;
        let told = json!({ "resources": [
            { "index": null, "partitions": [partition(half, 700.0, 30.0), partition(0, 5.0, 0.0)] },
            { "index": "by-x", "partitions": [partition(0, 1.0, 0.0)] },
        ] });
        let placed = Placed::of(&told, None).unwrap();
        assert_eq!(placed.count(), 2);
        assert_eq!(placed.load(1), Units { writes: 730.0, reads: 1.0 });
        for slot in 0..50 {
            let physical = encode(b"game", slot).unwrap();
            let upper = position(&physical) >= half;
            assert_eq!(Partitions::of(&placed, b"game", slot), usize::from(upper));
            assert_eq!(placed.numbers(b"game", &[slot]), [if upper { 8 } else { 0 }]);
        }
        let all: Vec<u16> = (0..50).collect();
        assert_eq!(placed.numbers(b"game", &all), [0, 8]);
        assert_eq!(Placed::of(&told, Some("by-x")).unwrap().count(), 1);
        assert!(Placed::of(&told, Some("by-y")).is_none());
    }
}
