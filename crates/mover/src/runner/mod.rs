//! Carries out in a gateway what operators ask for: looks at the intents on record, takes those that nobody carries out, and runs them.
//!
//! Any gateway can take any intent, and go on where another one died. A gateway that only seems dead does no harm: of two that carry out the same
//! reshard one can write nothing any more.
//!
//! Not here: what an intent is (`heatsink_control::reshard_intent`), what a reshard does ([`Reshard`](crate::Reshard); of a value of an index,
//! a [`ValueCarrier`]).

mod carry;
mod choice;
mod pace;
mod shown;
mod tap;
mod values;
mod work;

use std::collections::HashSet;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use futures::FutureExt;
use futures::future::{BoxFuture, Either, select};
use futures::stream::{FuturesUnordered, StreamExt};
use heatsink_control::Control;
use heatsink_control::registry::Registry;
use heatsink_control::reshard_intent::{Intents, ReshardIntent};
use heatsink_dynamo::Error;
use heatsink_env::Env;
use heatsink_store::Store;

use choice::{Running, Watch, place};
use shown::Shown;
pub use values::{ValueCarrier, ValueJob};

pub use pace::Pace;

/// Carries out the intents of a registry, as one gateway.
pub struct Runner {
    store: Arc<dyn Store>,
    control: Control,
    registry: Registry,
    values: Arc<dyn ValueCarrier>,
    pace: Pace,
    stopping: AtomicBool,
}

impl Runner {
    /// A runner of the gateway with that control, over that gateway's store. `values`: what carries out intents for values of indexes.
    pub fn new(
        store: Arc<dyn Store>,
        env: Arc<dyn Env>,
        control: Control,
        values: Arc<dyn ValueCarrier>,
    ) -> Self {
        let registry = Registry::new(Arc::clone(&store), env, &control.rules().fence().registry)
            .expecting(&control.rules().fence().expectation);
        Runner { store, control, registry, values, pace: Pace::DEFAULT, stopping: AtomicBool::new(false) }
    }

    /// The same at another pace.
    #[must_use]
    pub fn at(self, pace: Pace) -> Self {
        Runner { pace, ..self }
    }

    /// Runs until `stop` resolves. Then it stops between two calls, and gives what it carried out back, for other gateways to take at once. It may be
    /// dropped instead: they take it over after some seconds.
    pub async fn run(&self, stop: impl Future<Output = ()> + Send) {
        self.run_until(stop.boxed()).await;
    }

    fn run_until<'a>(&'a self, mut stop: BoxFuture<'a, ()>) -> BoxFuture<'a, ()> {
        async move {
            let mut runs: FuturesUnordered<BoxFuture<'_, ()>> = FuturesUnordered::new();
            let mut carried: Vec<Arc<Shown>> = Vec::new();
            let mut watch = Watch::default();
            let mut warned = HashSet::new();
            let mut looking = Box::pin(self.look());
            loop {
                // Nothing of an empty set of runs is waited for.
                let ended = async {
                    match runs.next().await {
                        Some(()) => {}
                        None => futures::future::pending().await,
                    }
                };
                match select(&mut stop, select(&mut looking, pin!(ended))).await {
                    Either::Left(_) => break,
                    Either::Right((Either::Right(_), _)) => carried.retain(|one| !one.is_over()),
                    Either::Right((Either::Left((listed, _)), _)) => {
                        looking = Box::pin(self.look());
                        let Some(intents) = self.readable(listed, &mut warned) else { continue };
                        let running: Running =
                            carried.iter().map(|one| (one.place.clone(), one.is_paused())).collect();
                        let now = self.registry.env().now();
                        let chosen = watch.listed(now, &intents, &running, &self.pace);
                        for intent in chosen.take {
                            let shown = Arc::new(Shown::new(place(&intent)));
                            carried.push(Arc::clone(&shown));
                            runs.push(Box::pin(self.carry(intent, shown)));
                        }
                        for intent in chosen.remove {
                            runs.push(Box::pin(self.remove(intent)));
                        }
                    }
                }
            }
            self.stopping.store(true, Ordering::Relaxed);
            while runs.next().await.is_some() {}
        }
        .boxed()
    }

    /// What is on record a little later; nothing while this gateway may not send anything.
    async fn look(&self) -> Option<Result<Intents, Error>> {
        self.registry.env().sleep(self.pace.look).await;
        match self.control.has_lease() {
            true => Some(self.registry.intents(false).await),
            false => None,
        }
    }

    /// The intents that this version knows. Of each other one it warns once.
    fn readable(
        &self,
        listed: Option<Result<Intents, Error>>,
        warned: &mut HashSet<String>,
    ) -> Option<Vec<ReshardIntent>> {
        match listed? {
            Ok(intents) => {
                for error in intents.unknown {
                    let text = error.to_string();
                    if warned.insert(text.clone()) {
                        tracing::warn!("{text}");
                    }
                }
                Some(intents.known)
            }
            // `Control::keep` warns of a registry that cannot be reached.
            Err(error) => {
                tracing::debug!("the intents of reshards cannot be read: {error}");
                None
            }
        }
    }

    async fn remove(&self, intent: ReshardIntent) {
        if let Err(error) = self.registry.remove_intent(&intent).await {
            tracing::debug!("an intent that has ended could not be removed: {error}");
        }
    }
}
