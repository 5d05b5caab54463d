//! What the clients of the demo wrote, when, and with what answer: the account that their items are
//! counted against.
//!
//! Not here: how the load is generated (`heatsink-load`).

use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU8, AtomicU32, Ordering};

use heatsink_dynamo::Operation;
use heatsink_env::{Env, MonotonicInstant};
use heatsink_load::{Answer, Outcome, Request, Work};
use serde_json::{Value as Json, json};

use crate::demo::workload::TABLE;

/// Bytes that fill an item up to about 400: one write unit.
const FILLING: usize = 330;

/// Each interval of the account, in milliseconds.
pub const STEP: u32 = 100;

/// One put: when it was sent and answered, in microseconds since the start and never 0, and how.
/// They reach for 71 minutes; a load has 70 at most.
#[derive(Default)]
struct Put {
    sent: AtomicU32,
    answered: AtomicU32,
    outcome: AtomicU8,
}

const ACCEPTED: u8 = 1;
const THROTTLED: u8 = 2;
const FAILED: u8 = 3;

/// The puts of all clients. Each has an item of its own.
pub struct Ledger {
    env: Arc<dyn Env>,
    start: MonotonicInstant,
    key: &'static str,
    conditional: bool,
    puts: Vec<Put>,
}

/// What was accepted and what throttled in one interval of [`STEP`].
#[derive(Clone, Copy, Debug, Default)]
pub struct Interval {
    /// Accepted puts that were answered in it.
    pub accepted: u32,
    /// The same of throttled ones.
    pub throttled: u32,
}

/// How the items that were found compare with the account.
#[derive(Clone, Debug, Default, serde::Serialize)]
pub struct Count {
    /// Items that were there before the load.
    pub old: u64,
    /// Puts that were accepted.
    pub accepted: u64,
    /// Items that were found.
    pub found: u64,
    /// Old items and accepted puts that were not found.
    pub lost: u64,
    /// Items that were found more than once.
    pub doubled: u64,
    /// Items that were found though their puts were throttled, or never sent.
    pub unexpected: u64,
    /// Items that were found out of order.
    pub out_of_order: u64,
    /// Puts that failed or have no answer: their items may be there or not.
    pub unknown: u64,
}

impl Count {
    /// Whether everything that was written was found again, once and in order, and nothing else.
    pub fn is_exact(&self) -> bool {
        self.lost + self.doubled + self.unexpected + self.out_of_order == 0
    }
}

impl Ledger {
    /// An account of up to `puts` puts of `key`; `conditional`: each creates its item, or fails.
    pub fn new(env: Arc<dyn Env>, key: &'static str, puts: usize, conditional: bool) -> Self {
        let puts = std::iter::repeat_with(Put::default).take(puts).collect();
        Ledger { start: env.now(), env, key, conditional, puts }
    }

    /// The nth item that was there before.
    pub fn old(key: &str, nth: u64) -> Json {
        json!({ "pk": { "S": key }, "sk": { "S": old_sort(nth) }, "badge": { "S": "*".repeat(FILLING) } })
    }

    /// Milliseconds since the start.
    pub fn millis(&self) -> u32 {
        u32::try_from(self.env.now().since(self.start).as_millis()).unwrap_or(u32::MAX)
    }

    /// Microseconds since the start, and never 0.
    fn micros(&self) -> u32 {
        u32::try_from(self.env.now().since(self.start).as_micros()).unwrap_or(u32::MAX).max(1)
    }

    /// When the first throttled put was answered, in milliseconds since the start.
    pub fn first_throttle(&self) -> Option<u32> {
        let throttled = self.puts.iter().filter(|put| put.outcome.load(Ordering::Relaxed) == THROTTLED);
        throttled.map(|put| put.answered.load(Ordering::Relaxed) / 1_000).min()
    }

    /// Per interval, what was answered in it.
    pub fn intervals(&self) -> Vec<Interval> {
        let mut found = Vec::new();
        for put in &self.puts {
            let at = put.answered.load(Ordering::Relaxed);
            if at == 0 {
                continue;
            }
            let nth = usize::try_from(at / 1_000 / STEP).unwrap_or(0);
            if found.len() <= nth {
                found.resize(nth + 1, Interval::default());
            }
            let Some(interval) = found.get_mut(nth) else { continue };
            match put.outcome.load(Ordering::Relaxed) {
                ACCEPTED => interval.accepted += 1,
                THROTTLED => interval.throttled += 1,
                _ => {}
            }
        }
        found
    }

    /// The latencies of accepted puts that were sent between two moments, in microseconds, shortest
    /// first. The moments are in milliseconds.
    pub fn latencies(&self, from: u32, to: u32) -> Vec<u32> {
        let accepted = self.puts.iter().filter(|put| put.outcome.load(Ordering::Relaxed) == ACCEPTED);
        let times =
            accepted.map(|put| (put.sent.load(Ordering::Relaxed), put.answered.load(Ordering::Relaxed)));
        let mut found: Vec<u32> = times
            .filter(|(sent, _)| (from..to).contains(&(sent / 1_000)))
            .map(|(sent, answered)| answered - sent)
            .collect();
        found.sort_unstable();
        found
    }

    /// The sort keys of accepted puts that were answered between two moments, in milliseconds.
    pub fn accepted(&self, from: u32, to: u32) -> impl Iterator<Item = String> + '_ {
        let puts = (0..).zip(&self.puts);
        let accepted = puts.filter(move |(_, put)| {
            put.outcome.load(Ordering::Relaxed) == ACCEPTED
                && (from..to).contains(&(put.answered.load(Ordering::Relaxed) / 1_000))
        });
        accepted.map(|(nth, _)| sort(nth))
    }

    /// Compares the sort keys that a Query of the whole key showed, in its order, with the account.
    pub fn count(&self, old: u64, shown: &[String]) -> Count {
        let mut count = Count { old, found: shown.len() as u64, ..Count::default() };
        count.out_of_order = shown.iter().zip(shown.iter().skip(1)).filter(|(a, b)| a >= b).count() as u64;
        let found: HashSet<&str> = shown.iter().map(String::as_str).collect();
        count.doubled = (shown.len() - found.len()) as u64;
        let mut expected = 0;
        for nth in 0..old {
            let there = found.contains(&*old_sort(nth));
            expected += u64::from(there);
            count.lost += u64::from(!there);
        }
        for (nth, put) in self.puts.iter().enumerate() {
            let there = found.contains(&*sort(nth as u64));
            match put.outcome.load(Ordering::Relaxed) {
                ACCEPTED => {
                    count.accepted += 1;
                    expected += u64::from(there);
                    count.lost += u64::from(!there);
                }
                THROTTLED => {}
                _ if put.sent.load(Ordering::Relaxed) > 0 => {
                    count.unknown += 1;
                    expected += u64::from(there);
                }
                _ => {}
            }
        }
        count.unexpected = found.len() as u64 - expected;
        count
    }

    fn put(&self, nth: u64) -> Option<&Put> {
        usize::try_from(nth).ok().and_then(|nth| self.puts.get(nth))
    }
}

fn old_sort(nth: u64) -> String {
    format!("a{nth:09}")
}

fn sort(nth: u64) -> String {
    format!("b{nth:09}")
}

/// One client's share of the account: every `clients`th put, from its own on.
pub struct Client {
    pub ledger: Arc<Ledger>,
    pub nth: u64,
    pub clients: u64,
}

impl Client {
    fn put(&self, nth: u64) -> u64 {
        nth * self.clients + self.nth
    }
}

impl Work for Client {
    fn request(&self, nth: u64) -> Request {
        let (ledger, nth) = (&self.ledger, self.put(nth));
        if let Some(put) = ledger.put(nth) {
            put.sent.store(ledger.micros(), Ordering::Relaxed);
        }
        let condition =
            if ledger.conditional { r#","ConditionExpression":"attribute_not_exists(pk)""# } else { "" };
        let body = format!(
            r#"{{"TableName":"{TABLE}","Item":{{"pk":{{"S":"{}"}},"sk":{{"S":"{}"}},"badge":{{"S":"{:*>FILLING$}"}}}}{condition}}}"#,
            ledger.key,
            sort(nth),
            ""
        );
        Request::new(Operation::PutItem, body)
    }

    fn outcome(&self, nth: u64, answer: &Answer) -> Outcome {
        let outcome = Outcome::of(answer);
        if let Some(put) = self.ledger.put(self.put(nth)) {
            let known = match outcome {
                Outcome::Accepted => ACCEPTED,
                Outcome::Throttled => THROTTLED,
                Outcome::Failed => FAILED,
            };
            put.outcome.store(known, Ordering::Relaxed);
            put.answered.store(self.ledger.micros(), Ordering::Relaxed);
        }
        outcome
    }
}
