//! Numbers of the registry's items: epochs, versions, times. Each is counted up by one from what
//! was read, so what leaves no room for that was not counted so far by anybody: the item is
//! damaged.

use serde_json::Value as Json;

/// The most that such a number can be. First versions are random and below 2^48.
const MOST: u64 = 1 << 62;

/// The number of that name; `None` where there is none, or none that Heatsink wrote.
pub(crate) fn counted(item: &Json, name: &str) -> Option<u64> {
    item[name]["N"].as_str()?.parse().ok().filter(|number| *number <= MOST)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_cannot_be_counted_up_is_no_number_of_the_registry() {
        let read = |text: &str| counted(&json!({ "epoch": { "N": text } }), "epoch");
        assert_eq!(read("17"), Some(17));
        assert_eq!(read("18446744073709551615"), None);
        for text in ["-1", "1.5", "", "18446744073709551616"] {
            assert_eq!(read(text), None, "{text}");
        }
        assert_eq!(counted(&json!({}), "epoch"), None);
    }
}
