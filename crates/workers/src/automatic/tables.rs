//! What is known of tables and of their keys, for a while: how keys lie, what may be done to them,
//! and which of them change already.
//!
//! Not here: what follows from it (`heatsink_heat::policy`).

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use heatsink_control::registry::Registry;
use heatsink_control::reshard_intent::ReshardIntent;
use heatsink_control::rules::Automatic as Section;
use heatsink_control::{Mode, Rules};
use heatsink_dynamo::KeyType;
use heatsink_env::MonotonicInstant;
use heatsink_heat::policy::{Facts, KeyFacts, KeyName, Partitions, Reason, Settings};
use heatsink_heat::{HeatSource, KeyLoad};
use heatsink_store::Store;

use crate::key::table_context::TableContext;

/// For so long what is known of a table is used again, also that its keys cannot be resharded.
const KNOWN_FOR: Duration = Duration::from_secs(10);

/// A table.
struct Known {
    since: MonotonicInstant,
    /// The context, or why its keys cannot be resharded.
    context: Result<TableContext, String>,
    /// By index; `None` is the table.
    partitions: HashMap<Option<String>, Box<dyn Partitions + Send + Sync>>,
}

/// The tables that were asked for lately.
#[derive(Default)]
pub(super) struct Tables {
    known: HashMap<String, Known>,
    /// What has an intent that somebody has yet to carry out.
    open: BTreeSet<KeyName>,
    /// Whether every gateway knows slots by name.
    names_slots: bool,
    /// Whether every gateway knows numbers that have shards.
    knows_numbers: bool,
    /// Whether every gateway knows ranges of sort keys.
    knows_ranges: bool,
}

/// Where tables are read.
pub(super) struct ReadFrom<'a> {
    pub store: &'a Arc<dyn Store>,
    pub registry: &'a Registry,
    pub rules: &'a Rules,
    pub source: &'a dyn HeatSource,
    /// Whether there is a registry.
    pub recorded: bool,
    /// Whether every gateway knows slots by name.
    pub names_slots: bool,
    /// Whether every gateway knows numbers that have shards.
    pub knows_numbers: bool,
    /// Whether every gateway knows ranges of sort keys.
    pub knows_ranges: bool,
}

impl Tables {
    /// Reads what has to be known of these loads. A table that changes is read at each look.
    pub async fn learn(&mut self, from: &ReadFrom<'_>, loads: &[KeyLoad]) {
        if loads.is_empty() {
            return;
        }
        (self.names_slots, self.knows_numbers) = (from.names_slots, from.knows_numbers);
        self.knows_ranges = from.knows_ranges;
        let now = from.registry.env().now();
        let before = std::mem::take(&mut self.open);
        if from.recorded {
            match from.registry.intents(false).await {
                Ok(intents) => {
                    self.open.extend(intents.known.iter().filter(|one| one.is_open()).map(name_of))
                }
                Err(error) => {
                    tracing::debug!("the intents of reshards cannot be read: {error}");
                    self.open.clone_from(&before);
                }
            }
        }
        let changes = |table: &str| before.iter().chain(&self.open).any(|one| one.table == table);
        let is_old = |table: &str, known: &Known| now.since(known.since) >= KNOWN_FOR || changes(table);
        self.known.retain(|table, known| !is_old(table, known));
        for load in loads {
            let acts = section(from.rules, load).is_some_and(|section| section.mode != Mode::Observe);
            if acts && !self.known.contains_key(&load.table) {
                let known = read(from, now, &load.table).await;
                self.known.insert(load.table.clone(), known);
            }
        }
        self.place(from.source, loads);
    }

    /// Asks where the partitions lie of each table and index with a load: they change all the time.
    fn place(&mut self, source: &dyn HeatSource, loads: &[KeyLoad]) {
        self.known.values_mut().for_each(|known| known.partitions.clear());
        for load in loads {
            let Some(known) = self.known.get_mut(&load.table) else { continue };
            if !known.partitions.contains_key(&load.index)
                && let Some(partitions) = source.partitions(&load.table, load.index.as_deref())
            {
                known.partitions.insert(load.index.clone(), partitions);
            }
        }
    }

    /// The table's context, where its keys can be resharded.
    pub fn context(&self, table: &str) -> Option<&TableContext> {
        self.known.get(table)?.context.as_ref().ok()
    }

    /// Why keys of the table cannot be resharded at all.
    pub fn problem(&self, table: &str) -> Option<&str> {
        self.known.get(table)?.context.as_ref().err().map(String::as_str)
    }

    /// An intent was written: the key changes from now on.
    pub fn changes(&mut self, name: &KeyName) {
        self.open.insert(name.clone());
    }
}

async fn read(from: &ReadFrom<'_>, now: MonotonicInstant, table: &str) -> Known {
    let (store, env) = (Arc::clone(from.store), Arc::clone(from.registry.env()));
    let context = TableContext::read(store, env, from.rules, table, false).await;
    let context = context.map_err(|error| error.to_string());
    Known { since: now, context, partitions: HashMap::new() }
}

fn name_of(intent: &ReshardIntent) -> KeyName {
    KeyName { table: intent.table.clone(), index: intent.index.clone(), key: intent.key.clone() }
}

/// The section that holds for a key, or for a value of an index.
pub(super) fn section<'r>(rules: &'r Rules, load: &KeyLoad) -> Option<&'r Section> {
    rules.automatic(&load.table, &load.key)
}

/// What the policy asks for at one look.
pub(super) struct Asked<'a> {
    pub tables: &'a Tables,
    pub rules: &'a Rules,
    /// Whether there is a registry.
    pub recorded: bool,
}

impl Facts for Asked<'_> {
    fn key(&self, load: &KeyLoad) -> KeyFacts {
        let plain = KeyFacts::whole(Settings::DEFAULT);
        let Some(section) = section(self.rules, load) else {
            return KeyFacts { barred: Some(Reason::NoSection), ..plain };
        };
        if section.mode == Mode::Observe {
            return KeyFacts { barred: Some(Reason::ObservedOnly), ..plain };
        }
        if section.mode == Mode::Auto && !self.recorded {
            return KeyFacts { barred: Some(Reason::NoRegistry), ..plain };
        }
        let Some(context) = self.tables.context(&load.table) else {
            return KeyFacts { barred: Some(Reason::Unreadable), ..plain };
        };
        let mut settings = settings(section, context);
        settings.ranges &= self.tables.knows_ranges;
        let mut facts = match &load.index {
            None => of_key(context, &load.key, settings, self.tables),
            Some(index) => of_value(context, index, &load.key, settings),
        };
        if self.tables.open.contains(&KeyName::of(load)) {
            facts.barred = Some(Reason::Moving);
        }
        facts
    }

    fn partitions(&self, table: &str, index: Option<&str>) -> Option<&dyn Partitions> {
        let partitions = &self.tables.known.get(table)?.partitions;
        let (_, found) = partitions.iter().find(|(of, _)| of.as_deref() == index)?;
        Some(&**found)
    }
}

/// What a section allows in that table.
fn settings(section: &Section, context: &TableContext) -> Settings {
    let mut settings = Settings {
        fewest: section.fewest,
        most: section.most,
        patience: section.patience,
        cold_for: section.cold,
        index_values: section.index_values,
        // Items that expire would expire in parts.
        counters: !section.counters.is_empty() && !context.expires(),
        ranges: section.ranges,
        ..Settings::DEFAULT
    };
    if let Some(units) = section.units_per_hour {
        #[allow(clippy::cast_precision_loss, reason = "units of an hour, far below 2^52")]
        let units = units as f64;
        settings.units_per_hour = units;
    }
    settings
}

fn of_key(context: &TableContext, key: &[u8], settings: Settings, known: &Tables) -> KeyFacts {
    let record = context.record(key);
    let moves = record.and_then(|record| record.moves.as_ref());
    let layout = context.laid_out(key);
    let is_counter = context.is_counter(key);
    let barred = if moves.is_some() {
        Some(Reason::Moving)
    } else if is_counter {
        Some(Reason::Counter)
    } else if context.has_buckets() {
        Some(Reason::Bucket)
    } else if context.key_type() == KeyType::N && !known.knows_numbers {
        Some(Reason::NumericKey)
    } else {
        context.has_stream().then_some(Reason::Stream)
    };
    KeyFacts {
        barred,
        slots: (0..layout.shards.max(1)).map(|shard| layout.slot_number(shard)).collect(),
        split_points: layout.split_points().cloned(),
        names_slots: known.names_slots,
        sort_key: context.has_sort_key(),
        local_index: context.has_local_index(),
        ..KeyFacts::whole(settings)
    }
}

fn of_value(context: &TableContext, index: &str, value: &[u8], settings: Settings) -> KeyFacts {
    let layout = context.value(index, value);
    let shards = layout.map_or(1, |layout| layout.shards);
    let moves = layout.is_some_and(|layout| layout.migration.is_some());
    KeyFacts {
        barred: moves.then_some(Reason::Moving),
        slots: (0..shards).collect(),
        names_slots: false,
        ..KeyFacts::whole(settings)
    }
}
