//! The TOML form of a remedy. `compile` says what it does to a run.

use schemars::JsonSchema;
use serde::Deserialize;

use super::values::{Length, Rate, Whole};

/// A remedy: what is changed for one run.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Remedy {
    /// Which.
    pub kind: Kind,
    /// Its name in the report. Default: from the kind.
    pub name: Option<String>,
    /// What breaks or stays broken, in a few words. Default: from the kind.
    pub breaks: Option<String>,
    /// raise-capacity: read units per second.
    pub read: Option<Whole<10_000_000>>,
    /// raise-capacity: write units per second.
    pub write: Option<Whole<10_000_000>>,
    /// write-sharding, counter-sharding, bucket, index-sharding: physical keys per logical key.
    /// range: ranges per logical key, at most 64.
    pub shards: Option<Whole<1_000>>,
    /// Spreads the keys of every global index over so many as well.
    pub index_shards: Option<Whole<1_000>>,
    /// write-sharding, counter-sharding, bucket, range: only this logical key. Default: every key.
    /// advised: this one. Default: the hottest.
    pub key: Option<String>,
    /// read-cache: how long it answers without asking. Default: 1 s.
    pub ttl: Option<Length>,
    /// read-cache: its nodes, each with a memory of its own. Default: 3.
    pub nodes: Option<Whole<11>>,
    /// read-cache: US dollars per node and hour. Default: 0.27, an assumption.
    pub node_usd_per_hour: Option<Rate>,
    /// gateway-cache: how long an answer is given again. Default: 100 ms.
    pub max_age: Option<Length>,
    /// gateway-cache, combine: gateways, which share the requests evenly. Default: 3.
    pub gateways: Option<Whole<1_000>>,
    /// combine: how long the store takes for a write. Default: 5 ms.
    pub latency: Option<Length>,
}

/// The remedies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// As it is.
    Nothing,
    /// More provisioned capacity for every table.
    RaiseCapacity,
    /// What DynamoDB does by itself: any partition may take what the table has left, up to its
    /// ceiling.
    AdaptiveCapacity,
    /// Pay per request.
    OnDemand,
    /// A read cache in front, like DAX.
    ReadCache,
    /// A global index keyed by the `part`.
    Index,
    /// The `part` as partition key, the old key in the sort key.
    TurnKeyRound,
    /// Heatsink's calculated strategy: N physical keys, by a hash of the `part` (or of the whole
    /// sort key).
    WriteSharding,
    /// Heatsink's counter strategy: updates go to a drawn shard, reads sum all.
    CounterSharding,
    /// A new partition key each day; with `shards`, each day's key over N.
    Bucket,
    /// The keys of every global index over N.
    IndexSharding,
    /// Heatsink's range strategy: N physical keys, one for each range of the sort key.
    Range,
    /// Heatsink's reads in one flight, and its cache of milliseconds: equal pages and items reach
    /// the table once for each gateway, `max_age` and write of their key.
    GatewayCache,
    /// Heatsink's combined writes: those of an item that come while one is under way go as one.
    Combine,
    /// DynamoDB's own split inside an item collection, in a scenario that leaves it out
    /// (`strict_keys`).
    Split,
    /// What Heatsink advises: as many shards as `heatsink shards` recommends for the hottest key,
    /// or for each hot key of a trace.
    Advised,
}
