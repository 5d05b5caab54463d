//! The hot keys as `/_heatsink/heat` tells them, in the order in which they matter, with text that
//! is safe to show.
//!
//! Not here: how they are measured (`heatsink-heat`), how a command shows them (`top`, `watch`).

use std::collections::BTreeMap;

use heatsink_heat::advice::{NEAR, THROTTLED};
use heatsink_physics::{PARTITION_READS, PARTITION_WRITES};
use heatsink_terminal::burned::Burned;
use serde::{Deserialize, Serialize};

use super::automatic::Automatic;
use super::clients::{self, Client};
use super::inert;

/// The heat of the last full second.
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Heat {
    /// When it was told, by the server's clock: milliseconds since 1970.
    #[serde(default)]
    pub now_ms: u64,
    /// The number of that second, by which two answers about one are told apart.
    #[serde(default)]
    pub window: u64,
    /// Reads and writes of each table and index.
    #[serde(default)]
    pub parts: Vec<Part>,
    /// What would help, the highest load first.
    #[serde(default)]
    pub advice: Vec<Advice>,
    /// What the gateway does by itself. Older servers do not tell it.
    #[serde(default)]
    pub automatic: Option<Automatic>,
}

/// Reads or writes of one table or index. Rates are per second.
#[derive(Clone, Debug, Deserialize)]
pub struct Part {
    /// `None` for the tables that are counted together.
    pub table: Option<String>,
    pub index: Option<String>,
    pub kind: Kind,
    #[serde(default)]
    pub units_per_s: f64,
    #[serde(default)]
    pub requests_per_s: f64,
    #[serde(default)]
    pub throttled_per_s: f64,
    /// A key that is not shown takes no more than this.
    #[serde(default)]
    pub floor_units_per_s: f64,
    #[serde(default)]
    keys: Vec<Counted>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Kind {
    Read,
    Write,
}

#[derive(Clone, Debug, Deserialize)]
struct Counted {
    key: BTreeMap<String, String>,
    #[serde(default)]
    shards: Option<u16>,
    #[serde(default)]
    measured: Option<Vec<Shard>>,
    #[serde(default)]
    units_per_s: f64,
    #[serde(default)]
    error_units_per_s: f64,
    #[serde(default)]
    sampling_error_units_per_s: f64,
    /// Older servers do not tell it.
    #[serde(default)]
    least_units_per_s: Option<f64>,
    #[serde(default)]
    requests_per_s: f64,
    #[serde(default)]
    throttled_per_s: f64,
    #[serde(default)]
    growing_sort_share: Option<f64>,
    #[serde(default)]
    same_page_share: Option<f64>,
    #[serde(default)]
    largest_item_bytes: Option<u32>,
    #[serde(default)]
    burned: Option<Burned>,
    /// None where clients are not known. Older servers do not tell them.
    #[serde(default)]
    clients: Vec<Client>,
}

/// What was measured of one shard.
#[derive(Clone, Copy, Debug, Deserialize)]
struct Shard {
    units_per_s: f64,
}

/// Advice on one key.
#[derive(Clone, Debug, Deserialize)]
pub struct Advice {
    pub table: String,
    /// The key's text; with replacement characters where it is binary.
    pub key: String,
    sentence: String,
    command: Option<String>,
}

impl Advice {
    /// The sentence, safe to show.
    pub fn sentence(&self) -> String {
        inert::visible(&self.sentence)
    }

    /// The command to paste; `None` where none helps, or where a terminal would not show it as it
    /// is.
    pub fn command(&self) -> Option<&str> {
        self.command.as_deref().filter(|command| inert::visible(command).replace(r"\\", r"\") == *command)
    }
}

/// Which key it is.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
pub struct KeyId {
    pub table: Option<String>,
    pub index: Option<String>,
    pub kind: Kind,
    /// In DynamoDB's form: `{ "S": "game_x" }`.
    pub key: BTreeMap<String, String>,
}

/// What was measured of the shards of a key, in units a second.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    mean: f64,
    most: f64,
    /// The number of the shard that takes the most.
    hottest: usize,
}

/// One key of one part. Rates are per second; shares are from 0 to 1.
#[derive(Clone, Debug)]
pub struct HotKey {
    pub id: KeyId,
    /// Its text, safe to show.
    pub key: String,
    /// Table and index, safe to show.
    pub place: String,
    /// Capacity units that were asked for.
    pub units: f64,
    /// By how much that may be wrong.
    pub error: f64,
    /// Units that are certainly its own.
    pub least: f64,
    pub requests: f64,
    pub throttled_requests: f64,
    /// `None` where the table is not sharded, or the key is an index's.
    pub shards: Option<u16>,
    /// What its shards take; `None` where that is not measured.
    pub measured: Option<Measured>,
    /// When requests for it were last refused.
    pub burned: Option<Burned>,
    /// What was seen of it, in words.
    pub signs: String,
}

impl HotKey {
    /// A key that is not among those that were told.
    pub fn silent(id: KeyId) -> Self {
        let (key, place) = (inert::key(&id.key), inert::place(id.table.as_deref(), id.index.as_deref()));
        HotKey {
            id,
            key,
            place,
            units: 0.0,
            error: 0.0,
            least: 0.0,
            requests: 0.0,
            throttled_requests: 0.0,
            shards: None,
            measured: None,
            burned: None,
            signs: String::new(),
        }
    }

    /// `read` or `write`.
    pub const fn kind(&self) -> &'static str {
        match self.id.kind {
            Kind::Read => "read",
            Kind::Write => "write",
        }
    }

    /// Which share of its requests was throttled.
    pub fn throttled(&self) -> f64 {
        share(self.throttled_requests, self.requests)
    }

    /// Which share it takes of what its partitions give.
    pub fn filled(&self) -> f64 {
        self.units / self.ceiling()
    }

    /// What its partitions give.
    fn ceiling(&self) -> f64 {
        ceiling(self.id.kind) * f64::from(self.shards.unwrap_or(1).max(1))
    }

    /// What its shards take: what was measured, else an equal share, marked so. `None` of a key
    /// without shards.
    pub fn shards_told(&self) -> Option<String> {
        let shards = self.shards.filter(|shards| *shards > 1)?;
        Some(match &self.measured {
            Some(Measured { mean, most, hottest }) => {
                format!(
                    "{shards} shards, measured: {} units/s on average, up to {} (#{hottest})",
                    rate(*mean),
                    rate(*most)
                )
            }
            None => format!(
                "{shards} shards, {} units/s for each in equal shares: not measured",
                rate(self.units / f64::from(shards))
            ),
        })
    }

    /// Whether it is certainly near a limit, or over it.
    pub fn is_hot(&self) -> bool {
        self.least >= NEAR * self.ceiling() || (self.throttled() >= THROTTLED && self.least >= 1.0)
    }
}

impl Heat {
    /// The keys of all parts, the one with the most to worry about first.
    pub fn keys(&self) -> Vec<HotKey> {
        let of_part = |part: &Part| -> Vec<HotKey> { part.keys.iter().map(|key| part.key(key)).collect() };
        let mut keys: Vec<HotKey> = self.parts.iter().flat_map(of_part).collect();
        keys.sort_by(|a, b| {
            (b.throttled() >= THROTTLED)
                .cmp(&(a.throttled() >= THROTTLED))
                .then(b.filled().total_cmp(&a.filled()))
                .then_with(|| a.id.cmp(&b.id))
        });
        keys
    }

    /// What would help this key.
    pub fn advice_on(&self, id: &KeyId) -> Option<&Advice> {
        let value = id.key.values().next()?;
        self.advice.iter().find(|one| {
            id.index.is_none() && id.table.as_deref() == Some(one.table.as_str()) && one.key == *value
        })
    }

    /// Units and requests a second of all parts of that kind.
    pub fn units(&self, kind: Kind) -> f64 {
        self.parts.iter().filter(|part| part.kind == kind).map(|part| part.units_per_s).sum()
    }

    /// Requests a second, and those of them that were throttled. A write of an item that is in an
    /// index counts once for each.
    pub fn requests(&self) -> (f64, f64) {
        let tables = self.parts.iter().filter(|part| part.index.is_none() || part.kind == Kind::Read);
        tables.fold((0.0, 0.0), |(all, throttled), part| {
            (all + part.requests_per_s, throttled + part.throttled_per_s)
        })
    }
}

impl Part {
    fn key(&self, counted: &Counted) -> HotKey {
        let error = counted.error_units_per_s + counted.sampling_error_units_per_s;
        HotKey {
            key: inert::key(&counted.key),
            place: inert::place(self.table.as_deref(), self.index.as_deref()),
            units: counted.units_per_s,
            error,
            least: counted.least_units_per_s.unwrap_or((counted.units_per_s - error).max(0.0)),
            requests: counted.requests_per_s,
            throttled_requests: counted.throttled_per_s,
            shards: counted.shards,
            measured: counted.measured(),
            burned: counted.burned,
            signs: counted.signs(),
            id: KeyId {
                table: self.table.clone(),
                index: self.index.clone(),
                kind: self.kind,
                key: counted.key.clone(),
            },
        }
    }
}

impl Counted {
    fn measured(&self) -> Option<Measured> {
        let shards = self.measured.as_deref()?;
        let units = || shards.iter().map(|shard| shard.units_per_s);
        let (hottest, most) = units().enumerate().max_by(|a, b| a.1.total_cmp(&b.1))?;
        Some(Measured { mean: units().sum::<f64>() / shards.len() as f64, most, hottest })
    }

    fn signs(&self) -> String {
        let mut said: Vec<String> = clients::mostly(&self.clients).into_iter().collect();
        if let Some(growing) = self.growing_sort_share.filter(|share| *share >= 0.5) {
            said.push(format!("{} of its sort keys only grow", percent(growing)));
        }
        if let Some(same) = self.same_page_share.filter(|share| *share >= 0.5) {
            said.push(format!("{} of its reads ask for the same page", percent(same)));
        }
        if let Some(bytes) = self.largest_item_bytes.filter(|bytes| *bytes >= 32 * 1024) {
            said.push(format!("items of up to {} KB", bytes / 1024));
        }
        said.join("; ")
    }
}

/// What one partition gives in a second.
fn ceiling(kind: Kind) -> f64 {
    match kind {
        Kind::Read => PARTITION_READS as f64,
        Kind::Write => PARTITION_WRITES as f64,
    }
}

/// A part of a whole; 0 of nothing, 1 at most.
pub fn share(part: f64, whole: f64) -> f64 {
    if whole > 0.0 { (part / whole).clamp(0.0, 1.0) } else { 0.0 }
}

/// A rate per second: three digits that count, and a comma before each three.
pub fn rate(value: f64) -> String {
    let text = match value {
        100.0.. => format!("{value:.0}"),
        10.0..100.0 => format!("{value:.1}"),
        0.005..10.0 => format!("{value:.2}"),
        _ => return "0".to_owned(),
    };
    let whole = text.split('.').next().unwrap_or_default().len();
    let comma = |(at, digit): (usize, char)| {
        let is_before = at > 0 && at < whole && (whole - at) % 3 == 0;
        is_before.then_some(',').into_iter().chain([digit])
    };
    text.chars().enumerate().flat_map(comma).collect()
}

/// A share in percent; something is never nothing.
pub fn percent(share: f64) -> String {
    match share {
        0.01.. => format!("{:.0} %", share * 100.0),
        _ if share > 0.0 => "< 1 %".to_owned(),
        _ => "0 %".to_owned(),
    }
}

#[cfg(test)]
mod tests;
