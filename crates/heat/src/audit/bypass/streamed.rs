//! The writes of one table that stream records tell of, by physical key.

use std::collections::HashMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use heatsink_dynamo::number::ascending_bits;
use heatsink_layout::SortKey;

use super::requested::sort_hash;

/// What a record says of an item.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// It was not there before.
    Insert,
    /// It was there before.
    Modify,
    /// It is not there any more.
    Remove,
}

/// The writes, in the order of the files.
#[derive(Debug, Default)]
pub struct Streamed {
    keys: HashMap<Vec<u8>, u32>,
    pub(super) records: Vec<Record>,
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Record {
    /// The number of the physical key.
    pub key: u32,
    /// The hash of the text of the sort key, as traces have it.
    pub sort: u64,
    pub second: i64,
    pub event: Event,
}

impl Streamed {
    /// Takes a record: the physical key (UTF-8 of a string or a number, raw binary), and when it
    /// was written.
    pub fn add(&mut self, partition: &[u8], sort: Option<SortKey<'_>>, second: i64, event: Event) {
        let next = u32::try_from(self.keys.len()).unwrap_or(u32::MAX);
        let key = match self.keys.get(partition) {
            Some(key) => *key,
            None => *self.keys.entry(partition.to_vec()).or_insert(next),
        };
        self.records.push(Record { key, sort: shown(sort), second, event });
    }

    /// Whether there is any.
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The physical keys by their numbers.
    pub(super) fn keys(&self) -> Vec<&[u8]> {
        let mut keys: Vec<(&u32, &[u8])> =
            self.keys.iter().map(|(key, number)| (number, key.as_slice())).collect();
        keys.sort_unstable();
        keys.into_iter().map(|(_, key)| key).collect()
    }
}

/// The hash of a sort key in the form that traces have: numbers by their value, binary ones as
/// base64.
fn shown(sort: Option<SortKey<'_>>) -> u64 {
    match sort {
        None => sort_hash(""),
        Some(SortKey::S(text)) => sort_hash(text),
        Some(SortKey::B(bytes)) => sort_hash(&STANDARD.encode(bytes)),
        Some(SortKey::N(text)) => {
            sort_hash(&format!("{:016x}", ascending_bits(text.parse().unwrap_or(f64::NAN))))
        }
    }
}
