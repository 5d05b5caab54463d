//! Analyses the items of a table by key: the patterns of keys, the number of keys of each, the largest key, the fastest write rate, and what to do.
//!
//! Rates come from times in sort keys, so they count what was written once and still exists: overwrites, updates, deletes and reads leave no trace in
//! items. If sort keys hold no time, the report has no rate.
//!
//! Sans-IO: items in, a report out. Not here: reading the items.

mod pattern;
mod stamp;
mod verdict;

use std::collections::HashMap;

use heatsink_dynamo::capacity::write_units;
use heatsink_dynamo::size::item_size;
use heatsink_dynamo::value::{Item, Value};
use heatsink_layout::SortKey;
use serde::Serialize;

pub use verdict::{Action, Verdict};

/// Analyses the items of one table. It remembers every key, so its memory grows by about 200 bytes for each item.
#[derive(Debug, Default)]
pub struct Audit {
    keys: HashMap<Vec<u8>, Collected>,
}

/// The items of one partition key.
#[derive(Debug, Default)]
struct Collected {
    items: u64,
    bytes: u64,
    /// Write units by first second and length of a window of time.
    written: HashMap<(i64, i64), f64>,
    /// Items whose sort key holds a time.
    timed: u64,
    /// The text before the time, if it is the same in all of them.
    prefix: Option<String>,
    prefixes_differ: bool,
    /// Whether the times are numbers of milliseconds.
    milliseconds: bool,
}

/// The report.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Report {
    /// Items taken.
    pub items: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Of a sample: the share of the table's items that was read, from 0 to 1, by the table's item count. Items of a key are stored
    /// together, so this is about the probability that a key was read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share_read: Option<f64>,
    /// The patterns, those with something to do first, then by items.
    pub patterns: Vec<Pattern>,
}

/// How much of a table was read.
#[derive(Clone, Copy, Debug)]
struct Sample {
    items: u64,
    /// Of about so many. DynamoDB counts every six hours, so it may be too few.
    of: u64,
}

impl Sample {
    /// `None` if the count says that there are no more items.
    #[allow(clippy::cast_precision_loss, reason = "items, far below 2^52")]
    fn share(self) -> Option<f64> {
        (self.of > self.items).then(|| self.items as f64 / self.of as f64)
    }
}

/// The keys that are written alike.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Pattern {
    /// The varying parts are in braces: `THREAT#{id}`.
    pub pattern: String,
    /// Different keys.
    pub keys: u64,
    /// Items under all of them.
    pub items: u64,
    /// Their bytes.
    pub bytes: u64,
    /// The key with the most bytes.
    pub largest: Key,
    /// The key that was written fastest; `None` where no sort key holds a time.
    pub busiest: Option<Key>,
    /// What to do, and why.
    pub verdict: Verdict,
}

/// One key.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Key {
    /// The key; bytes that are no text are shown as `�`.
    pub key: String,
    /// Its items.
    pub items: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Write units per second in its busiest window, of items that still exist.
    pub peak_units: Option<f64>,
    /// Seconds of that window: the precision of its times.
    pub window: Option<i64>,
    /// Days between the first and the last time, at least one.
    pub days: Option<f64>,
}

impl Audit {
    /// Adds a whole item. `partition` and `sort` are the names of its keys; an item without its partition key is ignored.
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

    /// Adds an item: its partition key (UTF-8 of a string or a number, raw binary), its sort key, its size in bytes.
    pub fn add(&mut self, partition: &[u8], sort: Option<SortKey<'_>>, bytes: usize) {
        let key = match self.keys.get_mut(partition) {
            Some(key) => key,
            None => self.keys.entry(partition.to_vec()).or_default(),
        };
        key.items += 1;
        key.bytes += u64::try_from(bytes).unwrap_or(u64::MAX);
        let Some((sort, stamp)) = sort.and_then(|sort| Some((sort, stamp::of(sort)?))) else { return };
        key.timed += 1;
        *key.written.entry((stamp.second, stamp.window)).or_default() += write_units(0, bytes);
        let before = match sort {
            SortKey::S(text) => text.get(..stamp.from).unwrap_or_default(),
            SortKey::N(number) => {
                key.milliseconds = number.split('.').next().is_some_and(|whole| whole.len() > 11);
                ""
            }
            SortKey::B(_) => "",
        };
        match &key.prefix {
            None => key.prefix = Some(before.to_owned()),
            Some(known) => key.prefixes_differ |= known != before,
        }
    }

    /// The report on all items of a table. Proposed rules name `table`.
    pub fn report(&self, table: &str) -> Report {
        self.reported(table, None)
    }

    /// The report on a sample that was read evenly from a table of about `of` items. Its rates and sizes are
    /// lower bounds, and it says nothing about keys that were not read.
    pub fn report_sample(&self, table: &str, of: u64) -> Report {
        let items: u64 = self.keys.values().map(|key| key.items).sum();
        self.reported(table, Some(Sample { items, of }))
    }

    fn reported(&self, table: &str, sample: Option<Sample>) -> Report {
        let mut keys: Vec<(String, &Collected)> =
            self.keys.iter().map(|(key, of)| (String::from_utf8_lossy(key).into_owned(), of)).collect();
        keys.sort_by(|a, b| a.0.cmp(&b.0));
        let texts: Vec<(&str, u64)> = keys.iter().map(|(key, of)| (key.as_str(), of.items)).collect();
        let mut groups: HashMap<String, Vec<&(String, &Collected)>> = HashMap::new();
        for (pattern, key) in pattern::of(&texts).into_iter().zip(&keys) {
            groups.entry(pattern).or_default().push(key);
        }
        let items = keys.iter().map(|(_, of)| of.items).sum();
        let mut patterns: Vec<Pattern> = groups
            .into_iter()
            .filter_map(|(name, keys)| of_pattern((table, sample), name, &keys, items))
            .collect();
        patterns.sort_by(|a, b| {
            let order = |one: &Pattern| (one.verdict.action, std::cmp::Reverse(one.items));
            order(a).cmp(&order(b)).then_with(|| a.pattern.cmp(&b.pattern))
        });
        Report {
            items,
            bytes: keys.iter().map(|(_, of)| of.bytes).sum(),
            patterns,
            share_read: sample.and_then(Sample::share),
        }
    }
}

fn of_pattern(
    (table, sample): (&str, Option<Sample>),
    name: String,
    keys: &[&(String, &Collected)],
    all: u64,
) -> Option<Pattern> {
    let described: Vec<(Key, &Collected)> =
        keys.iter().map(|(key, of)| (described(key.clone(), of), *of)).collect();
    let (largest, _) = described.iter().max_by_key(|(key, _)| key.bytes)?.clone();
    let busiest = described
        .iter()
        .filter(|(key, _)| key.peak_units.is_some())
        .max_by(|(a, _), (b, _)| a.peak_units.unwrap_or(0.0).total_cmp(&b.peak_units.unwrap_or(0.0)));
    let verdict = verdict::of(&verdict::Seen {
        table,
        pattern: &name,
        keys: described.len(),
        largest: &largest,
        busiest: busiest.map(|(key, of)| (key, *of)),
        all,
        sample,
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

#[allow(clippy::cast_precision_loss, reason = "spans of time, far below 2^52 seconds")]
fn described(key: String, of: &Collected) -> Key {
    let rate = |(window, units): (&(i64, i64), &f64)| (units / window.1 as f64, window.1);
    let peak = of.written.iter().map(rate).max_by(|a, b| a.0.total_cmp(&b.0));
    let first = of.written.keys().map(|(second, _)| *second).min();
    let last = of.written.keys().map(|(second, window)| second + window).max();
    Key {
        key,
        items: of.items,
        bytes: of.bytes,
        peak_units: peak.map(|(units, _)| units),
        window: peak.map(|(_, window)| window),
        days: first.zip(last).map(|(first, last)| ((last - first) as f64 / 86_400.0).max(1.0)),
    }
}

#[cfg(test)]
mod tests;
