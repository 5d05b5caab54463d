//! How an intent is stored: one item of the registry, whose sort key names the table and the key.
//!
//! An intent for a value of an index has a form of its own, which builds that know only intents for
//! keys leave alone.
//!
//! Not here: requests to the store (`on_record`).

use heatsink_dynamo::{Error, KeyType};
use serde::Deserialize;
use serde_json::{Value as Json, json};

use super::{Request, ReshardIntent, Subject, key_brief};
use crate::counted::counted;
use crate::registry_key::{self, Place};
use crate::seal;

/// The partition of all intents.
pub(super) const PARTITION: &str = "reshards";

/// The form of an intent for a key.
const FORM: u64 = 1;
/// The form of an intent for a value of an index: older builds would take the value for a key of
/// the table.
const FORM_OF_VALUE: u64 = 2;

/// The form of an intent for what [stands by its hash](Place).
const FORM_OF_LONG: u64 = 3;

/// Where the intent for that stands. Neither a table's id nor the name of an index has a slash or a
/// hash sign.
fn place(table_id: &str, subject: Subject<'_>) -> Result<Place, Error> {
    let index = subject.index.map(|index| format!("#{index}")).unwrap_or_default();
    Place::of(&format!("{table_id}{index}/"), subject.key, subject.key_type)
        .ok_or_else(|| Error::validation("Only a key that is a string or binary can be resharded"))
}

impl Subject<'_> {
    /// Whether its intent names it by its hash, which builds before that do not read: keys of about
    /// a kilobyte and more.
    pub fn is_long(&self, table_id: &str) -> bool {
        place(table_id, *self).is_ok_and(|place| place.hashed)
    }
}

/// The primary key of the item.
///
/// # Errors
/// `ValidationException` for a key that its table cannot have.
pub(super) fn key(table_id: &str, subject: Subject<'_>) -> Result<Json, Error> {
    place(table_id, subject).map(|place| item_key(&place.sort))
}

pub(super) fn item_key(sort: &str) -> Json {
    json!({ "pk": { "S": PARTITION }, "sk": { "S": sort } })
}

impl ReshardIntent {
    fn form(&self, hashed: bool) -> u64 {
        match (hashed, &self.index) {
            (true, _) => FORM_OF_LONG,
            (false, Some(_)) => FORM_OF_VALUE,
            (false, None) => FORM,
        }
    }

    pub(super) fn item(&self) -> Result<Json, Error> {
        let Place { sort, hashed } = place(&self.table_id, self.subject())?;
        let mut item = item_key(&sort);
        let members = [
            ("form", json!({ "N": self.form(hashed).to_string() })),
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
        if let Some(index) = &self.index {
            item["index"] = json!({ "S": index });
        }
        if let Some(carrier) = &self.carrier {
            item["carrier"] = json!({ "S": json!(carrier).to_string() });
        }
        if let Some(ended) = &self.ended {
            item["ended"] = json!({ "S": json!(ended).to_string() });
        }
        Ok(seal::sealed(item))
    }

    pub(super) fn read(item: &Json) -> Result<Self, Error> {
        let text = |name: &str| item[name]["S"].as_str();
        let number = |name: &str| counted(item, name);
        let named = || {
            format!(
                "of the key {:?} of table {}",
                key_brief(text("key").unwrap_or("?")),
                key_brief(text("name").unwrap_or("?"))
            )
        };
        let parts = ["request", "progress", "carrier", "ended"];
        let is_json = |name: &str| text(name).is_none_or(|text| serde_json::from_str::<Json>(text).is_ok());
        let read = || {
            let key_type = [KeyType::S, KeyType::N, KeyType::B]
                .into_iter()
                .find(|one| Some(one.name()) == text("type"))?;
            let key = registry_key::bytes(text("key")?, key_type)?;
            let flag = |name: &str| item[name]["BOOL"].as_bool();
            let intent = ReshardIntent {
                table_id: text("id")?.to_owned(),
                table: text("name")?.to_owned(),
                index: text("index").map(str::to_owned),
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
            let layout = &intent.request.layout;
            let is_of_keys = layout.by.is_some()
                || layout.counter.is_some()
                || layout.split_at.is_some()
                || layout.slots.is_some();
            if intent.index.is_some() && is_of_keys || !layout.is_sound() {
                return None;
            }
            // An intent under the key of another one would be carried out, and never found again.
            let own = place(&intent.table_id, intent.subject()).ok()?;
            number("form").filter(|form| *form == intent.form(own.hashed))?;
            (!seal::is_broken(item) && text("sk") == Some(&own.sort)).then_some(intent)
        };
        read().ok_or_else(|| {
            let known = [FORM, FORM_OF_VALUE, FORM_OF_LONG].map(Some).contains(&number("form"));
            let request = text("request").map(serde_json::from_str::<Request>);
            let misplaced = matches!(&request, Some(Ok(request)) if !request.layout.is_sound());
            let newer = number("form").is_some_and(|form| form > FORM_OF_LONG)
                || !seal::is_broken(item) && known && parts.iter().all(|name| is_json(name)) && request.is_some() && !misplaced;
            Error::internal(match newer {
                true => format!(
                    "The registry's intent {} says something that this version of Heatsink does not know; it was written by another version, whose \
                     gateways carry it out",
                    named()
                ),
                false => format!(
                    "The registry's intent {} is damaged, and nobody carries it out. Delete the item {{pk: {PARTITION:?}, sk: {:?}}} of table heatsink.registry, and ask again",
                    named(),
                    key_brief(text("sk").unwrap_or_default())
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

#[cfg(test)]
mod tests {
    use heatsink_layout::{By, Phase};

    use super::super::{Carrier, Ended, EndedAs, Progress, Request, WantedLayout};
    use super::*;

    /// Reads an item as somebody would have written it who meant it so.
    fn read(item: &Json) -> Result<ReshardIntent, Error> {
        ReshardIntent::read(&seal::sealed(item.clone()))
    }

    fn intent() -> ReshardIntent {
        let by = Some(By::Part { separator: "#".to_owned(), part: 1 });
        let layout = WantedLayout { by, ..8.into() };
        let request = Request { layout, rate: 800, streams_confirmed: false, by: "ann".to_owned(), asked: 5 };
        let carrier = Carrier { run: 7, gateway: "ab".to_owned(), name: "one".to_owned() };
        let progress = Progress { phase: Some(Phase::Move), moved: 3, ..Progress::default() };
        let ended = Ended { how: EndedAs::Stopped, text: "two are too large".to_owned(), at: 9 };
        ReshardIntent {
            table_id: "1-2".to_owned(),
            table: "Scores".to_owned(),
            index: None,
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

    fn of_value() -> ReshardIntent {
        let mut intent = ReshardIntent { index: Some("by-status".to_owned()), ..intent() };
        intent.request.layout = 8.into();
        intent
    }

    #[test]
    fn an_intent_is_read_as_it_was_written() {
        let intent = intent();
        assert_eq!(read(&intent.item().unwrap()).unwrap(), intent);
        let binary =
            ReshardIntent { key: vec![0, 255], key_type: KeyType::B, carrier: None, ended: None, ..intent };
        assert_eq!(read(&binary.item().unwrap()).unwrap(), binary);
        let mut counter = binary;
        counter.request.layout =
            WantedLayout { counter: Some(vec!["likes".to_owned()]), ..WantedLayout::from(4) };
        assert_eq!(read(&counter.item().unwrap()).unwrap(), counter);
        let mut slots = counter.clone();
        slots.request.layout = WantedLayout { slots: Some(vec![0, 9_999, 1]), ..WantedLayout::from(3) };
        assert_eq!(read(&slots.item().unwrap()).unwrap(), slots);
        let value = of_value();
        assert_eq!(read(&value.item().unwrap()).unwrap(), value);
        assert_ne!(value.item().unwrap()["sk"], intent_of_key(&value).item().unwrap()["sk"]);
    }

    fn intent_of_key(value: &ReshardIntent) -> ReshardIntent {
        ReshardIntent { index: None, ..value.clone() }
    }

    #[test]
    fn what_is_damaged_or_newer_is_never_guessed_at() {
        let good = intent().item().unwrap();
        let broken = |name: &str, value: Json| {
            let mut item = good.clone();
            item[name] = value;
            read(&item).unwrap_err().to_string()
        };
        assert!(broken("form", json!({ "N": "4" })).contains("another version"));
        assert!(!broken("form", json!({ "N": "3" })).is_empty(), "it has room for its key");
        let newer = json!({ "S": "{\"layout\":{\"shards\":8,\"by\":\"Moon\"},\"rate\":1}" });
        assert!(broken("request", newer).contains("another version"));
        assert!(broken("request", json!({ "S": "{" })).contains("damaged"));
        // Slots that repeat, one too few and one too many, and one that is none.
        for slots in ["[1,0,1]", "[0,1]", "[0,1,2,3]", "[0,1,10000]"] {
            let request = format!(
                "{{\"layout\":{{\"shards\":3,\"slots\":{slots}}},\"rate\":1,\"streams_confirmed\":false,\"by\":\"ann\",\"asked\":5}}"
            );
            assert!(broken("request", json!({ "S": request })).contains("damaged"), "{slots}");
        }
        assert!(!broken("version", Json::Null).is_empty());
        assert!(broken("form", Json::Null).contains("damaged"));
        // Under the key of another one.
        assert!(!broken("key", json!({ "S": "other" })).is_empty());
    }

    #[test]
    fn a_long_key_stands_by_its_hash_in_a_form_that_older_builds_leave_alone() {
        let long = ReshardIntent { key: vec![b'k'; 2_042], ..intent() };
        let value = ReshardIntent { key: vec![b'k'; 2_042], ..of_value() };
        let binary = ReshardIntent { key: vec![9; 800], key_type: KeyType::B, ..intent() };
        for intent in [long.clone(), value.clone(), binary] {
            let item = intent.item().unwrap();
            assert_eq!(item["form"]["N"], "3");
            assert_eq!(read(&item).unwrap(), intent);
        }
        assert_ne!(long.item().unwrap()["sk"], value.item().unwrap()["sk"]);
        let mut other = long.item().unwrap();
        other["key"] = json!({ "S": "x".repeat(2_042) });
        assert!(read(&other).is_err(), "under the key of another one");
    }

    /// Builds that know intents for keys alone read only items of form 1, and leave all others
    /// alone.
    #[test]
    fn older_builds_read_no_intent_for_a_value() {
        let (key, value) = (intent().item().unwrap(), of_value().item().unwrap());
        assert_eq!((&key["form"]["N"], &value["form"]["N"]), (&json!("1"), &json!("2")));
        // What one wrote that another one did not mean is read by nobody.
        for (item, form) in [(&key, "2"), (&value, "1")] {
            let mut item = item.clone();
            item["form"]["N"] = json!(form);
            assert!(read(&item).is_err());
        }
        let mut part = of_value();
        part.request.layout.by = Some(By::SortKey);
        assert!(read(&part.item().unwrap()).is_err(), "a value has no sort key");
        let mut slots = of_value();
        slots.request.layout.slots = Some((0..8).rev().collect());
        assert!(read(&slots.item().unwrap()).is_err(), "a value has no slots by name");
    }
}
