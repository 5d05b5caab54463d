//! How each key of a table lies before and after a live adoption, and so what has to be done with it.
//! Plain functions.

use heatsink_control::reshard_intent::WantedLayout;
use heatsink_control::{KeyRecord, MAX_KEY_RECORDS, TableLayouts};
use heatsink_dynamo::KeyType;
use heatsink_layout::{Layout, number_codec};
use xxhash_rust::xxh3::xxh3_64;

use crate::key::wanted::{by, same};

/// A key that has to move, and what it gets.
#[derive(Clone, Debug, PartialEq)]
pub struct KeyWish {
    /// The logical key's bytes.
    pub key: Vec<u8>,
    /// What it gets.
    pub layout: WantedLayout,
}

/// The layouts of a table's own keys: before, and after.
pub(super) struct Layouts {
    pub from: TableLayouts,
    pub to: TableLayouts,
}

impl Layouts {
    fn of(layouts: &TableLayouts, key: &[u8], key_type: KeyType) -> Layout {
        let has_room = key_type != KeyType::N || number_codec::has_room(key);
        layouts.of(key).filter(|_| has_room).map_or_else(Layout::none, |layout| Layout::clone(layout))
    }

    /// How a key without a record lies before the change.
    pub fn before(&self, key: &[u8], key_type: KeyType) -> Layout {
        Self::of(&self.from, key, key_type)
    }

    /// How it lies after it.
    pub fn after(&self, key: &[u8], key_type: KeyType) -> Layout {
        Self::of(&self.to, key, key_type)
    }

    /// Whether a key without a record lies otherwise after the change.
    pub fn changes(&self, key: &[u8], key_type: KeyType) -> bool {
        !same(&self.before(key, key_type), &self.after(key, key_type))
    }

    /// What has to be done with a key: nothing, or what it is to get. A key on record with a layout
    /// of its own keeps it.
    pub fn wish(&self, key: &[u8], key_type: KeyType, record: Option<&KeyRecord>) -> Option<WantedLayout> {
        let after = self.after(key, key_type);
        let lies = match record {
            None => self.before(key, key_type),
            Some(KeyRecord { moves: Some(moves), .. }) if same(&moves.to, &after) => {
                return Some(wanted(&after));
            }
            // A run whose adoption was turned round moved it back there.
            Some(KeyRecord { moves: Some(moves), .. })
                if same(&moves.to, &self.before(key, key_type)) && !same(&moves.to, &after) =>
            {
                return Some(wanted(&after));
            }
            // It has arrived, but for the last wait: its record cannot be taken off yet.
            Some(KeyRecord { moves: None, settled: false, layout, .. }) if same(layout, &after) => {
                return Some(wanted(&after));
            }
            // Somebody moves it elsewhere.
            Some(KeyRecord { moves: Some(_), .. }) => return None,
            Some(record) => record.layout.clone(),
        };
        let follows = |layout: &Layout| layout.lies_whole() || same(layout, &self.before(key, key_type));
        (follows(&lies) && !same(&lies, &after)).then(|| wanted(&after))
    }
}

/// What is asked for a key that is to lie so.
pub(super) fn wanted(layout: &Layout) -> WantedLayout {
    let split_at = layout.split_points().cloned();
    WantedLayout {
        by: by(layout).cloned(),
        counter: layout.counter_attributes().map(<[String]>::to_vec),
        // A rule's ranges have the usual slots, wherever those of the same bounds were before.
        slots: split_at.as_ref().map(|points| (0..points.ranges()).collect()),
        split_at,
        ..layout.shards.into()
    }
}

/// In which hundredth of all hashes a key lies, from 0.
pub(super) fn percent(key: &[u8]) -> u8 {
    u8::try_from((u128::from(xxh3_64(key)) * 100) >> 64).unwrap_or(99)
}

pub(super) fn too_many(table: &str, keys: usize) -> String {
    format!(
        "{keys} keys of table {table} would be on record, and {MAX_KEY_RECORDS} can be. Run this with --offline while nobody uses the table"
    )
}
