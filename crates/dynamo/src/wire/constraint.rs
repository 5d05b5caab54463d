//! What a text or a whole number must satisfy, and how DynamoDB says that it does not.
//!
//! Not here: where it stands (`trail`), an empty table name, which is worded like a length
//! (`walk`).

use super::shape::{Named, Text, Whole};
use crate::table::is_of_name_characters;

/// The constraint that a text breaks.
pub(super) fn broken(text: &Text, value: &str) -> Option<String> {
    if !text.words.is_empty() {
        let known = text.words.contains(&value);
        return (!known).then(|| format!("Member must satisfy enum value set: [{}]", text.words.join(", ")));
    }
    let length = value.chars().count();
    if length < text.least {
        return Some(format!("Member must have length greater than or equal to {}", text.least));
    }
    if length > text.most {
        return Some(format!("Member must have length less than or equal to {}", text.most));
    }
    (text.named == Named::Table && !is_of_name_characters(value))
        .then(|| "Member must satisfy regular expression pattern: [a-zA-Z0-9_.-]+".to_owned())
}

/// The end of its range that a JSON number lies beyond: in which direction it should lie, and the
/// limit.
pub(super) fn beyond(whole: &Whole, number: &[u8]) -> Option<(&'static str, i64)> {
    match truncated(number)? {
        value if value < whole.least => Some(("greater", whole.least)),
        value if value > whole.most => Some(("less", whole.most)),
        _ => None,
    }
}

/// A JSON number cut to a whole one, as Java reads it into an `Integer` or `Long`.
fn truncated(number: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(number).ok()?;
    if let Ok(whole) = text.parse::<i64>() {
        return Some(whole);
    }
    let number = text.parse::<f64>().ok()?;
    #[allow(
        clippy::cast_possible_truncation,
        reason = "`as` cuts to the nearest end of the range, as is wanted"
    )]
    Some(number as i64)
}
