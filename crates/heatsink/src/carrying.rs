//! What a gateway does beside answering: it carries out reshards that were asked for, and asks for
//! those that hot keys need.
//!
//! Not here: how (`heatsink-workers`), which keys are hot (`heatsink-gateway`).

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::join;
use heatsink_control::Control;
use heatsink_env::Env;
use heatsink_gateway::Status;
use heatsink_heat::KeyLoad;
use heatsink_heat::policy::Partitions;
use heatsink_store::Store;
use heatsink_workers::{Acts, Automatic, HeatSource, Runner};

/// What one gateway sees.
struct Seen(Arc<Status>);

impl HeatSource for Seen {
    fn hottest(&self) -> Vec<KeyLoad> {
        self.0.hottest_keys()
    }

    fn partitions(&self, table: &str, index: Option<&str>) -> Option<Box<dyn Partitions + Send + Sync>> {
        Some(Box::new(self.0.placed(table, index)?))
    }
}

/// Runs until `stop` resolves. Reshards under way are given back then, for other gateways to take
/// at once. `delay`: how long an index of the store may lag behind its table. What is done about
/// heat shows in `acts`.
pub async fn carry(
    store: Arc<dyn Store>,
    env: Arc<dyn Env>,
    control: Control,
    status: Arc<Status>,
    acts: Arc<Acts>,
    delay: Duration,
    stop: impl Future<Output = ()> + Send,
) {
    let stop = stop.shared();
    let runner = Runner::new(Arc::clone(&store), Arc::clone(&env), control.clone()).with_index_delay(delay);
    let automatic = Automatic::new(store, env, control, Arc::new(Seen(status)), acts);
    join(runner.run(stop.clone()), automatic.run(stop)).await;
}
