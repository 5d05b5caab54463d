//! What an operator wants of one logical key, until it is so: an item of the registry that commands write and gateways carry out.
//!
//! An intent is a request and its progress. Where the key lies, and in which phase it is, says its record (`key_record`) alone: an intent may be lost,
//! or carried out twice, and no item is. All intents lie in one partition, so one Query lists them. Every write is conditional on the intent's version.
//!
//! Not here: who carries an intent out, and when (`heatsink_mover::Runner`).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use futures::FutureExt;
use futures::future::BoxFuture;
use heatsink_dynamo::{Code, Error, KeyType, Operation, Outcome};
use heatsink_layout::{By, Phase};
use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use crate::registry::Registry;

/// The partition of all intents.
const PARTITION: &str = "reshards";

/// The form of an intent that this version writes and reads.
const FORM: u64 = 1;

/// How long a sort key of a DynamoDB item can be, in bytes (AWS Developer Guide, "Constraints", sort keys).
const MAX_SORT_KEY: usize = 1024;

/// The layout that an operator wants a key to have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WantedLayout {
    /// How many shards; 1 for a whole key.
    pub shards: u16,
    /// What decides an item's shard; `None` for what decides it now, or the sort key where the key is whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub by: Option<By>,
    /// The numbers that are summed over so many fragments, for a counter. Builds that know no counters of single keys cannot read an intent with it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counter: Option<Vec<String>>,
}

impl From<u16> for WantedLayout {
    fn from(shards: u16) -> Self {
        WantedLayout { shards, by: None, counter: None }
    }
}

/// What an operator asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// The layout.
    pub layout: WantedLayout,
    /// Capacity units a second that moving items may take of the old shards.
    pub rate: u32,
    /// Whether the table's stream may show each item that moves.
    pub streams_confirmed: bool,
    /// Who asked, for people.
    pub by: String,
    /// When, by the asker's clock: milliseconds since 1970. Intents of one table are carried out in this order.
    pub asked: u64,
}

/// Who carries an intent out.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Carrier {
    /// The run: random, so that a run notices when another has taken over.
    pub run: u64,
    /// The gateway's id.
    pub gateway: String,
    /// Its name for people.
    pub name: String,
}

/// How far it is.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// The phase, as its carrier last knew it.
    pub phase: Option<Phase>,
    /// How many items have been moved, by all carriers.
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

/// An intent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReshardIntent {
    /// The store's id of the table.
    pub table_id: String,
    /// The table's name.
    pub table: String,
    /// The logical key's bytes: UTF-8 of a string, raw binary.
    pub key: Vec<u8>,
    /// Its type: a string or binary.
    pub key_type: KeyType,
    /// What was asked for.
    pub request: Request,
    /// Whether no item is moved for now. A key on the way goes on to the phase in which its items move, for until then its writes may wait.
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
    /// Counts the intent's changes; each is conditional on the one before. That it changes shows that its carrier lives.
    pub version: u64,
}

/// The intents of a registry.
#[derive(Clone, Debug, Default)]
pub struct Intents {
    /// Those that can be read, by table and key.
    pub known: Vec<ReshardIntent>,
    /// What is wrong with the others: they are damaged, or a newer version wrote them. Nobody carries them out.
    pub unknown: Vec<Error>,
}

/// A key for people: text as it is, binary in base64.
pub fn key_text(key: &[u8], key_type: KeyType) -> String {
    match key_type {
        KeyType::B => STANDARD.encode(key),
        _ => String::from_utf8_lossy(key).into_owned(),
    }
}

fn too_long() -> Error {
    Error::validation(format!(
        "The key is too long for an intent, whose own key takes at most {MAX_SORT_KEY} bytes with the table's id: \
         `heatsink reshard start --here` needs none"
    ))
}

fn sort(table_id: &str, key: &[u8], key_type: KeyType) -> Result<String, Error> {
    let sort = format!("{table_id}/{}", key_text(key, key_type));
    if sort.len() > MAX_SORT_KEY { Err(too_long()) } else { Ok(sort) }
}

fn item_key(sort: &str) -> Json {
    json!({ "pk": { "S": PARTITION }, "sk": { "S": sort } })
}

impl ReshardIntent {
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

    fn item(&self) -> Result<Json, Error> {
        let mut item = item_key(&sort(&self.table_id, &self.key, self.key_type)?);
        let members = [
            ("form", json!({ "N": FORM.to_string() })),
            ("id", json!({ "S": self.table_id })),
            ("name", json!({ "S": self.table })),
            ("key", json!({ "S": self.key_text() })),
            ("type", json!({ "S": self.key_type.name() })),
            ("request", json!({ "S": json!(self.request).to_string() })),
            ("paused", json!({ "BOOL": self.paused })),
            ("cancelled", json!({ "BOOL": self.cancelled })),
            ("begun", json!({ "BOOL": self.begun })),
            ("progress", json!({ "S": json!(self.progress).to_string() })),
            ("version", json!({ "N": self.version.to_string() })),
        ];
        for (name, value) in members {
            item[name] = value;
        }
        if let Some(carrier) = &self.carrier {
            item["carrier"] = json!({ "S": json!(carrier).to_string() });
        }
        if let Some(ended) = &self.ended {
            item["ended"] = json!({ "S": json!(ended).to_string() });
        }
        Ok(item)
    }

    fn read(item: &Json) -> Result<Self, Error> {
        let text = |name: &str| item[name]["S"].as_str();
        let number = |name: &str| item[name]["N"].as_str().and_then(|text| text.parse::<u64>().ok());
        let named = || {
            format!("of the key {:?} of table {}", text("key").unwrap_or("?"), text("name").unwrap_or("?"))
        };
        let parts = ["request", "progress", "carrier", "ended"];
        let is_json = |name: &str| text(name).is_none_or(|text| serde_json::from_str::<Json>(text).is_ok());
        let read = || {
            number("form").filter(|form| *form == FORM)?;
            let key_type =
                [KeyType::S, KeyType::B].into_iter().find(|one| Some(one.name()) == text("type"))?;
            let key = match key_type {
                KeyType::B => STANDARD.decode(text("key")?).ok()?,
                _ => text("key")?.as_bytes().to_vec(),
            };
            let flag = |name: &str| item[name]["BOOL"].as_bool();
            let intent = ReshardIntent {
                table_id: text("id")?.to_owned(),
                table: text("name")?.to_owned(),
                key,
                key_type,
                request: serde_json::from_str(text("request")?).ok()?,
                paused: flag("paused")?,
                cancelled: flag("cancelled")?,
                begun: flag("begun")?,
                carrier: optional(text("carrier"))?,
                progress: serde_json::from_str(text("progress")?).ok()?,
                ended: optional(text("ended"))?,
                version: number("version")?,
            };
            // An intent under the key of another one would be carried out, and never found again.
            let own = sort(&intent.table_id, &intent.key, key_type).ok()?;
            (text("sk") == Some(&own)).then_some(intent)
        };
        read().ok_or_else(|| {
            let newer = number("form").is_some_and(|form| form > FORM)
                || number("form") == Some(FORM) && parts.iter().all(|name| is_json(name)) && text("request").is_some();
            Error::internal(match newer {
                true => format!(
                    "The registry's intent {} says something that this version of Heatsink does not know; it was written by another version, whose \
                     gateways carry it out",
                    named()
                ),
                false => format!(
                    "The registry's intent {} is damaged, and nobody carries it out. Delete the item {} of table heatsink.registry, and ask again",
                    named(),
                    item_key(text("sk").unwrap_or_default())
                ),
            })
        })
    }
}

/// A part that may be missing; `None` for one that cannot be read.
fn optional<T: for<'a> Deserialize<'a>>(text: Option<&str>) -> Option<Option<T>> {
    match text {
        None => Some(None),
        Some(text) => serde_json::from_str(text).ok().map(Some),
    }
}

impl Registry {
    /// All intents. Not `strongly`, the list may be out of date by a moment and costs half: writes are conditional anyway.
    ///
    /// # Errors
    /// The store's. No registry is no intent.
    pub fn intents(&self, strongly: bool) -> BoxFuture<'_, Result<Intents, Error>> {
        async move {
            let mut found = Intents::default();
            let mut start = Json::Null;
            loop {
                let mut body = json!({
                    "TableName": self.name(), "ConsistentRead": strongly, "KeyConditionExpression": "pk = :p",
                    "ExpressionAttributeValues": { ":p": { "S": PARTITION } },
                });
                if !start.is_null() {
                    body["ExclusiveStartKey"] = start;
                }
                let mut page = match self.call(Operation::Query, body).await {
                    Ok(page) => page,
                    Err(error) if error.code == Code::ResourceNotFoundException => return self.absent(found),
                    Err(error) => return Err(self.failed(error)),
                };
                for item in page["Items"].as_array().into_iter().flatten() {
                    match ReshardIntent::read(item) {
                        Ok(intent) => found.known.push(intent),
                        Err(error) => found.unknown.push(error),
                    }
                }
                start = page["LastEvaluatedKey"].take();
                if start.is_null() {
                    return Ok(found);
                }
            }
        }
        .boxed()
    }

    /// The intent of one key; `None` if there is none. Strongly consistent.
    ///
    /// # Errors
    /// The store's; an intent that cannot be read; `ValidationException` for a key that is too long for one.
    pub async fn intent(
        &self,
        table_id: &str,
        key: &[u8],
        key_type: KeyType,
    ) -> Result<Option<ReshardIntent>, Error> {
        let key = item_key(&sort(table_id, key, key_type)?);
        let body = json!({ "TableName": self.name(), "Key": key, "ConsistentRead": true });
        match self.call_patiently(Operation::GetItem, body).await {
            Ok(answer) => answer.get("Item").map(ReshardIntent::read).transpose(),
            Err(error) if error.code == Code::ResourceNotFoundException => self.absent(None),
            Err(error) => Err(self.failed(error)),
        }
    }

    /// A first intent for a key.
    pub fn new_intent(
        &self,
        (table_id, table): (&str, &str),
        (key, key_type): (&[u8], KeyType),
        request: Request,
    ) -> ReshardIntent {
        ReshardIntent {
            table_id: table_id.to_owned(),
            table: table.to_owned(),
            key: key.to_vec(),
            key_type,
            request,
            paused: false,
            cancelled: false,
            begun: false,
            carrier: None,
            progress: Progress::default(),
            ended: None,
            version: self.first_version(),
        }
    }

    /// Writes an intent, if it still has the version of `from` (`None`: if there is none). `false` when it does not.
    ///
    /// # Errors
    /// The store's; `ValidationException` for a key that is too long.
    pub fn write_intent<'a>(
        &'a self,
        from: Option<&'a ReshardIntent>,
        to: &'a ReshardIntent,
    ) -> BoxFuture<'a, Result<bool, Error>> {
        async move {
            let mut body = json!({ "TableName": self.name(), "Item": to.item()?, "ConditionExpression": "attribute_not_exists(pk)" });
            if let Some(from) = from {
                condition(&mut body, from);
            }
            match self.call_patiently(Operation::PutItem, body).await {
                Ok(_) => Ok(true),
                // The write may have been done, and the answer lost.
                Err(error)
                    if error.code == Code::ConditionalCheckFailedException
                        || error.outcome == Outcome::Unknown =>
                {
                    Ok(self.intent(&to.table_id, &to.key, to.key_type).await?.as_ref() == Some(to))
                }
                Err(error) => Err(self.failed(error)),
            }
        }
        .boxed()
    }

    /// Removes an intent, if it still has that version. `false` when it does not.
    ///
    /// # Errors
    /// The store's.
    pub async fn remove_intent(&self, intent: &ReshardIntent) -> Result<bool, Error> {
        let key = item_key(&sort(&intent.table_id, &intent.key, intent.key_type)?);
        let mut body = json!({ "TableName": self.name(), "Key": key });
        condition(&mut body, intent);
        match self.call_patiently(Operation::DeleteItem, body).await {
            Ok(_) => Ok(true),
            Err(error)
                if error.code == Code::ConditionalCheckFailedException
                    || error.outcome == Outcome::Unknown =>
            {
                Ok(self.intent(&intent.table_id, &intent.key, intent.key_type).await?.is_none())
            }
            Err(error) => Err(self.failed(error)),
        }
    }
}

fn condition(body: &mut Json, from: &ReshardIntent) {
    body["ConditionExpression"] = json!("#v = :v");
    body["ExpressionAttributeNames"] = json!({ "#v": "version" });
    body["ExpressionAttributeValues"] = json!({ ":v": { "N": from.version.to_string() } });
}

#[cfg(test)]
mod tests {
    use super::*;

    fn intent() -> ReshardIntent {
        let by = Some(By::Part { separator: "#".to_owned(), part: 1 });
        let layout = WantedLayout { shards: 8, by, counter: None };
        let request = Request { layout, rate: 800, streams_confirmed: false, by: "ann".to_owned(), asked: 5 };
        let carrier = Carrier { run: 7, gateway: "ab".to_owned(), name: "one".to_owned() };
        let progress = Progress { phase: Some(Phase::Move), moved: 3, ..Progress::default() };
        let ended = Ended { how: EndedAs::Stopped, text: "two are too large".to_owned(), at: 9 };
        ReshardIntent {
            table_id: "1-2".to_owned(),
            table: "Scores".to_owned(),
            key: b"game".to_vec(),
            key_type: KeyType::S,
            request,
            paused: true,
            cancelled: false,
            begun: true,
            carrier: Some(carrier),
            progress,
            ended: Some(ended),
            version: 12,
        }
    }

    #[test]
    fn an_intent_is_read_as_it_was_written() {
        let intent = intent();
        assert_eq!(ReshardIntent::read(&intent.item().unwrap()).unwrap(), intent);
        let binary =
            ReshardIntent { key: vec![0, 255], key_type: KeyType::B, carrier: None, ended: None, ..intent };
        assert_eq!(ReshardIntent::read(&binary.item().unwrap()).unwrap(), binary);
        let mut counter = binary;
        counter.request.layout =
            WantedLayout { counter: Some(vec!["likes".to_owned()]), ..WantedLayout::from(4) };
        assert_eq!(ReshardIntent::read(&counter.item().unwrap()).unwrap(), counter);
    }

    #[test]
    fn what_is_damaged_or_newer_is_never_guessed_at() {
        let good = intent().item().unwrap();
        let broken = |name: &str, value: Json| {
            let mut item = good.clone();
            item[name] = value;
            ReshardIntent::read(&item).unwrap_err().to_string()
        };
        assert!(broken("form", json!({ "N": "2" })).contains("another version"));
        let newer = json!({ "S": "{\"layout\":{\"shards\":8,\"by\":\"Moon\"},\"rate\":1}" });
        assert!(broken("request", newer).contains("another version"));
        assert!(broken("request", json!({ "S": "{" })).contains("damaged"));
        assert!(!broken("version", Json::Null).is_empty());
        assert!(broken("form", Json::Null).contains("damaged"));
        // Under the key of another one.
        assert!(!broken("key", json!({ "S": "other" })).is_empty());
    }
}
