//! A key that is sharded while its load goes on. Time passes with the load: 10 requests, then the
//! time in which so many come. Requests that have to wait are waited for beside the next ones.
//!
//! Not here: systems whose rules stand still (`stage`).

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use futures::FutureExt;
use futures::stream::{FuturesUnordered, StreamExt};
use heatsink_control::{Changer, Fencing, Rules};
use heatsink_dynamo::{Error, Operation};
use heatsink_env::{Env, ManualEnv, RealEnv};
use heatsink_gateway::Gateway;
use heatsink_physics::Quotas;
use heatsink_reshard::{Phase, State};
use heatsink_store::embedded::Embedded;
use heatsink_store::partitioned::Partitioned;
use heatsink_workers::{DEFAULT_RATE, Progress, Reshard, ReshardOptions, ReshardReport};
use serde_json::Value as Json;

use crate::stage::{Fault, Load, strings, throttled};

/// Requests that are sent at the same time.
const TOGETHER: u32 = 10;
/// If no answer comes for so long, in real time, the clock goes on: the requests under way wait for
/// it.
const QUIET: Duration = Duration::from_millis(1);

/// A gateway without rules, over a table of 80 partitions.
pub struct Live {
    clock: ManualEnv,
    store: Arc<Partitioned<Embedded>>,
    gateway: Gateway,
}

/// A load, by what the key was when each request was sent, and what the reshard did.
pub struct Sharded {
    /// Before the command.
    pub before: Load,
    /// Between the command and the cutover.
    pub cutover: Load,
    /// From the cutover on, while items move and after that.
    pub after: Load,
    /// What was moved.
    pub report: ReshardReport,
}

/// How the load goes on.
#[derive(Clone, Copy, Debug)]
pub struct Pace {
    /// Requests per second.
    pub per_second: u32,
    /// Seconds before the command, and after the cutover.
    pub seconds: [u32; 2],
}

impl Live {
    /// Starts over a table that `create` makes.
    ///
    /// # Errors
    /// When the store does not start.
    pub async fn start(create: &Json) -> Result<Live, Fault> {
        let clock = ManualEnv::seeded(1);
        let env: Arc<dyn Env> = Arc::new(clock.clone());
        let embedded = Embedded::memory()?;
        send(&embedded, Operation::CreateTable, create).await?;
        let store = Arc::new(Partitioned::start(embedded, Arc::clone(&env), Quotas::NONE).await?);
        let rules = Rules::default();
        // The registry is there before the gateway, which would otherwise take time to notice it.
        let first = Changer::beside(store.clone(), Arc::clone(&env), Fencing::exclusive(rules.fence()));
        first.freeze(false).await?;
        let fencing = Fencing::shared(rules.fence(), "live");
        let gateway = Gateway::builder(store.clone()).env(env).rules(rules).fencing(fencing).start().await;
        let gateway = gateway.map_err(|error| Fault(error.to_string()))?;
        Ok(Live { clock, store, gateway })
    }

    /// Offers requests, and gives `key` so many shards meanwhile.
    ///
    /// # Errors
    /// The first error of a request other than throttling: while a key is sharded there is none.
    /// Why the key could not be sharded.
    pub async fn shard(
        &self,
        (table, key): (&str, &str),
        shards: u16,
        pace: Pace,
        request: impl Fn(u32) -> (Operation, Json),
    ) -> Result<Sharded, Fault> {
        let [before, after] = pace.seconds.map(|seconds| seconds * pace.per_second);
        let mut loads = [Load::default(), Load::default(), Load::default()];
        let moves = Moves::default();
        let env: Arc<dyn Env> = Arc::new(self.clock.clone());
        let rules = Rules::default();
        let reshard = async {
            self.clock.sleep(Duration::from_secs(1) * before / pace.per_second).await;
            let prepared =
                Reshard::prepare(self.store.clone(), env, &rules, table, key.as_bytes(), shards, false);
            prepared.await?.run(ReshardOptions { exclusive: false, rate: DEFAULT_RATE }, &moves).await
        };
        let mut reshard = pin!(reshard.fuse());
        let mut keep = pin!(self.gateway.control().keep().fuse());
        let mut flying = FuturesUnordered::new();
        let mut report = None;
        let (mut sent, mut sent_after) = (0, 0);
        while sent_after < after || report.is_none() || !flying.is_empty() {
            let phase = match () {
                () if sent < before => 0,
                () if moves.has_cut_over() => 2,
                () => 1,
            };
            if sent_after < after {
                for nth in sent..sent + TOGETHER {
                    let (operation, body) = request(nth);
                    let answer = self.gateway.call(operation, Bytes::from(body.to_string()));
                    flying.push(answer.map(move |answer| (phase, nth, answer)));
                }
                sent += TOGETHER;
                sent_after += if phase == 2 { TOGETHER } else { 0 };
            }
            self.clock.advance(Duration::from_secs(1) * TOGETHER / pace.per_second);
            loop {
                let mut quiet = pin!(RealEnv.sleep(QUIET).fuse());
                futures::select_biased! {
                    (phase, nth, answer) = flying.select_next_some() => {
                        let load: Option<&mut Load> = loads.get_mut::<usize>(phase);
                        match (answer, load) {
                            (Ok(_), Some(load)) => load.accepted.push(nth),
                            (Err(error), Some(load)) if throttled(&error.code) => load.throttled += 1,
                            (Err(error), _) => return Err(error.into()),
                            (Ok(_), None) => {}
                        }
                    }
                    done = reshard => report = Some(done.map_err(|error| Fault(error.to_string()))?),
                    () = keep => {}
                    () = quiet => break,
                }
                if flying.is_empty() {
                    break;
                }
            }
        }
        let [before, cutover, after] = loads;
        let report = report.ok_or_else(|| Fault("the reshard has no result".to_owned()))?;
        Ok(Sharded { before, cutover, after, report })
    }

    /// A Query read to its end, page by page as an application does: one string attribute of every
    /// item.
    ///
    /// # Errors
    /// The error that the client would get.
    pub async fn pages(&self, query: &Json, attribute: &str) -> Result<Vec<String>, Fault> {
        let mut query = query.clone();
        let mut found = Vec::new();
        loop {
            let answer = self.gateway.call(Operation::Query, Bytes::from(query.to_string())).await?;
            let mut answer: Json =
                serde_json::from_slice(&answer).map_err(|error| Fault(error.to_string()))?;
            found.extend(strings(&answer, attribute));
            query["ExclusiveStartKey"] = answer["LastEvaluatedKey"].take();
            if query["ExclusiveStartKey"].is_null() {
                return Ok(found);
            }
        }
    }
}

async fn send(store: &dyn heatsink_store::Store, operation: Operation, body: &Json) -> Result<(), Error> {
    store.call(operation, Bytes::from(body.to_string())).await.map(drop)
}

/// Notices the cutover.
#[derive(Default)]
struct Moves(AtomicBool);

impl Moves {
    fn has_cut_over(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}

impl Progress for Moves {
    fn state(&self, state: State) {
        if matches!(state, State::Moving { phase: Phase::Move, .. } | State::Stable { .. }) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
}
