//! The size of an item by its JSON, in one pass and without building the item: for whoever reads
//! millions of them.
//!
//! Not here: whether it is an item that DynamoDB would take. Strings without escapes are not
//! checked for UTF-8, binary values only for their length.

use std::borrow::Cow;

use super::number_size;
use crate::json::{self, Malformed, Members, each_in, skip};
use crate::value::MAX_NESTING;

/// What [`scan_item`] finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ScannedItem<'a, const N: usize> {
    /// The item's size in bytes, as [`item_size`](super::item_size) counts it.
    pub bytes: usize,
    /// The values of the attributes that were asked for, as they were written: `{"S":"a"}`.
    pub attributes: [Option<&'a [u8]>; N],
}

/// Passes over an item, `{"pk":{"S":"a"},…}`.
///
/// # Errors
/// The bytes are not one JSON object whose members are attribute values.
pub fn scan_item<'a, const N: usize>(
    raw: &'a [u8],
    names: [&str; N],
) -> Result<ScannedItem<'a, N>, Malformed> {
    let start = json::space(raw, 0);
    let mut found = ScannedItem { bytes: 0, attributes: [None; N] };
    let mut walk = Members::open(raw, start)?;
    while let Some(name) = walk.name()? {
        let at = walk.value();
        let (end, size) = value(raw, at, 0)?;
        let text = decoded(name)?;
        found.bytes += text.len() + size;
        for (place, wanted) in found.attributes.iter_mut().zip(names) {
            if text.as_ref() == wanted.as_bytes() {
                *place = raw.get(at..end);
            }
        }
        walk.value_ended(end)?;
    }
    walk.finish()?;
    Ok(found)
}

fn decoded(name: &[u8]) -> Result<Cow<'_, [u8]>, Malformed> {
    let inner = name.get(1..name.len().saturating_sub(1)).ok_or(Malformed)?;
    if memchr::memchr(b'\\', inner).is_none() {
        return Ok(Cow::Borrowed(inner));
    }
    Ok(Cow::Owned(json::string(name)?.into_owned().into_bytes()))
}

/// Where the attribute value that starts at `at` ends, and its size.
fn value(bytes: &[u8], at: usize, depth: usize) -> Result<(usize, usize), Malformed> {
    let mut walk = Members::open(bytes, at)?;
    let kind = walk.name()?.ok_or(Malformed)?;
    let at = walk.value();
    let (end, size) = match kind {
        br#""S""# => scalar(bytes, at, text)?,
        br#""N""# => scalar(bytes, at, number)?,
        br#""B""# => scalar(bytes, at, binary)?,
        br#""BOOL""# | br#""NULL""# => scalar(bytes, at, boolean)?,
        br#""SS""# => set(bytes, at, text)?,
        br#""NS""# => set(bytes, at, number)?,
        br#""BS""# => set(bytes, at, binary)?,
        br#""L""# if depth < MAX_NESTING => {
            let mut size = 3;
            let end = each_in(bytes, at, |at| {
                let (end, inner) = value(bytes, at, depth + 1)?;
                size += 1 + inner;
                Ok(end)
            })?;
            (end, size)
        }
        br#""M""# if depth < MAX_NESTING => map(bytes, at, depth + 1)?,
        _ => return Err(Malformed),
    };
    walk.value_ended(end)?;
    if walk.name()?.is_some() {
        return Err(Malformed);
    }
    Ok((walk.end(), size))
}

fn map(bytes: &[u8], at: usize, depth: usize) -> Result<(usize, usize), Malformed> {
    let mut size = 3;
    let mut walk = Members::open(bytes, at)?;
    while let Some(name) = walk.name()? {
        let (end, inner) = value(bytes, walk.value(), depth)?;
        size += 1 + text(name)? + inner;
        walk.value_ended(end)?;
    }
    Ok((walk.end(), size))
}

type Size = fn(&[u8]) -> Result<usize, Malformed>;

fn scalar(bytes: &[u8], at: usize, size: Size) -> Result<(usize, usize), Malformed> {
    let end = skip(bytes, at)?;
    Ok((end, size(bytes.get(at..end).ok_or(Malformed)?)?))
}

fn set(bytes: &[u8], at: usize, size: Size) -> Result<(usize, usize), Malformed> {
    let mut all = 0;
    let end = each_in(bytes, at, |at| {
        let (end, one) = scalar(bytes, at, size)?;
        all += one;
        Ok(end)
    })?;
    Ok((end, all))
}

fn text(raw: &[u8]) -> Result<usize, Malformed> {
    let [b'"', inner @ .., b'"'] = raw else { return Err(Malformed) };
    if memchr::memchr(b'\\', inner).is_none() { Ok(inner.len()) } else { Ok(json::string(raw)?.len()) }
}

fn number(raw: &[u8]) -> Result<usize, Malformed> {
    Ok(number_size(&json::string(raw)?))
}

/// Of base64: three bytes for each four characters, less the padding.
fn binary(raw: &[u8]) -> Result<usize, Malformed> {
    let text = json::string(raw)?;
    let padding = text.bytes().rev().take_while(|byte| *byte == b'=').count();
    if text.len() % 4 != 0 || padding > 2 { Err(Malformed) } else { Ok(text.len() / 4 * 3 - padding) }
}

fn boolean(raw: &[u8]) -> Result<usize, Malformed> {
    if matches!(raw, b"true" | b"false") { Ok(1) } else { Err(Malformed) }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::size::item_size;
    use crate::value::{read_item, write_item};
    use crate::{Item, Value};

    fn any_value() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            any::<String>().prop_map(Value::S),
            "-?[0-9]{1,12}(\\.[0-9]{1,8})?".prop_map(Value::N),
            prop::collection::vec(any::<u8>(), 0..9).prop_map(|bytes| Value::B(bytes.into())),
            any::<bool>().prop_map(Value::Bool),
            Just(Value::Null),
            prop::collection::btree_set(any::<String>(), 1..4).prop_map(Value::Ss),
            prop::collection::btree_set(1..999_u32, 1..4)
                .prop_map(|set| Value::Ns(set.iter().map(ToString::to_string).collect())),
        ];
        leaf.prop_recursive(4, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(Value::L),
                prop::collection::vec((any::<String>(), inner), 0..4)
                    .prop_map(|map| Value::M(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn the_size_is_the_items(attributes in prop::collection::vec((any::<String>(), any_value()), 0..6)) {
            let item: Item = attributes.into_iter().collect();
            let mut raw = Vec::new();
            write_item(&item, &mut raw);
            let found = scan_item(&raw, ["pk"]).unwrap();
            prop_assert_eq!(found.bytes, item_size(&item));
            prop_assert!(read_item(&raw).is_ok());
            for cut in 0..raw.len() {
                prop_assert!(scan_item(&raw[..cut], ["pk"]).is_err());
            }
        }

        #[test]
        fn any_bytes_are_taken_or_refused(raw in prop::collection::vec(any::<u8>(), 0..64)) {
            let _ = scan_item(&raw, ["pk", "sk"]);
        }
    }

    #[test]
    fn attributes_are_found_by_their_names() {
        let raw = br#" {"pk":{"S":"a"},"s\u006b":{"N":"7"},"x":{"M":{"pk":{"S":"b"}}}} "#;
        let found = scan_item(raw, ["pk", "sk", "none"]).unwrap();
        assert_eq!(found.attributes, [Some(&br#"{"S":"a"}"#[..]), Some(br#"{"N":"7"}"#), None]);
        for bad in [
            &br#"{"a":{}}"#[..],
            br#"{"a":{"S":1}}"#,
            br#"{"a":{"S":"x","N":"1"}}"#,
            br#"{"a":"x"}"#,
            br#"{"a":{"B":"abc"}}"#,
            br#"{"a":{"Q":"abc"}}"#,
            br#"{"a":{"S":"x"}} x"#,
        ] {
            assert_eq!(scan_item(bad, ["a"]), Err(Malformed), "{}", String::from_utf8_lossy(bad));
        }
        let deep = |levels| {
            format!("{{\"a\":{}{{\"NULL\":true}}{}}}", "{\"L\":[".repeat(levels), "]}".repeat(levels))
        };
        assert!(scan_item(deep(MAX_NESTING).as_bytes(), ["a"]).is_ok());
        assert_eq!(scan_item(deep(MAX_NESTING + 1).as_bytes(), ["a"]), Err(Malformed));
    }
}
