//! A lazy look into JSON bodies: find members and elements, leave the rest as the bytes that were
//! sent.
//!
//! One pass over the structure finds a member; nothing is decoded but what is asked for. Strings
//! that are passed over are not checked for escapes or UTF-8, numbers only for their characters:
//! whoever reads a value checks it ([`string`], [`crate::Value::read`]), and the store checks all
//! of it. Nesting beyond [`MAX_DEPTH`] is malformed.
//!
//! Not here: DynamoDB's values (`value`), checking a whole request (`wire`).
//! Why not a library: docs/develop/decisions/0004-lazy-json.md.

use std::borrow::Cow;

mod edit;
mod scan;

pub use edit::{Object, splice_members, write_string};
pub use scan::{MAX_DEPTH, Malformed};
pub(crate) use scan::{Members, skip, space};

/// A member of an object: its name, and its value as it was written.
pub type Member<'a> = (Cow<'a, str>, &'a [u8]);

/// The members of a JSON object, in order, their values as raw bytes. Repeated names are all
/// listed.
///
/// # Errors
/// The bytes are not one JSON object.
pub fn members(object: &[u8]) -> Result<Vec<Member<'_>>, Malformed> {
    let mut found = Vec::with_capacity(8);
    let mut walk = Members::open(object, space(object, 0))?;
    while let Some((name, value)) = walk.next()? {
        found.push((string(name)?, value));
    }
    walk.finish()?;
    Ok(found)
}

/// The first member of a JSON object, which is not read beyond it; `None` of an empty one.
///
/// # Errors
/// The bytes do not begin a JSON object, as far as they are read.
pub fn first_member(object: &[u8]) -> Result<Option<Member<'_>>, Malformed> {
    let mut walk = Members::open(object, space(object, 0))?;
    walk.next()?.map(|(name, value)| Ok((string(name)?, value))).transpose()
}

/// The value of an object's only member, if that has this name: what an attribute value holds, by
/// its type. One pass, nothing allocated.
///
/// # Errors
/// The bytes are not one JSON object, as far as they are read: a second member ends it.
pub fn only_member<'a>(object: &'a [u8], name: &str) -> Result<Option<&'a [u8]>, Malformed> {
    let mut walk = Members::open(object, space(object, 0))?;
    let Some((found, value)) = walk.next()? else { return Ok(None) };
    if walk.name()?.is_some() {
        return Ok(None);
    }
    walk.finish()?;
    Ok((string(found)? == name).then_some(value))
}

/// The elements of a JSON array as raw bytes.
///
/// # Errors
/// The bytes are not one JSON array.
pub fn elements(array: &[u8]) -> Result<Vec<&[u8]>, Malformed> {
    let mut found = Vec::new();
    each_element(array, |at| {
        let end = skip(array, at)?;
        found.push(array.get(at..end).ok_or(Malformed)?);
        Ok(end)
    })?;
    Ok(found)
}

/// [`elements`] of an array that has at most `most`; `None` for a longer one, which is not read to
/// its end.
///
/// # Errors
/// The bytes are not one JSON array, as far as they are read.
pub fn few_elements(array: &[u8], most: usize) -> Result<Option<Vec<&[u8]>>, Malformed> {
    let (mut found, mut more) = (Vec::new(), false);
    let read = each_element(array, |at| {
        more = found.len() == most;
        let end = if more { Err(Malformed) } else { skip(array, at) }?;
        found.push(array.get(at..end).ok_or(Malformed)?);
        Ok(end)
    });
    if more { Ok(None) } else { read.map(|()| Some(found)) }
}

/// One member of a JSON object; the last where a name is repeated.
///
/// # Errors
/// The bytes are not one JSON object.
pub fn member<'a>(object: &'a [u8], name: &str) -> Result<Option<&'a [u8]>, Malformed> {
    attributes_of(object, [name]).map(|[found]| found)
}

/// The members of those names, in the order of the names; the last where a member is repeated. One
/// pass, nothing allocated.
///
/// # Errors
/// The bytes are not one JSON object.
pub fn attributes_of<'a, const N: usize>(
    object: &'a [u8],
    names: [&str; N],
) -> Result<[Option<&'a [u8]>; N], Malformed> {
    let mut walk = Members::open(object, space(object, 0))?;
    let found = pick(&mut walk, names)?;
    walk.finish()?;
    Ok(found)
}

/// One object of an array: its own bytes, and the members that were asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Picked<'a, const N: usize> {
    /// The object as it was written.
    pub raw: &'a [u8],
    /// The values of the members, in the order of the names.
    pub members: [Option<&'a [u8]>; N],
}

/// [`attributes_of`] for every object of an array, in one pass: what a page of items needs.
///
/// # Errors
/// The bytes are not one JSON array of objects.
pub fn attributes_of_each<'a, const N: usize>(
    array: &'a [u8],
    names: [&str; N],
) -> Result<Vec<Picked<'a, N>>, Malformed> {
    let mut found = Vec::new();
    each_element(array, |at| picked(array, at, names, &mut found))?;
    Ok(found)
}

/// A JSON string's text; borrowed where nothing in it is escaped.
///
/// # Errors
/// The bytes are not one JSON string, or not UTF-8.
pub fn string(value: &[u8]) -> Result<Cow<'_, str>, Malformed> {
    let [b'"', inner @ .., b'"'] = value else { return Err(Malformed) };
    let plain =
        inner.iter().fold(true, |plain, &byte| plain & (byte != b'\\') & (byte != b'"') & (byte >= 0x20));
    if plain {
        return std::str::from_utf8(inner).map(Cow::Borrowed).map_err(|_| Malformed);
    }
    serde_json::from_slice::<String>(value).map(Cow::Owned).map_err(|_| Malformed)
}

/// The value without the white space around it.
///
/// # Errors
/// The bytes are not one JSON value.
pub fn trim(value: &[u8]) -> Result<&[u8], Malformed> {
    let start = space(value, 0);
    let end = skip(value, start)?;
    if space(value, end) != value.len() {
        return Err(Malformed);
    }
    value.get(start..end).ok_or(Malformed)
}

/// [`attributes_of_each`] for the array under one member of a body, and the body's other members:
/// an answer with a page of items is passed over once.
///
/// # Errors
/// The bytes are not one JSON object, or the member is not an array of objects.
pub fn page<'a, const N: usize>(
    body: &'a [u8],
    member: &str,
    names: [&str; N],
) -> Result<Page<'a, N>, Malformed> {
    let mut page = Page { members: Vec::with_capacity(8), items: None };
    let mut walk = Members::open(body, space(body, 0))?;
    while let Some(name) = walk.name()? {
        let name = string(name)?;
        if name == member {
            // The last of a repeated member counts.
            let mut found = Vec::with_capacity(16);
            let end = each_in(body, walk.value(), |at| picked(body, at, names, &mut found))?;
            page.items = Some(found);
            walk.value_ended(end)?;
        } else {
            let value = walk.skip_value()?;
            page.members.push((name, value));
        }
    }
    walk.finish()?;
    Ok(page)
}

/// What [`page`] finds.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<'a, const N: usize> {
    /// All members but the array, in order.
    pub members: Vec<Member<'a>>,
    /// The array's objects; `None` where the member is missing.
    pub items: Option<Vec<Picked<'a, N>>>,
}

/// The names of the members of the object under one member of a body, in one pass. Of a repeated
/// member all are given; one that is `null` has none.
///
/// # Errors
/// The bytes are not one JSON object, or the member is neither an object nor `null`.
pub fn names_under<'a>(body: &'a [u8], member: &str) -> Result<Vec<Cow<'a, str>>, Malformed> {
    let mut names = Vec::new();
    let mut walk = Members::open(body, space(body, 0))?;
    while let Some(name) = walk.name()? {
        if string(name)? != member || body.get(walk.value()) == Some(&b'n') {
            walk.skip_value()?;
            continue;
        }
        let mut inner = Members::open(body, walk.value())?;
        while let Some((name, _)) = inner.next()? {
            names.push(string(name)?);
        }
        walk.value_ended(inner.end())?;
    }
    walk.finish()?;
    Ok(names)
}

/// A name, and the elements of the array under it.
pub type List<'a> = (Cow<'a, str>, Vec<&'a [u8]>);

/// The arrays under the names of the object under one member of a body, in one pass, which ends
/// behind the first `most` elements of all of them.
///
/// # Errors
/// The bytes are not one JSON object, or the member is no object of arrays, as far as they are read.
pub fn lists_under<'a>(body: &'a [u8], member: &str, most: usize) -> Result<Vec<List<'a>>, Malformed> {
    let (mut lists, mut left) = (Vec::new(), most);
    let mut walk = Members::open(body, space(body, 0))?;
    while let Some(name) = walk.name()? {
        if string(name)? != member {
            walk.skip_value()?;
            continue;
        }
        let mut inner = Members::open(body, walk.value())?;
        while let Some(name) = inner.name()? {
            let mut found = Vec::with_capacity(left.min(25));
            let end = each_in(body, inner.value(), |at| {
                let end = if left == 0 { Err(Malformed) } else { skip(body, at) }?;
                found.push(body.get(at..end).ok_or(Malformed)?);
                left -= 1;
                Ok(end)
            });
            lists.push((string(name)?, found));
            if left == 0 {
                return Ok(lists);
            }
            inner.value_ended(end?)?;
        }
        walk.value_ended(inner.end())?;
    }
    walk.finish()?;
    Ok(lists)
}

fn picked<'a, const N: usize>(
    bytes: &'a [u8],
    at: usize,
    names: [&str; N],
    found: &mut Vec<Picked<'a, N>>,
) -> Result<usize, Malformed> {
    let mut walk = Members::open(bytes, at)?;
    let members = pick(&mut walk, names)?;
    let end = walk.end();
    found.push(Picked { raw: bytes.get(at..end).ok_or(Malformed)?, members });
    Ok(end)
}

fn pick<'a, const N: usize>(
    walk: &mut Members<'a>,
    names: [&str; N],
) -> Result<[Option<&'a [u8]>; N], Malformed> {
    let mut found = [None; N];
    while let Some((name, value)) = walk.next()? {
        let inner = name.get(1..name.len() - 1).ok_or(Malformed)?;
        let decoded;
        let text = if inner.contains(&b'\\') {
            decoded = string(name)?;
            decoded.as_bytes()
        } else {
            inner
        };
        for (place, wanted) in found.iter_mut().zip(names) {
            if text == wanted.as_bytes() {
                *place = Some(value);
            }
        }
    }
    Ok(found)
}

/// Calls `element` at the start of every element of an array; it answers where the element ends.
fn each_element(
    array: &[u8],
    element: impl FnMut(usize) -> Result<usize, Malformed>,
) -> Result<(), Malformed> {
    let end = each_in(array, space(array, 0), element)?;
    if space(array, end) == array.len() { Ok(()) } else { Err(Malformed) }
}

/// The same for the array that starts at `start`: where it ends.
pub(crate) fn each_in(
    bytes: &[u8],
    start: usize,
    mut element: impl FnMut(usize) -> Result<usize, Malformed>,
) -> Result<usize, Malformed> {
    if bytes.get(start) != Some(&b'[') {
        return Err(Malformed);
    }
    let mut at = space(bytes, start + 1);
    if bytes.get(at) == Some(&b']') {
        return Ok(at + 1);
    }
    loop {
        at = space(bytes, element(at)?);
        match bytes.get(at) {
            Some(b',') => at = space(bytes, at + 1),
            Some(b']') => return Ok(at + 1),
            _ => return Err(Malformed),
        }
    }
}

#[cfg(test)]
mod tests;
