//! What a live adoption would do. Changes nothing.

use std::collections::BTreeMap;

use heatsink_control::{MAX_KEY_RECORDS, State};
use serde::Serialize;

use super::LiveAdoption;
use super::layouts::{Layouts, too_many};
use crate::error::WorkerError;
use crate::key::batch::UNITS;
use crate::key::estimate::{dollars, kilobytes, moving_of, write_units};
use crate::key::shares::AS_MANY;
use crate::key::spare::Spare;
use crate::progress::Progress;

/// About how long the steps of the table take, and those of so many keys: their records' writes to
/// one partition of the registry. `heatsink-lab demo table --keys 1000` took 52 s with 8,900 items.
const TABLE_SECONDS: u64 = 5;
const TOGETHER: u64 = 100;
const KEYS_SECONDS: u64 = 4;

/// What a live adoption would do.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LiveSurvey {
    /// The table.
    pub table: String,
    /// What its keys get.
    pub layouts: String,
    /// How many keys it has.
    pub keys: u64,
    /// How many of them get another layout.
    pub keys_to_move: u64,
    /// How many items it has.
    pub items: u64,
    /// About how many of them move.
    pub items_to_move: u64,
    /// About how many bytes move.
    pub bytes_to_move: u64,
    /// Write units that moving them takes.
    pub write_units: u64,
    /// Read units of the walks over the table, this one not counted.
    pub read_units: u64,
    /// What these units cost in US dollars, on demand in us-east-1.
    pub dollars: f64,
    /// About how long it takes where clients leave the given rate, in seconds.
    pub seconds: u64,
    /// Why it cannot be done while clients use the table.
    pub in_the_way: Option<String>,
}

impl LiveAdoption {
    /// Reads every key, and tells what would be moved. `rate`: write units a second that the move of a
    /// key may take.
    ///
    /// # Errors
    /// The store's.
    pub async fn survey(&self, rate: u32, progress: &dyn Progress) -> Result<LiveSurvey, WorkerError> {
        let (record, records, layouts) = match &self.record {
            None => {
                let record = self.registry.first_record(&self.described, Default::default(), true);
                let layouts = Layouts { from: Default::default(), to: self.to.clone() };
                (record, Vec::new(), layouts)
            }
            Some(record) => {
                let layouts = match record.state {
                    State::ChangingKeys(_) if self.phase().is_some() => self.all_layouts()?,
                    _ => Layouts { from: record.layouts.own(), to: self.to.clone() },
                };
                (record.clone(), self.registry.all_key_records(record).await?, layouts)
            }
        };
        let table = self.laid_out(&record, &records);
        let walked = self.walk(&table, progress).await?;
        let key_type = table.key.partition.key_type;
        let by_key: BTreeMap<_, _> = records.iter().map(|one| (&*one.key, one)).collect();
        let (mut keys_to_move, mut items_to_move, mut most_of_key, mut new) = (0, 0, 0, 0);
        for (key, items) in &walked.keys {
            let on_record = by_key.get(&**key).copied();
            if layouts.wish(key, key_type, on_record).is_none() {
                continue;
            }
            keys_to_move += 1;
            new += usize::from(on_record.is_none());
            let lies = on_record.map_or_else(|| layouts.before(key, key_type), |one| one.layout.clone());
            let moving = moving_of(*items, &lies, &layouts.after(key, key_type));
            items_to_move += moving;
            most_of_key = most_of_key.max(moving);
        }
        let of_item = walked.bytes.checked_div(walked.items).unwrap_or(0);
        let write_units = write_units(items_to_move, of_item);
        let old_units = kilobytes(of_item) * u64::from(UNITS);
        let units = (items_to_move * old_units, most_of_key * old_units);
        // Two walks at least, with strong reads of 4 KB.
        let read_units = 2 * walked.bytes.div_ceil(4096);
        let in_the_way = self.unwritable(&walked, &layouts).or_else(|| {
            let keys = records.len() + new;
            (keys > MAX_KEY_RECORDS).then(|| too_many(self.table(), keys))
        });
        Ok(LiveSurvey {
            table: self.table().to_owned(),
            layouts: self.layouts(),
            keys: u64::try_from(walked.keys.len()).unwrap_or(u64::MAX),
            keys_to_move,
            items: walked.items,
            items_to_move,
            bytes_to_move: of_item * items_to_move,
            write_units,
            read_units,
            dollars: dollars(write_units, read_units),
            seconds: seconds(keys_to_move, units, rate),
            in_the_way,
        })
    }
}

/// How long it takes to move so many keys, whose items take so many units of their old partitions,
/// and those of the largest one: what one key is given, and all keys of a gateway together.
fn seconds(keys: u64, (all, largest): (u64, u64), rate: u32) -> u64 {
    let steps = TABLE_SECONDS + (keys * KEYS_SECONDS).div_ceil(TOGETHER);
    steps + Spare::seconds(largest, rate).max(all.div_ceil(u64::from(AS_MANY * rate.max(1))))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Of items with so many bytes, in the default rate.
    fn told(keys: u64, items: u64, bytes: u64) -> u64 {
        let units = items * kilobytes(bytes) * u64::from(UNITS);
        seconds(keys, (keys * units, units), 1_000)
    }

    #[test]
    fn what_it_takes_goes_by_the_size_of_the_items_and_by_the_number_of_the_keys() {
        // By what `adopt` took: docs/journal/layout-changes.md.
        for (keys, items, bytes, took) in
            [(30, 52, 10_000, 22.6), (10, 52, 40_000, 27.2), (6, 35, 120_000, 32.8), (1_063, 8, 100, 51.7)]
        {
            let ratio = told(keys, items, bytes) as f64 / took;
            assert!((0.5..=2.0).contains(&ratio), "{keys} keys of {items} items of {bytes} bytes: {ratio}");
        }
        // One key cannot take what all keys may.
        assert!(told(1, 1_000, 10_000) > told(4, 250, 10_000));
    }
}
