//! The TOML form of a scenario: fields, types, positions. `compile` says what they mean.

use schemars::JsonSchema;
use serde::Deserialize;

use super::keys::Keys;
use super::remedy::Remedy;
use super::values::{Length, Rate, Whole, number_or_table};

/// Tables, what is asked of them, and the remedies to compare.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(title = "A scenario of heatsink-lab simulate")]
pub struct Scenario {
    /// One sentence: what happens.
    pub about: String,
    /// Where its figures come from.
    pub source: Option<String>,
    /// What was measured, on AWS or in the recording, to be read beside the result.
    pub measured: Option<String>,
    /// Every random draw follows from it. Default: 1.
    #[serde(default = "one")]
    pub seed: u64,
    /// How long it runs, in virtual time.
    pub duration: Length,
    /// Length of a point of the series. Default: a hundredth of the duration, whole seconds.
    pub step: Option<Length>,
    /// Nothing lifts one partition key over one partition's ceiling: DynamoDB's own split inside an
    /// item collection is left out.
    #[serde(default)]
    pub strict_keys: bool,
    /// How clients retry, and how long a request takes.
    #[serde(default)]
    pub client: Client,
    /// The tables.
    pub table: Vec<Table>,
    /// What is asked of them.
    pub workload: Vec<Workload>,
    /// One run for each; without any, one run of the scenario as it is.
    #[serde(default)]
    pub remedy: Vec<Remedy>,
}

fn one() -> u64 {
    1
}

/// The model of a client.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Client {
    /// Attempts per request, the first included. Default: 10.
    pub attempts: Whole<20>,
    /// The pause before the second attempt, on average; doubles each time, up to 20 s. Default: 50
    /// ms.
    pub backoff: Length,
    /// Whether retries are offered to the partitions again, as an SDK does. By default they only
    /// count in the latency.
    pub reoffer: bool,
}

impl Default for Client {
    fn default() -> Self {
        Client { attempts: Whole(10), backoff: Length(50_000_000), reoffer: false }
    }
}

/// Capacity mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum ModeName {
    /// `PROVISIONED`: needs `read` and `write`.
    Provisioned,
    /// `PAY_PER_REQUEST`: `read` and `write`, where given, are its configured maximum.
    OnDemand,
}

/// Units per second; far over any quota.
pub type Capacity = Whole<10_000_000>;

/// A table.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// Its capacity mode.
    pub mode: ModeName,
    /// Read units per second.
    pub read: Option<Capacity>,
    /// Write units per second.
    pub write: Option<Capacity>,
    /// Warm throughput, read units per second; on-demand only.
    pub warm_read: Option<Capacity>,
    /// Warm throughput, write units per second; on-demand only.
    pub warm_write: Option<Capacity>,
    /// Whether it has a local index; then an item collection is never split.
    #[serde(default)]
    pub local_indexes: bool,
    /// Items stored from the start: what a Scan reads.
    pub items: Option<Whole<10_000_000_000>>,
    /// Average size of a stored item, in bytes. Default: 200.
    pub item_bytes: Option<Whole<409_600>>,
    /// Its global indexes.
    #[serde(default)]
    pub index: Vec<Index>,
}

/// A global index. Its capacity is its table's unless it has its own.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Index {
    /// Its name.
    pub name: String,
    /// Read units per second.
    pub read: Option<Capacity>,
    /// Write units per second.
    pub write: Option<Capacity>,
    /// Its partition key. Default: the `part` of each workload's items.
    pub key: Option<Keys>,
    /// Write units of an update: 1 when an indexed attribute changes, 2 when the index key itself
    /// does, 0 when the index shows nothing of it. Default: 1. A put of a new item always costs 1.
    pub update_units: Option<UpdateUnits>,
}

/// 0, 1 or 2.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(try_from = "u8")]
pub struct UpdateUnits(#[schemars(range(min = 0, max = 2))] pub u8);

impl TryFrom<u8> for UpdateUnits {
    type Error = &'static str;
    fn try_from(units: u8) -> Result<Self, Self::Error> {
        if units <= 2 { Ok(UpdateUnits(units)) } else { Err("expected 0, 1 or 2") }
    }
}

/// What a workload does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Operation {
    /// Puts a new item.
    Put,
    /// Updates an item.
    Update,
    /// Deletes an item.
    Delete,
    /// Reads one item.
    Get,
    /// Reads `limit` items of one key.
    Query,
    /// Reads the whole table.
    Scan,
}

impl Operation {
    /// Whether it takes write units.
    pub const fn writes(self) -> bool {
        matches!(self, Operation::Put | Operation::Update | Operation::Delete)
    }
}

/// How a read is done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Consistency {
    /// Half a unit for 4 KB, from any replica.
    #[default]
    Eventual,
    /// One unit for 4 KB, from the leader.
    Strong,
}

/// How sort keys follow each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Sort {
    /// Anywhere in the item collection.
    #[default]
    Random,
    /// Each behind the last: time, a counter, a sorted file.
    Ascending,
    /// Always the same item.
    One,
}

/// Where a page lies among the items of its key. Only ranges of sort keys, and what makes equal
/// pages one, take notice of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Page {
    /// It begins with the highest sort key: a query in descending order.
    Last,
    /// It begins with the lowest: a query in ascending order.
    First,
    /// Anywhere: no two pages are equal.
    Any,
}

/// A stream of requests.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Workload {
    /// Its name in the report.
    pub name: String,
    /// The table.
    pub table: String,
    /// What it does. Not with `trace`, whose lines say.
    pub operation: Option<Operation>,
    /// How many per second.
    pub rate: Option<Load>,
    /// Times at which another rate holds.
    pub burst: Option<Burst>,
    /// When it starts. Default: at once.
    pub start: Option<Length>,
    /// When it ends. Default: never.
    pub end: Option<Length>,
    /// The partition keys.
    pub key: Option<Keys>,
    /// How sort keys follow each other. Default: random.
    #[serde(default)]
    pub sort: Sort,
    /// A part of the sort key: whose item it is (a player, a message). Write sharding hashes it,
    /// turned round it is the partition key.
    pub part: Option<Keys>,
    /// Size of an item in bytes. Default: 200.
    pub item_bytes: Option<Size>,
    /// Items that a query reads. Default: 1.
    pub limit: Option<Whole<100_000>>,
    /// Where in the order of sort keys a query's page lies. Default: last, but for `sort = "one"`.
    pub page: Option<Page>,
    /// How reads are done. Default: eventual.
    #[serde(default)]
    pub consistency: Consistency,
    /// Read this global index instead of the table.
    pub index: Option<String>,
    /// A loader: so many items, each tried until it is in. `rate` is then its top speed.
    pub items: Option<Whole<10_000_000_000>>,
    /// How many throttled items a loader holds before it waits with new ones. Default: 100.
    pub window: Option<Whole<1_000_000>>,
    /// Instead of `operation`, `rate` and `key`: a file of recorded requests. Of a gateway's
    /// recording those of the workload's table and index.
    pub trace: Option<String>,
    /// Of the trace only requests of this operation. Default: all.
    pub only: Option<Operation>,
}

/// Requests per second: a number, or how it changes.
#[derive(Clone, Debug, PartialEq, JsonSchema)]
#[schemars(untagged)]
pub enum Load {
    /// Always the same.
    Constant(Rate),
    /// Changing.
    Changing(Changing),
}

number_or_table!(
    Load,
    "requests per second, { curve = [[\"0s\", 100], [\"10m\", 5000]] } or { growth = { from = 100, factor = 1.15, every = \"1m\" } }",
    Rate,
    Load::Constant,
    Changing,
    Load::Changing
);

/// How a rate changes.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Changing {
    /// Straight lines between points of time and rate; flat before the first and after the last.
    Curve(Vec<(Length, Rate)>),
    /// Times `factor` at every `every`.
    Growth(Growth),
}

/// A rate that is multiplied again and again.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Growth {
    /// At first.
    pub from: Rate,
    /// The factor; more than 0.
    pub factor: Rate,
    /// How often.
    pub every: Length,
}

/// Recurring bursts.
#[derive(Clone, Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Burst {
    /// Requests per second during a burst.
    pub rate: Rate,
    /// From one to the next.
    pub every: Length,
    /// How long each lasts; the last part of every `every`.
    pub lasts: Length,
}

/// Bytes: a number, or a range from which sizes are drawn evenly.
#[derive(Clone, Debug, PartialEq, Eq, JsonSchema)]
#[schemars(untagged)]
pub enum Size {
    /// Always the same.
    Fixed(Whole<409_600>),
    /// Drawn.
    Between(Between),
}

number_or_table!(
    Size,
    "bytes from 1 to 409600, or { from = 100, to = 4000 }",
    Whole<409_600>,
    Size::Fixed,
    Between,
    Size::Between
);

/// Bytes from one figure to another, both included.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Between {
    /// The smallest.
    pub from: Whole<409_600>,
    /// The largest.
    pub to: Whole<409_600>,
}
