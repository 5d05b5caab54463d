//! What is done for an intent, and what comes of it: a key is moved, or a value of an index is
//! rewritten.
//!
//! Not here: whose the intent is meanwhile, and what is written of it (`carry`).

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::future::{Either, select};
use heatsink_control::reshard_intent::{EndedAs, ReshardIntent};
use heatsink_dynamo::{Code, Error};
use heatsink_layout::{in_slots, shards};

use super::Runner;
use super::shown::Shown;
use super::tap::Tap;
use crate::error::WorkerError;
use crate::key::prepare::ReshardOptions;
use crate::key::report::ReshardReport;
use crate::key::reshard::Reshard;
use crate::key::steps::NewestStep;
use crate::key::table_context::TableContext;
use crate::value::{ValueAsked, ValueOptions, ValueReshard};

/// The pause between two pages of the count of a reshard's items, which is for people.
const COUNTING: Duration = Duration::from_millis(200);

/// How many items of a value are rewritten at once. Each is one transaction, of which a claim lets
/// eleven go at once.
const AT_ONCE: usize = 16;

/// What came of a run.
pub(super) enum Came {
    Ended(EndedAs, String),
    /// It goes on later, here or elsewhere.
    Later(Option<String>),
}

impl Runner {
    /// Does what an intent asks for. `hindered`: what hindered it before.
    pub(super) async fn work(
        &self,
        intent: &ReshardIntent,
        hindered: Option<&String>,
        tap: &Arc<Tap>,
        shown: &Arc<Shown>,
    ) -> Came {
        let came = self.reshard(intent, tap, shown).await;
        let later = |text: &str| Came::Later(Some(text.to_owned()));
        match came {
            Ok(None) => Came::Later(None),
            Ok(Some(report)) => {
                // By gateways before this one, too.
                let moved = intent.progress.moved + report.moved;
                let to = format!("{}{}", shards(report.to), in_slots(&report.slots));
                Came::Ended(
                    EndedAs::Moved,
                    match (&intent.index, &report.step) {
                        (None, Some(step)) => format!("the key has {to} {step}"),
                        (None, None) => format!("the key has {to}, and {moved} items were moved"),
                        (Some(_), _) => {
                            format!("the value has {to}, and {moved} items were rewritten")
                        }
                    },
                )
            }
            Err(WorkerError::Cancelled(text)) => Came::Ended(EndedAs::Cancelled, text),
            Err(WorkerError::Stopped(text)) => Came::Ended(EndedAs::Stopped, text),
            Err(WorkerError::Busy(text)) => later(&text),
            // Nobody is left alone on the way: in some phases writes wait.
            Err(WorkerError::Store(error)) if shown.is_moving() => later(&again(&error)),
            Err(error) if shown.is_moving() => later(&error.to_string()),
            // The same again is no outage: items of the registry cannot be read.
            Err(WorkerError::Store(error))
                if error.retryable()
                    && (error.code != Code::InternalServerError || hindered != Some(&again(&error))) =>
            {
                later(&again(&error))
            }
            Err(error) => Came::Ended(EndedAs::Stopped, error.to_string()),
        }
    }

    /// Runs the reshard; `None` if it may not begin now.
    async fn reshard(
        &self,
        intent: &ReshardIntent,
        tap: &Arc<Tap>,
        shown: &Arc<Shown>,
    ) -> Result<Option<ReshardReport>, WorkerError> {
        let gone = |what: &str| {
            shown.set_moving(false);
            WorkerError::Stopped(format!(
                "Table {} {what}, so there is nothing to move. `heatsink reshard cancel` removes this intent",
                intent.table
            ))
        };
        match self.registry.describe(&intent.table).await? {
            None => return Err(gone("does not exist any more")),
            Some(described) if described.schema.id != intent.table_id => {
                return Err(gone("was deleted and created again"));
            }
            Some(_) => {}
        }
        match intent.index {
            None => self.key(intent, tap, shown).await,
            Some(ref index) => self.value(intent, index, tap, shown).await,
        }
    }

    /// Rewrites the items of a value of an index.
    async fn value(
        &self,
        intent: &ReshardIntent,
        index: &str,
        tap: &Arc<Tap>,
        shown: &Arc<Shown>,
    ) -> Result<Option<ReshardReport>, WorkerError> {
        let store: Arc<Tap> = Arc::clone(tap);
        let (env, rules) = (Arc::clone(self.registry.env()), self.control.rules());
        let (value, shards) = (intent.key_text(), intent.request.layout.shards);
        let asked = ValueAsked { table: &intent.table, index, value: &value, shards };
        let reshard = ValueReshard::prepare(store, env, &rules, asked).await?.within(&self.control);
        if intent.paused && !intent.cancelled && !reshard.is_begun() {
            shown.set_moving(false);
            shown.set_phase(None);
            return Ok(None);
        }
        reshard.alone()?;
        let counting = reshard.counting(COUNTING);
        let options = ValueOptions {
            concurrency: AT_ONCE,
            exclusive: false,
            delay: self.index_delay,
            rate: intent.request.rate,
        };
        let running = reshard.run_steered(options, &shown.steering, &**shown);
        beside_count(running, counting, |items| shown.set_to_move(items)).await.map(Some)
    }

    /// Moves a key.
    async fn key(
        &self,
        intent: &ReshardIntent,
        tap: &Arc<Tap>,
        shown: &Arc<Shown>,
    ) -> Result<Option<ReshardReport>, WorkerError> {
        let store: Arc<Tap> = Arc::clone(tap);
        let (env, rules) = (Arc::clone(self.registry.env()), self.control.rules());
        let confirmed = intent.request.streams_confirmed;
        let context = TableContext::read(store, env, &rules, &intent.table, confirmed).await?;
        let record = context.record(&intent.key);
        let moves = record.and_then(|record| record.moves.as_ref());
        let unsettled = moves.is_some() || record.is_some_and(|record| !record.settled);
        shown.set_moving(unsettled);
        shown.set_phase(moves.map(|moves| moves.phase));
        let reshard: Reshard = context.reshard(&intent.key, &intent.request.layout)?;
        let reshard = reshard.within(&self.control).sharing(&self.shares);
        if reshard.is_done() {
            let shards = intent.request.layout.shards;
            let (table, key) = (intent.table.clone(), intent.key_text());
            let step = record.and_then(|record| NewestStep::of(&record.layout));
            let slots = record.map_or(&[][..], |record| record.layout.slots()).to_vec();
            return Ok(Some(ReshardReport { table, key, from: shards, to: shards, slots, moved: 0, step }));
        }
        if moves.is_none() && intent.paused && !intent.cancelled {
            shown.set_moving(false);
            return Ok(None);
        }
        // Beside older builds two that have begun would wait for each other for ever.
        match self.together.load(Ordering::Relaxed) || unsettled {
            true => context.beside_keys()?,
            false => context.alone(&intent.key)?,
        }
        let counting = reshard.counting(COUNTING);
        let options = ReshardOptions { exclusive: false, rate: intent.request.rate };
        let running = reshard.run_steered(options, &shown.steering, &**shown);
        beside_count(running, counting, |items| shown.set_to_move(items)).await.map(Some)
    }
}

/// Runs a reshard, and counts its items beside it. What was counted is told if that ends first.
async fn beside_count<T, E>(
    running: impl Future<Output = T>,
    counting: impl Future<Output = Result<u64, E>>,
    told: impl FnOnce(u64),
) -> T {
    match select(pin!(running), pin!(counting)).await {
        Either::Left((ended, _)) => ended,
        Either::Right((counted, running)) => {
            if let Ok(items) = counted {
                told(items);
            }
            running.await
        }
    }
}

fn again(error: &Error) -> String {
    format!("The store failed: {error}")
}
