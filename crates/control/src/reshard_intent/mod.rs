//! What an operator wants of one logical key, or of one value of an index, until it is so: an item
//! of the registry that commands write, and gateways or commands carry out.
//!
//! An intent is a request and its progress. Where the key lies, and in which phase it is, says its
//! record (`key_record`, `record`) alone: an intent may be lost, or carried out twice, and no item
//! is. All intents lie in one partition, so one Query lists them. Every write is conditional on the
//! intent's version.
//!
//! - [`Steering`]: what whoever carries one out is told meanwhile.
//! - `item`: how an intent is stored. `on_record`: how it is read and written.
//! - [`UnderWay`]: what records say, whatever intents there are.
//!
//! Not here: who carries an intent out, and when (`heatsink_workers::Runner`).

mod item;
mod on_record;
mod steering;
mod under_way;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use heatsink_dynamo::{Error, KeyType};
use heatsink_layout::{By, Layout, Phase, SplitPoints, check_slots, in_slots, shards};
use serde::{Deserialize, Serialize};

pub use steering::Steering;
pub use under_way::UnderWay;

/// The layout that an operator wants a key to have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WantedLayout {
    /// How many shards; 1 for a whole key.
    pub shards: u16,
    /// What decides an item's shard; `None` for what decides it now, or the sort key where the key
    /// is whole. Never said of a value of an index.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<By>,
    /// The numbers that are summed over so many fragments, for a counter. Builds that know no
    /// counters of single keys cannot read an intent with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counter: Option<Vec<String>>,
    /// Where its ranges begin, for a key that is to lie in ranges of its sort key, one for each shard.
    /// Builds that know no ranges cannot read an intent with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub split_at: Option<SplitPoints>,
    /// The number of each shard's slot, by shard, of a key of the table. `None`: shards that the key
    /// has keep their slots, and a whole key lies under its own name. Builds that know no slots by
    /// name cannot read an intent with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<Vec<u16>>,
}

impl From<u16> for WantedLayout {
    fn from(shards: u16) -> Self {
        WantedLayout { shards, by: None, counter: None, split_at: None, slots: None }
    }
}

impl From<SplitPoints> for WantedLayout {
    fn from(points: SplitPoints) -> Self {
        WantedLayout { split_at: Some(points.clone()), ..points.ranges().into() }
    }
}

impl WantedLayout {
    /// The layout that a key has, or gets, as it can be asked for again.
    pub fn of(layout: &Layout) -> Self {
        let counter = layout.counter_attributes().map(<[String]>::to_vec);
        let slots = Some(layout.slots()).filter(|slots| !slots.is_empty()).map(<[u16]>::to_vec);
        WantedLayout { counter, slots, split_at: layout.split_points().cloned(), ..layout.shards.into() }
    }

    /// `4 shards`, or its ranges, and in which slots where that is asked for.
    pub fn in_words(&self) -> String {
        let slots = in_slots(self.slots.as_deref().unwrap_or_default());
        match &self.split_at {
            Some(points) => format!("{} ranges{slots}, split at {points}", self.shards),
            None => format!("{}{slots}", shards(self.shards)),
        }
    }

    /// Whether the slots and the ranges can be those of so many shards.
    fn is_sound(&self) -> bool {
        self.slots.as_ref().is_none_or(|slots| check_slots(slots, self.shards).is_ok())
            && self.split_at.as_ref().is_none_or(|points| points.ranges() == self.shards)
    }
}

/// What an operator asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The layout.
    pub layout: WantedLayout,
    /// Capacity units a second that moving items may take of the old shards; of a value of an
    /// index, items a second.
    pub rate: u32,
    /// Whether the table's stream may show each item that moves.
    pub streams_confirmed: bool,
    /// Who asked, for people.
    pub by: String,
    /// When, by the asker's clock: milliseconds since 1970. Intents of one table are carried out in
    /// this order.
    pub asked: u64,
}

/// Who carries an intent out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Carrier {
    /// The run: random, so that a run notices when another has taken over.
    pub run: u64,
    /// The gateway's id; empty for a command.
    pub gateway: String,
    /// Its name for people.
    pub name: String,
}

/// How far it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// The phase, as its carrier last knew it. A value of an index goes through RESERVE, PREPARE
    /// and MOVE.
    pub phase: Option<Phase>,
    /// How many items have been moved, or rewritten, by all carriers.
    pub moved: u64,
    /// About how many were to be moved; `None` until they are counted.
    pub to_move: Option<u64>,
    /// Items a second, lately.
    pub per_second: u64,
    /// Why it does not go on, while it does not. It is tried again.
    pub hindered: Option<String>,
}

/// How it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum EndedAs {
    /// The key has the layout.
    Moved,
    /// It was cancelled: the key has the layout of before.
    Cancelled,
    /// It stopped, and somebody has to do something.
    Stopped,
}

/// The end of an intent.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ended {
    /// How.
    #[serde(rename = "as")]
    pub how: EndedAs,
    /// The same in words; of one that stopped with what to do next.
    pub text: String,
    /// When, by the carrier's clock: milliseconds since 1970.
    pub at: u64,
}

/// What an intent is for, in its table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Subject<'a> {
    /// The index of whose partition key it is a value; `None` for a key of the table.
    pub index: Option<&'a str>,
    /// The bytes of the logical key, or of the value: UTF-8 of a string, raw binary.
    pub key: &'a [u8],
    /// Its type: a string or binary.
    pub key_type: KeyType,
}

impl<'a> From<(&'a [u8], KeyType)> for Subject<'a> {
    fn from((key, key_type): (&'a [u8], KeyType)) -> Self {
        Subject { index: None, key, key_type }
    }
}

impl Subject<'_> {
    /// It in words: `the key "game"`, `the value "open" of the index by-status`.
    pub fn in_words(&self) -> String {
        let key = key_text(self.key, self.key_type);
        match self.index {
            None => format!("the key {key:?}"),
            Some(index) => format!("the value {key:?} of the index {index}"),
        }
    }
}

/// An intent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReshardIntent {
    /// The store's id of the table.
    pub table_id: String,
    /// The table's name.
    pub table: String,
    /// The index of whose partition key it is a value; `None` for a key of the table. Builds that
    /// know no intents for values leave one with it alone.
    pub index: Option<String>,
    /// The bytes of the logical key, or of the value: UTF-8 of a string, raw binary.
    pub key: Vec<u8>,
    /// Its type: a string or binary.
    pub key_type: KeyType,
    /// What was asked for.
    pub request: Request,
    /// Whether no item is moved for now. A key on the way goes on to the phase in which its items
    /// move, for until then its writes may wait.
    pub paused: bool,
    /// Whether the key is to stay as it was, if that is still possible.
    pub cancelled: bool,
    /// Whether a carrier may have begun to change the key's record.
    pub begun: bool,
    /// Who carries it out; `None` while nobody does.
    pub carrier: Option<Carrier>,
    /// How far it is.
    pub progress: Progress,
    /// How it ended; `None` while it has not.
    pub ended: Option<Ended>,
    /// Counts the intent's changes; each is conditional on the one before. That it changes shows
    /// that its carrier lives.
    pub version: u64,
}

/// How many intents are looked at together. Those beyond wait until others are gone.
pub const MAX_INTENTS: usize = 10_000;

/// The intents of a registry.
#[derive(Clone, Debug, Default)]
pub struct Intents {
    /// Those that can be read, by table and key.
    pub known: Vec<ReshardIntent>,
    /// What is wrong with the others: they are damaged, or a newer version wrote them. Nobody
    /// carries them out.
    pub unknown: Vec<Error>,
    /// Where the list goes on, if these are not all.
    pub next: Option<String>,
}

impl Intents {
    /// How many there are, known or not.
    pub fn len(&self) -> usize {
        self.known.len() + self.unknown.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

/// A key for people: text as it is, binary in base64.
pub fn key_text(key: &[u8], key_type: KeyType) -> String {
    match key_type {
        KeyType::B => STANDARD.encode(key),
        _ => String::from_utf8_lossy(key).into_owned(),
    }
}

/// A key for a log: cut where it is long.
pub fn key_brief(key: &str) -> String {
    const MOST: usize = 64;
    match key.char_indices().nth(MOST) {
        None => key.to_owned(),
        Some((end, _)) => format!("{}…", &key[..end]),
    }
}

impl ReshardIntent {
    /// What it is for.
    pub fn subject(&self) -> Subject<'_> {
        Subject { index: self.index.as_deref(), key: &self.key, key_type: self.key_type }
    }

    /// The key for people.
    pub fn key_text(&self) -> String {
        key_text(&self.key, self.key_type)
    }

    /// Whether somebody has still something to do for it.
    pub fn is_open(&self) -> bool {
        self.ended.is_none()
    }

    /// The next version of it, to change and write.
    #[must_use]
    pub fn next(&self) -> Self {
        ReshardIntent { version: self.version + 1, ..self.clone() }
    }
}
