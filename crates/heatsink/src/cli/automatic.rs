//! What a gateway does by itself, as `/_heatsink/heat` tells it, in lines that are safe to show.
//!
//! Not here: when it acts (`heatsink-workers`).

use heatsink_terminal::burned::duration;
use serde::Deserialize;

use super::clients::{self, Client};
use super::inert;

/// Columns of a key's text.
const KEY: usize = 40;

/// What a gateway does by itself.
#[derive(Clone, Debug, Deserialize)]
pub struct Automatic {
    mode: String,
    #[serde(default)]
    left_alone: Vec<LeftAlone>,
    /// The newest first.
    #[serde(default)]
    decisions: Vec<Decision>,
}

/// A key that burns and is left as it is.
#[derive(Clone, Debug, Deserialize)]
struct LeftAlone {
    #[serde(flatten)]
    of: Subject,
    sentence: String,
    since_ms: u64,
    /// Older gateways do not tell them.
    #[serde(default)]
    clients: Vec<Client>,
}

#[derive(Clone, Debug, Deserialize)]
struct Decision {
    #[serde(flatten)]
    of: Subject,
    what: String,
    outcome: Option<String>,
    at_ms: u64,
}

/// A key of a table, or a value of an index.
#[derive(Clone, Debug, Deserialize)]
struct Subject {
    table: String,
    index: Option<String>,
    key: String,
}

impl Subject {
    fn told(&self) -> String {
        let key = inert::shortened(&inert::visible(&self.key), KEY);
        format!("{key} of {}", inert::place(Some(&self.table), self.index.as_deref()))
    }
}

impl Automatic {
    /// Whether it acts, in a sentence.
    pub fn state(&self) -> &'static str {
        match self.mode.as_str() {
            "auto" => "on",
            "propose" => "proposes only, and changes nothing",
            _ => "off: no [[automatic]] section lets this gateway change anything",
        }
    }

    /// A line for each key that burns and is left alone, with the reason.
    pub fn left_alone(&self, now_ms: u64) -> Vec<String> {
        let told = |one: &LeftAlone| {
            let since = duration(now_ms.saturating_sub(one.since_ms));
            let by = clients::mostly(&one.clients).map(|by| format!(", {by}")).unwrap_or_default();
            format!("{} is left alone, for {since}{by}: {}", one.of.told(), inert::visible(&one.sentence))
        };
        self.left_alone.iter().map(told).collect()
    }

    /// A line for each of the newest decisions.
    pub fn decisions(&self, now_ms: u64) -> Vec<String> {
        let told = |one: &Decision| {
            let ago = duration(now_ms.saturating_sub(one.at_ms));
            let came = one.outcome.as_deref().map(|came| format!("; {}", inert::visible(came)));
            format!("{}: {}, {ago} ago{}", one.of.told(), inert::visible(&one.what), came.unwrap_or_default())
        };
        self.decisions.iter().map(told).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hostile_names_and_reasons_are_inert() {
        let automatic: Automatic = serde_json::from_value(json!({
            "mode": "auto",
            "left_alone": [{ "table": "T", "index": "i", "key": "a\u{1b}[31m", "reason": "x", "sentence": "no\nway", "since_ms": 1_000 },
                { "table": "T", "key": "b", "reason": "x", "sentence": "why", "since_ms": 1_000, "clients": [{ "client": "team\n1", "share_percent": 83.0 }] }],
            "decisions": [{ "at_ms": 2_000, "table": "T", "key": "hot", "what": "4 shards", "sentence": "s", "outcome": "asked for" }],
        }))
        .unwrap();
        assert_eq!(automatic.state(), "on");
        let told = [
            r"a\u{1b}[31m of T / i is left alone, for 41 s: no\nway",
            r"b of T is left alone, for 41 s, mostly by team\n1 (83 %): why",
        ];
        assert_eq!(automatic.left_alone(42_000), told);
        assert_eq!(automatic.decisions(11_000), ["hot of T: 4 shards, 9 s ago; asked for"]);
    }
}
