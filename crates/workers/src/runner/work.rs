//! What is done for an intent: a key is moved, or a value of an index is rewritten.
//!
//! Not here: whose the intent is meanwhile (`held`), what comes of it (`came`).

use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use futures::future::{Either, select};
use heatsink_control::reshard_intent::ReshardIntent;
use heatsink_store::Store;

use super::Runner;
use super::contexts::Read;
use super::shown::Shown;
use super::tap::Tap;
use crate::error::WorkerError;
use crate::key::prepare::ReshardOptions;
use crate::key::report::ReshardReport;
use crate::key::reshard::Reshard;
use crate::key::steps::NewestStep;
use crate::value::{ValueAsked, ValueOptions, ValueReshard};

/// The pause between two pages of the count of a reshard's items, which is for people.
const COUNTING: Duration = Duration::from_millis(200);

/// How many items of a value are rewritten at once. Each is one transaction, of which a claim lets
/// eleven go at once.
const AT_ONCE: usize = 16;

impl Runner {
    /// Does what an intent asks for; `None` if it may not begin now.
    pub(super) async fn work(
        &self,
        intent: &ReshardIntent,
        tap: &Arc<Tap>,
        shown: &Arc<Shown>,
    ) -> Result<Option<ReshardReport>, WorkerError> {
        match intent.index {
            None => self.key(intent, tap, shown).await,
            Some(ref index) => self.value(intent, index, tap, shown).await,
        }
    }

    /// Why nothing is done for an intent whose table is another one, or none.
    fn gone(intent: &ReshardIntent, shown: &Shown, what: &str) -> WorkerError {
        shown.set_moving(false);
        WorkerError::Stopped(format!(
            "Table {} {what}, so there is nothing to move. `heatsink reshard cancel` removes this intent",
            intent.table
        ))
    }

    /// Rewrites the items of a value of an index.
    async fn value(
        &self,
        intent: &ReshardIntent,
        index: &str,
        tap: &Arc<Tap>,
        shown: &Arc<Shown>,
    ) -> Result<Option<ReshardReport>, WorkerError> {
        match self.registry.describe(&intent.table).await? {
            None => return Err(Self::gone(intent, shown, "does not exist any more")),
            Some(described) if described.schema.id != intent.table_id => {
                return Err(Self::gone(intent, shown, "was deleted and created again"));
            }
            Some(_) => {}
        }
        let store: Arc<Tap> = Arc::clone(tap);
        let (env, rules) = (Arc::clone(self.registry.env()), self.host.rules());
        let (value, shards) = (intent.key_text(), intent.request.layout.shards);
        let asked = ValueAsked { table: &intent.table, index, value: &value, shards };
        let reshard = self.host.value(ValueReshard::prepare(store, env, &rules, asked).await?);
        if intent.paused && !intent.cancelled && !reshard.is_begun() {
            shown.set_moving(false);
            shown.set_phase(None);
            return Ok(None);
        }
        reshard.may_go(self.together.load(Ordering::Relaxed) || reshard.is_begun()).await?;
        let counting = reshard.counting(COUNTING);
        let options = ValueOptions {
            concurrency: AT_ONCE,
            exclusive: self.host.is_alone(),
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
        let store: Arc<dyn Store> = Arc::<Tap>::clone(tap);
        let (env, rules) = (self.registry.env(), self.host.rules());
        let writes = self.host.key_writes(&intent.table_id);
        let context = match self.contexts.read(intent, (&store, env), &rules, &writes).await? {
            Read::There(context) => context,
            Read::Gone(what) => return Err(Self::gone(intent, shown, what)),
        };
        let record = context.record(&intent.key);
        let moves = record.and_then(|record| record.moves.as_ref());
        let unsettled = moves.is_some() || record.is_some_and(|record| !record.settled);
        shown.set_moving(unsettled);
        shown.set_phase(moves.map(|moves| moves.phase));
        let reshard: Reshard = context.reshard(&intent.key, &intent.request.layout)?;
        let registry = rules.fence().registry_in(store, Arc::clone(env));
        let reshard = Reshard { registry, ..reshard };
        let reshard = self.host.key(reshard).sharing(&self.shares);
        if reshard.is_done() {
            let shards = intent.request.layout.shards;
            let (table, key) = (intent.table.clone(), intent.key_text());
            let step = record.and_then(|record| NewestStep::of(&record.layout));
            let slots = record.map_or(&[][..], |record| record.layout.slots()).to_vec();
            let split_at = record.and_then(|record| record.layout.split_points()).cloned();
            return Ok(Some(ReshardReport {
                table,
                key,
                from: shards,
                to: shards,
                slots,
                split_at,
                moved: 0,
                step,
            }));
        }
        if moves.is_none() && intent.paused && !intent.cancelled {
            shown.set_moving(false);
            return Ok(None);
        }
        // Beside older builds two that have begun would wait for each other for ever.
        if !self.together.load(Ordering::Relaxed) && !unsettled {
            context.alone(&intent.key)?;
        }
        let counting = reshard.counting(COUNTING);
        let options = ReshardOptions { exclusive: self.host.is_alone(), rate: intent.request.rate };
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
