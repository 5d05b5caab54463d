//! Key values: their order, their canonical bytes, their limits.
//!
//! Not here: which attribute is a key (`table`).

use std::borrow::Cow;
use std::cmp::Ordering;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

use crate::json::{self, write_string};
use crate::value::Value;
use crate::{AttributeDefinition, Error, KeyType, Number};

/// The longest partition key, in bytes (AWS, "Constraints").
pub const MAX_PARTITION_KEY: usize = 2048;
/// The longest sort key, in bytes (AWS, "Constraints").
pub const MAX_SORT_KEY: usize = 1024;

/// The value of a key attribute. Ordered as DynamoDB sorts: strings by UTF-8 bytes, numbers by
/// value, binaries by unsigned bytes. Values of different types do not meet in one table; here `S`
/// comes before `N` before `B`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs, reason = "the names are DynamoDB's own")]
pub enum KeyValue<'a> {
    S(Cow<'a, str>),
    N(Number),
    B(Cow<'a, [u8]>),
}

/// Which part of a primary key a value is; decides its limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyPart {
    /// The partition key: 1 to 2,048 bytes.
    Partition,
    /// The sort key: 1 to 1,024 bytes.
    Sort,
}

impl<'a> KeyValue<'a> {
    /// Reads an attribute value as the key attribute that `definition` declares; a string without
    /// escapes is borrowed.
    ///
    /// # Errors
    /// `ValidationException` for another type, `SerializationException` for malformed JSON.
    pub fn read(raw: &'a [u8], definition: &AttributeDefinition) -> Result<KeyValue<'a>, Error> {
        if let Ok(Some(inner)) = json::only_member(raw, definition.key_type.name())
            && let Ok(text) = json::string(inner)
        {
            return match definition.key_type {
                KeyType::S => Ok(KeyValue::S(text)),
                KeyType::N => Ok(KeyValue::N(Number::parse(&text)?)),
                KeyType::B => STANDARD
                    .decode(text.as_bytes())
                    .map(|bytes| KeyValue::B(Cow::Owned(bytes)))
                    .map_err(|_| Error::serialization("Base64 encoded length or content is invalid")),
            };
        }
        let value = Value::read(raw)?;
        KeyValue::from_value(&value).filter(|key| key.key_type() == definition.key_type).map(KeyValue::into_owned).ok_or_else(
            || {
                Error::validation(format!(
                    "One or more parameter values were invalid: Type mismatch for key {} expected: {} actual: {}",
                    definition.name,
                    definition.key_type.name(),
                    value.type_name()
                ))
            },
        )
    }

    /// The key value of an attribute value; `None` for types that cannot be keys.
    pub fn from_value(value: &'a Value) -> Option<KeyValue<'a>> {
        match value {
            Value::S(text) => Some(KeyValue::S(Cow::Borrowed(text))),
            Value::N(text) => Number::parse(text).ok().map(KeyValue::N),
            Value::B(bytes) => Some(KeyValue::B(Cow::Borrowed(bytes))),
            _ => None,
        }
    }

    /// The same value, borrowing nothing.
    pub fn into_owned(self) -> KeyValue<'static> {
        match self {
            KeyValue::S(text) => KeyValue::S(Cow::Owned(text.into_owned())),
            KeyValue::N(number) => KeyValue::N(number),
            KeyValue::B(bytes) => KeyValue::B(Cow::Owned(bytes.into_owned())),
        }
    }

    /// The type.
    pub const fn key_type(&self) -> KeyType {
        match self {
            KeyValue::S(_) => KeyType::S,
            KeyValue::N(_) => KeyType::N,
            KeyValue::B(_) => KeyType::B,
        }
    }

    /// What hashes are taken over: UTF-8 of a string, the canonical text of a number, the bytes of
    /// a binary. Equal values of one type have equal bytes.
    pub fn canonical_bytes(&self) -> Cow<'_, [u8]> {
        match self {
            KeyValue::S(text) => Cow::Borrowed(text.as_bytes()),
            KeyValue::N(number) => Cow::Owned(number.canonical_bytes()),
            KeyValue::B(bytes) => Cow::Borrowed(bytes),
        }
    }

    /// The attribute value.
    pub fn to_value(&self) -> Value {
        match self {
            KeyValue::S(text) => Value::S(text.clone().into_owned()),
            KeyValue::N(number) => Value::N(number.to_string()),
            KeyValue::B(bytes) => Value::B(Bytes::copy_from_slice(bytes)),
        }
    }

    /// Writes the attribute value as JSON: `{"S":"a"}`.
    pub fn write(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(b"{\"");
        out.extend_from_slice(self.key_type().name().as_bytes());
        out.extend_from_slice(b"\":");
        match self {
            KeyValue::S(text) => write_string(out, text),
            KeyValue::N(number) => write_string(out, &number.to_string()),
            KeyValue::B(bytes) => write_string(out, &STANDARD.encode(bytes)),
        }
        out.push(b'}');
    }

    /// Checks the length of a string or binary key.
    ///
    /// # Errors
    /// `ValidationException` for an empty key, or one over its limit.
    pub fn check(&self, part: KeyPart, name: &str) -> Result<(), Error> {
        let (length, kind) = match self {
            KeyValue::S(text) => (text.len(), "string"),
            KeyValue::B(bytes) => (bytes.len(), "binary"),
            KeyValue::N(_) => return Ok(()),
        };
        if length == 0 {
            return Err(Error::validation(format!(
                "One or more parameter values are not valid. The AttributeValue for a key attribute cannot contain an empty {kind} value. Key: {name}"
            )));
        }
        let (limit, message) = match part {
            KeyPart::Partition => {
                (MAX_PARTITION_KEY, "Size of hashkey has exceeded the maximum size limit of2048 bytes")
            }
            KeyPart::Sort => {
                (MAX_SORT_KEY, "Aggregated size of all range keys has exceeded the size limit of 1024 bytes")
            }
        };
        if length > limit {
            return Err(Error::validation(format!("One or more parameter values were invalid: {message}")));
        }
        Ok(())
    }
}

/// Compares two raw attribute values of one key attribute without keeping either.
///
/// # Errors
/// As [`KeyValue::read`].
pub fn compare(a: &[u8], b: &[u8], definition: &AttributeDefinition) -> Result<Ordering, Error> {
    Ok(KeyValue::read(a, definition)?.cmp(&KeyValue::read(b, definition)?))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn definition(key_type: KeyType) -> AttributeDefinition {
        AttributeDefinition { name: "k".into(), key_type }
    }

    #[test]
    fn keys_read_and_write() {
        for (raw, key_type, canonical) in [
            (r#"{"S":"é\n"}"#, KeyType::S, "é\n".as_bytes()),
            (r#"{"N":"1.50e1"}"#, KeyType::N, b"15"),
            (r#"{"B":"/wA="}"#, KeyType::B, &[255, 0]),
            (r#"{ "S" : "a", "N": null }"#, KeyType::S, b"a"),
        ] {
            let key = KeyValue::read(raw.as_bytes(), &definition(key_type)).unwrap();
            assert_eq!(key.canonical_bytes(), canonical);
            let mut out = Vec::new();
            key.write(&mut out);
            assert_eq!(KeyValue::read(&out, &definition(key_type)).unwrap(), key);
            assert_eq!(KeyValue::from_value(&key.to_value()), Some(key.clone()));
        }
        let error = KeyValue::read(br#"{"N":"1"}"#, &definition(KeyType::S)).unwrap_err();
        assert!(error.message.unwrap().ends_with("Type mismatch for key k expected: S actual: N"));
        assert!(KeyValue::read(br#"{"S":"a","N":"1"}"#, &definition(KeyType::S)).is_err());
        assert!(KeyValue::read(b"{}", &definition(KeyType::S)).is_err());
    }

    #[test]
    fn lengths_are_limited() {
        let text = |length: usize| KeyValue::S("x".repeat(length).into());
        assert!(text(2048).check(KeyPart::Partition, "k").is_ok());
        assert!(text(2049).check(KeyPart::Partition, "k").is_err());
        assert!(text(1024).check(KeyPart::Sort, "k").is_ok());
        assert!(text(1025).check(KeyPart::Sort, "k").is_err());
        assert!(text(0).check(KeyPart::Sort, "k").is_err());
    }

    proptest! {
        #[test]
        fn the_order_is_that_of_the_bytes(a in any::<String>(), b in any::<String>()) {
            prop_assert_eq!(KeyValue::S(a.as_str().into()).cmp(&KeyValue::S(b.as_str().into())), a.as_bytes().cmp(b.as_bytes()));
        }
    }
}
