//! The hottest keys as metrics, in Prometheus' text form: few, and each under one label.
//!
//! They are written when they are asked for, from the heat of the last window, so that a key which
//! has cooled leaves no series behind.

use std::fmt::Write as _;

use heatsink_heat::detect::{KeyHeat, PartHeat, PartName, ShownKey};
use sha2::{Digest, Sha256};

/// The most keys: each is a series of its own in Prometheus.
pub(crate) const MOST: usize = 20;
/// The longest name that is written whole, in bytes.
const LONGEST: usize = 100;

/// How keys are named in metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyNames {
    /// As they are. Keys are data: whoever reads the metrics reads them.
    Plain,
    /// As the first 16 hexadecimal digits of their SHA-256, alike in every gateway. Whoever guesses
    /// a key can tell that it is that one.
    Hashed,
}

/// Names and meanings of the metrics.
pub const HOT_KEY_METRICS: [(&str, &str); 2] = [
    (
        "heatsink_hot_key_units_per_second",
        "Capacity units that the hottest keys are asked for, with --hot-key-metrics; at most 20 keys.",
    ),
    ("heatsink_hot_key_throttled_per_second", "Requests for them that the store throttles."),
];

/// The hottest keys of all parts.
pub(crate) fn text(parts: &[PartHeat], names: KeyNames) -> String {
    let mut keys: Vec<(&PartName, &KeyHeat)> =
        parts.iter().flat_map(|part| part.keys.iter().map(move |key| (&part.name, key))).collect();
    keys.sort_by(|(_, a), (_, b)| b.units_per_s.total_cmp(&a.units_per_s));
    keys.truncate(MOST);
    let [units, throttled] = HOT_KEY_METRICS;
    let mut text = String::new();
    for ((name, help), rate) in [
        (units, (|key| key.units_per_s) as fn(&KeyHeat) -> f64),
        (throttled, |key: &KeyHeat| key.refused.all.per_s),
    ] {
        let _ = writeln!(text, "# HELP {name} {help}\n# TYPE {name} gauge");
        for (part, key) in &keys {
            let table = escaped(part.table.as_deref().unwrap_or_default());
            let index = escaped(part.index.as_deref().unwrap_or_default());
            let (kind, key_name) = (part.kind.name(), escaped(&named(&key.key, names)));
            let _ = writeln!(
                text,
                "{name}{{table=\"{table}\",index=\"{index}\",kind=\"{kind}\",key=\"{key_name}\"}} {}",
                rate(key)
            );
        }
    }
    text
}

/// A key under a name that no other has: that of a number or a binary begins with its type.
fn named(key: &ShownKey, names: KeyNames) -> String {
    let whole = format!("{}:{}", key.kind.name(), key.text);
    let plain = if key.kind.name() == "S" { &key.text } else { &whole };
    let hash = || {
        let digest = Sha256::digest(whole.as_bytes());
        digest.iter().take(8).fold(String::new(), |mut text, byte| {
            let _ = write!(text, "{byte:02x}");
            text
        })
    };
    match names {
        KeyNames::Hashed => hash(),
        KeyNames::Plain if plain.len() <= LONGEST => plain.clone(),
        KeyNames::Plain => {
            let cut = plain.floor_char_boundary(LONGEST);
            format!("{}…{}", plain.get(..cut).unwrap_or_default(), hash())
        }
    }
}

/// The value of a label.
fn escaped(text: &str) -> String {
    text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n")
}

#[cfg(test)]
mod tests {
    use heatsink_dynamo::KeyType;

    use super::*;

    fn key(kind: KeyType, text: &str) -> ShownKey {
        ShownKey { kind, text: text.to_owned() }
    }

    #[test]
    fn two_keys_never_have_one_name() {
        let long = |end: &str| key(KeyType::S, &format!("{}{end}", "é".repeat(400)));
        let keys =
            [key(KeyType::S, "42"), key(KeyType::N, "42"), key(KeyType::B, "42"), long("a"), long("b")];
        for names in [KeyNames::Plain, KeyNames::Hashed] {
            let mut all: Vec<String> = keys.iter().map(|key| named(key, names)).collect();
            assert!(all.iter().all(|name| name.len() <= LONGEST + 19), "{all:?}");
            all.sort();
            all.dedup();
            assert_eq!(all.len(), keys.len(), "{all:?}");
        }
        assert_eq!(named(&keys[0], KeyNames::Plain), "42");
        assert_eq!(named(&keys[1], KeyNames::Plain), "N:42");
        assert_eq!(named(&keys[0], KeyNames::Hashed).len(), 16);
    }

    #[test]
    fn a_label_ends_where_its_value_does() {
        assert_eq!(escaped("a\"} 1\nb\\"), "a\\\"} 1\\nb\\\\");
    }
}
