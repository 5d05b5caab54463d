//! The seal of an item of the registry: a checksum over all that the item says, and over its place.
//! An item that is cut, changed by hand, or put in the place of another one does not fit its seal.
//!
//! Items that older builds wrote have none, and are read as those builds read them. Not here: an
//! item as it once was, whose seal fits (`tally`, `Registry::is_behind_head`).

use std::fmt::Write;

use heatsink_dynamo::Number;
use serde_json::{Map, Value as Json, json};
use sha2::{Digest, Sha256};

/// The attribute that holds it.
const SEAL: &str = "seal";
/// What others add to a registration: whether its process has ended, a truth value.
const MARK: &str = "ended";
/// Bytes of the hash that are kept.
const LENGTH: usize = 16;

/// The item with its seal.
pub(crate) fn sealed(mut item: Json) -> Json {
    item[SEAL] = json!({ "S": of(&item) });
    item
}

/// The seal alone, as an attribute value.
pub(crate) fn value(sealed: &Json) -> Json {
    sealed[SEAL].clone()
}

/// Whether the item has a seal that is not its own.
pub(crate) fn is_broken(item: &Json) -> bool {
    item.get(SEAL).is_some_and(|seal| seal["S"] != of(item))
}

fn of(item: &Json) -> String {
    let attributes = item.as_object().into_iter().flatten();
    let said =
        attributes.filter(|(name, value)| *name != SEAL && !(*name == MARK && value["BOOL"].is_boolean()));
    let said: Map<String, Json> = said.map(|(name, value)| (name.clone(), as_kept(value))).collect();
    hash(Json::Object(said).to_string().as_bytes())
}

/// A value as every store keeps it: numbers in one of the forms that they can be written in.
fn as_kept(value: &Json) -> Json {
    match value["N"].as_str().map(Number::parse) {
        Some(Ok(number)) => json!({ "N": number.to_string() }),
        _ => value.clone(),
    }
}

/// The first bytes of a hash, in hexadecimal.
pub(crate) fn hash(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().take(LENGTH).fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_seal_fits_one_item_in_one_place() {
        let item = sealed(json!({ "pk": { "S": "t" }, "at": { "N": "1.50" }, "flag": { "BOOL": true } }));
        assert!(!is_broken(&item));
        let changed = |name: &str, value: Json| {
            let mut item = item.clone();
            item[name] = value;
            is_broken(&item)
        };
        // As the store gives the number back, and with the mark of another process.
        assert!(!changed("at", json!({ "N": "1.5" })) && !changed("ended", json!({ "BOOL": true })));
        for (name, value) in [
            ("pk", json!({ "S": "u" })),
            ("at", json!({ "N": "1.51" })),
            ("at", json!({ "S": "1.5" })),
            ("flag", json!({ "BOOL": false })),
            ("more", json!({ "S": "" })),
            ("seal", json!({ "S": "" })),
        ] {
            assert!(changed(name, value), "{name}");
        }
        let mut older = item.clone();
        older.as_object_mut().unwrap().remove("seal");
        assert!(!is_broken(&older));
    }
}
