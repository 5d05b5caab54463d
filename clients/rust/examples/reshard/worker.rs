//! One worker, its own items, and what all of its calls have in common.
//!
//! Not here: the calls (`single`, `several`, `queries`).

use std::error::Error;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::error::{ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::types::AttributeValue;
use heatsink_env::{Env, RealEnv};
use rand::rngs::SmallRng;
use rand::seq::index;
use rand::{Rng, SeedableRng};
use serde_json::Value as Json;

use crate::calls::{Failed, connect};
use crate::known::{Attributes, Holds, Item};
use crate::pace::Pace;
use crate::report::Report;

/// Items of one worker.
const ITEMS: usize = 16;
/// Every second worker's puts hold so many bytes more, so that fewer requests are as many units.
const PAD: usize = 4000;
/// Every third worker hangs up after so long: what it sent may be done later. The others wait
/// longer than a gateway works on a request.
const HASTY: Duration = Duration::from_millis(2500);
const PATIENCE: Duration = Duration::from_secs(120);
/// Who was refused does not come back at once.
const PAUSE: Duration = Duration::from_millis(20);

/// The answer to a request that is under way.
pub(crate) type Answer<T, E> = Pin<Box<dyn Future<Output = Result<T, SdkError<E, HttpResponse>>> + Send>>;

/// What all workers share.
pub struct Shared {
    pub env: Arc<RealEnv>,
    pub table: String,
    pub key: String,
    pub seed: u64,
    pub queries: u32,
    pub stopping: AtomicBool,
    pub pace: Pace,
    pub report: Report,
}

/// One of them.
pub struct Worker {
    pub(crate) shared: Arc<Shared>,
    pub(crate) name: String,
    pub(crate) at: Vec<Client>,
    pub(crate) items: Vec<Item>,
    /// Items that are written no more.
    pub(crate) left: Vec<Item>,
    pub(crate) rng: SmallRng,
    pad: Option<String>,
    made: u64,
    written: u64,
}

impl Worker {
    /// A worker without items in the table.
    pub fn new(shared: Arc<Shared>, number: u64, gateways: &[String]) -> Self {
        let patience = if number % 3 == 2 { HASTY } else { PATIENCE };
        let mut worker = Worker {
            name: format!("r{number}"),
            at: gateways.iter().map(|endpoint| connect(endpoint, patience)).collect(),
            items: Vec::new(),
            left: Vec::new(),
            rng: SmallRng::seed_from_u64(shared.seed.wrapping_mul(1000).wrapping_add(number)),
            pad: (number % 2 == 1).then(|| "x".repeat(PAD)),
            made: 0,
            written: 0,
            shared,
        };
        worker.items = (0..ITEMS).map(|slot| worker.fresh(slot)).collect();
        worker
    }

    /// Acts until told to stop. Returns what must lie there then.
    pub async fn work(mut self) -> Vec<Json> {
        while !self.is_stopping() {
            match self.rng.random_range(0..60_u32) {
                roll if roll < self.shared.queries => self.query().await,
                0..10 => self.put().await,
                10..16 => self.create().await,
                16..24 => self.update().await,
                24..30 => self.add().await,
                30..34 => self.delete().await,
                34..42 => self.batch().await,
                42..50 => self.transact().await,
                _ => self.get().await,
            }
        }
        self.items.iter().chain(&self.left).map(|item| item.reported(&self.shared.key)).collect()
    }

    pub(crate) fn is_stopping(&self) -> bool {
        self.shared.stopping.load(Ordering::Relaxed)
    }

    /// Where the next request goes.
    pub(crate) fn gateway(&mut self) -> usize {
        self.rng.random_range(0..self.at.len())
    }

    pub(crate) async fn rest(&self) {
        self.shared.env.sleep(PAUSE).await;
    }

    pub(crate) fn fault(&self, kind: &str, sk: &str, text: &str) {
        self.shared.report.fault(kind, &self.shared.key, sk, text);
    }

    /// A sort key that was not used before, anywhere in the key.
    fn fresh(&mut self, slot: usize) -> Item {
        self.made += 1;
        let place = (slot as u64 * 37 + self.made * 11) % 100;
        Item::fresh(format!("{place:02}-{}-{slot}-{}", self.name, self.made))
    }

    /// A value that was not written before.
    pub(crate) fn next(&mut self) -> String {
        self.written += 1;
        format!("{}.{:07}", self.name, self.written)
    }

    pub(crate) fn any(&mut self) -> usize {
        self.rng.random_range(0..self.items.len())
    }

    pub(crate) fn some(&mut self, most: usize) -> Vec<usize> {
        let many = self.rng.random_range(2..=most);
        index::sample(&mut self.rng, self.items.len(), many).into_vec()
    }

    pub(crate) fn key(&self, slot: usize) -> Attributes {
        let of = |text: &str| AttributeValue::S(text.to_owned());
        [("pk".to_owned(), of(&self.shared.key)), ("sk".to_owned(), of(&self.items[slot].sk))].into()
    }

    /// The whole item, with this value.
    pub(crate) fn whole(&self, slot: usize, value: &str) -> Attributes {
        let mut item = self.key(slot);
        item.insert("v".to_owned(), AttributeValue::S(value.to_owned()));
        item.insert("g".to_owned(), self.group(slot));
        item.extend(self.pad.clone().map(|pad| ("pad".to_owned(), AttributeValue::S(pad))));
        item
    }

    /// The global index's key, as the scenario's clients choose it.
    pub(crate) fn group(&self, slot: usize) -> AttributeValue {
        AttributeValue::S(format!("g{}", &self.items[slot].sk[..1]))
    }

    pub(crate) fn second(&self) -> u64 {
        self.shared.env.unix_millis() / 1000
    }

    pub(crate) fn accepted_together(&self, items: usize, units: f64) {
        self.shared.pace.learn(items, units);
        self.shared.report.accepted(self.second(), items, units);
    }

    /// Waits for an answer and counts it.
    pub(crate) async fn sent<T, E>(&self, what: &'static str, call: Answer<T, E>) -> Result<T, Failed>
    where
        E: ProvideErrorMetadata + Error + Send + Sync + 'static,
    {
        let begin = self.shared.env.now();
        self.shared.report.call(what);
        match call.await {
            Ok(told) => {
                self.shared.report.answered(self.shared.env.now().since(begin));
                Ok(told)
            }
            Err(error) => {
                let failed = Failed::of(&error);
                self.shared.report.failed(&failed);
                Err(failed)
            }
        }
    }

    /// An item whose write may or may not have been done is written no more.
    pub(crate) fn leave(&mut self, slot: usize, after: Option<Holds>) {
        let fresh = self.fresh(slot);
        let item = std::mem::replace(&mut self.items[slot], fresh);
        self.left.push(Item { perhaps: Some(after), ..item });
    }
}
