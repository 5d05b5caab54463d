//! Everything that is sharded in a store, as `status` and `leave` find it, with what the way back
//! takes.
//!
//! Not here: in words (`words`), what is in the way (`hindrances`).

use heatsink_control::registry::Registry;
use heatsink_control::reshard_intent::{ReshardIntent, key_text};
use heatsink_control::{Gateway, lost_registry, missed_record};
use heatsink_layout::{DIRECTORY, ValueLayout};
use heatsink_workers::{
    DEFAULT_RATE, Plan, Sharded, TableContext, Unwatched, ValueAsked, ValuePlan, ValueReshard, WorkerError,
};

use crate::cli::open::not_answered;
use crate::cli::reshard::{Access, Opened, unread};
use crate::exit::{Exit, without_numbers};

/// The most keys, and the most values, of a table whose items are counted and that are listed.
pub(in crate::cli) const LISTED: usize = 20;

/// What is sharded in a store.
pub(in crate::cli) struct Found {
    pub registry: String,
    /// Whether the registry is there.
    pub there: bool,
    /// Since when layouts are frozen: milliseconds since 1970.
    pub frozen: Option<u64>,
    pub gateways: Vec<Gateway>,
    /// The tables on record.
    pub tables: Vec<FoundTable>,
    /// Whether the directory of buckets is there.
    pub directory: bool,
    /// The reshards that are asked for.
    pub intents: Vec<ReshardIntent>,
}

/// What is sharded of one table.
pub(in crate::cli) struct FoundTable {
    pub of: Sharded,
    /// What the first keys take that lie in shards.
    pub keys: Vec<KeyCost>,
    /// What the first values of indexes take that lie in shards.
    pub values: Vec<ValueCost>,
}

/// A key in shards.
pub(in crate::cli) struct KeyCost {
    pub key: String,
    /// What its way back takes, or why it cannot be said.
    pub plan: Result<Plan, String>,
}

/// A value of an index in shards.
pub(in crate::cli) struct ValueCost {
    pub index: String,
    pub value: String,
    pub shards: u16,
    /// What its way back takes, or why it cannot be said.
    pub plan: Result<ValuePlan, String>,
}

impl Found {
    /// Reads it, of one table or of all. `costs`: with what the way back takes.
    ///
    /// # Errors
    /// Exit 64 where the registry is lost, or there is no such table.
    pub async fn read(opened: &Opened, table: Option<&str>, costs: bool) -> Result<Self, Exit> {
        let registry = &opened.registry;
        let there = registry.describe(registry.name()).await.map_err(unread)?.is_some();
        if !there && let Some(lost) = lost_registry::of_store(registry).await.map_err(unread)? {
            return Err(Exit::usage(lost));
        }
        let sharded = match table {
            Some(table) => of_table(registry, table).await?,
            None => Sharded::all(registry).await.map_err(unread)?,
        };
        // That nothing is on record says nothing of a registry that is lost.
        if table.is_none()
            && sharded.is_empty()
            && let Some(lost) = missed_record::of_any_table(registry).await.map_err(unread)?
        {
            return Err(Exit::usage(lost));
        }
        Found::of(opened, there, sharded, costs).await
    }

    /// Reads it of all tables anew, without costs.
    ///
    /// # Errors
    /// The store's.
    pub async fn anew(opened: &Opened) -> Result<Self, Exit> {
        let registry = &opened.registry;
        let there = registry.describe(registry.name()).await.map_err(unread)?.is_some();
        Found::of(opened, there, Sharded::all(registry).await.map_err(unread)?, false).await
    }

    async fn of(opened: &Opened, there: bool, sharded: Vec<Sharded>, costs: bool) -> Result<Self, Exit> {
        let registry = &opened.registry;
        let mut tables = Vec::with_capacity(sharded.len());
        for of in sharded {
            tables.push(FoundTable::read(opened, of, costs).await?);
        }
        let observer = opened.observer();
        let gateways = observer.gateways().await.map_err(unread)?.map(|(_, list)| list).unwrap_or_default();
        let frozen = observer.frozen().await.map_err(unread)?.map(|frozen| frozen.since);
        let directory = registry.describe(DIRECTORY).await.map_err(unread)?.is_some();
        let intents = if there { registry.intents(true).await.map_err(unread)?.known } else { Vec::new() };
        let registry = registry.name().to_owned();
        Ok(Found { registry, there, frozen, gateways, tables, directory, intents })
    }
}

async fn of_table(registry: &Registry, table: &str) -> Result<Vec<Sharded>, Exit> {
    let found = Sharded::named(registry, table).await.map_err(unread)?;
    if !found.is_empty() {
        return Ok(found);
    }
    let Some(described) = registry.describe(table).await.map_err(unread)? else {
        return Err(Exit::usage(format!("There is no table {table}")));
    };
    match lost_registry::refusal(registry, &described).await.map_err(unread)? {
        Some(lost) => Err(Exit::usage(lost)),
        None => Ok(found),
    }
}

impl FoundTable {
    async fn read(opened: &Opened, of: Sharded, costs: bool) -> Result<Self, Exit> {
        let (mut keys, mut values) = (Vec::new(), Vec::new());
        if costs && of.exists && !of.is_sharded_by_hand() {
            keys = key_costs(opened, &of).await?;
            for one in of.values_to_bring_back().take(LISTED) {
                values.push(value_cost(opened, &of, one).await?);
            }
        }
        Ok(FoundTable { of, keys, values })
    }
}

async fn key_costs(opened: &Opened, of: &Sharded) -> Result<Vec<KeyCost>, Exit> {
    let mut listed = of.spread_keys().take(LISTED).peekable();
    if listed.peek().is_none() {
        return Ok(Vec::new());
    }
    let context = match opened.table(&of.record.name, true).await {
        Ok(context) => Ok(context),
        Err(WorkerError::Store(error)) => return Err(not_answered("The table could not be read", &error)),
        Err(why) => Err(without_numbers(&why.to_string())),
    };
    let mut costs = Vec::new();
    for record in listed {
        let plan = match &context {
            Ok(context) => planned(context, &record.key).await?,
            Err(why) => Err(why.clone()),
        };
        costs.push(KeyCost { key: key_text(&record.key, record.key_type), plan });
    }
    Ok(costs)
}

async fn planned(context: &TableContext, key: &[u8]) -> Result<Result<Plan, String>, Exit> {
    let reshard = match context.reshard(key, &1.into()) {
        Ok(reshard) => reshard,
        Err(why) => return Ok(Err(without_numbers(&why.to_string()))),
    };
    match reshard.plan(DEFAULT_RATE).await {
        Ok(plan) => Ok(Ok(plan)),
        Err(WorkerError::Store(error)) => Err(not_answered("The key could not be read", &error)),
        Err(why) => Ok(Err(without_numbers(&why.to_string()))),
    }
}

async fn value_cost(opened: &Opened, of: &Sharded, one: &ValueLayout) -> Result<ValueCost, Exit> {
    let (index, shards) = (one.index.name.clone(), one.target().max(one.shards));
    let value = key_text(&one.value, one.index.attribute.key_type);
    let asked = ValueAsked { table: &of.record.name, index: &index, value: &value, shards: 1 };
    let (store, env) = (opened.store.clone(), opened.env.clone());
    let plan =
        async { ValueReshard::prepare(store, env, &opened.rules, asked).await?.plan(&Unwatched).await };
    let plan = match plan.await {
        Ok(plan) => Ok(plan),
        Err(WorkerError::Store(error)) => return Err(not_answered("The index could not be read", &error)),
        Err(why) => Err(without_numbers(&why.to_string())),
    };
    Ok(ValueCost { index, value, shards, plan })
}

impl Found {
    /// Gateways that answer requests.
    pub fn living(&self, opened: &Opened) -> Vec<&Gateway> {
        let now = opened.env.unix_millis();
        let beside = opened.access == Access::BesideGateways;
        self.gateways.iter().filter(|one| beside && !one.is_dead(now)).collect()
    }
}
