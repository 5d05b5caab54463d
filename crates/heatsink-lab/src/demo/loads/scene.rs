//! The loads: which keys are hot, how, and what is cool beside them.
//!
//! Not here: what is asked of one key (`subject`), and when (`traffic`).

use clap::ValueEnum;
use serde::Serialize;
use serde_json::{Value as Json, json};

use super::names::{Names, Partitions};
use super::subject::{Act, INDEX, Subject, TOPIC};
use crate::demo::workload;

/// A load with a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, ValueEnum)]
#[serde(rename_all = "kebab-case")]
pub enum Load {
    /// One key takes 5,000 units/s of single puts
    OneKey,
    /// Ten keys of 1,100 units/s, each on a partition of its own
    TenKeys,
    /// A hundred such keys, in a table of 400 partitions
    HundredKeys,
    /// Two keys of 700 units/s that share a partition
    TwoOnOnePartition,
    /// A key of 3,000 units/s one of whose shards will meet a key of 800 units/s
    ShardMeetsHotKey,
    /// 4,200 units/s of strongly consistent GetItems, on 40 items of 40 KB
    StrongGets,
    /// 1,770 units/s of UpdateItems that add 1 to a number, on 40 items of 59 KB
    LargeUpdates,
    /// 1,500 new items a second under 2,000 keys, with one value of a global index
    IndexValue,
    /// 60 BatchWriteItems a second of 25 puts on one key
    Batches,
    /// Ten keys, a value of an index and a loader by batches, all at once
    Many,
}

/// Read and write units of a table for the loads: 30 partitions for each.
const UNITS: [u64; 2] = [90_000, 30_000];
/// The same for a hundred keys: 150 and 250 partitions.
const MANY_UNITS: [u64; 2] = [450_000, 250_000];
/// Items of a key that is written to. Each is written every few seconds.
const ITEMS: usize = 1_000;
/// Bytes of an item of four units: a load of large items asks less of the machine that makes it.
const FOUR_UNITS: u32 = 4_000;

impl Load {
    /// The table that it needs.
    pub fn table(self) -> Json {
        let [reads, writes] = if self == Load::HundredKeys { MANY_UNITS } else { UNITS };
        let mut table = workload::create_table();
        let units = json!({ "ReadCapacityUnits": reads, "WriteCapacityUnits": writes });
        table["ProvisionedThroughput"] = units.clone();
        if matches!(self, Load::IndexValue | Load::Many) {
            if let Some(attributes) = table["AttributeDefinitions"].as_array_mut() {
                attributes.push(json!({ "AttributeName": TOPIC, "AttributeType": "S" }));
            }
            table["GlobalSecondaryIndexes"] = json!([{
                "IndexName": INDEX, "Projection": { "ProjectionType": "KEYS_ONLY" }, "ProvisionedThroughput": units,
                "KeySchema": [{ "AttributeName": TOPIC, "KeyType": "HASH" }],
            }]);
        }
        table
    }

    /// Its keys on a table with these partitions, for a load of so many seconds.
    pub fn subjects(self, partitions: &Partitions, seconds: u64) -> Vec<Subject> {
        let mut cast = Cast { names: Names::new(partitions), seconds, subjects: Vec::new() };
        match self {
            Load::OneKey => cast.puts(1, 5_000, 1_000),
            Load::TenKeys => cast.puts(10, 275, FOUR_UNITS),
            Load::HundredKeys => cast.puts(100, 275, FOUR_UNITS),
            Load::TwoOnOnePartition => {
                cast.puts(1, 175, FOUR_UNITS);
                cast.beside_last("rival", 175, FOUR_UNITS);
            }
            Load::ShardMeetsHotKey => {
                cast.puts(1, 750, FOUR_UNITS);
                cast.before_second_shard("rival", 200, FOUR_UNITS);
            }
            Load::StrongGets => cast.hot(Act::Get, 420, 40_000, 40),
            Load::LargeUpdates => cast.hot(Act::Add, 30, 60_000, 40),
            Load::IndexValue => cast.value(1_500),
            Load::Batches => cast.hot(Act::Batch, 60, 900, 5 * ITEMS),
            Load::Many => {
                cast.puts(10, 275, FOUR_UNITS);
                cast.hot(Act::Batch, 60, 900, 5 * ITEMS);
                cast.value(1_500);
            }
        }
        cast.and_cool_ones()
    }
}

/// The keys of a load, as they are found.
struct Cast<'a> {
    names: Names<'a>,
    seconds: u64,
    subjects: Vec<Subject>,
}

/// Hot keys that get a cool neighbour.
const NEIGHBOURS: usize = 20;
/// Cool keys that lie in partitions of their own.
const APART: usize = 10;
/// Requests a second for each cool key.
const COOL: u32 = 30;

impl Cast<'_> {
    fn add(&mut self, name: String, hot: bool, act: Act, per_second: u32, bytes: u32, items: usize) {
        self.subjects.push(Subject { name, hot, act, per_second, bytes, items });
    }

    /// So many keys that are hot by puts, each with a partition of its own.
    fn puts(&mut self, keys: usize, per_second: u32, bytes: u32) {
        for _ in 0..keys {
            let name = self.names.alone("game");
            self.add(name, true, Act::Put, per_second, bytes, ITEMS);
        }
    }

    /// Another kind of hot key, with a partition of its own.
    fn hot(&mut self, act: Act, per_second: u32, bytes: u32, items: usize) {
        let name = self.names.alone("game");
        self.add(name, true, act, per_second, bytes, items);
    }

    /// A key in the partition of the last one.
    fn beside_last(&mut self, prefix: &str, per_second: u32, bytes: u32) {
        self.before_shard(prefix, per_second, bytes, 0);
    }

    /// A key in the partition in which the last one's second shard will lie.
    fn before_second_shard(&mut self, prefix: &str, per_second: u32, bytes: u32) {
        self.before_shard(prefix, per_second, bytes, 1);
    }

    fn before_shard(&mut self, prefix: &str, per_second: u32, bytes: u32, shard: u16) {
        let Some(last) = self.subjects.last().map(|last| last.name.clone()) else { return };
        let partition = self.names.partition(&last, shard);
        let name = self.names.within(prefix, partition);
        self.add(name, true, Act::Put, per_second, bytes, ITEMS);
    }

    /// A hot value of the index, and cool ones: the first of them in the same partition.
    fn value(&mut self, per_second: u32) {
        let name = self.names.alone("topic");
        let partition = self.names.partition(&name, 0);
        let cool = [
            self.names.within("subject", partition),
            self.names.apart("subject"),
            self.names.apart("subject"),
        ];
        let items = |per_second: u32| {
            usize::try_from(u64::from(per_second) * (self.seconds + 1)).unwrap_or(usize::MAX)
        };
        let (hot_items, cool_items) = (items(per_second), items(COOL));
        self.add(name, true, Act::Value, per_second, 200, hot_items);
        for name in cool {
            self.add(name, false, Act::Value, COOL, 200, cool_items);
        }
    }

    /// Cool keys: a neighbour for each of the first hot keys, and some apart.
    fn and_cool_ones(mut self) -> Vec<Subject> {
        let hot = self.subjects.iter().filter(|one| one.hot && one.index().is_none());
        let hot: Vec<String> = hot.take(NEIGHBOURS).map(|one| one.name.clone()).collect();
        for name in hot {
            let neighbour = self.names.within("title", self.names.partition(&name, 0));
            self.add(neighbour, false, Act::Put, COOL, 200, ITEMS);
        }
        for _ in 0..APART {
            let name = self.names.apart("quiet");
            self.add(name, false, Act::Put, COOL, 200, ITEMS);
        }
        self.subjects
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subjects(load: Load) -> (Partitions, Vec<Subject>) {
        let count = if load == Load::HundredKeys { 400 } else { 60 };
        let partitions = Partitions::new((0..count).map(|nth| nth * (u64::MAX / count)).collect());
        let subjects = load.subjects(&partitions, 10);
        (partitions, subjects)
    }

    #[test]
    fn hot_keys_are_over_a_ceiling_alone_and_cool_ones_are_not() {
        for load in
            [Load::OneKey, Load::TenKeys, Load::HundredKeys, Load::StrongGets, Load::LargeUpdates, Load::Many]
        {
            for one in subjects(load).1 {
                let ceiling = if one.is_read() { 3_000.0 } else { 1_000.0 };
                assert_eq!(one.units_per_second() > ceiling, one.hot, "{load:?}: {one:?}");
            }
        }
    }

    #[test]
    fn keys_that_are_to_meet_do() {
        let (partitions, pair) = subjects(Load::TwoOnOnePartition);
        assert_eq!(partitions.of(&pair[0].name, 0), partitions.of(&pair[1].name, 0));
        let (partitions, pair) = subjects(Load::ShardMeetsHotKey);
        assert_eq!(partitions.of(&pair[0].name, 1), partitions.of(&pair[1].name, 0));
        assert_ne!(partitions.of(&pair[0].name, 0), partitions.of(&pair[1].name, 0));
    }

    #[test]
    fn names_are_given_once() {
        for load in Load::value_variants() {
            let subjects = subjects(*load).1;
            let names: std::collections::HashSet<&str> = subjects.iter().map(|one| &*one.name).collect();
            assert_eq!(names.len(), subjects.len());
        }
    }
}
