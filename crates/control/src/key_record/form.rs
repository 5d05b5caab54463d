//! The record of a key as an item of the registry, which older and newer builds read too.
//!
//! Not here: when it is read and written (`key_record`).

use heatsink_dynamo::{Error, KeyType, KeyValue, Value};
use heatsink_layout::{Layout, Moving, Phase};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use crate::counted::counted;
use crate::record::{
    FORM_OF_BUCKETS, FORM_OF_COUNTER, FORM_OF_LONG_KEY, FORM_OF_NARROWING, FORM_OF_NUMBERS, FORM_OF_SLOTS,
    FORM_WITH_KEYS, Record,
};
use crate::registry_key::{self, Place};
use crate::seal;

/// How the sort keys of these records begin. What follows is the logical key, or [its hash](Place).
pub(super) const SORT: &str = "key:";

/// The attribute that holds a move's [high water](Move::high_water), as it is in the items of the
/// table.
const HIGH_WATER: &str = "high_water";

/// The attribute that holds a key that stands by its hash.
const WHOLE: &str = "key";

/// The record of one logical key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRecord {
    /// The logical key's bytes: UTF-8 of a string, the canonical text of a number, raw binary.
    pub key: Vec<u8>,
    /// Its type.
    pub key_type: KeyType,
    /// The layout in force; while the key moves, the one before.
    pub layout: Layout,
    /// Where the key moves, and how far it has come; `None` for one that stays.
    pub moves: Option<Move>,
    /// Whether no request that was planned under an earlier layout can take effect any more. Only
    /// then may the key move again.
    pub settled: bool,
    /// Above the highest slot that the key ever had: the physical keys of all slots below are its
    /// own for ever.
    pub reserved: u16,
    /// Counts the record's changes; each is conditional on the one before.
    pub version: u64,
    /// When it was last changed: milliseconds since 1970-01-01T00:00:00Z.
    pub changed: u64,
    /// The version of the table's record with which the key began to lie, or to move, as it does
    /// ([`RecordedKey::since`]). Whoever writes the record need not set it.
    pub since: u64,
}

/// The move of a key to another layout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Move {
    /// The layout that it gets.
    pub to: Layout,
    /// How far it has come.
    pub phase: Phase,
    /// What was reserved before: what is above is given back if the key does not move.
    pub reserved_before: u16,
    /// Whether the workers of this phase are done, and none may claim the table any more. Gateways
    /// take no notice of it.
    pub closing: bool,
    /// The attribute that says when an item expires, if the table has time to live: as it was read
    /// once no gateway would change that any more, so from PREPARE on. Older builds do not know it
    /// and refuse the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
    /// Whether old copies are marked before they are deleted ([`Moving::marks`]). As `expires`.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub marks: bool,
    /// The highest sort key in the old slots, in MOVE: as it was read once no gateway would put an
    /// item there any more. `None` where nobody could read it, where nothing was there, and in
    /// records of older builds.
    #[serde(skip)]
    pub high_water: Option<KeyValue<'static>>,
}

impl KeyRecord {
    /// Where a key's record stands.
    ///
    /// # Errors
    /// `ValidationException` for what its type cannot be.
    pub(crate) fn place(key: &[u8], key_type: KeyType) -> Result<Place, Error> {
        Place::of(SORT, key, key_type)
            .ok_or_else(|| Error::validation("A key that its table cannot have cannot be put on record"))
    }

    fn form(&self, hashed: bool) -> u64 {
        let layouts = || std::iter::once(&self.layout).chain(self.moves.as_ref().map(|moves| &moves.to));
        if self.moves.as_ref().is_some_and(|moves| Moving::narrows(&self.layout, &moves.to)) {
            FORM_OF_NARROWING
        } else if self.key_type == KeyType::N {
            FORM_OF_NUMBERS
        } else if layouts().any(|layout| !layout.slots().is_empty()) {
            FORM_OF_SLOTS
        } else if hashed {
            FORM_OF_LONG_KEY
        } else if layouts().any(|layout| layout.time().is_some()) {
            FORM_OF_BUCKETS
        } else if layouts().any(|layout| layout.counter_attributes().is_some()) {
            FORM_OF_COUNTER
        } else {
            FORM_WITH_KEYS
        }
    }

    pub(super) fn item(&self, table: &Record) -> Result<Json, Error> {
        let Place { sort, hashed } = KeyRecord::place(&self.key, self.key_type)?;
        let mut item = json!({
            "pk": { "S": table.id },
            "sk": { "S": sort },
            "form": { "N": self.form(hashed).to_string() },
            "name": { "S": table.name },
            "type": { "S": self.key_type.name() },
            "layout": { "S": json!(self.layout).to_string() },
            "settled": { "BOOL": self.settled },
            "reserved": { "N": self.reserved.to_string() },
            "version": { "N": self.version.to_string() },
            "changed": { "N": self.changed.to_string() },
            "since": { "N": self.since.to_string() },
        });
        if hashed {
            item[WHOLE] = json!({ "S": registry_key::text(&self.key, self.key_type) });
        }
        if let Some(moves) = &self.moves {
            item["moves"] = json!({ "S": json!(moves).to_string() });
            // Beside the move: older builds, which read both places of every item, take no notice
            // of it.
            if let Some(high_water) = &moves.high_water {
                item[HIGH_WATER] = attribute_value(high_water)?;
            }
        }
        Ok(seal::sealed(item))
    }

    pub(super) fn read(item: &Json) -> Result<Self, Error> {
        let text = |name: &str| item[name]["S"].as_str();
        let number = |name: &str| counted(item, name);
        let (table, sort) = (text("name").unwrap_or("?"), text("sk").unwrap_or_default());
        let known = matches!(
            number("form"),
            Some(
                FORM_WITH_KEYS
                    | FORM_OF_COUNTER
                    | FORM_OF_BUCKETS
                    | FORM_OF_LONG_KEY
                    | FORM_OF_SLOTS
                    | FORM_OF_NUMBERS
                    | FORM_OF_NARROWING
            )
        );
        // JSON that means nothing here is a newer version's strategy, hash or phase.
        let unknown = |name: &str, is_known: fn(&Json) -> bool| {
            let json = text(name).map(serde_json::from_str::<Json>);
            matches!(json, Some(Ok(json)) if !is_known(&json))
        };
        let newer = unknown("layout", |json| Layout::deserialize(json).is_ok())
            || unknown("moves", |json| Move::deserialize(json).is_ok());
        let broken = seal::is_broken(item);
        if !known || newer && !broken {
            return Err(Error::internal(format!(
                "The registry's record {sort:?} of table {table} says something that this version of Heatsink does not know; it was written by \
                 another version"
            )));
        }
        let read = || {
            let key_type = [KeyType::S, KeyType::N, KeyType::B]
                .into_iter()
                .find(|one| Some(one.name()) == text("type"))?;
            // Of a key with slots by name, and of a counter that narrows, only the attribute says it.
            let hashed = match number("form") {
                Some(FORM_OF_SLOTS | FORM_OF_NARROWING) => text(WHOLE).is_some(),
                form => form == Some(FORM_OF_LONG_KEY),
            };
            let key =
                registry_key::bytes(if hashed { text(WHOLE)? } else { sort.strip_prefix(SORT)? }, key_type)?;
            let place = KeyRecord::place(&key, key_type).ok()?;
            if (hashed || place.hashed) && place.sort != sort {
                return None;
            }
            let layout: Layout = serde_json::from_str(text("layout")?).ok()?;
            let mut moves: Option<Move> = match text("moves") {
                Some(text) => Some(serde_json::from_str(text).ok()?),
                None => None,
            };
            if let Some(high_water) = item.get(HIGH_WATER) {
                let moves = moves.as_mut().filter(|moves| moves.phase == Phase::Move)?;
                let value = Value::read(high_water.to_string().as_bytes()).ok()?;
                moves.high_water = Some(KeyValue::from_value(&value)?.into_owned());
            }
            // Where a counter gets more fragments, or buckets get other numbers of shards, there is
            // nothing to hold or to move; where one gets fewer, nothing to hold.
            let leaves_items = |moves: &Move| {
                let folds = Moving::narrows(&layout, &moves.to) && moves.phase == Phase::Move;
                Moving::leaves_items(&layout, &moves.to) && (moves.phase <= Phase::Prepare || folds)
            };
            let is_special =
                |layout: &Layout| layout.counter_attributes().is_some() || layout.time().is_some();
            let unsound = |moves: &Move| is_special(&moves.to) && !leaves_items(moves);
            let layouts = || std::iter::once(&layout).chain(moves.as_ref().map(|moves| &moves.to));
            if moves.as_ref().is_some_and(unsound) || !layouts().all(Layout::is_sound) {
                return None;
            }
            let most = layouts().map(Layout::slot_bound).max().unwrap_or(1);
            let reserved = number("reserved")?.try_into().ok().filter(|reserved| *reserved >= most)?;
            let (version, changed) = (number("version")?, number("changed")?);
            // A record of an older build does not say it: then the key may have changed a moment
            // ago.
            let since = number("since").unwrap_or(u64::MAX);
            let settled = item["settled"]["BOOL"].as_bool()?;
            let record =
                KeyRecord { key, key_type, layout, moves, settled, reserved, version, changed, since };
            (!broken && number("form") == Some(record.form(hashed))).then_some(record)
        };
        read().ok_or_else(|| {
            Error::internal(format!("The registry's record {sort:?} of table {table} is damaged"))
        })
    }
}

/// A key's value, as an attribute value.
fn attribute_value(value: &KeyValue<'_>) -> Result<Json, Error> {
    let mut raw = Vec::new();
    value.write(&mut raw);
    serde_json::from_slice(&raw).map_err(|_| Error::internal("a sort key could not be written"))
}
