//! Gives hot keys shards without being asked: looks each second at what the gateways see, and asks
//! for what the policy decides.
//!
//! Every gateway with an `[[automatic]]` section tells the others which keys are hot at it, so that
//! a key that is warm at ten gateways is found. The one with the lowest id decides. Two that decide
//! at once do no harm: what they ask for is one intent, and the second finds the first one's.
//!
//! - [`Acts`]: what was decided, and what burns and is left alone, for whoever looks.
//! - `reports`, `report`: what gateways tell each other. `tables`: what is known of tables.
//! - `ask`: how an intent is written. `made`: how the registry is made.
//! - `cached`: which keys are answered from memory meanwhile.
//!
//! Not here: counting ([`HeatSource`] is told), what a hot key needs and when to act
//! (`heatsink_heat`), carrying it out ([`Runner`](crate::Runner)).

mod acts;
mod ask;
mod cached;
mod made;
mod report;
mod reports;
mod tables;

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use futures::future::{BoxFuture, Either, join_all, select};
use heatsink_control::registry::Registry;
use heatsink_control::reshard_intent::key_text;
use heatsink_control::{Control, Gateway, Mode, Rules};
use heatsink_dynamo::KeyType;
use heatsink_env::Env;
use heatsink_heat::policy::{Decision, Facts, KeyName, LeftAlone, Policy, Reason};
use heatsink_heat::{HeatSource, KeyLoad};
use heatsink_store::Store;
use serde_json::json;

use crate::error::WorkerError;
use crate::key::table_context::TableContext;
use acts::{Alone, Outcome, Shown};
use ask::Asking;
use cached::Cached;
use made::Made;
use reports::{Decides, Reports, Together, is_refused};
use tables::{Asked, ReadFrom, Tables, section};

pub use acts::Acts;

/// How often it looks.
const LOOK: Duration = Duration::from_secs(1);

/// The most keys with shards that are kept in mind while nobody asks for them.
const WATCHED: usize = 1_000;

/// Gives hot keys shards, as one gateway.
pub struct Automatic {
    store: Arc<dyn Store>,
    control: Control,
    registry: Registry,
    source: Arc<dyn HeatSource>,
    acts: Arc<Acts>,
}

/// What it remembers from look to look.
struct Memory {
    policy: Policy,
    tables: Tables,
    /// What had shards when it was last seen: a key that nobody asks for any more is judged too.
    watched: BTreeSet<KeyName>,
    reports: Reports,
    made: Made,
    cached: Cached,
}

impl Automatic {
    /// For the gateway with that control, over that gateway's store. What it does shows in `acts`.
    pub fn new(
        store: Arc<dyn Store>,
        env: Arc<dyn Env>,
        control: Control,
        source: Arc<dyn HeatSource>,
        acts: Arc<Acts>,
    ) -> Self {
        let registry = control.rules().fence().registry_in(Arc::clone(&store), env);
        Automatic { store, control, registry, source, acts }
    }

    /// Runs until `stop` resolves. Without an `[[automatic]]` section that acts or proposes it does
    /// nothing, and writes nothing.
    pub async fn run(&self, stop: impl Future<Output = ()> + Send) {
        self.run_until(stop.boxed()).await;
    }

    fn run_until<'a>(&'a self, mut stop: BoxFuture<'a, ()>) -> BoxFuture<'a, ()> {
        async move {
            let mut rules = self.control.rules();
            self.begin(&rules);
            let mut acted = false;
            let mut memory = Memory {
                policy: Policy::default(),
                tables: Tables::default(),
                watched: BTreeSet::new(),
                reports: Reports::of(self.control.identity().0),
                made: Made::default(),
                cached: Cached::default(),
            };
            loop {
                match select(&mut stop, pin!(self.registry.env().sleep(LOOK))).await {
                    Either::Left(_) => break,
                    Either::Right(_) => {
                        let now = self.control.rules();
                        if !Arc::ptr_eq(&rules, &now) {
                            self.begin(&now);
                            rules = now;
                        }
                    }
                }
                if !rules.acts_on_heat() || !self.control.has_lease() {
                    continue;
                }
                acted = true;
                match select(&mut stop, pin!(self.look(&mut memory))).await {
                    Either::Left(_) => break,
                    Either::Right(_) => {}
                }
            }
            if acted {
                memory.reports.leave(&self.registry).await;
            }
        }
        .boxed()
    }

    /// Tells what these rules allow.
    fn begin(&self, rules: &Rules) {
        self.acts.begin(rules.automatics().map(|section| section.mode).max());
    }

    async fn look(&self, memory: &mut Memory) {
        let rules = self.control.rules();
        // By it the gateways find each other, before the first key is hot.
        let recorded = memory.made.make(&self.control, &self.registry).await;
        let acts = |load: &KeyLoad| section(&rules, load).is_some_and(|one| one.mode != Mode::Observe);
        let (own, others): (Vec<_>, Vec<_>) = self.source.hottest().into_iter().partition(acts);
        if own.iter().any(is_refused) {
            self.control.expect_change();
        }
        let together = match recorded {
            true => {
                let told = (Some(self.acts.told()), memory.cached.keys());
                memory.reports.exchange(&self.registry, own, told).await
            }
            false => Together { loads: own, decides: Decides::ThisOne },
        };
        if let Decides::Another(told, cached) = together.decides {
            memory.cached = Cached::of(cached, self.registry.env().now());
            self.control.cache_reads_of(memory.cached.ages(&rules));
            return self.acts.another_decides(told);
        }
        let mut loads = together.loads;
        loads.extend(memory.cold(&loads));
        // Nothing is done for these, and who looks is told that.
        loads.extend(others.into_iter().filter(is_refused));
        let looks = recorded && !loads.is_empty();
        let names_slots = looks && self.all(|one| one.knows_slots).await;
        let knows_numbers =
            looks && loads.iter().any(|load| load.is_number) && self.all(|one| one.knows_numbers).await;
        let ranges = rules.automatics().any(|section| section.ranges);
        let knows_ranges = looks && ranges && self.all(|one| one.knows_ranges).await;
        let (store, registry, source) = (&self.store, &self.registry, &*self.source);
        let from = ReadFrom {
            store,
            registry,
            rules: &rules,
            source,
            recorded,
            names_slots,
            knows_numbers,
            knows_ranges,
        };
        memory.tables.learn(&from, &loads).await;
        let now = self.registry.env().now();
        let asked = Asked { tables: &memory.tables, rules: &rules, recorded };
        let mut looked = memory.policy.look(now, &loads, &asked);
        let fresh = memory.cached.look(now, &rules, &mut looked.left_alone);
        self.control.cache_reads_of(memory.cached.ages(&rules));
        for (one, outcome) in fresh {
            let of = shown(memory, &one.name);
            self.acts.decided(&**self.registry.env(), &of, "cache", &one.sentence, outcome);
        }
        let spread: Vec<KeyName> =
            loads.iter().filter(|load| asked.key(load).slots.len() > 1).map(KeyName::of).collect();
        spread.iter().for_each(|name| memory.watch(name));
        self.leaves(memory, &looked.left_alone);
        self.act(memory, looked.decisions).await;
    }

    /// Whether no gateway of an older build is there that does not know something: it would refuse
    /// every request on a table that has it.
    async fn all(&self, know: impl Fn(&Gateway) -> bool) -> bool {
        let older = self.control.changer().gateways_without(know).await;
        older.is_ok_and(|older| older.is_empty())
    }

    /// Tells what burns and is left alone.
    fn leaves(&self, memory: &Memory, left: &[LeftAlone]) {
        let told = |one: &LeftAlone| {
            let problem = memory.tables.problem(&one.name.table);
            let problem = problem.filter(|_| one.reason == Reason::Unreadable);
            Alone {
                of: shown(memory, &one.name),
                reason: one.reason.name(),
                sentence: problem
                    .map_or_else(|| one.sentence.clone(), |why| format!("{}: {why}", one.sentence)),
                clients: one.clients.clone(),
                since: one.since,
            }
        };
        let alone: Vec<Alone> = left.iter().map(told).collect();
        self.acts.leaves_alone(&**self.registry.env(), &alone);
    }

    /// Carries out what was decided at one look: all intents are written together.
    async fn act(&self, memory: &mut Memory, decisions: Vec<Decision>) {
        let asking = Asking { store: &self.store, control: &self.control, registry: &self.registry };
        let (tables, rules) = (&memory.tables, self.control.rules());
        let asked = decisions.iter().map(|decision| {
            let load = KeyLoad {
                key: decision.name.key.clone(),
                table: decision.name.table.clone(),
                ..KeyLoad::default()
            };
            let section = section(&rules, &load);
            let asking = &asking;
            async move {
                match section.filter(|section| section.mode == Mode::Auto) {
                    None => None,
                    Some(section) => Some(match tables.context(&decision.name.table) {
                        Some(context) => asking.ask(context, decision, &section.counters).await,
                        None => Ok(false),
                    }),
                }
            }
        });
        let asked = join_all(asked).await;
        for (decision, came) in decisions.iter().zip(asked) {
            self.told(memory, decision, came);
        }
    }

    /// Notes what came of a decision; `None` if it was to be proposed.
    fn told(&self, memory: &mut Memory, decision: &Decision, came: Option<Result<bool, WorkerError>>) {
        let now = self.registry.env().now();
        let of = shown(memory, &decision.name);
        let (what, shards, sentence) =
            (decision.change.name(), decision.change.shards(), decision.sentence.as_str());
        let Shown { table, index, key } = &of;
        let evidence = json!({ "seen": decision.seen, "finding": decision.finding }).to_string();
        let (outcome, sentence) = match came {
            None => {
                tracing::info!(
                    table,
                    index,
                    key,
                    what,
                    shards,
                    evidence,
                    "a key should have other shards (`heatsink reshard start`): {sentence}"
                );
                memory.policy.proposed(now, decision);
                (Outcome::Proposed, sentence.to_owned())
            }
            Some(Ok(true)) => {
                tracing::info!(
                    table,
                    index,
                    key,
                    what,
                    shards,
                    evidence,
                    "a key gets other shards: {sentence}"
                );
                memory.tables.changes(&decision.name);
                match shards {
                    1 => _ = memory.watched.remove(&decision.name),
                    _ => memory.watch(&decision.name),
                }
                (Outcome::Asked, sentence.to_owned())
            }
            Some(Ok(false)) => {
                memory.policy.refused(now, decision, "another change of it was asked for at the same time");
                (Outcome::AskedAlready, sentence.to_owned())
            }
            Some(Err(error)) => {
                tracing::warn!(table, index, key, what, shards, "a hot key cannot be resharded: {error}");
                memory.policy.refused(now, decision, &error.to_string());
                (Outcome::Refused, format!("{sentence}. It cannot be done: {error}"))
            }
        };
        self.acts.decided(&**self.registry.env(), &of, what, &sentence, outcome);
    }
}

impl Memory {
    /// Empty loads of the keys that had shards and that nobody asks for.
    fn cold(&self, loads: &[KeyLoad]) -> Vec<KeyLoad> {
        let asked: BTreeSet<KeyName> = loads.iter().map(KeyName::of).collect();
        let cold = self.watched.difference(&asked).cloned();
        cold.map(|KeyName { table, index, key }| KeyLoad { table, index, key, ..KeyLoad::default() })
            .collect()
    }

    fn watch(&mut self, name: &KeyName) {
        if self.watched.len() < WATCHED {
            self.watched.insert(name.clone());
        }
    }
}

/// A key for people.
fn shown(memory: &Memory, name: &KeyName) -> Shown {
    let context = memory.tables.context(&name.table);
    let key_type = match (context, &name.index) {
        (Some(context), Some(index)) => context.index_key_type(index),
        (context, _) => context.map(TableContext::key_type),
    };
    let key = key_text(&name.key, key_type.unwrap_or(KeyType::S));
    Shown { table: name.table.clone(), index: name.index.clone(), key }
}
