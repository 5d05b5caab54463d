//! Metrics that are computed when they are asked for, in Prometheus' text form: the lease, and the
//! hottest keys, few and each under one label.
//!
//! The hottest keys are those of the last window, so that one which has cooled leaves no series
//! behind.
//!
//! Not here: what is recorded as it happens (`metrics`).

use std::fmt::Write as _;

use heatsink_dynamo::KeyType;
use heatsink_heat::detect::{KeyHeat, PartHeat, PartName, ShownKey};
use sha2::{Digest, Sha256};

/// The most keys: each is a series of its own in Prometheus.
const MOST: usize = 20;
/// The longest name that is written whole, in bytes.
const LONGEST: usize = 100;
const HOT_KEY_LABELS: &str = "table, index, kind, key";

/// How keys are named in metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyNames {
    /// As they are. Keys are data: whoever reads the metrics reads them.
    Plain,
    /// As the first 16 hexadecimal digits of their SHA-256, alike in every gateway. Whoever guesses
    /// a key can tell that it is that one.
    Hashed,
}

/// Name, labels and meaning of each.
pub const COMPUTED_METRICS: [(&str, &str, &str); 3] = [
    (
        "heatsink_lease_left_ratio",
        "",
        "The share of its lease that a gateway has left: for so long it answers without reaching the registry.",
    ),
    (
        "heatsink_hot_key_units_per_second",
        HOT_KEY_LABELS,
        "Capacity units that the hottest keys are asked for, with --hot-key-metrics; at most 20 keys.",
    ),
    ("heatsink_hot_key_throttled_per_second", HOT_KEY_LABELS, "Requests for them that the store throttles."),
];

/// All of them. `lease_left`: the share of the lease. `hot_keys`: what shows the parts of the heat,
/// each with so many keys, and how these are named; `None` where none is to be named.
pub(crate) fn text(
    lease_left: f64,
    hot_keys: Option<(impl FnOnce(usize) -> Vec<PartHeat>, KeyNames)>,
) -> String {
    let [(name, _, help), ..] = COMPUTED_METRICS;
    let mut text = head(name, help);
    let _ = writeln!(text, "{name} {lease_left}");
    if let Some((parts, names)) = hot_keys {
        text += &hottest(&parts(MOST), names);
    }
    text
}

fn head(name: &str, help: &str) -> String {
    format!("# HELP {name} {help}\n# TYPE {name} gauge\n")
}

/// The hottest keys of all parts.
fn hottest(parts: &[PartHeat], names: KeyNames) -> String {
    let mut keys: Vec<(&PartName, &KeyHeat)> =
        parts.iter().flat_map(|part| part.keys.iter().map(move |key| (&part.name, key))).collect();
    keys.sort_by(|(_, a), (_, b)| b.units_per_s.total_cmp(&a.units_per_s));
    keys.truncate(MOST);
    let [_, units, throttled] = COMPUTED_METRICS;
    let mut text = String::new();
    for ((name, _, help), rate) in [
        (units, (|key| key.units_per_s) as fn(&KeyHeat) -> f64),
        (throttled, |key: &KeyHeat| key.refused.all.per_s),
    ] {
        text += &head(name, help);
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
    let plain = if key.kind == KeyType::S { &key.text } else { &whole };
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
