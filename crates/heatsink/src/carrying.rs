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
use heatsink_store::Store;
use heatsink_workers::{Automatic, HeatSource, Runner};

/// What one gateway sees.
struct Seen(Arc<Status>);

impl HeatSource for Seen {
    fn hottest(&self) -> Vec<KeyLoad> {
        self.0.hottest_keys()
    }

    fn partitions(&self, table: &str) -> Option<u32> {
        self.0.partition_count(table)
    }
}

/// Runs until `stop` resolves. Reshards under way are given back then, for other gateways to take
/// at once. `delay`: how long an index of the store may lag behind its table.
pub async fn carry(
    store: Arc<dyn Store>,
    env: Arc<dyn Env>,
    control: Control,
    status: Arc<Status>,
    delay: Duration,
    stop: impl Future<Output = ()> + Send,
) {
    let stop = stop.shared();
    let runner = Runner::new(Arc::clone(&store), Arc::clone(&env), control.clone()).with_index_delay(delay);
    let automatic = Automatic::new(store, env, control, Arc::new(Seen(status)));
    join(runner.run(stop.clone()), automatic.run(stop)).await;
}
