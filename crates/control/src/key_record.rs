//! The record of one logical key: how its items are laid out, whatever the table's rules say. Keys have records one by one, so that one hot key of a
//! table is sharded while all others stay as they are, without a rule and without reading the table.
//!
//! A record is never removed: it goes on to say which physical keys its key once had. Not here: the table's own record (`record`), and what a record
//! means for requests (`heatsink_layout::KeyLayouts`).

use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::FutureExt;
use futures::future::BoxFuture;
use heatsink_dynamo::{Code, Error, KeyType, Operation, Outcome};
use heatsink_layout::{InForce, KeyLayouts, Layout, Moving, Phase, RecordedKey};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use crate::record::{FORM_OF_BUCKETS, FORM_OF_COUNTER, FORM_WITH_KEYS, Record};
use crate::registry::Registry;

/// How the sort keys of these records begin. What follows is the logical key: text as it is, binary in base64.
const SORT: &str = "key:";

/// How long a sort key of a DynamoDB item can be, in bytes (AWS Developer Guide, "Constraints", sort keys).
const MAX_SORT_KEY: usize = 1024;

/// How many keys of one table can be on record. Every gateway holds all of them in memory.
pub const MAX_KEY_RECORDS: usize = 10_000;

/// The record of one logical key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyRecord {
    /// The logical key's bytes: UTF-8 of a string, raw binary.
    pub key: Vec<u8>,
    /// Its type: a string or binary. A number has no room for a shard.
    pub key_type: KeyType,
    /// The layout in force; while the key moves, the one before.
    pub layout: Layout,
    /// Where the key moves, and how far it has come; `None` for one that stays.
    pub moves: Option<Move>,
    /// Whether no request that was planned under an earlier layout can take effect any more. Only then may the key move again.
    pub settled: bool,
    /// The most shards that the key ever had: their physical keys are its own for ever.
    pub reserved: u16,
    /// Counts the record's changes; each is conditional on the one before.
    pub version: u64,
    /// When it was last changed: milliseconds since 1970-01-01T00:00:00Z.
    pub changed: u64,
    /// The version of the table's record with which the key began to lie, or to move, as it does ([`RecordedKey::since`]). Whoever writes the record
    /// need not set it.
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
    /// The most shards that the key had before: those above are given back if it does not move.
    pub reserved_before: u16,
    /// Whether the workers of this phase are done, and none may claim the table any more. Gateways take no notice of it.
    pub closing: bool,
    /// The attribute that says when an item expires, if the table has time to live: as it was read once no gateway would change that any more, so
    /// from PREPARE on. Older builds do not know it and refuse the record.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<String>,
}

impl KeyRecord {
    /// The sort key of a key's record; `None` for a key that cannot be on record: a number, or one that is too long for it.
    fn sort(key: &[u8], key_type: KeyType) -> Option<String> {
        let text = match key_type {
            KeyType::S => std::str::from_utf8(key).ok()?.to_owned(),
            KeyType::B => STANDARD.encode(key),
            KeyType::N => return None,
        };
        Some(format!("{SORT}{text}")).filter(|sort| sort.len() <= MAX_SORT_KEY)
    }

    fn form(&self) -> u64 {
        let layouts = || std::iter::once(&self.layout).chain(self.moves.as_ref().map(|moves| &moves.to));
        if layouts().any(|layout| layout.time().is_some()) {
            FORM_OF_BUCKETS
        } else if layouts().any(|layout| layout.counter_attributes().is_some()) {
            FORM_OF_COUNTER
        } else {
            FORM_WITH_KEYS
        }
    }

    fn item(&self, table: &Record) -> Result<Json, Error> {
        let sort = KeyRecord::sort(&self.key, self.key_type).ok_or_else(|| unrecordable(&self.key))?;
        let mut item = json!({
            "pk": { "S": table.id },
            "sk": { "S": sort },
            "form": { "N": self.form().to_string() },
            "name": { "S": table.name },
            "type": { "S": self.key_type.name() },
            "layout": { "S": json!(self.layout).to_string() },
            "settled": { "BOOL": self.settled },
            "reserved": { "N": self.reserved.to_string() },
            "version": { "N": self.version.to_string() },
            "changed": { "N": self.changed.to_string() },
            "since": { "N": self.since.to_string() },
        });
        if let Some(moves) = &self.moves {
            item["moves"] = json!({ "S": json!(moves).to_string() });
        }
        Ok(item)
    }

    fn read(item: &Json) -> Result<Self, Error> {
        let text = |name: &str| item[name]["S"].as_str();
        let number = |name: &str| item[name]["N"].as_str().and_then(|text| text.parse::<u64>().ok());
        let (table, sort) = (text("name").unwrap_or("?"), text("sk").unwrap_or_default());
        let known = matches!(number("form"), Some(FORM_WITH_KEYS | FORM_OF_COUNTER | FORM_OF_BUCKETS));
        // JSON that means nothing here is a newer version's strategy, hash or phase.
        let unknown = |name: &str, is_known: fn(&Json) -> bool| {
            let json = text(name).map(serde_json::from_str::<Json>);
            matches!(json, Some(Ok(json)) if !is_known(&json))
        };
        let newer = unknown("layout", |json| Layout::deserialize(json).is_ok())
            || unknown("moves", |json| Move::deserialize(json).is_ok());
        if !known || newer {
            return Err(Error::internal(format!(
                "The registry's record {sort:?} of table {table} says something that this version of Heatsink does not know; it was written by \
                 another version"
            )));
        }
        let read = || {
            let key_type =
                [KeyType::S, KeyType::B].into_iter().find(|one| Some(one.name()) == text("type"))?;
            let text_of_key = sort.strip_prefix(SORT)?;
            let key = match key_type {
                KeyType::B => STANDARD.decode(text_of_key).ok()?,
                _ => text_of_key.as_bytes().to_vec(),
            };
            let layout: Layout = serde_json::from_str(text("layout")?).ok()?;
            let moves: Option<Move> = match text("moves") {
                Some(text) => Some(serde_json::from_str(text).ok()?),
                None => None,
            };
            // A counter only gets more fragments, and buckets other numbers of shards: there is nothing to hold or to move.
            let leaves_items =
                |moves: &Move| Moving::leaves_items(&layout, &moves.to) && moves.phase <= Phase::Prepare;
            let is_special =
                |layout: &Layout| layout.counter_attributes().is_some() || layout.time().is_some();
            let unsound = |moves: &Move| is_special(&moves.to) && !leaves_items(moves);
            let layouts = || std::iter::once(&layout).chain(moves.as_ref().map(|moves| &moves.to));
            if moves.as_ref().is_some_and(unsound) || !layouts().all(Layout::has_sound_steps) {
                return None;
            }
            let most = layouts().map(Layout::most_shards).max().unwrap_or(1);
            let reserved = number("reserved")?.try_into().ok().filter(|reserved| *reserved >= most)?;
            let (version, changed) = (number("version")?, number("changed")?);
            // A record of an older build does not say it: then the key may have changed a moment ago.
            let since = number("since").unwrap_or(u64::MAX);
            let settled = item["settled"]["BOOL"].as_bool()?;
            let record =
                KeyRecord { key, key_type, layout, moves, settled, reserved, version, changed, since };
            (number("form") == Some(record.form())).then_some(record)
        };
        read().ok_or_else(|| {
            Error::internal(format!("The registry's record {sort:?} of table {table} is damaged"))
        })
    }

    /// Whether items lie, and go, where they do according to another record of the key. None go before PREPARE, nor where a counter widens, or buckets
    /// without items get another number of shards.
    fn lies_as(&self, other: &KeyRecord) -> bool {
        let to = |record: &KeyRecord| {
            let moves = record.moves.as_ref().filter(|moves| moves.phase > Phase::Reserve);
            moves.map(|moves| moves.to.clone()).filter(|to| !Moving::leaves_items(&record.layout, to))
        };
        self.layout.places_as(&other.layout) && to(self) == to(other)
    }

    fn recorded(self) -> (Vec<u8>, RecordedKey) {
        let from = Arc::new(self.layout);
        let in_force = match self.moves {
            None => InForce::Stable(from),
            Some(Move { to, phase, expires, .. }) => {
                let (to, expires) = (Arc::new(to), expires.map(Arc::from));
                Moving { from, to, phase, expires }.in_force()
            }
        };
        let (reserved, since, settled) = (self.reserved, self.since, self.settled);
        (self.key, RecordedKey { in_force, reserved, since, settled })
    }
}

fn unrecordable(key: &[u8]) -> Error {
    Error::validation(format!(
        "A key of {} bytes cannot be put on record: it must be a string or binary whose record's key takes at most {MAX_SORT_KEY} bytes",
        key.len()
    ))
}

impl Registry {
    /// The record of one key; `None` if it has none. Strongly consistent.
    ///
    /// # Errors
    /// The store's; a record that cannot be read; `ValidationException` for a key that cannot be on record.
    pub async fn key_record(
        &self,
        id: &str,
        key: &[u8],
        key_type: KeyType,
    ) -> Result<Option<KeyRecord>, Error> {
        let sort = KeyRecord::sort(key, key_type).ok_or_else(|| unrecordable(key))?;
        let key = json!({ "pk": { "S": id }, "sk": { "S": sort } });
        let body = json!({ "TableName": self.name(), "Key": key, "ConsistentRead": true });
        let answer = self.call_patiently(Operation::GetItem, body).await;
        let answer = answer.map_err(|error| self.failed(error))?;
        answer.get("Item").map(KeyRecord::read).transpose()
    }

    /// The records of all keys of a table, by key. Strongly consistent.
    ///
    /// # Errors
    /// The store's; a record that cannot be read.
    pub fn key_records<'a>(&'a self, id: &'a str) -> BoxFuture<'a, Result<Vec<KeyRecord>, Error>> {
        async move {
            let mut found = Vec::new();
            let mut start = Json::Null;
            loop {
                let mut body = json!({
                    "TableName": self.name(), "ConsistentRead": true, "KeyConditionExpression": "pk = :p AND begins_with(sk, :s)",
                    "ExpressionAttributeValues": { ":p": { "S": id }, ":s": { "S": SORT } },
                });
                if !start.is_null() {
                    body["ExclusiveStartKey"] = start;
                }
                let page = self.call_patiently(Operation::Query, body).await;
                let mut page = page.map_err(|error| self.failed(error))?;
                for item in page["Items"].as_array().into_iter().flatten() {
                    found.push(KeyRecord::read(item)?);
                }
                start = page["LastEvaluatedKey"].take();
                if start.is_null() {
                    return Ok(found);
                }
            }
        }
        .boxed()
    }

    /// The layouts of a table's recorded keys: `known`, where the table's record says that they have not changed since.
    ///
    /// # Errors
    /// As [`key_records`](Self::key_records).
    pub async fn key_layouts(
        &self,
        record: &Record,
        known: Option<Arc<KeyLayouts>>,
    ) -> Result<Arc<KeyLayouts>, Error> {
        match known {
            _ if record.keys == 0 => Ok(Arc::default()),
            Some(known) if known.version() == record.keys => Ok(known),
            _ => {
                let records = self.key_records(&record.id).await?;
                let keys = records.into_iter().map(KeyRecord::recorded);
                Ok(Arc::new(KeyLayouts::new(record.keys, keys)))
            }
        }
    }

    /// Writes the record of a key, if it still equals `from` (`None`: if there is none), and with it the table's record, if that still equals
    /// `table`. Returns both as they are then, of which the table's has to be published; `None` when either had changed: then neither was written.
    ///
    /// # Errors
    /// The store's; `ValidationException` for a key that cannot be on record.
    pub fn replace_key<'a>(
        &'a self,
        table: &'a Record,
        from: Option<&'a KeyRecord>,
        to: &'a KeyRecord,
    ) -> BoxFuture<'a, Result<Option<(Record, KeyRecord)>, Error>> {
        async move {
            let version = table.version + 1;
            let next = Record { version, keys: version, ..table.clone() };
            let since = match from {
                Some(from) if from.lies_as(to) => from.since,
                // It lies as it always did.
                None if to.moves.as_ref().is_some_and(|moves| moves.phase == Phase::Reserve) => 0,
                _ => version,
            };
            let to = KeyRecord { since, ..to.clone() };
            let unchanged = |version: u64| {
                json!({
                    "ConditionExpression": "#v = :v", "ExpressionAttributeNames": { "#v": "version" },
                    "ExpressionAttributeValues": { ":v": { "N": version.to_string() } },
                })
            };
            let put = |item: Json, mut put: Json| {
                put["TableName"] = json!(self.name());
                put["Item"] = item;
                json!({ "Put": put })
            };
            let of_key = match from {
                Some(from) => unchanged(from.version),
                None => json!({ "ConditionExpression": "attribute_not_exists(pk)" }),
            };
            let body = json!({ "TransactItems": [put(next.item(), unchanged(table.version)), put(to.item(table)?, of_key)] });
            match self.call_patiently(Operation::TransactWriteItems, body).await {
                Ok(_) => Ok(Some((next, to))),
                Err(error)
                    if error.code == Code::TransactionCanceledException || error.outcome == Outcome::Unknown =>
                {
                    // This process may have done it, and the answer was lost. A later change of another key would hide that: the key's record tells.
                    let done = self.key_records(&table.id).await?.contains(&to);
                    match self.read(&table.id).await? {
                        Some(found) if done && found.keys >= version => Ok(Some((found, to))),
                        _ => Ok(None),
                    }
                }
                Err(error) => Err(self.failed(error)),
            }
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use heatsink_layout::{Bucket, By, Epoch, Granularity, Hash, Strategy, Time};

    use super::*;

    fn layout(strategy: Strategy, shards: u16) -> Layout {
        Layout { strategy, shards, hash: Hash::JumpXxh3, version: 2 }
    }

    fn counter(shards: u16) -> Layout {
        layout(Strategy::Counter { attributes: vec!["n".to_owned()] }, shards)
    }

    fn table() -> Record {
        Record {
            id: "1-2".to_owned(),
            name: "Posts".to_owned(),
            layouts: heatsink_layout::TableLayouts::default(),
            state: crate::State::Active,
            version: 5,
            created: 0,
            made: None,
            adopted: true,
            keys: 5,
            values: Vec::new(),
        }
    }

    fn record(layout: Layout, to: Option<(Layout, Phase)>) -> KeyRecord {
        let reserved_before = layout.shards;
        let reserved = to.as_ref().map_or(layout.shards, |(to, _)| to.shards.max(layout.shards));
        let moves = to.map(|(to, phase)| Move { to, phase, reserved_before, closing: false, expires: None });
        let (key, key_type) = (b"p".to_vec(), KeyType::S);
        KeyRecord { key, key_type, layout, moves, settled: true, reserved, version: 3, changed: 9, since: 4 }
    }

    #[test]
    fn older_builds_read_no_record_of_a_counter() {
        let calculated = layout(Strategy::Calculated { by: By::SortKey }, 4);
        let widens = record(Layout::none(), Some((counter(4), Phase::Prepare)));
        let records = [
            (record(calculated.clone(), None), "3"),
            (record(Layout::none(), Some((calculated, Phase::Move))), "3"),
            (record(counter(4), None), "4"),
            (widens.clone(), "4"),
        ];
        for (record, form) in records {
            let item = record.item(&table()).unwrap();
            assert_eq!(item["form"]["N"], form);
            assert_eq!(KeyRecord::read(&item).unwrap(), record);
        }
        // A counter in the form that older builds read was written by nobody; nor does one move.
        let broken = |form: &str, record: &KeyRecord| {
            let mut item = record.item(&table()).unwrap();
            item["form"]["N"] = json!(form);
            KeyRecord::read(&item).unwrap_err().to_string()
        };
        assert!(broken("3", &widens).contains("damaged"));
        assert!(broken("5", &widens).contains("another version"));
        let moves = record(Layout::none(), Some((counter(4), Phase::Move)));
        assert!(broken("4", &moves).contains("damaged"));
    }

    fn buckets(shards: u16) -> Layout {
        let time = Time { granularity: Granularity::Day, prefix: String::new(), epoch: Epoch::Seconds };
        layout(Strategy::Bucket { time, by: By::SortKey, earlier: Vec::new() }, shards)
    }

    fn day(number: i64) -> Bucket {
        Bucket::at(number * 86_400, Granularity::Day).unwrap()
    }

    #[test]
    fn older_builds_read_no_record_of_a_key_with_buckets() {
        let four = buckets(1).stepped(day(20), 4).unwrap();
        let fewer = four.stepped(day(30), 2).unwrap();
        let records = [
            record(buckets(2), None),
            record(buckets(1), Some((four.clone(), Phase::Reserve))),
            record(four.clone(), None),
            KeyRecord { reserved: 4, ..record(four.clone(), Some((fewer, Phase::Prepare))) },
        ];
        for record in &records {
            let item = record.item(&table()).unwrap();
            assert_eq!(item["form"]["N"], "6");
            assert_eq!(KeyRecord::read(&item).unwrap(), *record);
            for former in ["3", "4"] {
                let mut item = item.clone();
                item["form"]["N"] = json!(former);
                assert!(KeyRecord::read(&item).unwrap_err().to_string().contains("damaged"));
            }
        }
        // No such key goes further than PREPARE, becomes something else, or gives its oldest buckets another number; nor are fewer names its own.
        let moves = |to: Layout, phase| record(buckets(1), Some((to, phase)));
        let calculated = layout(Strategy::Calculated { by: By::SortKey }, 4);
        for damaged in [
            moves(four.clone(), Phase::Hold),
            moves(buckets(4), Phase::Prepare),
            record(calculated, Some((four.clone(), Phase::Prepare))),
            KeyRecord { reserved: 3, ..record(four, None) },
        ] {
            let item = damaged.item(&table()).unwrap();
            assert!(KeyRecord::read(&item).unwrap_err().to_string().contains("damaged"), "{damaged:?}");
        }
    }

    #[test]
    fn buckets_that_get_another_number_of_shards_lie_as_they_did() {
        let four = buckets(1).stepped(day(20), 4).unwrap();
        let held = record(buckets(1), Some((four.clone(), Phase::Prepare)));
        assert!(record(buckets(1), None).lies_as(&held) && held.lies_as(&record(four.clone(), None)));
        assert!(!record(buckets(1), None).lies_as(&record(buckets(4), None)));
        let in_force = |phase| {
            let (_, recorded) = record(buckets(1), Some((four.clone(), phase))).recorded();
            let InForce::Stepping(stepping) = recorded.in_force else { panic!("{phase:?}") };
            (stepping.layout.shards, stepping.held_from)
        };
        assert_eq!(in_force(Phase::Reserve), (1, day(20)));
        assert_eq!(in_force(Phase::Prepare), (4, day(20)));
    }

    #[test]
    fn a_counter_that_widens_lies_as_it_did() {
        let whole = record(Layout::none(), None);
        let widens = record(Layout::none(), Some((counter(4), Phase::Prepare)));
        assert!(whole.lies_as(&widens) && widens.lies_as(&record(counter(4), None)));
        let moves = record(
            Layout::none(),
            Some((layout(Strategy::Calculated { by: By::SortKey }, 4), Phase::Prepare)),
        );
        assert!(!whole.lies_as(&moves));
    }

    #[test]
    fn a_record_says_by_which_attribute_items_expire_and_an_unknown_one_is_refused() {
        let table = table();
        let of = |expires: Option<&str>| {
            let expires = expires.map(str::to_owned);
            let moves =
                Move { to: Layout::none(), phase: Phase::Move, reserved_before: 1, closing: false, expires };
            KeyRecord {
                key: b"game".to_vec(),
                key_type: KeyType::S,
                layout: Layout::none(),
                moves: Some(moves),
                settled: false,
                reserved: 1,
                version: 5,
                changed: 0,
                since: 2,
            }
        };
        for expires in [None, Some("gone")] {
            let record = of(expires);
            let item = record.item(&table).unwrap_or_default();
            assert_eq!(KeyRecord::read(&item).ok(), Some(record.clone()));
            let (_, recorded) = record.recorded();
            let InForce::Moving(moving) = recorded.in_force else { panic!("it moves") };
            assert_eq!(moving.expires.as_deref(), expires);
        }
        // Without time to live it is the record that every build knows; what a build does not know it refuses.
        let mut item = of(None).item(&table).unwrap_or_default();
        let text = item["moves"]["S"].as_str().unwrap_or_default().to_owned();
        assert!(!text.contains("expires"), "{text}");
        item["moves"]["S"] = json!(text.replacen('{', "{\"later\":1,", 1));
        let refused = KeyRecord::read(&item).map_err(|error| error.to_string());
        assert!(refused.is_err_and(|why| why.contains("written by another version")));
    }
}
