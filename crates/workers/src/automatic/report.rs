//! What a gateway tells the others: its keys with the highest loads, and, of the one that decides,
//! what it has decided. As text, in which nothing is said that is as in an empty load.
//!
//! Not here: how a report is stored (`heatsink_control::heat_reports`).

use heatsink_heat::KeyLoad;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json};

use super::cached::CachedKey;

/// Keys of one report, at most.
const KEYS: usize = 1_000;

/// Sort keys of one key, at most.
const SORT_KEYS: usize = 32;

/// A report.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Report {
    keys: Vec<Json>,
    /// Keys that would have been in it if it were not too long.
    #[serde(default)]
    pub left_out: usize,
    /// What the gateway has decided, if it decides.
    #[serde(default)]
    pub told: Option<Json>,
    /// The keys whose reads are answered from memory, if it decides. Older gateways have none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cached: Vec<CachedKey>,
}

impl Report {
    /// Of these loads, the most important first: the first thousand.
    pub fn of(loads: &[KeyLoad], (told, cached): (Option<Json>, Vec<CachedKey>)) -> Self {
        let empty = as_json(&KeyLoad::default());
        let keys = loads.iter().take(KEYS).map(|load| brief(as_json(&told_of(load)), &empty)).collect();
        Report { keys, left_out: loads.len().saturating_sub(KEYS), told, cached }
    }

    /// The same with three quarters of the keys; `None` if there is none to leave out.
    pub fn shorter(mut self) -> Option<Self> {
        let kept = self.keys.len() * 3 / 4;
        self.left_out += self.keys.len().checked_sub(kept).filter(|fewer| *fewer > 0)?;
        self.keys.truncate(kept);
        Some(self)
    }

    /// The loads. One that cannot be read is left out.
    pub fn loads(&self) -> Vec<KeyLoad> {
        let empty = as_json(&KeyLoad::default());
        let read = |key: &Json| serde_json::from_value(in_full(key, &empty)).ok();
        self.keys.iter().filter_map(read).collect()
    }
}

/// What is told of a load: sort keys that are written to only where they decide something, of keys
/// that have shards, and of those that are refused and read in pages.
fn told_of(load: &KeyLoad) -> KeyLoad {
    let decide = load.slots.len() > 1 || load.throttled > 0.0 && load.queries > 0.0;
    let sorts = if decide { SORT_KEYS } else { 0 };
    KeyLoad { written: load.written.iter().take(sorts).cloned().collect(), ..load.clone() }
}

fn as_json(load: &KeyLoad) -> Json {
    serde_json::to_value(load).unwrap_or_default()
}

/// Without the members that are as in `empty`, and with rates of four digits.
fn brief(value: Json, empty: &Json) -> Json {
    match value {
        Json::Object(members) => {
            let differs = |(name, value): (String, Json)| {
                let empty = empty.get(&name).unwrap_or(&Json::Null);
                (value != *empty).then(|| (name, brief(value, empty)))
            };
            Json::Object(members.into_iter().filter_map(differs).collect())
        }
        Json::Array(items) => Json::Array(items.into_iter().map(|item| brief(item, &Json::Null)).collect()),
        Json::Number(number) => match number.as_f64().filter(|_| number.is_f64()) {
            Some(rate) => Json::from(rounded(rate)),
            None => Json::Number(number),
        },
        other => other,
    }
}

fn rounded(rate: f64) -> f64 {
    format!("{rate:.3e}").parse().unwrap_or(rate)
}

/// With the members of `empty` that it does not have.
fn in_full(value: &Json, empty: &Json) -> Json {
    let (Json::Object(members), Json::Object(all)) = (value, empty) else { return value.clone() };
    let mut full: Map<String, Json> = all.clone();
    for (name, value) in members {
        let empty = all.get(name).unwrap_or(&Json::Null);
        full.insert(name.clone(), in_full(value, empty));
    }
    Json::Object(full)
}

#[cfg(test)]
mod tests {
    use heatsink_heat::{Refused, SlotLoad};

    use super::*;

    const NOTHING: (Option<Json>, Vec<CachedKey>) = (None, Vec::new());

    fn load(key: String) -> KeyLoad {
        KeyLoad {
            table: "Scores".to_owned(),
            index: Some("by-status".to_owned()),
            key: key.into_bytes(),
            writes: 1_234.0,
            requests: 1_234.0,
            throttled: 617.0,
            writes_refused: Refused {
                requests: 1_234.0,
                throttled: 617.0,
                by_partition: 600.0,
                counted: 120.0,
                ..Refused::default()
            },
            slots: vec![SlotLoad { slot: 9_999, units: 12.0, requests: 12.0, throttled: 3.0, counted: 4.0 }],
            clients: serde_json::from_str(r#"[{"client":"team1","units":987.0}]"#).unwrap(),
            ..KeyLoad::default()
        }
    }

    #[test]
    fn a_report_tells_everything_but_what_is_empty() {
        let loads = vec![load("open".to_owned()), KeyLoad::default()];
        let text = serde_json::to_string(&Report::of(&loads, NOTHING)).unwrap();
        assert!(!text.contains("queries"), "{text}");
        let read: Report = serde_json::from_str(&text).unwrap();
        assert_eq!(read.loads(), loads);
        let third = KeyLoad { writes: 1.0 / 3.0, ..KeyLoad::default() };
        assert_eq!(Report::of(&[third], NOTHING).loads()[0].writes, 0.3333);
    }

    #[test]
    fn reports_of_gateways_that_know_no_clients_are_read() {
        let older = r#"{"keys":[{"table":"Scores","key":[111],"writes":900.0,"requests":900.0}]}"#;
        let loads = serde_json::from_str::<Report>(older).unwrap().loads();
        let mut all = load("o".to_owned());
        all.add(&loads[0]);
        assert_eq!((loads[0].writes, loads[0].client_shares()), (900.0, Vec::new()));
        assert_eq!(&*all.client_shares()[0].client, "team1");
        // And they pass over what they do not know.
        let newer = older.replace("\"writes\"", "\"unheard_of\":[{\"client\":\"a\"}],\"writes\"");
        assert_eq!(serde_json::from_str::<Report>(&newer).unwrap().loads(), loads);
    }

    #[test]
    fn what_is_left_out_is_counted() {
        let loads: Vec<KeyLoad> = (0..1_020).map(|nth| load(format!("k{nth}"))).collect();
        let report = Report::of(&loads, NOTHING);
        assert_eq!((report.loads().len(), report.left_out), (1_000, 20));
        let report = report.shorter().unwrap();
        assert_eq!((report.loads().len(), report.left_out), (750, 270));
        assert!(Report::default().shorter().is_none());
    }
}
