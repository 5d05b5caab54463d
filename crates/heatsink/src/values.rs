//! Values of indexes for a [`Runner`]: what the crate of adoptions does, for intents that the crate of moving keys carries out.
//!
//! Not here: how a value is resharded (`heatsink_adopt::ValueReshard`), which intents a gateway takes (`heatsink_mover::Runner`).

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use heatsink_adopt::{AdoptError, INDEX_DELAY, ValueAsked, ValueOptions, ValueReshard};
use heatsink_control::Control;
use heatsink_env::Env;
use heatsink_mover::{COUNTING, Report, ReshardError, Runner, ValueCarrier, ValueJob, beside_count};
use heatsink_store::Store;

/// How many items of a value are rewritten at once. Each is one transaction, of which a claim lets eleven go at once.
const AT_ONCE: usize = 16;

/// What carries out reshards that `heatsink reshard` asks for: of keys, and of values of indexes. For the gateway with that control, over that gateway's
/// store.
pub fn runner(store: Arc<dyn Store>, env: Arc<dyn Env>, control: Control) -> Runner {
    Runner::new(store, env, control, Arc::new(IndexValues { delay: INDEX_DELAY }))
}

/// Carries out reshards of values of indexes.
#[derive(Clone, Copy, Debug)]
pub struct IndexValues {
    /// How long an index may lag behind its table.
    pub delay: Duration,
}

impl ValueCarrier for IndexValues {
    fn carry_out<'a>(&'a self, job: ValueJob<'a>) -> BoxFuture<'a, Result<Option<Report>, ReshardError>> {
        async move {
            let ValueJob { intent, store, control, steering, progress } = job;
            let (value, shards) = (intent.key_text(), intent.request.layout.shards);
            let index = intent.index.as_deref().unwrap_or_default();
            let asked = ValueAsked { table: &intent.table, index, value: &value, shards };
            let env = Arc::clone(control.registry().env());
            let reshard = ValueReshard::prepare(store, env, control.rules(), asked).await.map_err(told)?;
            let reshard = reshard.within(control);
            if intent.paused && !intent.cancelled && !reshard.is_begun() {
                progress.phase(None);
                return Ok(None);
            }
            reshard.alone().map_err(told)?;
            let counting = reshard.counting(COUNTING);
            let rate = intent.request.rate;
            let options = ValueOptions { concurrency: AT_ONCE, exclusive: false, delay: self.delay, rate };
            let running = reshard.run_steered(options, steering, progress);
            let report = beside_count(running, counting, |items| progress.to_rewrite(items)).await;
            let report = report.map_err(told)?;
            Ok(Some(Report {
                table: report.table,
                key: value,
                from: report.from,
                to: report.to,
                moved: report.rewritten,
                step: None,
            }))
        }
        .boxed()
    }
}

fn told(error: AdoptError) -> ReshardError {
    match error {
        AdoptError::Usage(why) => ReshardError::Usage(why),
        AdoptError::Failed(why) => ReshardError::Stopped(why),
        AdoptError::Busy(why) => ReshardError::Busy(why),
        AdoptError::Cancelled(why) => ReshardError::Cancelled(why),
        AdoptError::Store(error) => ReshardError::Store(error),
    }
}
