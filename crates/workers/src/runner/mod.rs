//! Carries out in a gateway what operators ask for: looks at the intents on record, takes those
//! that nobody carries out, and runs them. A command that carries one out itself ([`Here`]) does it
//! in the same way.
//!
//! Any gateway can take any intent, and go on where another one, or a command, died. One that only
//! seems dead does no harm: of two that carry out the same reshard one can write nothing any more.
//!
//! Not here: what an intent is (`heatsink_control::reshard_intent`), what a reshard does
//! ([`Reshard`](crate::Reshard); of a value of an index, [`ValueReshard`](crate::ValueReshard)).

mod came;
mod carry;
mod choice;
mod contexts;
mod held;
mod here;
mod host;
mod pace;
mod shown;
mod tap;
mod work;

use std::collections::HashSet;
use std::pin::pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, Either, select};
use futures::stream::{FuturesUnordered, StreamExt};
use heatsink_control::Control;
use heatsink_control::registry::Registry;
use heatsink_control::reshard_intent::{Intents, MAX_INTENTS, ReshardIntent};
use heatsink_dynamo::Error;
use heatsink_env::Env;
use heatsink_store::Store;

use choice::{Look, Running, Watch, any_table_has_several, place};
use contexts::Contexts;
use host::Host;
use shown::Shown;

use crate::events::Events;
use crate::key::shares::Shares;
use crate::value::INDEX_DELAY;

pub use here::Here;
pub use pace::Pace;

/// Carries out the intents of a registry, as one gateway.
pub struct Runner {
    store: Arc<dyn Store>,
    host: Host,
    registry: Registry,
    index_delay: Duration,
    pace: Pace,
    stopping: AtomicBool,
    /// How many intents the last look found.
    found: AtomicUsize,
    /// Whether keys of a table move beside each other, as the last look found.
    together: AtomicBool,
    /// How many intents are carried out here.
    carried: AtomicUsize,
    shares: Arc<Shares>,
    contexts: Contexts,
    events: Events,
}

/// Looks become rarer with the intents that there are: for each so many, one pause more between
/// two. At rest they cost a few percent of a core at most.
const SELDOM: usize = 400;

/// So many intents that cannot be read are named in the log.
const NAMED: usize = 20;

impl Runner {
    /// A runner of the gateway with that control, over that gateway's store.
    pub fn new(store: Arc<dyn Store>, env: Arc<dyn Env>, control: Control) -> Self {
        Runner::of(store, env, Host::Gateway(control))
    }

    fn of(store: Arc<dyn Store>, env: Arc<dyn Env>, host: Host) -> Self {
        let registry = host.rules().fence().registry_in(Arc::clone(&store), env);
        Runner {
            store,
            host,
            registry,
            index_delay: INDEX_DELAY,
            pace: Pace::DEFAULT,
            stopping: AtomicBool::new(false),
            found: AtomicUsize::new(0),
            together: AtomicBool::new(true),
            carried: AtomicUsize::new(0),
            shares: Arc::default(),
            contexts: Contexts::default(),
            events: Events::default(),
        }
    }

    /// The same where indexes lag behind their tables by that much at most, instead of by
    /// [`INDEX_DELAY`].
    #[must_use]
    pub fn with_index_delay(self, index_delay: Duration) -> Self {
        Runner { index_delay, ..self }
    }

    /// The same, telling how each reshard ends.
    #[must_use]
    pub fn telling(self, events: Events) -> Self {
        Runner { events, ..self }
    }

    /// The same at another pace.
    #[must_use]
    pub fn at(self, pace: Pace) -> Self {
        Runner { pace, ..self }
    }

    /// Runs until `stop` resolves. Then it stops between two calls, and gives what it carried out
    /// back, for other gateways to take at once. It may be dropped instead: they take it over after
    /// some seconds.
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
                    Either::Right((Either::Right(_), _)) => {}
                    Either::Right((Either::Left((listed, _)), _)) => {
                        looking = Box::pin(self.look());
                        let Some(intents) = self.readable(listed, &mut warned) else { continue };
                        carried.retain(|one| !one.is_over());
                        let running: Running =
                            carried.iter().map(|one| (one.place.clone(), one.waits())).collect();
                        let chosen = watch.listed(&Look {
                            now: self.registry.env().now(),
                            list: &intents,
                            running: &running,
                            pace: &self.pace,
                            together: self.together.load(Ordering::Relaxed),
                        });
                        for of_table in chosen.take {
                            let shown = |intent: ReshardIntent| {
                                let shown = Arc::new(Shown::new(place(&intent)));
                                (intent, shown)
                            };
                            let of_table: Vec<_> = of_table.into_iter().map(shown).collect();
                            carried.extend(of_table.iter().map(|(_, shown)| Arc::clone(shown)));
                            runs.push(Box::pin(self.carry_all(of_table)));
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
        let pauses = 1 + u32::try_from(self.found.load(Ordering::Relaxed) / SELDOM).unwrap_or(u32::MAX - 1);
        self.registry.env().sleep(self.pace.look.saturating_mul(pauses)).await;
        if !self.host.may_send() {
            return None;
        }
        let listed = self.registry.intents(false).await;
        if let Ok(intents) = &listed {
            self.found.store(intents.len(), Ordering::Relaxed);
            self.look_at_builds(&intents.known).await;
        }
        Some(listed)
    }

    /// Notes whether every gateway knows that keys of a table move together, where that matters.
    async fn look_at_builds(&self, intents: &[ReshardIntent]) {
        let Host::Gateway(control) = &self.host else { return };
        if !any_table_has_several(intents) {
            return;
        }
        match control.changer().gateways_without(|one| one.knows_together).await {
            Ok(older) => self.together.store(older.is_empty(), Ordering::Relaxed),
            Err(error) => tracing::debug!("the gateways cannot be listed: {error}"),
        }
    }

    /// The intents that this version knows. Of each other one it warns once, up to a number.
    fn readable(
        &self,
        listed: Option<Result<Intents, Error>>,
        warned: &mut HashSet<String>,
    ) -> Option<Vec<ReshardIntent>> {
        match listed? {
            Ok(intents) => {
                let mut warn = |text: String| {
                    if warned.len() < NAMED && !warned.contains(&text) {
                        tracing::warn!("{text}");
                        warned.insert(text);
                    }
                };
                if intents.next.is_some() {
                    warn(format!(
                        "more than {MAX_INTENTS} reshards are asked for: the others are not looked at until some of these are gone"
                    ));
                }
                if intents.unknown.len() > NAMED {
                    warn(format!(
                        "more than {NAMED} intents of reshards cannot be read; `heatsink reshard status` lists them"
                    ));
                }
                intents.unknown.iter().for_each(|error| warn(error.to_string()));
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
