//! Analyses the items of a table by key, its stream records, or recorded requests: the patterns of
//! keys, the number of keys of each, the largest key, the fastest write rate, and what to do.
//!
//! Rates of items come from times in sort keys, so they count what was written once and still
//! exists: overwrites, updates, deletes and reads leave no trace in items. If sort keys hold no
//! time, the report has no rate. Rates of stream records are measured: every write that changed
//! something has one, but for those that were throttled, and reads. Those of recorded requests have
//! both.
//!
//! Sans-IO: items, records or accesses in, a report out. Not here: reading a table or files.

mod action;
pub mod bypass;
mod collected;
mod context;
pub mod framing;
mod load;
mod pattern;
mod recorded;
pub mod records;
mod report;
mod rule;
mod seen;
mod stamp;
pub mod traffic;
mod traffic_verdict;
mod verdict;

use std::collections::{HashMap, HashSet};

use heatsink_dynamo::size::item_size;
use heatsink_dynamo::value::{Item, Value};
use heatsink_layout::{SortKey, codec};
use heatsink_trace::Access;

use crate::advice::NEAR;
pub use action::{Action, Verdict};
use collected::Collected;
pub use collected::Write;
use context::{Context, Sample};
pub use load::Asked;
use recorded::Recorded;
pub use report::{Key, Pattern, Report, Totals};
use seen::Seen;

/// Analyses the items of one table, its writes, or the requests for it; only one of these. It
/// remembers every key and the seconds in which it was written, so its memory grows by up to 200
/// bytes for each item.
#[derive(Debug, Default)]
pub struct Audit {
    keys: HashMap<Vec<u8>, Collected>,
    measured: bool,
}

impl Audit {
    /// Adds a whole item. `partition` and `sort` are the names of its keys; an item without its
    /// partition key is ignored.
    pub fn add_item(&mut self, item: &Item, partition: &str, sort: Option<&str>) {
        let key = match item.get(partition) {
            Some(Value::S(text) | Value::N(text)) => text.as_bytes(),
            Some(Value::B(bytes)) => bytes,
            _ => return,
        };
        let sort = match sort.and_then(|name| item.get(name)) {
            Some(Value::S(text)) => Some(SortKey::S(text)),
            Some(Value::N(number)) => Some(SortKey::N(number)),
            Some(Value::B(bytes)) => Some(SortKey::B(bytes)),
            _ => None,
        };
        self.add(key, sort, item_size(item));
    }

    /// Adds an item: its partition key (UTF-8 of a string or a number, raw binary), its sort key,
    /// its size in bytes.
    pub fn add(&mut self, partition: &[u8], sort: Option<SortKey<'_>>, bytes: usize) {
        self.collect(partition, |key| key.add(sort, bytes));
    }

    /// Adds a write that a stream record tells of.
    pub fn add_write(&mut self, partition: &[u8], sort: Option<SortKey<'_>>, write: Write) {
        self.measured = true;
        self.collect(partition, |key| key.add_write(sort, write));
    }

    /// Adds a request that a gateway recorded in that second. `hashed`: keys are hashes.
    fn add_access(&mut self, partition: &[u8], second: i64, access: &Access<'_>, hashed: bool) {
        self.measured = true;
        self.collect(partition, |key| key.add_access(second, access, hashed));
    }

    /// A key that is known is not copied.
    fn collect(&mut self, partition: &[u8], add: impl FnOnce(&mut Collected)) {
        match self.keys.get_mut(partition) {
            Some(key) => add(key),
            None => add(self.keys.entry(partition.to_vec()).or_default()),
        }
    }

    /// The report on all items of a table. Proposed rules name `table`.
    pub fn report(&self, table: &str) -> Report {
        self.reported(table, None, None)
    }

    /// The report on recorded requests.
    fn report_traffic(&self, table: &str, recorded: Recorded<'_>) -> Report {
        self.reported(table, None, Some(recorded))
    }

    /// The report on a sample that was read evenly from a table of about `of` items. Its rates and
    /// sizes are lower bounds, and it says nothing about keys that were not read.
    pub fn report_sample(&self, table: &str, of: u64) -> Report {
        let items: u64 = self.keys.values().map(|key| key.items).sum();
        self.reported(table, Some(Sample { items, of }), None)
    }

    fn shard_keys(&self) -> u64 {
        let shards = self.keys.keys().filter(|key| codec::is_reserved_with_buckets(key));
        u64::try_from(shards.count()).unwrap_or(u64::MAX)
    }

    fn reported(&self, table: &str, sample: Option<Sample>, recorded: Option<Recorded<'_>>) -> Report {
        let mut keys: Vec<(String, &Collected)> =
            self.keys.iter().map(|(key, of)| (String::from_utf8_lossy(key).into_owned(), of)).collect();
        keys.sort_by(|a, b| a.0.cmp(&b.0));
        let texts: Vec<(&str, u64)> = keys.iter().map(|(key, of)| (key.as_str(), of.items)).collect();
        let mut groups: HashMap<String, Vec<&(String, &Collected)>> = HashMap::new();
        for (pattern, key) in pattern::of(&texts).into_iter().zip(&keys) {
            groups.entry(pattern).or_default().push(key);
        }
        let context = Context {
            table,
            sample,
            measured: self.measured,
            recorded,
            all: keys.iter().map(|(_, of)| of.items).sum(),
        };
        let mut patterns: Vec<Pattern> = groups
            .into_iter()
            .flat_map(|(name, keys)| apart(context, name, keys))
            .filter_map(|(name, keys)| of_pattern(context, name, &keys))
            .collect();
        patterns.sort_by(|a, b| {
            let order = |one: &Pattern| (one.verdict.action, std::cmp::Reverse(one.items));
            order(a).cmp(&order(b)).then_with(|| a.pattern.cmp(&b.pattern))
        });
        let spans: Vec<(i64, i64)> = keys.iter().filter_map(|(_, of)| of.span()).collect();
        let first = spans.iter().map(|span| span.0).min();
        let last = spans.iter().map(|span| span.1).max();
        Report {
            items: context.all,
            bytes: keys.iter().map(|(_, of)| of.bytes).sum(),
            measured: self.measured,
            traffic: None,
            seconds: first.zip(last).map(|(first, last)| last - first),
            patterns,
            shard_keys: self.shard_keys(),
            share_read: sample.and_then(Sample::share),
        }
    }
}

type Group<'a> = Vec<&'a (String, &'a Collected)>;

/// Keys of a pattern that stand out are patterns of their own, so that advice on them is no advice
/// on the others: those that are written nearly as fast as a partition accepts, or, where no rate
/// is known, those with a large share of the items.
fn apart<'a>(context: Context<'_>, name: String, keys: Group<'a>) -> Vec<(String, Group<'a>)> {
    let mut sizes: Vec<u64> = keys.iter().map(|(_, of)| of.items).collect();
    sizes.sort_unstable();
    let median = sizes.get(sizes.len() / 2).copied().unwrap_or(0);
    let stands_out = |of: &Collected| match (of.filled(context.recorded), of.peak()) {
        (Some(filled), _) => filled >= NEAR,
        (None, Some((units, _))) => units >= verdict::near(context.measured),
        (None, None) => {
            verdict::is_large(of.items, context.all)
                && of.items >= median.saturating_mul(pattern::OUTSTANDING)
        }
    };
    let names: HashSet<String> =
        keys.iter().filter(|(_, of)| stands_out(of)).map(|(key, _)| pattern::exact(key)).collect();
    if names.is_empty() || names.len() > pattern::WORDS || names.len() == keys.len() {
        return vec![(name, keys)];
    }
    let mut groups: HashMap<String, Group<'a>> = HashMap::new();
    for key in keys {
        let exact = pattern::exact(&key.0);
        let name = if names.contains(&exact) { exact } else { name.clone() };
        groups.entry(name).or_default().push(key);
    }
    groups.into_iter().collect()
}

fn of_pattern(context: Context<'_>, name: String, keys: &Group<'_>) -> Option<Pattern> {
    let described: Vec<(Key, &Collected)> =
        keys.iter().map(|(key, of)| (of.described(key.clone(), context.recorded), *of)).collect();
    let (largest, _) = described.iter().max_by_key(|(key, _)| key.bytes)?.clone();
    let busiest = described
        .iter()
        .filter(|(key, _)| key.peak_units.is_some())
        .map(|one| (one.1.filled(context.recorded).or(one.0.peak_units).unwrap_or(0.0), one))
        .max_by(|(a, _), (b, _)| a.total_cmp(b))
        .map(|(_, one)| one);
    let verdict = verdict::of(&Seen {
        context,
        pattern: &name,
        keys: described.len(),
        largest: &largest,
        busiest: busiest.map(|(key, of)| (key, *of)),
        most: described.iter().map(|(key, _)| key.items).max().unwrap_or(0),
    });
    Some(Pattern {
        keys: u64::try_from(described.len()).unwrap_or(u64::MAX),
        items: described.iter().map(|(key, _)| key.items).sum(),
        bytes: described.iter().map(|(key, _)| key.bytes).sum(),
        busiest: busiest.map(|(key, _)| key.clone()),
        largest,
        verdict,
        pattern: name,
    })
}

#[cfg(test)]
mod tests;
