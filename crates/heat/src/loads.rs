//! The loads of the hottest keys of tables, and of the hottest values of their global indexes, for
//! whoever acts on them.
//!
//! Not here: what helps them ([`advice`](crate::advice)).

use std::collections::HashMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use heatsink_dynamo::KeyType;

use crate::KeyLoad;
use crate::detect::{PartHeat, ShownKey};

/// The most keys of a part whose loads are told: as many as a gateway's report holds.
pub const TOLD_KEYS: usize = 1_000;

/// The loads of keys of tables that can have shards, the highest first: advice is on these.
pub fn shardable_loads(parts: &[PartHeat]) -> Vec<KeyLoad> {
    let mut loads = all_loads(parts);
    loads.retain(KeyLoad::can_have_shards);
    loads
}

/// All of them, the highest first.
pub fn all_loads(parts: &[PartHeat]) -> Vec<KeyLoad> {
    let mut loads: HashMap<(&str, Option<&str>, &ShownKey), KeyLoad> = HashMap::new();
    for part in parts {
        let Some(table) = part.name.table.as_deref() else { continue };
        let index = part.name.index.as_deref();
        for heat in &part.keys {
            let load = loads.entry((table, index, &heat.key)).or_insert_with(|| KeyLoad {
                table: table.to_owned(),
                index: index.map(str::to_owned),
                key: bytes(&heat.key),
                is_number: heat.key.kind == KeyType::N,
                ..KeyLoad::default()
            });
            // Of reads and of writes it may be kept whole, or not.
            load.is_cut |= !heat.is_whole;
            load.take(part.name.kind, heat);
        }
    }
    let mut loads: Vec<KeyLoad> = loads.into_values().collect();
    loads.sort_by(|a, b| {
        (b.writes + b.reads).total_cmp(&(a.writes + a.reads)).then_with(|| a.key.cmp(&b.key))
    });
    loads
}

/// The key's bytes; of a binary one that was cut those that are known.
fn bytes(key: &ShownKey) -> Vec<u8> {
    match key.kind {
        KeyType::S | KeyType::N => key.text.clone().into_bytes(),
        // Four characters of base64 are three bytes.
        KeyType::B => {
            let whole = key.text.get(..key.text.len() / 4 * 4).unwrap_or_default();
            STANDARD.decode(whole).unwrap_or_default()
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use crate::detect::{Access, Detector, Key, Kind, Outcome};

    use super::*;

    #[test]
    fn indexes_numbers_and_cut_keys_are_loads_and_their_refusals_have_reasons() {
        // Without room for a long key, so that it is cut.
        let mut detector = Detector::with(7, 0, 10, 0);
        let (table, index) = (Arc::from("games"), Arc::from("by-owner"));
        let parts = [None, Some(&index)]
            .map(|index| [Kind::Read, Kind::Write].map(|kind| detector.part(&table, index, kind)));
        let long = "k".repeat(100);
        for (part, kind, text, outcome) in [
            (parts[0][1], KeyType::N, "12", Outcome::ThrottledByPartition),
            (parts[0][0], KeyType::N, "12", Outcome::Done),
            (parts[1][1], KeyType::S, "12", Outcome::ThrottledByIndex),
            (parts[0][1], KeyType::B, &long, Outcome::Done),
        ] {
            let key = Some(Key { kind, text: text.as_bytes() });
            detector.count(1, part, &Access { key, units: 2_000, outcome, ..Access::default() });
        }
        detector.advance(1_000);
        let loads = all_loads(&detector.heat(10));
        let load = |index: Option<&str>, number: bool| {
            let found = loads.iter().find(|load| load.index.as_deref() == index && load.is_number == number);
            found.unwrap_or_else(|| panic!("{index:?} {number} in {loads:?}"))
        };
        let number = load(None, true);
        assert_eq!((number.writes, number.reads, number.gets, number.queries), (2.0, 2.0, 2.0, 0.0));
        assert_eq!((number.writes_refused.by_partition, number.reads_refused.throttled), (1.0, 0.0));
        let owner = load(Some("by-owner"), false);
        assert_eq!((owner.writes_refused.by_partition, owner.writes_refused.by_index), (0.0, 1.0));
        let cut = load(None, false);
        assert!(cut.is_cut && cut.key.len() == 30 && !owner.is_cut, "{cut:?}");
        let shardable = shardable_loads(&detector.heat(10));
        assert!(shardable.iter().all(|load| load.is_number && !load.is_cut), "{shardable:?}");
        assert_eq!(shardable.len(), 1);
    }
}
