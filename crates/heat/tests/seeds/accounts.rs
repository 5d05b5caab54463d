//! What the accounts tell of their tables and their traffic, drawn with a seed: who writes which
//! item when.

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};

use heatsink_dynamo::capacity::write_units;
use heatsink_trace::{Access, End, Ended, Header, Line, Operation, Table, VERSION};

/// The names of the key attributes.
pub const KEYS: [&str; 2] = ["pk", "sk"];
/// 2026-06-22T18:00:00Z.
const BEGIN: u64 = 1_782_151_200;
/// Seconds of traffic.
const SECONDS: u64 = 2;

/// A table and what is written to it.
pub struct Account {
    pub table: &'static str,
    /// In order of time.
    pub writes: Vec<Write>,
    /// Queries per second of one key, and the read units of each.
    pub reads: Option<(&'static str, u64, u64)>,
}

/// One write of one item.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Write {
    /// Milliseconds since the begin.
    pub at: u64,
    pub key: String,
    pub sort: String,
    /// Whether sort keys are numbers.
    pub number: bool,
    pub bytes: usize,
}

impl Write {
    fn item(&self) -> String {
        let text = "x".repeat(self.bytes);
        format!(r#"{{{},"text":{{"S":"{text}"}}}}"#, self.keys())
    }

    fn keys(&self) -> String {
        let kind = if self.number { "N" } else { "S" };
        let [pk, sk] = KEYS;
        format!(r#""{pk}":{{"S":"{}"}},"{sk}":{{"{kind}":"{}"}}"#, self.key, self.sort)
    }
}

impl Account {
    fn new(table: &'static str, parts: Vec<Vec<Write>>) -> Self {
        let mut writes: Vec<Write> = parts.into_iter().flatten().collect();
        writes.sort();
        Account { table, writes, reads: None }
    }

    /// What is there afterwards, as an export to S3 has it.
    pub fn export(&self) -> String {
        let items: BTreeMap<(&str, &str), &Write> =
            self.writes.iter().map(|write| ((write.key.as_str(), write.sort.as_str()), write)).collect();
        items.values().map(|write| format!("{{\"Item\":{}}}\n", write.item())).collect()
    }

    /// What was written, as stream records.
    pub fn stream(&self) -> String {
        let mut there = std::collections::HashSet::new();
        let mut lines = String::new();
        for write in &self.writes {
            let is_new = there.insert((&write.key, &write.sort));
            let (event, old) = match is_new {
                true => ("INSERT", String::new()),
                false => ("MODIFY", format!(r#","OldImage":{}"#, write.item())),
            };
            lines += &format!(
                "{{\"eventName\":\"{event}\",\"dynamodb\":{{\"ApproximateCreationDateTime\":{},\"Keys\":{{{}}},\"NewImage\":{}{old}}}}}\n",
                BEGIN + write.at / 1_000,
                write.keys(),
                write.item()
            );
        }
        lines
    }
}

/// A name in a recording with hashed keys.
pub fn hashed(text: &str) -> String {
    let mut hasher = DefaultHasher::new();
    text.hash(&mut hasher);
    format!("{:016x}", hasher.finish())
}

impl Account {
    /// What was asked for, as a gateway records it: one request in so many, drawn at random.
    pub fn trace(&self, one_in: u32, hash: bool) -> String {
        let mut random = fastrand::Rng::with_seed(4);
        let shown = |text: &str| Some(Cow::Owned(if hash { hashed(text) } else { text.to_owned() }));
        let plain = |us: u64, key: &str, op| Access {
            us,
            table: Cow::Borrowed(self.table),
            index: None,
            op,
            key: shown(key),
            sort: None,
            grows: false,
            page: None,
            units: 0,
            bytes: 0,
            items: 0,
            strong: false,
            throttled: false,
            weight: one_in,
        };
        let mut largest: BTreeMap<&str, &str> = BTreeMap::new();
        let mut accesses = Vec::new();
        for write in &self.writes {
            let before = largest.entry(&write.key).or_default();
            let grows = *write.sort > **before;
            if grows {
                *before = &write.sort;
            }
            accesses.push(Access {
                sort: shown(&write.sort),
                grows: grows && hash,
                units: write_units(0, write.bytes) as u64 * 1_000,
                bytes: write.bytes as u64,
                ..plain(write.at * 1_000, &write.key, Operation::Put)
            });
        }
        if let Some((key, rate, units)) = self.reads {
            accesses.extend((0..rate * SECONDS).map(|nth| Access {
                page: Some(Cow::Borrowed("page")),
                units: units * 1_000,
                bytes: units * 8_192,
                items: 100,
                ..plain(nth * 1_000_000 / rate, key, Operation::Query)
            }));
        }
        accesses.retain(|_| random.u32(..one_in) == 0);
        accesses.sort_by_key(|access| access.us);
        let table = Table { name: Cow::Borrowed(self.table), sort_key: true, local_index: false };
        let header = Header { version: VERSION, hashed: hash, unix_millis: BEGIN * 1_000 };
        let recorded = accesses.len() as u64;
        let end = End { us: SECONDS * 1_000_000, recorded, dropped: 0, because: Ended::Stopped };
        let mut lines = Vec::new();
        let all = [Line::Trace(header), Line::Table(table)].into_iter();
        all.chain(accesses.into_iter().map(Line::Access))
            .chain([Line::End(end)])
            .for_each(|line| line.write(&mut lines));
        String::from_utf8(lines).unwrap()
    }
}

/// `rate` writes a second of a key, evenly; `sort` makes the sort key of the millisecond and the
/// number of the write.
fn writes(key: &str, rate: u64, bytes: usize, mut sort: impl FnMut(u64, u64) -> String) -> Vec<Write> {
    (0..rate * SECONDS)
        .map(|nth| {
            let at = nth * 1_000 / rate;
            Write { at, key: key.to_owned(), sort: sort(at, nth), number: false, bytes }
        })
        .collect()
}

fn numbers(writes: Vec<Write>) -> Vec<Write> {
    writes.into_iter().map(|write| Write { number: true, ..write }).collect()
}

fn time(at: u64) -> String {
    format!("2026-06-22T18:00:{:02}.{:03}Z", at / 1_000, at % 1_000)
}

/// One title goes viral among forty.
pub fn leaderboard() -> Account {
    let mut random = fastrand::Rng::with_seed(1);
    let mut scores = |game: &str, rate| {
        writes(game, rate, 200, |_, nth| format!("{:010}#p{nth:06}", random.u32(..1_000_000)))
    };
    let mut parts = vec![scores("game_x", 5_000)];
    parts.extend((10..50).map(|title| scores(&format!("game_t{title}"), 2)));
    Account { reads: Some(("game_x", 600, 4)), ..Account::new("Leaderboards", parts) }
}

/// One conversation among sixty, all with names of one form.
pub fn chat() -> Account {
    let messages = |name: &str, rate| writes(name, rate, 300, |at, nth| format!("{}#m{nth:06}", time(at)));
    let mut parts = vec![messages("conv_abc123", 4_000)];
    parts.extend((200..260).map(|one| messages(&format!("conv_abc{one}"), 1)));
    Account::new("Messages", parts)
}

/// A log under one key, threats by brand with one that is attacked most, and lists of everything.
pub fn ops_log() -> Account {
    let mut parts = vec![writes("OPS_LOG", 3_000, 250, |at, nth| format!("{}#agent{nth}", time(at)))];
    for brand in 0..40 {
        let rate = if brand == 7 { 20 } else { 1 };
        let alerts =
            writes(&format!("THREAT#brand{brand}"), rate, 300, |at, nth| format!("ALERT#{}#{nth}", time(at)));
        parts.push(alerts);
    }
    parts.push(writes("BRAND_INDEX", 1, 100, |at, nth| format!("BRAND#{}#{nth}", time(at))));
    parts.push(writes("PRODUCT_INDEX", 2, 100, |at, nth| format!("PRODUCT#{}#{nth}", time(at))));
    Account::new("AntiCounterfeit", parts)
}

/// Votes are added to one item of each candidate, and a ballot is kept for some voters.
pub fn votes() -> Account {
    let count = |name: &str, rate| writes(name, rate, 100, |_, _| "METADATA".to_owned());
    let mut parts = vec![count("CANDIDATE#A", 4_000), count("CANDIDATE#B", 50), count("CANDIDATE#C", 40)];
    let mut random = fastrand::Rng::with_seed(2);
    parts.push(
        (0..2_000)
            .map(|voter| Write {
                at: random.u64(..SECONDS * 1_000),
                key: format!("VOTER#{voter}"),
                sort: "VOTE".to_owned(),
                number: false,
                bytes: 80,
            })
            .collect(),
    );
    Account::new("ElectionData", parts)
}

/// A busy user among two hundred; a busy tenant by days among fifty; a status that most orders
/// have; a counter; and a user who is spread by hand over ten keys, none of them hot.
pub fn patterns() -> Account {
    let events = |user: &str, rate, offset: u64| {
        numbers(writes(user, rate, 200, move |at, nth| {
            format!("{}.{:06}", BEGIN + at / 1_000, nth * 10 + offset)
        }))
    };
    let mut random = fastrand::Rng::with_seed(3);
    let mut orders = |status: &str, rate| {
        writes(status, rate, 200, |_, nth| format!("order-{:08x}-{nth}", random.u32(..) | 0x1000_0000))
    };
    let mut parts = vec![orders("ACTIVE", 1_500), orders("CLOSED", 5), events("user-12345", 3_000, 0)];
    parts.extend((0..200).map(|user| events(&format!("user-{user}"), 1, 0)));
    parts.extend((0..10).map(|shard| events(&format!("user-777#{shard}"), 200, shard)));
    let tenant = |tenant: u64, rate| {
        writes(&format!("tenant-{tenant}#2026-06-22"), rate, 300, |at, nth| format!("{}#{nth:06}", time(at)))
    };
    parts.push(tenant(456, 2_500));
    parts.extend((0..50).map(|one| tenant(one, 1)));
    parts.push(writes("leaderboard#game-1", 2_000, 100, |_, _| "TOTAL".to_owned()));
    Account::new("Events", parts)
}
