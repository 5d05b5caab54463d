//! A place in a walk over the old copies of a key: slot by slot, in each by sort key.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use heatsink_dynamo::KeyValue;
use serde_json::Value as Json;

use crate::key::logical_key::Sort;

/// How far a walk has come.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Place {
    /// The number of the old slot.
    pub slot: u16,
    pub within: Within,
}

/// How far it has come within a slot.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) enum Within {
    /// Up to this sort key.
    Upto(Sort),
    /// To its end.
    End,
}

impl std::fmt::Display for Place {
    /// The sort key of its item, for people.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.within {
            Within::Upto(KeyValue::S(text)) => write!(f, "{text:?}"),
            Within::Upto(KeyValue::N(number)) => write!(f, "{number}"),
            Within::Upto(KeyValue::B(bytes)) => f.write_str(&STANDARD.encode(bytes)),
            Within::End => write!(f, "the end of slot {}", self.slot),
        }
    }
}

/// An item that moves, and where a walk goes on behind its page.
#[derive(Clone, Debug)]
pub(crate) struct Old {
    pub item: Json,
    /// The physical keys.
    pub from: Json,
    pub to: Json,
}

#[cfg(test)]
mod tests {
    use heatsink_dynamo::Number;

    use super::*;

    #[test]
    fn a_place_is_told_as_the_sort_key_of_its_item() {
        let told = |sort: Sort| Place { slot: 0, within: Within::Upto(sort) }.to_string();
        assert_eq!(told(KeyValue::S("b0".into())), "\"b0\"");
        assert_eq!(told(KeyValue::N(Number::parse("1.50").unwrap())), "1.5");
        assert_eq!(told(KeyValue::B(vec![0, 255].into())), "AP8=");
    }
}
