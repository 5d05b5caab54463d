//! Gives hot keys shards without being asked: looks each second at what the gateways see, and asks
//! for what the policy decides.
//!
//! Every gateway with an `[[automatic]]` section tells the others which keys are hot at it, so that
//! a key that is warm at ten gateways is found. The one with the lowest id decides. Two that decide
//! at once do no harm: what they ask for is one intent, and the second finds the first one's.
//!
//! Not here: counting ([`HeatSource`] is told), what a hot key needs and when to act
//! (`heatsink_heat`), carrying it out ([`Runner`](crate::Runner)).

mod reports;

use std::collections::{BTreeSet, HashMap};
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, Either, select};
use heatsink_control::registry::Registry;
use heatsink_control::reshard_intent::{Request, key_text};
use heatsink_control::{Control, Mode};
use heatsink_env::{Env, MonotonicInstant};
use heatsink_heat::KeyLoad;
use heatsink_heat::policy::{Decision, Policy, Settings};
use heatsink_store::Store;
use serde_json::json;

use crate::error::WorkerError;
use crate::key::prepare::DEFAULT_RATE;
use crate::key::table_context::TableContext;
use reports::Reports;

/// How often it looks.
const LOOK: Duration = Duration::from_secs(1);

/// For so long what is known of a table is used again, also that its keys cannot be resharded.
const KNOWN_FOR: Duration = Duration::from_secs(10);

/// The most keys with shards that are kept in mind while nobody asks for them.
const WATCHED: usize = 1_000;

/// What tells which keys are hot at this gateway.
pub trait HeatSource: Send + Sync {
    /// The keys with the highest loads of the last full second. Indexes' keys are not among them.
    fn hottest(&self) -> Vec<KeyLoad>;

    /// How many partitions the table has, where the store tells.
    fn partitions(&self, _table: &str) -> Option<u32> {
        None
    }
}

/// Gives hot keys shards, as one gateway.
pub struct Automatic {
    store: Arc<dyn Store>,
    control: Control,
    registry: Registry,
    source: Arc<dyn HeatSource>,
    apart: Duration,
}

/// What is known of a table for a while.
struct Known {
    since: MonotonicInstant,
    /// `None`: its keys cannot be resharded.
    context: Option<TableContext>,
    partitions: Option<u32>,
}

/// What it remembers from look to look.
struct Memory {
    policy: Policy<Vec<u8>>,
    tables: HashMap<String, Known>,
    /// Keys that had shards when they were last seen: a key that nobody asks for any more is judged
    /// too.
    watched: BTreeSet<(String, Vec<u8>)>,
    reports: Reports,
    has_registry: bool,
}

impl Memory {
    fn watch(&mut self, table: &str, key: &[u8]) {
        if self.watched.len() < WATCHED {
            self.watched.insert((table.to_owned(), key.to_vec()));
        }
    }
}

impl Automatic {
    /// For the gateway with that control, over that gateway's store.
    pub fn new(
        store: Arc<dyn Store>,
        env: Arc<dyn Env>,
        control: Control,
        source: Arc<dyn HeatSource>,
    ) -> Self {
        let registry = control.rules().fence().registry_in(Arc::clone(&store), env);
        Automatic { store, control, registry, source, apart: Settings::DEFAULT.apart }
    }

    /// The same with another least time between two changes of one table. For tests.
    #[must_use]
    pub fn changing_each(self, apart: Duration) -> Self {
        Automatic { apart, ..self }
    }

    /// Runs until `stop` resolves. Without an `[[automatic]]` section that acts or proposes it does
    /// nothing, and writes nothing.
    pub async fn run(&self, stop: impl Future<Output = ()> + Send) {
        self.run_until(stop.boxed()).await;
    }

    fn run_until<'a>(&'a self, mut stop: BoxFuture<'a, ()>) -> BoxFuture<'a, ()> {
        async move {
            if !self.control.rules().acts_on_heat() {
                return stop.await;
            }
            let reports = Reports::of(self.control.identity().0);
            let has_registry = !self.control.rules().reshards_by_itself();
            let mut memory = Memory {
                policy: Policy::default(),
                tables: HashMap::new(),
                watched: BTreeSet::new(),
                reports,
                has_registry,
            };
            loop {
                match select(&mut stop, pin!(self.registry.env().sleep(LOOK))).await {
                    Either::Left(_) => break,
                    Either::Right(_) if !self.control.has_lease() => {}
                    Either::Right(_) => match select(&mut stop, pin!(self.look(&mut memory))).await {
                        Either::Left(_) => break,
                        Either::Right(_) => {}
                    },
                }
            }
            memory.reports.leave(&self.registry).await;
        }
        .boxed()
    }

    async fn look(&self, memory: &mut Memory) {
        // By it the gateways find each other, before the first key is hot.
        if !memory.has_registry {
            match self.control.changer().make_registry().await {
                Ok(()) => memory.has_registry = true,
                Err(error) => return tracing::debug!("the registry cannot be made: {error}"),
            }
        }
        let mut own = self.source.hottest();
        own.retain(|one| self.control.rules().automatic(&one.table, &one.key).is_some());
        let Some(mut seen) = memory.reports.exchange(&self.registry, own).await else { return };
        let cold = memory
            .watched
            .iter()
            .filter(|(table, key)| !seen.iter().any(|one| one.table == *table && one.key == *key));
        let cold: Vec<KeyLoad> = cold
            .map(|(table, key)| KeyLoad { table: table.clone(), key: key.clone(), ..KeyLoad::default() })
            .collect();
        seen.extend(cold);
        for heat in seen {
            let Some(automatic) = self.control.rules().automatic(&heat.table, &heat.key) else { continue };
            if automatic.mode == Mode::Observe {
                continue;
            }
            let settings = Settings {
                fewest: automatic.fewest,
                most: automatic.most,
                patience: automatic.patience,
                cold_for: automatic.cold,
                apart: self.apart,
                ..Settings::DEFAULT
            };
            let settings = match automatic.mode {
                Mode::Propose => settings.proposing(),
                _ => settings,
            };
            let now = self.registry.env().now();
            let Some(decision) = self.decide(memory, now, &heat, &settings).await else { continue };
            self.act(memory, &decision, automatic.mode).await;
        }
    }

    async fn decide(
        &self,
        memory: &mut Memory,
        now: MonotonicInstant,
        heat: &KeyLoad,
        settings: &Settings,
    ) -> Option<Decision<Vec<u8>>> {
        let old = |known: &Known| now.since(known.since) >= KNOWN_FOR;
        if memory.tables.get(&heat.table).is_none_or(old) {
            memory.tables.retain(|_, known| !old(known));
            let known = self.learn(now, &heat.table).await;
            memory.tables.insert(heat.table.clone(), known);
        }
        let known = memory.tables.get(&heat.table)?;
        let context = known.context.as_ref().filter(|context| context.can_spread(&heat.key))?;
        let shards = match context.record(&heat.key) {
            Some(record) if record.moves.is_some() => return None,
            Some(record) => record.layout.shards,
            None => context.without_record(&heat.key).shards,
        };
        let mut seen = heat.observed(shards, context.has_local_index());
        seen.partitions = known.partitions;
        if shards > 1 {
            memory.watch(&heat.table, &heat.key);
        }
        memory.policy.see(now, &heat.table, &heat.key, &seen, settings)
    }

    async fn learn(&self, now: MonotonicInstant, table: &str) -> Known {
        let (store, env, rules) =
            (Arc::clone(&self.store), Arc::clone(self.registry.env()), self.control.rules());
        let context = match TableContext::read(store, env, rules, table, false).await {
            Ok(context) => Some(context),
            Err(error) => {
                tracing::debug!(table, "hot keys of this table are left as they are: {error}");
                None
            }
        };
        Known { since: now, context, partitions: self.source.partitions(table) }
    }

    async fn act(&self, memory: &mut Memory, decision: &Decision<Vec<u8>>, mode: Mode) {
        let (table, shards) = (&decision.table, decision.shards);
        let Some(context) = memory.tables.remove(table).and_then(|known| known.context) else { return };
        let key = key_text(&decision.key, context.key_type());
        let evidence = json!({ "seen": decision.seen, "diagnosis": decision.diagnosis }).to_string();
        let sentence = &decision.diagnosis.sentence;
        if mode == Mode::Propose {
            tracing::info!(
                table,
                key,
                shards,
                evidence,
                "a key should have other shards (`heatsink reshard start`): {sentence}"
            );
            return;
        }
        match self.ask(&context, decision).await {
            Ok(true) => {
                match shards {
                    1 => _ = memory.watched.remove(&(table.clone(), decision.key.clone())),
                    _ => memory.watch(table, &decision.key),
                }
                tracing::info!(table, key, shards, evidence, "a key gets other shards: {sentence}");
            }
            Ok(false) => {
                tracing::debug!(table, key, "a reshard of this key is asked for already");
                memory.policy.refused(self.registry.env().now(), decision);
            }
            Err(error) => {
                tracing::warn!(table, key, shards, "a hot key cannot be resharded: {error}");
                memory.policy.refused(self.registry.env().now(), decision);
            }
        }
    }

    /// Writes the intent. `false` if there is one already.
    async fn ask(&self, context: &TableContext, decision: &Decision<Vec<u8>>) -> Result<bool, WorkerError> {
        let wanted = decision.shards.into();
        // What cannot be done is said now, and not by whoever carries it out.
        context.reshard(&decision.key, &wanted)?;
        self.control.changer().make_registry().await?;
        let before = self.registry.intent(context.id(), &decision.key, context.key_type()).await?;
        if before.as_ref().is_some_and(heatsink_control::reshard_intent::ReshardIntent::is_open) {
            return Ok(false);
        }
        let request = Request {
            layout: wanted,
            rate: DEFAULT_RATE,
            streams_confirmed: false,
            by: format!("automatic ({}): {}", self.control.identity().1, decision.diagnosis.sentence),
            asked: self.registry.env().unix_millis(),
        };
        let table = (context.id(), decision.table.as_str());
        let mut intent = self.registry.new_intent(table, (&decision.key[..], context.key_type()), request);
        if let Some(before) = &before {
            intent.version = before.version + 1;
        }
        Ok(self.registry.write_intent(before.as_ref(), &intent).await?)
    }
}
