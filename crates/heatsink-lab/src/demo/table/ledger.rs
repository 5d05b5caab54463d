//! What the clients of the demo added to their items, and which keys they made: the account that the
//! table is counted against.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};

use heatsink_dynamo::Operation;
use heatsink_env::{Env, MonotonicInstant};
use heatsink_load::{Answer, Outcome, Request, Work};
use serde_json::{Value as Json, json};

use super::options::Options;
use crate::demo::fleet::Fleet;
use crate::demo::workload::{TABLE, scramble};
use crate::exit::Exit;

/// Bytes that fill an item up to about 400: one write unit.
const FILLING: usize = 330;
/// Writes whose send time is remembered while they are on their way.
const ON_THEIR_WAY: usize = 1 << 16;

/// What was written.
pub struct Ledger {
    env: Arc<dyn Env>,
    start: MonotonicInstant,
    next: AtomicU64,
    items: u64,
    keys: u64,
    /// One write in so many is the first of a new key; 0: none is.
    new_key_in: u64,
    /// Accepted adds of each item, by key and item.
    adds: Vec<AtomicU32>,
    born: AtomicU64,
    unknown: AtomicU64,
    part: AtomicUsize,
    /// The longest accepted first write of a key in each part, in microseconds.
    longest_first: [AtomicU64; 3],
    sent: Vec<AtomicU64>,
}

/// How the table compares with the account.
#[derive(Clone, Copy, Debug, Default, serde::Serialize)]
pub struct Count {
    /// Items that the table has.
    pub items: u64,
    /// Adds, and first writes of keys, that were accepted.
    pub accepted: u64,
    /// Of them, those that were not found.
    pub lost: u64,
    /// More than was accepted, and was not left open by a failed answer.
    pub doubled: u64,
    /// Keys that were made.
    pub born: u64,
    /// Requests that failed or have no answer.
    pub unknown: u64,
}

/// The items that are there before the load.
pub fn old(keys: u64, items: u64) -> impl Iterator<Item = Json> {
    (0..keys * items).map(move |nth| {
        let (key, item) = (nth / items, nth % items);
        json!({
            "pk": { "S": format!("game_{key}") }, "sk": { "S": format!("{item:06}") }, "n": { "N": "0" }, "badge": { "S": "*".repeat(FILLING) },
        })
    })
}

impl Ledger {
    pub fn new(env: Arc<dyn Env>, &Options { keys, items, new_key_in, .. }: &Options) -> Self {
        let adds = usize::try_from(keys * items).unwrap_or(0);
        Ledger {
            start: env.now(),
            env,
            next: AtomicU64::new(0),
            items,
            keys,
            new_key_in,
            adds: std::iter::repeat_with(AtomicU32::default).take(adds).collect(),
            born: AtomicU64::new(0),
            unknown: AtomicU64::new(0),
            part: AtomicUsize::new(0),
            longest_first: Default::default(),
            sent: std::iter::repeat_with(AtomicU64::default).take(ON_THEIR_WAY).collect(),
        }
    }

    /// Another part of the load begins.
    pub fn begin(&self, part: usize) {
        self.part.store(part, Ordering::Relaxed);
    }

    /// The longest accepted first write of a key in a part, in milliseconds.
    pub fn longest_first(&self, part: usize) -> u64 {
        self.longest_first.get(part).map_or(0, |longest| longest.load(Ordering::Relaxed) / 1_000)
    }

    /// The first of so many numbers that nobody has had.
    pub fn numbers(&self, numbers: u64) -> u64 {
        self.next.fetch_add(numbers, Ordering::Relaxed)
    }

    /// Requests that were sent and have no answer: they may have been carried out.
    pub fn unanswered(&self, requests: u64) {
        self.unknown.fetch_add(requests, Ordering::Relaxed);
    }

    fn sent(&self, number: u64) -> Option<&AtomicU64> {
        self.sent.get(usize::try_from(number).unwrap_or(0) % ON_THEIR_WAY)
    }

    fn micros(&self) -> u64 {
        u64::try_from(self.env.now().since(self.start).as_micros()).unwrap_or(u64::MAX)
    }

    fn is_born(&self, nth: u64) -> bool {
        self.new_key_in > 0 && nth.is_multiple_of(self.new_key_in)
    }

    fn item(&self, nth: u64) -> u64 {
        scramble(nth) % (self.keys * self.items).max(1)
    }

    /// Reads the table through a gateway, and compares.
    ///
    /// # Errors
    /// The gateway's.
    pub async fn count(&self, fleet: &Fleet) -> Result<Count, Exit> {
        let mut found: HashMap<(String, String), u64> = HashMap::new();
        let mut start = Json::Null;
        loop {
            let mut body = json!({ "TableName": TABLE, "ConsistentRead": true });
            if !start.is_null() {
                body["ExclusiveStartKey"] = start;
            }
            let mut page = fleet.call(Operation::Scan, &body).await?;
            for item in page["Items"].as_array().into_iter().flatten() {
                let text = |name: &str| item[name]["S"].as_str().unwrap_or_default().to_owned();
                let number = item["n"]["N"].as_str().and_then(|text| text.parse().ok()).unwrap_or(0);
                *found.entry((text("pk"), text("sk"))).or_default() += number;
            }
            start = page["LastEvaluatedKey"].take();
            if start.is_null() {
                break;
            }
        }
        let mut count = Count {
            items: u64::try_from(found.len()).unwrap_or(u64::MAX),
            born: self.born.load(Ordering::Relaxed),
            unknown: self.unknown.load(Ordering::Relaxed),
            ..Count::default()
        };
        let mut more = 0;
        for (nth, adds) in self.adds.iter().enumerate() {
            let nth = u64::try_from(nth).unwrap_or(0);
            let place = (format!("game_{}", nth / self.items), format!("{:06}", nth % self.items));
            let (adds, there) = (u64::from(adds.load(Ordering::Relaxed)), found.remove(&place));
            count.accepted += adds;
            count.lost += adds.saturating_sub(there.unwrap_or(0)) + u64::from(there.is_none());
            more += there.unwrap_or(0).saturating_sub(adds);
        }
        let born: u64 = found.values().sum();
        count.accepted += count.born;
        count.lost += count.born.saturating_sub(born);
        more += born.saturating_sub(count.born);
        count.doubled = more.saturating_sub(count.unknown);
        Ok(count)
    }
}

/// The clients of one gateway during a piece of the load. Their requests have numbers of their own.
pub struct Client {
    pub ledger: Arc<Ledger>,
    pub first: u64,
    pub of: u64,
}

impl Client {
    fn number(&self, nth: u64) -> u64 {
        self.first + nth * self.of
    }
}

impl Work for Client {
    fn request(&self, nth: u64) -> Request {
        let (ledger, number) = (&self.ledger, self.number(nth));
        let (key, item) = match ledger.is_born(number) {
            true => (format!("born_{number}"), 0),
            false => {
                let item = ledger.item(number);
                (format!("game_{}", item / ledger.items), item % ledger.items)
            }
        };
        if let Some(sent) = ledger.sent(number) {
            sent.store(ledger.micros(), Ordering::Relaxed);
        }
        let body = format!(
            r#"{{"TableName":"{TABLE}","Key":{{"pk":{{"S":"{key}"}},"sk":{{"S":"{item:06}"}}}},"UpdateExpression":"ADD n :n","ExpressionAttributeValues":{{":n":{{"N":"1"}}}}}}"#
        );
        Request::new(Operation::UpdateItem, body)
    }

    fn outcome(&self, nth: u64, answer: &Answer) -> Outcome {
        let (ledger, number) = (&self.ledger, self.number(nth));
        let outcome = Outcome::of(answer);
        match outcome {
            Outcome::Accepted if ledger.is_born(number) => {
                ledger.born.fetch_add(1, Ordering::Relaxed);
                let sent = ledger.sent(number).map_or(0, |sent| sent.load(Ordering::Relaxed));
                let took = ledger.micros().saturating_sub(sent);
                if let Some(longest) = ledger.longest_first.get(ledger.part.load(Ordering::Relaxed)) {
                    longest.fetch_max(took, Ordering::Relaxed);
                }
            }
            Outcome::Accepted => {
                let adds = usize::try_from(ledger.item(number)).ok().and_then(|item| ledger.adds.get(item));
                if let Some(adds) = adds {
                    adds.fetch_add(1, Ordering::Relaxed);
                }
            }
            Outcome::Throttled => {}
            Outcome::Failed => drop(ledger.unknown.fetch_add(1, Ordering::Relaxed)),
        }
        outcome
    }
}
