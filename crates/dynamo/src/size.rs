//! How many bytes an item counts for.
//!
//! Rules: AWS ("DynamoDB item sizes and formats"). What AWS leaves open for numbers was measured by
//! others at the 400 KB limit: digits before and behind the point count separately, a minus sign is
//! a byte. A name in a map costs one byte more, as an element of a list does.

use crate::{Item, Number, Value};

mod scan;

pub use scan::{ScannedItem, scan_item};

/// The largest item, in bytes, names included (AWS, "Constraints").
pub const MAX_ITEM: usize = 400 * 1024;

/// The size of an item in bytes: every attribute's name and value.
pub fn item_size(item: &Item) -> usize {
    item.iter().map(|(name, value)| name.len() + value_size(value)).sum()
}

/// The size of a value in bytes.
pub fn value_size(value: &Value) -> usize {
    match value {
        Value::S(text) => text.len(),
        Value::N(text) => number_size(text),
        Value::B(bytes) => bytes.len(),
        Value::Bool(_) | Value::Null => 1,
        Value::Ss(set) => set.iter().map(String::len).sum(),
        Value::Ns(set) => set.iter().map(|text| number_size(text)).sum(),
        Value::Bs(set) => set.iter().map(bytes::Bytes::len).sum(),
        Value::L(list) => 3 + list.iter().map(|value| 1 + value_size(value)).sum::<usize>(),
        Value::M(map) => {
            3 + map.iter().map(|(name, value)| 1 + name.len() + value_size(value)).sum::<usize>()
        }
    }
}

/// A byte for every two significant digits, rounded up on either side of the point, and one.
fn number_size(text: &str) -> usize {
    Number::parse(text).map_or(text.len(), |number| {
        let (whole, fraction) = number.digits_around_point();
        let bytes = whole.div_ceil(2) + fraction.div_ceil(2) + 1 + u32::from(number.is_negative());
        usize::try_from(bytes).unwrap_or(text.len())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_are_those_that_aws_documents() {
        let size = |json: &str| item_size(&crate::value::read_item(json.as_bytes()).unwrap());
        // AWS, "Constraints in Amazon DynamoDB": 23 bytes.
        assert_eq!(size(r#"{"shirt-color":{"S":"R"},"shirt-size":{"S":"M"}}"#), 23);
        assert_eq!(size(r#"{"a":{"S":"é"}}"#), 3);
        assert_eq!(size(r#"{"a":{"BOOL":true},"b":{"NULL":true}}"#), 4);
        assert_eq!(size(r#"{"a":{"B":"AAEC"}}"#), 4);
        assert_eq!(size(r#"{"a":{"L":[]}}"#), 4);
        assert_eq!(size(r#"{"a":{"L":[{"S":"xy"}]}}"#), 7);
        assert_eq!(size(r#"{"a":{"M":{"b":{"S":"xy"}}}}"#), 8);
        assert_eq!(size(r#"{"a":{"SS":["x","yz"]}}"#), 4);
        for (number, bytes) in
            [("0", 1), ("42", 2), ("-42", 3), ("100", 2), ("1.5", 3), ("0.001", 2), ("12345", 4), ("-0", 1)]
        {
            assert_eq!(value_size(&Value::N(number.into())), bytes, "{number}");
        }
    }
}
