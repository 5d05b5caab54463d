//! A lazy look into JSON bodies: find members and elements, leave the rest as bytes.
//!
//! Not here: building DynamoDB values from them (`value`), checking a whole request (`wire`).

use std::borrow::Cow;

/// The body is not well-formed JSON, or not of the kind that was asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("malformed JSON")]
pub struct Malformed;

/// The members of a JSON object, in order, their values as raw bytes.
pub fn members(object: &[u8]) -> Result<Vec<(Cow<'_, str>, &[u8])>, Malformed> {
    let text = std::str::from_utf8(object).map_err(|_| Malformed)?;
    let mut found = Vec::new();
    for member in sonic_rs::to_object_iter(text) {
        let (name, value) = member.map_err(|_| Malformed)?;
        found.push((Cow::Owned(name.to_string()), raw(text, &value)?));
    }
    Ok(found)
}

/// The elements of a JSON array as raw bytes.
pub fn elements(array: &[u8]) -> Result<Vec<&[u8]>, Malformed> {
    let text = std::str::from_utf8(array).map_err(|_| Malformed)?;
    sonic_rs::to_array_iter(text).map(|element| raw(text, &element.map_err(|_| Malformed)?)).collect()
}

/// One member of a JSON object; the last where a name is repeated.
pub fn member<'a>(object: &'a [u8], name: &str) -> Result<Option<&'a [u8]>, Malformed> {
    Ok(members(object)?.into_iter().rev().find(|(found, _)| found == name).map(|(_, value)| value))
}

/// A JSON string's text.
pub fn string(value: &[u8]) -> Result<Cow<'_, str>, Malformed> {
    if let [b'"', inner @ .., b'"'] = value
        && !inner.contains(&b'\\')
        && !inner.contains(&b'"')
    {
        return std::str::from_utf8(inner).map(Cow::Borrowed).map_err(|_| Malformed);
    }
    sonic_rs::from_slice::<String>(value).map(Cow::Owned).map_err(|_| Malformed)
}

/// The bytes of a value, borrowed from the text it was found in.
fn raw<'a>(text: &'a str, value: &sonic_rs::LazyValue<'a>) -> Result<&'a [u8], Malformed> {
    let found = value.as_raw_str();
    let start = (found.as_ptr() as usize).checked_sub(text.as_ptr() as usize).ok_or(Malformed)?;
    text.as_bytes().get(start..start + found.len()).ok_or(Malformed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn members_stay_as_they_were_written() {
        let body = br#"{ "a" : {"S": "x\u0041"}, "b":[1, 2 ], "a": 3 }"#;
        let found = members(body).unwrap();
        assert_eq!(found[0].1, br#"{"S": "x\u0041"}"#);
        assert_eq!(member(body, "a").unwrap(), Some(&b"3"[..]));
        assert_eq!(elements(found[1].1).unwrap(), [&b"1"[..], b"2"]);
        assert_eq!(string(br#""x\u0041""#).unwrap(), "xA");
        assert_eq!(member(b"[1]", "a"), Err(Malformed));
    }
}
