//! What a gateway does beside answering: it carries out reshards that were asked for, and asks for
//! those that hot keys need.
//!
//! Not here: how (`runner`, `automatic`), which keys are hot (`heatsink-gateway`).

use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::join;
use heatsink_control::Control;
use heatsink_env::Env;
use heatsink_heat::HeatSource;
use heatsink_store::Store;

use crate::automatic::{Acts, Automatic};
use crate::runner::Runner;

/// Runs until `stop` resolves. Reshards under way are given back then, for other gateways to take
/// at once. `heat`: which keys are hot at this gateway. `delay`: how long an index of the store may
/// lag behind its table. What is done about heat shows in `acts`, and is told where they tell it.
pub async fn carry(
    store: Arc<dyn Store>,
    env: Arc<dyn Env>,
    control: Control,
    heat: Arc<dyn HeatSource>,
    acts: Arc<Acts>,
    delay: Duration,
    stop: impl Future<Output = ()> + Send,
) {
    let stop = stop.shared();
    let runner = Runner::new(Arc::clone(&store), Arc::clone(&env), control.clone())
        .with_index_delay(delay)
        .telling(acts.events().clone());
    let automatic = Automatic::new(store, env, control, heat, acts);
    join(runner.run(stop.clone()), automatic.run(stop)).await;
}
