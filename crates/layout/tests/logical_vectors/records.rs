//! Rows of whole stream records, and what a reader shall see of them.

use heatsink_dynamo::KeyType;
use heatsink_layout::{MOVED, Table, number_codec};
use serde_json::{Map, Value as Json, json};

use crate::logical_vectors::forms;
use crate::logical_vectors::keys::value;

/// A record of a write to the item with that physical key; other attributes are of `new` and `old`.
fn record(name: &str, key: &Json, new: Option<Json>, old: Option<Json>) -> Json {
    let keys = json!({ "pk": key, "sk": { "S": "s#~1" } });
    let image = |others: Json| {
        let mut image = keys.as_object().unwrap().clone();
        image.extend(others.as_object().unwrap().clone());
        Json::Object(image)
    };
    let mut change = json!({ "Keys": keys, "SequenceNumber": "111", "SizeBytes": 26 });
    for (name, others) in [("NewImage", new), ("OldImage", old)] {
        if let Some(others) = others {
            change[name] = image(others);
        }
    }
    json!({ "eventID": "1", "eventName": name, "dynamodb": change })
}

/// The bytes of a stored string, number or binary value.
fn bytes(value: &Json) -> (KeyType, Vec<u8>) {
    use heatsink_dynamo::Value;
    match Value::read(value.to_string().as_bytes()).unwrap() {
        Value::S(text) => (KeyType::S, text.into_bytes()),
        Value::N(text) => (KeyType::N, number_codec::canonical(&text).unwrap().into_owned().into_bytes()),
        Value::B(bytes) => (KeyType::B, bytes.to_vec()),
        other => panic!("{other:?} is no key"),
    }
}

fn logical_image(table: &Table, image: &mut Map<String, Json>) {
    for (name, stored) in image {
        if name == "pk" {
            let (key_type, bytes) = bytes(stored);
            *stored = value(table.decode(&bytes).0, key_type);
        } else if let Some(index) = table.index_key(name)
            && (stored.get("S").is_some() || stored.get("B").is_some())
        {
            let (key_type, bytes) = bytes(stored);
            *stored = value(index.decode(&bytes).logical, key_type);
        }
    }
}

fn row(words: &Json, table: &Table, record: Json) -> Json {
    let mut logical = record.clone();
    for image in ["Keys", "NewImage", "OldImage"] {
        if let Some(image) = logical["dynamodb"].get_mut(image).and_then(Json::as_object_mut) {
            logical_image(table, image);
        }
    }
    let is_moved = |image: &str| record["dynamodb"][image].get(MOVED).is_some();
    if is_moved("NewImage")
        || is_moved("OldImage")
        || table.is_part(&bytes(&record["dynamodb"]["Keys"]["pk"]).1)
    {
        logical = Json::Null;
    }
    json!({ "table": words, "record": record, "logical": logical })
}

pub fn rows() -> Vec<Json> {
    let status = |text: &str| json!({ "status": { "S": text }, "pk2": { "S": "x#~3" }, "m": { "M": { "pk": { "S": "in#~3" } } } });
    let votes = |count: u32| json!({ "votes": { "N": count.to_string() } });
    let text = |text: &str| json!({ "S": text });
    let suffix = json!({ "kind": "suffix" });
    let words = |form: &Json, attributes: Json, counters: &[&str]| json!({ "key": "pk", "form": form, "attributes": attributes, "counters": counters });
    let mut rows = Vec::new();

    let rules = forms::table(
        KeyType::S,
        vec![
            forms::of("vote", forms::counter(10)),
            forms::of("*", forms::calculated(16)),
            forms::of_index(KeyType::S, 8),
        ],
    );
    let said = words(&suffix, json!({ "status": suffix }), &["vote"]);
    for one in [
        record("INSERT", &text("game#~3"), Some(status("open#~3")), None),
        record("MODIFY", &text("game#~1#~0"), Some(status("open#~3")), Some(status("done#~1#~0#~2"))),
        record("REMOVE", &text("😀#~12"), None, Some(status("open"))),
        record("INSERT", &text("game"), Some(json!({ "status": { "N": "12.5000007095510003" } })), None),
        record("INSERT", &text("game#~2"), Some(json!({ "status": { "B": "b3BlbiN+Mw==" } })), None),
        record(
            "INSERT",
            &text("game#~2"),
            Some(json!({ "status": { "NULL": true }, "l": { "L": [text("a#~1")] } })),
            None,
        ),
        record("MODIFY", &text("vote"), Some(votes(3)), Some(votes(2))),
        record("MODIFY", &text("vote#~3"), Some(votes(3)), Some(votes(2))),
        record("REMOVE", &text("vote#~9"), None, Some(votes(2))),
        record("MODIFY", &text("vote#~3#~0"), Some(votes(3)), None),
        record("MODIFY", &text("votes#~3"), Some(votes(3)), None),
        json!({ "eventName": "REMOVE", "userIdentity": { "type": "Service" }, "dynamodb": { "Keys": { "pk": text("game#~3") } } }),
    ] {
        rows.push(row(&said, &rules, one));
    }

    let binary = forms::table(KeyType::B, vec![forms::of("*", forms::calculated(16))]);
    let said = words(&suffix, json!({}), &[]);
    rows.push(row(
        &said,
        &binary,
        record("INSERT", &value(b"\xff\x00#~3", KeyType::B), Some(json!({})), None),
    ));

    let numbers = forms::table(
        KeyType::N,
        vec![forms::of("7", forms::counter(10)), forms::of("*", forms::calculated(16))],
    );
    let said = words(&suffix, json!({}), &["7"]);
    for key in ["12.5000007095510003", "1E2", "7", "7.0000007095510001", "70000007095510001e-16"] {
        rows.push(row(&said, &numbers, record("INSERT", &json!({ "N": key }), Some(votes(1)), None)));
    }

    let on_record: [(&[u8], u16, _); 2] =
        [(b"hot", 4, forms::calculated(4)), (b"vote", 4, forms::counter(4))];
    let recorded = forms::with_recorded(forms::table(KeyType::S, Vec::new()), &on_record)
        .with_value_layouts(&[forms::value_on_record("open", 4)]);
    let form = json!({ "kind": "recorded", "reserved": { "hot": 4, "vote": 4 } });
    let values = json!({ "status": { "kind": "recorded", "reserved": { "open": 4 } } });
    let said = words(&form, values, &["vote"]);
    for (key, value) in
        [("hot#~3", "open#~3"), ("hot#~4", "open#~4"), ("cold#~1", "done#~1"), ("vote", "open")]
    {
        rows.push(row(&said, &recorded, record("INSERT", &text(key), Some(status(value)), None)));
    }
    let marked = json!({ MOVED: { "BOOL": true } });
    rows.push(row(
        &said,
        &recorded,
        record("MODIFY", &text("hot#~3"), Some(marked.clone()), Some(status("open"))),
    ));
    rows.push(row(&said, &recorded, record("REMOVE", &text("hot#~3"), None, Some(marked.clone()))));
    // An attribute within another is the client's.
    let within = json!({ "m": { "M": marked } });
    rows.push(row(&said, &recorded, record("REMOVE", &text("hot#~3"), None, Some(within))));
    rows.push(row(&said, &recorded, record("INSERT", &text("vote#~3"), Some(votes(1)), None)));
    rows.push(row(&said, &recorded, record("INSERT", &text("vote#~4"), Some(votes(1)), None)));

    let buckets = forms::buckets(KeyType::S);
    let said = words(&json!({ "kind": "buckets" }), json!({}), &[]);
    rows.push(row(&said, &buckets, record("INSERT", &text("log#~2026-06-22#~3"), Some(votes(1)), None)));

    let (layout, rule) = forms::template("{shard}#{pk}", "*", 4, None);
    let templates = forms::table(KeyType::S, vec![layout]);
    let said = words(&json!({ "kind": "templates", "rules": [rule] }), json!({}), &[]);
    rows.push(row(&said, &templates, record("INSERT", &text("3#log"), Some(votes(1)), None)));
    rows
}
