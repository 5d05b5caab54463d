//! Values that are larger than any item: they are refused as the body is scanned, before a reader
//! builds anything of them.
//!
//! Limits and words as seen of DynamoDB Local (November 2026). It measures what is to become an
//! item or a key wherever it stands, the values of `Expected` and `AttributeUpdates`, and each
//! value of an expression. Of an item and a key every byte counts here. Of the others only the
//! objects do, so that nothing is refused which it takes: they are what takes memory beside the
//! text.
//!
//! Not here: how many elements a list may have (`shape`), what expressions' names and values may
//! hold together (`placeholders`).

use std::borrow::Cow;

use super::problems::cut;
use crate::json::{self, Members};
use crate::size::{MAX_ITEM, scan_item};

const TOO_LARGE: &str = "Item size has exceeded the maximum allowed size";

/// More keys are refused for their number.
const KEYS: usize = 100;

/// What is said of a member that holds more than an item may. `raw` is its JSON, which has been
/// read before.
pub(super) fn refusal(member: &str, raw: &[u8]) -> Option<Cow<'static, str>> {
    // An item's JSON is longer than the item.
    if raw.len() <= MAX_ITEM {
        return None;
    }
    let too_large = match member {
        "Item" | "Key" | "ExclusiveStartKey" => size(raw) > MAX_ITEM,
        "Keys" => {
            let keys = json::few_elements(raw, KEYS).ok().flatten().unwrap_or_default();
            keys.into_iter().any(|key| key.len() > MAX_ITEM && size(key) > MAX_ITEM)
        }
        "Expected" | "AttributeUpdates" => objects(raw) > MAX_ITEM,
        "ExpressionAttributeValues" => return large_value(raw),
        _ => false,
    };
    too_large.then_some(Cow::Borrowed(TOO_LARGE))
}

/// The first value of an expression that holds more than an item may.
fn large_value(raw: &[u8]) -> Option<Cow<'static, str>> {
    let mut values = Members::open(raw, json::space(raw, 0)).ok()?;
    while let Some((name, value)) = values.next().ok()? {
        if value.len() > MAX_ITEM && objects(value) > MAX_ITEM {
            let name = json::string(name).ok()?;
            return Some(Cow::Owned(format!(
                "ExpressionAttributeValues contains invalid value: {TOO_LARGE} for key {}",
                cut(&name)
            )));
        }
    }
    None
}

/// The size of an item, or at least that much of what its reader will refuse for another reason.
fn size(raw: &[u8]) -> usize {
    scan_item(raw, []).map_or_else(|_| objects(raw), |item| item.bytes)
}

/// Each object in a value counts for a byte or more, and so does a brace within a text.
fn objects(raw: &[u8]) -> usize {
    memchr::memchr_iter(b'{', raw).count()
}
