//! Holds the records of a table against its recorded requests.

use std::collections::{BTreeMap, HashMap};
use std::ops::RangeInclusive;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use heatsink_layout::{codec, number_codec};

use super::requested::{Request, Requested, Requests};
use super::streamed::{Event, Record, Streamed};
use super::{APART, Bypass, BypassedKey, KEYS};

impl Bypass {
    /// What of the writes of that table the requests do not explain.
    pub fn of(table: &str, streamed: &Streamed, requested: &Requested) -> Self {
        let none = Requests::default();
        let requests = requested.of(table).unwrap_or(&none);
        // Near the ends of a recording the request of a record may be outside.
        let (first, last) = requested.in_common();
        let judged = first.saturating_add(APART)..=last.saturating_sub(APART);
        let logical: Vec<String> = streamed
            .keys()
            .into_iter()
            .map(|key| logical(key, |key| requests.keys.contains_key(key)))
            .collect();
        let mut by_key: BTreeMap<&str, Vec<Record>> = BTreeMap::new();
        let mut bypass = Bypass {
            at_least: requests.weight > 1 || requested.is_hashed(),
            without_key: requests.without_key,
            dropped: requested.dropped(),
            ..Bypass::default()
        };
        for record in &streamed.records {
            let is_judged = judged.contains(&record.second);
            bypass.writes += u64::from(is_judged);
            bypass.outside += u64::from(!is_judged);
            if let Some(key) = usize::try_from(record.key).ok().and_then(|key| logical.get(key)) {
                by_key.entry(key).or_default().push(*record);
            }
        }
        if requested.is_hashed() {
            bypass.of_the_table(by_key.into_values(), requests, &judged);
            return bypass;
        }
        let mut keys = Vec::new();
        for (key, records) in by_key {
            let known = requests.keys.get(key).map_or(&[][..], Vec::as_slice);
            let writes = count(records.iter().filter(|record| judged.contains(&record.second)));
            let (left, moved) = unexplained(&records, known, requests.weight <= 1);
            bypass.moved += count(moved.iter().filter(|second| judged.contains(second)));
            let left = count(left.iter().filter(|second| judged.contains(second)));
            let unexplained = match requests.weight {
                ..=1 => left,
                _ => beyond_chance(left, recorded(known, &judged), requests),
            };
            bypass.unexplained += unexplained;
            if unexplained > 0 {
                keys.push(BypassedKey { key: key.to_owned(), writes, unexplained });
            }
        }
        keys.sort_by(|a, b| b.unexplained.cmp(&a.unexplained).then_with(|| a.key.cmp(&b.key)));
        bypass.more_keys = keys.len().saturating_sub(KEYS);
        keys.truncate(KEYS);
        bypass.keys = keys;
        bypass
    }

    /// Of hashed keys nothing but the sums can be compared.
    fn of_the_table(
        &mut self,
        keys: impl Iterator<Item = Vec<Record>>,
        requests: &Requests,
        judged: &RangeInclusive<i64>,
    ) {
        let mut all = 0;
        for records in keys {
            let (left, moved) = unexplained(&records, &[], false);
            self.moved += count(moved.iter().filter(|second| judged.contains(second)));
            all += count(left.iter().filter(|second| judged.contains(second)));
        }
        let known: u64 = requests.keys.values().map(|known| recorded(known, judged)).sum();
        self.unexplained = beyond_chance(all, known, requests);
    }
}

fn count<T>(of: impl Iterator<Item = T>) -> u64 {
    u64::try_from(of.count()).unwrap_or(u64::MAX)
}

/// The logical key of a physical one, as traces have it. What is not recorded as it is may be a
/// shard's.
fn logical(physical: &[u8], is_recorded: impl Fn(&str) -> bool) -> String {
    let of_shard = codec::decode(physical).logical;
    let of_bucket = physical.get(..codec::bucket_decode(physical).0).unwrap_or(physical);
    let of_number = number_codec::split_shard(physical).map(|(logical, _)| logical);
    let texts =
        [physical, of_shard, of_number.unwrap_or(of_bucket), of_bucket].into_iter().flat_map(|bytes| {
            let text = String::from_utf8_lossy(bytes).into_owned();
            [text, STANDARD.encode(bytes)]
        });
    let found = texts.into_iter().find(|text| is_recorded(text));
    found.unwrap_or_else(|| String::from_utf8_lossy(of_number.unwrap_or(of_bucket)).into_owned())
}

/// The seconds of the records of a key that no request explains, and of those that are a move of
/// Heatsink's. `one_by_one`: each request explains one record of its item under each physical key;
/// else only moves are taken out. They are taken out first: the request that put an item explains
/// no move of it.
fn unexplained(records: &[Record], requests: &[Request], one_by_one: bool) -> (Vec<i64>, Vec<i64>) {
    let mut by_item: HashMap<u64, Vec<i64>> = HashMap::new();
    for request in requests {
        by_item.entry(request.sort).or_default().push(request.second);
    }
    by_item.values_mut().for_each(|seconds| seconds.sort_unstable());
    let mut records = records.to_vec();
    records.sort_by_key(|record| (record.sort, record.second));
    let (mut left, mut moved) = (Vec::new(), Vec::new());
    for of_item in records.chunk_by(|a, b| a.sort == b.sort) {
        let requests = of_item.first().and_then(|record| by_item.get(&record.sort));
        let mut others = without_moves(of_item, &mut moved);
        others.sort_by_key(|record| (record.key, record.second));
        for under_key in others.chunk_by(|a, b| a.key == b.key) {
            match requests.filter(|_| one_by_one) {
                Some(requests) => without_request(under_key, requests, &mut left),
                None => left.extend(under_key.iter().map(|record| record.second)),
            }
        }
    }
    (left, moved)
}

/// The records that have no request of about the same time; both are in order of time. To take the
/// earliest request that fits leaves the most for later ones.
fn without_request(records: &[Record], requests: &[i64], left: &mut Vec<i64>) {
    let mut requests = requests.iter().peekable();
    for record in records {
        while requests.next_if(|second| **second < record.second - APART).is_some() {}
        if requests.next_if(|second| **second <= record.second + APART).is_none() {
            left.push(record.second);
        }
    }
}

/// The records of an item, in order of time, without pairs in which it is removed under one
/// physical key and put under another.
fn without_moves(records: &[Record], moved: &mut Vec<i64>) -> Vec<Record> {
    // Under one key alone nothing moves, however often the item comes and goes.
    if records.windows(2).all(|two| matches!(two, [a, b] if a.key == b.key)) {
        return records.to_vec();
    }
    let mut taken = vec![false; records.len()];
    let mut inserts: Vec<usize> = Vec::new();
    let mut removes: Vec<usize> = Vec::new();
    for (at, record) in records.iter().enumerate() {
        let (own, others) = match record.event {
            Event::Insert => (&mut inserts, &mut removes),
            Event::Remove => (&mut removes, &mut inserts),
            Event::Modify => continue,
        };
        let near = |other: &usize| {
            records
                .get(*other)
                .is_some_and(|other| other.key != record.key && record.second - other.second <= APART)
        };
        match others.iter().position(near) {
            Some(place) => {
                let other = others.remove(place);
                for at in [at, other] {
                    if let Some(taken) = taken.get_mut(at) {
                        *taken = true;
                    }
                }
            }
            None => {
                others.retain(near_in_time(records, record.second));
                own.push(at);
            }
        }
    }
    let mut others = Vec::new();
    for (record, taken) in records.iter().zip(taken) {
        if taken {
            moved.push(record.second);
        } else {
            others.push(*record);
        }
    }
    others
}

fn near_in_time(records: &[Record], second: i64) -> impl Fn(&usize) -> bool {
    move |at| records.get(*at).is_some_and(|record| second - record.second <= APART)
}

/// How many writes those requests stand for that may explain a record of that time.
fn recorded(requests: &[Request], judged: &RangeInclusive<i64>) -> u64 {
    let reach = judged.start().saturating_sub(APART)..=judged.end().saturating_add(APART);
    let near = requests.iter().filter(|request| reach.contains(&request.second));
    near.map(|request| u64::from(request.weight)).sum()
}

/// How many of so many writes are beyond what recorded ones explain, if one request in `weight` was
/// drawn: less three standard deviations.
#[allow(
    clippy::cast_precision_loss,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts, far below 2^52"
)]
fn beyond_chance(writes: u64, recorded: u64, requests: &Requests) -> u64 {
    let chance = f64::from(requests.weight.saturating_sub(1)) * f64::from(requests.together.max(1));
    let beyond = writes as f64 - recorded as f64 - 3.0 * (writes as f64 * chance).sqrt();
    beyond.max(0.0) as u64
}
