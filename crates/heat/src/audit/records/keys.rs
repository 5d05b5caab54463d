//! The key of an item or a record: the names of its attributes, and their values.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use heatsink_dynamo::json::{self, Malformed};
use heatsink_layout::SortKey;

use super::unreadable::Unreadable;

/// The names of a table's key attributes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyNames {
    /// The partition key.
    pub partition: String,
    /// The sort key, if there is one.
    pub sort: Option<String>,
}

/// A key value.
#[derive(Debug)]
pub(super) enum KeyText<'a> {
    S(Cow<'a, str>),
    N(Cow<'a, str>),
    B(Vec<u8>),
}

/// Most names that an error lists.
const NAMES: usize = 12;

impl<'a> KeyText<'a> {
    pub(super) fn borrowed(&self) -> SortKey<'_> {
        match self {
            KeyText::S(text) => SortKey::S(text),
            KeyText::N(text) => SortKey::N(text),
            KeyText::B(bytes) => SortKey::B(bytes),
        }
    }

    /// As a partition key.
    pub(super) fn bytes(self) -> Cow<'a, [u8]> {
        match self {
            KeyText::S(Cow::Borrowed(text)) | KeyText::N(Cow::Borrowed(text)) => {
                Cow::Borrowed(text.as_bytes())
            }
            KeyText::S(Cow::Owned(text)) | KeyText::N(Cow::Owned(text)) => Cow::Owned(text.into_bytes()),
            KeyText::B(bytes) => Cow::Owned(bytes),
        }
    }
}

/// The key values among the attributes that were found.
pub(super) fn keys_of<'a>(
    names: &KeyNames,
    [partition, sort]: [Option<&'a [u8]>; 2],
) -> Result<(KeyText<'a>, Option<KeyText<'a>>), Unreadable> {
    let no = |name: &str| Unreadable::NoKey(name.to_owned());
    let first = partition.and_then(key).ok_or_else(|| no(&names.partition))?;
    let second = match &names.sort {
        Some(name) => Some(sort.and_then(key).ok_or_else(|| no(name))?),
        None => None,
    };
    Ok((first, second))
}

/// The names of a key by what was said and by the attributes of a record's key: of one attribute
/// nothing has to be said, of two the partition key.
pub(super) fn names_of(said: Option<KeyNames>, there: Vec<String>) -> Result<KeyNames, Unreadable> {
    match said {
        None => match <[String; 1]>::try_from(there) {
            Ok([partition]) => Ok(KeyNames { partition, sort: None }),
            Err(names) => Err(Unreadable::NamesNeeded { names }),
        },
        Some(KeyNames { partition, sort: None }) if there.len() == 2 => {
            let sort = there.into_iter().find(|name| *name != partition);
            Ok(KeyNames { partition, sort })
        }
        Some(said) => Ok(said),
    }
}

/// A key attribute's value.
fn key(raw: &[u8]) -> Option<KeyText<'_>> {
    let found = json::attributes_of(raw, ["S", "N", "B"]).ok()?;
    let text = |raw| json::string(raw).ok();
    match found {
        [Some(raw), None, None] => Some(KeyText::S(text(raw)?)),
        [None, Some(raw), None] => Some(KeyText::N(text(raw)?)),
        [None, None, Some(raw)] => Some(KeyText::B(STANDARD.decode(text(raw)?.as_bytes()).ok()?)),
        _ => None,
    }
}

pub(super) fn names(object: &[u8]) -> Result<Vec<String>, Unreadable> {
    let members = json::members(object).map_err(|Malformed| Unreadable::NoItem)?;
    Ok(members.into_iter().take(NAMES).map(|(name, _)| name.into_owned()).collect())
}
