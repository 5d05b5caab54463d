//! Binary values as JSON has them: base64, and what DynamoDB says of a text that is none.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;

use crate::Error;

/// What is wrong with a text that should be base64; nothing for one that is. Nothing is decoded or
/// allocated for a valid text.
///
/// The words are DynamoDB's, as the tests of the `dynalite` project observed them there
/// (`helpers.js`, `assertType` for `Blob`).
pub(crate) fn fault(text: &[u8]) -> Option<String> {
    if !text.len().is_multiple_of(4) {
        return Some(format!(
            "Base64 encoded length is expected a multiple of 4 bytes but found: {}",
            text.len()
        ));
    }
    let valid = text.strip_suffix(b"==").or_else(|| text.strip_suffix(b"=")).unwrap_or(text);
    if let Some(wrong) = valid.iter().find(|byte| value(**byte).is_none() && **byte != b'=') {
        let shown: String = String::from_utf8_lossy(std::slice::from_ref(wrong)).into_owned();
        return Some(format!("Invalid Base64 character: '{shown}'"));
    }
    // Bits of the last character that belong to no byte must be zero.
    let spare = match text.len() - valid.len() {
        1 => 0b11,
        2 => 0b1111,
        _ => 0,
    };
    let last = valid.last().and_then(|byte| value(*byte)).unwrap_or_default();
    (valid.contains(&b'=') || last & spare != 0)
        .then(|| "Invalid last non-pad Base64 character dectected".to_owned())
}

const fn value(byte: u8) -> Option<u8> {
    Some(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}

/// The bytes of a base64 text.
pub(super) fn decode(text: &str) -> Result<Bytes, Error> {
    STANDARD.decode(text.as_bytes()).map(Bytes::from).map_err(|_| {
        let message = fault(text.as_bytes());
        Error::serialization(
            message.unwrap_or_else(|| "Base64 encoded length or content is invalid".to_owned()),
        )
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn what_is_no_base64_is_refused_in_dynamodbs_words() {
        for (text, message) in [
            ("23456", "Base64 encoded length is expected a multiple of 4 bytes but found: 5"),
            ("=+/=", "Invalid last non-pad Base64 character dectected"),
            ("+/+=", "Invalid last non-pad Base64 character dectected"),
            ("AA-A", "Invalid Base64 character: '-'"),
        ] {
            assert_eq!(fault(text.as_bytes()).as_deref(), Some(message), "{text}");
        }
    }

    proptest! {
        #[test]
        fn a_text_is_at_fault_exactly_if_it_does_not_decode(text in "[A-Ca-c01+/=é-]{0,9}") {
            prop_assert_eq!(fault(text.as_bytes()).is_none(), STANDARD.decode(&text).is_ok(), "{}", text);
        }

        #[test]
        fn bytes_come_back(bytes in proptest::collection::vec(any::<u8>(), 0..20)) {
            let text = STANDARD.encode(&bytes);
            prop_assert_eq!(fault(text.as_bytes()), None);
            prop_assert_eq!(decode(&text).unwrap(), Bytes::from(bytes));
        }
    }
}
