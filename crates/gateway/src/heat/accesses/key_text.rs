//! Values of keys as texts: equal keys have equal texts, and texts of sort keys can be ordered.

use std::borrow::Cow;

use heatsink_dynamo::number::ascending_bits;
use heatsink_dynamo::{KeyType, Number, json};

/// The type of a key and its text: of a number the canonical one, of a binary value base64.
pub(in crate::heat) type KeyText<'a> = (KeyType, Cow<'a, str>);

/// A key by its attribute value. Equal keys have equal texts, however they are written.
pub(in crate::heat) fn key_text(raw: &[u8]) -> Option<KeyText<'_>> {
    if let Ok(Some(text)) = json::only_member(raw, "S") {
        return Some((KeyType::S, json::string(text).ok()?));
    }
    let [text, number, binary] = json::attributes_of(raw, ["S", "N", "B"]).ok()?;
    if let Some(text) = text {
        return Some((KeyType::S, json::string(text).ok()?));
    }
    if let Some(number) = number {
        let number = json::string(number).ok()?;
        let plain = number.len() <= 38
            && number.bytes().all(|byte| byte.is_ascii_digit())
            && (number.len() == 1 || !number.starts_with('0'));
        let canonical = if plain { number } else { Number::parse(&number).ok()?.to_string().into() };
        return Some((KeyType::N, canonical));
    }
    Some((KeyType::B, json::string(binary?).ok()?))
}

/// Bytes that are ordered as sort keys are; of numbers about 16 digits are compared.
pub(in crate::heat) fn ordered(raw: &[u8]) -> Option<Cow<'_, [u8]>> {
    match key_text(raw)? {
        (KeyType::S, Cow::Borrowed(text)) => Some(Cow::Borrowed(text.as_bytes())),
        (KeyType::S, Cow::Owned(text)) => Some(Cow::Owned(text.into_bytes())),
        (KeyType::N, text) => Some(Cow::Owned(ascending_bits(text.parse().ok()?).to_be_bytes().to_vec())),
        // Base64 is not ordered as what it stands for.
        (KeyType::B, _) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_keys_have_equal_texts_however_they_are_written() {
        for (raw, text) in [
            (r#"{"S":"game_x"}"#, Some("game_x")),
            (r#"{"S": "game_x"}"#, Some("game_x")),
            (r#" { "S" : "game_x" } "#, Some("game_x")),
            (r#"{"\u0053":"game\u005fx"}"#, Some("game_x")),
            (r#"{"S":"game\u005fx"}"#, Some("game_x")),
            (r#"{"S":"a\"}"}"#, Some("a\"}")),
            (r#"{"S":""}"#, Some("")),
            (r#"{"S":"a","S":"b"}"#, Some("b")),
            (r#"{"S":"a"}{"S":"b"}"#, None),
            (r#"{"S":1}"#, None),
            (r#"{"S":"a}"#, None),
        ] {
            let read = key_text(raw.as_bytes());
            assert_eq!(read.as_ref().map(|(_, text)| &**text), text, "{raw}");
        }
        assert_eq!(key_text(br#"{"N":"1.0e1"}"#), Some((KeyType::N, "10".into())));
    }
}
