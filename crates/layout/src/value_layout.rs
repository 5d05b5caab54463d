//! One value of an index's key that is on record by itself, in an index that no rule names: only
//! that value is spread. Every other value is stored as clients send it, and is not escaped:
//! `open#~3` is a shard of `open` only if `open` is on record and had more than three shards at
//! some time.
//!
//! **Former shard counts.** The items to rewrite are found in the index. An item that has the
//! attribute and not the index's sort key is in no index: it keeps the form that it had. So every
//! shard count that the value ever had stays on record, and conditions and Queries know all forms,
//! unless an index without a sort key holds all items of the value.
//!
//! Not here: what is stored of a value ([`IndexKey`](crate::IndexKey)); who rewrites it (`adopt`).

use heatsink_dynamo::{KeyType, Value};
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::OfIndex;

/// How many values of one table can be on record. Every gateway holds all of them in memory, and
/// every change reads and writes them all.
pub const MAX_VALUE_LAYOUTS: usize = 100;

/// The most bytes that they take together on record, as JSON, of the 400 KB of an item.
pub const MAX_VALUE_BYTES: usize = 200_000;

/// The layout of one value of an index's key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "Recorded", into = "Recorded")]
pub struct ValueLayout {
    /// The index whose partition key it is a value of.
    pub index: OfIndex,
    /// The value's bytes: UTF-8 of a string, raw binary.
    pub value: Vec<u8>,
    /// Over how many shards it is spread; while it migrates, before.
    pub shards: u16,
    /// What it migrates to.
    pub migration: Option<ValueMigration>,
    /// Shard counts that it had, in which items that are in no index may still be stored.
    pub former: Vec<u16>,
    /// The most shards that it ever had, or is about to get: clients' values that are written like
    /// them are refused.
    pub reserved: u16,
}

/// How far the migration of a value has come.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ValueMigration {
    /// Over how many shards it will be spread.
    pub to: u16,
    /// Whether gateways write the new form, and items are being rewritten.
    pub writes_new: bool,
    /// The run that rewrites: random, so that a run notices when another has taken over.
    pub run: u64,
}

impl ValueLayout {
    /// The shard count by which it is written.
    pub(crate) fn written(&self) -> u16 {
        match &self.migration {
            Some(migration) if migration.writes_new => migration.to,
            _ => self.shards,
        }
    }

    /// The shard count that it has once it has migrated.
    pub fn target(&self) -> u16 {
        self.migration.map_or(self.shards, |migration| migration.to)
    }

    /// All shard counts by which items may be stored; some perhaps twice.
    pub(crate) fn counts(&self) -> impl Iterator<Item = u16> {
        [self.shards, self.target()].into_iter().chain(self.former.iter().copied())
    }

    /// In how many shards items may lie.
    pub fn extent(&self) -> u16 {
        self.counts().max().unwrap_or(1)
    }

    /// Whether items may be stored in several forms.
    pub(crate) fn is_mixed(&self) -> bool {
        self.migration.is_some() || !self.former.is_empty()
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Recorded {
    index: OfIndex,
    value: Json,
    shards: u16,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    migration: Option<ValueMigration>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    former: Vec<u16>,
    reserved: u16,
}

impl From<ValueLayout> for Recorded {
    fn from(one: ValueLayout) -> Self {
        let value = match one.index.attribute.key_type {
            KeyType::B => Value::B(one.value.into()),
            _ => Value::S(String::from_utf8_lossy(&one.value).into_owned()),
        };
        let value = serde_json::from_slice(&value.to_json()).unwrap_or_default();
        let ValueLayout { index, shards, migration, former, reserved, .. } = one;
        Recorded { index, value, shards, migration, former, reserved }
    }
}

impl TryFrom<Recorded> for ValueLayout {
    type Error = &'static str;

    fn try_from(recorded: Recorded) -> Result<Self, &'static str> {
        let Recorded { index, value, shards, migration, former, reserved } = recorded;
        let value = match (Value::read(value.to_string().as_bytes()), index.attribute.key_type) {
            (Ok(Value::S(text)), KeyType::S) => text.into_bytes(),
            (Ok(Value::B(bytes)), KeyType::B) => bytes.to_vec(),
            _ => return Err("the value is not of the type of the index's key"),
        };
        let one = ValueLayout { index, value, shards, migration, former, reserved };
        let is_sound = one.counts().all(|count| (1..=reserved).contains(&count));
        if is_sound { Ok(one) } else { Err("the shard counts are not those of one value") }
    }
}
