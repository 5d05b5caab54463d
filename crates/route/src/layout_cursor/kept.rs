//! Positions whose clients keep their key attributes alone: default pagers of object mappers, page
//! tokens of a key's values, tools that copy tables. The attribute that names the layout
//! ([`LAYOUT`]) is lost on the way.
//!
//! While a table does not rest
//! ([`LayoutSource::has_rested`](heatsink_layout::LayoutSource::has_rested)), such a position could
//! be one of before the change or one of after it. So what the attribute says stands in the value
//! of the partition key as well, before the key itself, for as long as that lasts:
//! `heatsink:layout=SAID;KEY`. A position that comes back with neither was given out before, or was
//! made of an item's key. Where the partition key is a number there is no room for it.

use std::borrow::Cow;
use std::sync::LazyLock;

use bytes::Bytes;
use heatsink_dynamo::json::{self, Malformed};
use heatsink_dynamo::{Error, KeyType, Operation};
use heatsink_layout::Table;
use memchr::memmem::Finder;

use crate::answer::unreadable;
use crate::cursor::LAYOUT;
use crate::key::{KeyText, literal};

/// What stands before the key in the value of a partition key.
const BEFORE: &str = "heatsink:layout=";

/// A request whose position has in its place again what stood in the value of its partition key;
/// `None` where nothing did.
pub(crate) fn restored(body: &Bytes, table: &Table) -> Option<Bytes> {
    let partition = &table.key.partition;
    let start = json::member(body, "ExclusiveStartKey").ok()??;
    let value = KeyText::read(json::member(start, &partition.name).ok()??, partition.key_type)?;
    let (said, key) = parted(&value.bytes)?;
    let key = literal(partition.key_type, key).to_json();
    let said = [br#"{"S":"#, &*crate::request::quoted(said), b"}"].concat();
    let members = [(partition.name.as_str(), Some(key.as_slice())), (LAYOUT, Some(said.as_slice()))];
    let start = json::splice_members(start, &members).ok()?;
    json::splice_members(body, &[("ExclusiveStartKey", Some(&start))]).ok().map(Bytes::from)
}

/// What the position of a request says under whichever table's layouts, and the request without it.
pub(super) fn unmarked(body: &Bytes) -> Option<(String, Bytes)> {
    let start = json::member(body, "ExclusiveStartKey").ok()??;
    let (mut said, mut keys) = (None, Vec::new());
    for (name, raw) in json::members(start).ok()? {
        if name == LAYOUT {
            let text = json::member(raw, "S").ok().flatten().and_then(|text| json::string(text).ok());
            said = Some(text.unwrap_or_default().into_owned());
            keys.push((name.clone(), None));
        }
        for kind in [KeyType::S, KeyType::B] {
            let value = KeyText::read(raw, kind);
            if let Some((text, key)) = value.as_ref().and_then(|value| parted(&value.bytes)) {
                said.get_or_insert_with(|| text.to_owned());
                keys.push((name.clone(), Some(literal(kind, key).to_json())));
            }
        }
    }
    let keys: Vec<_> = keys.iter().map(|(name, key)| (&**name, key.as_deref())).collect();
    let start = json::splice_members(start, &keys).ok()?;
    let body = json::splice_members(body, &[("ExclusiveStartKey", Some(&start))]).ok()?;
    Some((said?, Bytes::from(body)))
}

/// An answer whose position says what its attribute says in the value of its partition key, too.
/// `always`: not only where the key itself looks as if something stood before it.
///
/// # Errors
/// `InternalServerError` for an answer that cannot be read.
pub(super) fn kept(
    answer: &Bytes,
    table: &Table,
    operation: Operation,
    always: bool,
) -> Result<Bytes, Error> {
    // Pages are long, and few end at such a key.
    static NAME: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(BEFORE));
    if !always && NAME.find(answer).is_none() && table.key.partition.key_type == KeyType::S {
        return Ok(answer.clone());
    }
    with_mark(answer, table, always).map_err(|Malformed| unreadable(operation))
}

fn with_mark(answer: &Bytes, table: &Table, always: bool) -> Result<Bytes, Malformed> {
    let partition = &table.key.partition;
    let Some(last) = json::member(answer, "LastEvaluatedKey")?.filter(|last| *last != b"null") else {
        return Ok(answer.clone());
    };
    let Some(value) = json::member(last, &partition.name)? else { return Ok(answer.clone()) };
    // A number holds no text: a position that comes back bare is refused meanwhile.
    if partition.key_type == KeyType::N {
        return Ok(answer.clone());
    }
    let key = KeyText::read(value, partition.key_type).ok_or(Malformed)?;
    let said = match json::member(last, LAYOUT)? {
        Some(said) => json::string(json::member(said, "S")?.ok_or(Malformed)?)?,
        None => Cow::Borrowed(""),
    };
    let is_told = always && !said.is_empty();
    if !is_told && parted(&key.bytes).is_none() {
        return Ok(answer.clone());
    }
    let key = [BEFORE.as_bytes(), said.as_bytes(), b";", &key.bytes].concat();
    let key = literal(partition.key_type, &key).to_json();
    let last = json::splice_members(last, &[(partition.name.as_str(), Some(key.as_slice()))])?;
    json::splice_members(answer, &[("LastEvaluatedKey", Some(&last))]).map(Bytes::from)
}

/// What stands before a key, and the key.
fn parted(value: &[u8]) -> Option<(&str, &[u8])> {
    let rest = value.strip_prefix(BEFORE.as_bytes())?;
    let end = rest.iter().position(|byte| *byte == b';')?;
    let (said, key) = (rest.get(..end)?, rest.get(end + 1..)?);
    Some((std::str::from_utf8(said).ok()?, key))
}
