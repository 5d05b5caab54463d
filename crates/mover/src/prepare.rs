//! Whether a key can move, and what it would take. Changes nothing.

use std::sync::Arc;

use heatsink_control::describe::Described;
use heatsink_control::registry::Registry;
use heatsink_control::{
    Changer, Fencing, KeyRecord, MAX_KEY_RECORDS, Record, Rules, State, TableLayouts, claim, tags,
};
use heatsink_dynamo::{KeyType, Operation};
use heatsink_env::Env;
use heatsink_layout::{By, Hash, InForce, KeyLayouts, Layout, Phase, RecordedKey, Strategy, Table};
use heatsink_store::Store;
use serde::Serialize;
use serde_json::json;

use crate::error::ReshardError;
use crate::key::Key;

/// The most shards of a key.
const MOST_SHARDS: u16 = 1_000;

/// How a reshard is run.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Whether no other process uses the store, so that there are no gateways to wait for.
    pub exclusive: bool,
    /// Capacity units a second that the mover may take of the old shards.
    pub rate: u32,
}

/// What a reshard would do, or does.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Plan {
    /// The table.
    pub table: String,
    /// The logical key.
    pub key: String,
    /// How many shards it has.
    pub from: u16,
    /// How many it gets.
    pub to: u16,
    /// Where an interrupted reshard stands; none for one that begins.
    pub phase: Option<Phase>,
    /// How many items the key has.
    pub items: u64,
    /// How many of them move, as far as the hash tells before they are read: all that its new shards are expected to take.
    pub to_move: u64,
    /// Write units that the move takes, for items of up to 1 KB: two transactions each.
    pub write_units: u64,
    /// The phases, in order.
    pub phases: Vec<&'static str>,
    /// From which phase on a cancel is a second reshard.
    pub point_of_no_return: &'static str,
    /// What to do next.
    pub next_steps: Vec<String>,
}

/// A prepared reshard of one key.
pub struct Reshard {
    pub(crate) registry: Registry,
    pub(crate) changer: Changer,
    pub(crate) described: Described,
    pub(crate) table: Option<Record>,
    pub(crate) record: Option<KeyRecord>,
    pub(crate) key: Key,
    pub(crate) from: Layout,
    pub(crate) to: Layout,
}

/// The layout of so many shards.
fn layout(shards: u16, version: u64) -> Layout {
    let strategy = if shards == 1 { Strategy::None } else { Strategy::Calculated { by: By::SortKey } };
    Layout { strategy, shards, hash: Hash::JumpXxh3, version }
}

fn usage<T>(problem: impl Into<String>) -> Result<T, ReshardError> {
    Err(ReshardError::Usage(problem.into()))
}

impl Reshard {
    /// Checks whether a key of a table can get so many shards. `key` is the logical key's bytes; `streams_confirmed`: the table may have a stream,
    /// whose readers will see the items move. Changes nothing.
    ///
    /// # Errors
    /// [`ReshardError::Usage`] with the reason why not, and what to do.
    pub async fn prepare(
        store: Arc<dyn Store>,
        env: Arc<dyn Env>,
        rules: &Rules,
        table: &str,
        key: &[u8],
        shards: u16,
        streams_confirmed: bool,
    ) -> Result<Self, ReshardError> {
        if !(1..=MOST_SHARDS).contains(&shards) {
            return usage(format!("A key has 1 to {MOST_SHARDS} shards, and {shards} were asked for"));
        }
        let registry = Registry::new(store, env, &rules.fence().registry);
        let Some(described) = registry.describe(table).await? else {
            return usage(format!("There is no table {table}"));
        };
        if described.status != "ACTIVE" && !described.status.is_empty() {
            return usage(format!("Table {table} is {}; wait until it is ACTIVE", described.status));
        }
        let schema = &described.schema;
        let key_type = schema.key.partition.key_type;
        if schema.key.sort.is_none() {
            return usage(format!(
                "Table {table} has no sort key: each of its keys is one item, which cannot lie in several shards. A hot number in it can be \
                 a counter (docs/strategies.md)"
            ));
        }
        if key_type == KeyType::N {
            return usage(format!(
                "The partition key of table {table} is a number, and a number has no room for a shard"
            ));
        }
        let answer = registry.call(Operation::DescribeTable, json!({ "TableName": table })).await?;
        let description = &answer["Table"];
        let replicas = description["Replicas"].as_array().is_some_and(|replicas| !replicas.is_empty());
        if (replicas || description["StreamSpecification"]["StreamEnabled"] == true) && !streams_confirmed {
            return usage(format!(
                "Table {table} has a stream{}: its readers would see each item that moves inserted under its new key and removed under the old one.                  Say --confirm-streams if they can bear that",
                if replicas { " and replicas" } else { "" }
            ));
        }
        if let Some(problem) = tags::foreign(&registry, &described).await? {
            return usage(problem);
        }
        let recorded = registry.read(&schema.id).await?;
        let layouts = recorded.as_ref().map(|record| record.layouts.clone()).unwrap_or_default();
        if let Some(record) = &recorded
            && record.state != State::Active
        {
            return usage(format!(
                "Table {table} is being adopted, deleted or recorded; wait until that is done"
            ));
        }
        if layouts.iter().any(|one| one.layout().template().is_some() || one.layout().time().is_some()) {
            return usage(format!(
                "Table {table} is laid out by templates or buckets ({layouts}), and single keys of such tables cannot be resharded yet"
            ));
        }
        if registry.expires(table).await? {
            return usage(format!(
                "Table {table} has time to live enabled, and keys of such tables cannot be resharded yet: turn it off until the key has moved"
            ));
        }
        if !claim::is_possible(&registry).await? {
            return usage(format!(
                "The store of table {table} has no TransactWriteItems, by which items are moved"
            ));
        }
        let records = match &recorded {
            Some(record) if record.keys > 0 => registry.key_records(&record.id).await?,
            _ => Vec::new(),
        };
        let record = records.iter().find(|one| one.key == key).cloned();
        if record.is_none() && records.len() >= MAX_KEY_RECORDS {
            return usage(format!("Table {table} has {MAX_KEY_RECORDS} keys on record, which is the most"));
        }
        if let Some(other) =
            records.iter().find(|one| one.key != key && (one.moves.is_some() || !one.settled))
        {
            return usage(format!(
                "The key {:?} of table {table} is being resharded; one key of a table moves at a time. `heatsink reshard status` says how far it is",
                String::from_utf8_lossy(&other.key)
            ));
        }
        let known = records.iter().map(|one| {
            let in_force = InForce::Stable(Arc::new(one.layout.clone()));
            (one.key.clone(), RecordedKey { in_force, reserved: one.reserved, since: one.since })
        });
        let of_shard = KeyLayouts::new(1, known);
        if let Some((logical, _)) = of_shard.shard(key) {
            return usage(format!(
                "{:?} is the physical key of a shard of {:?}, which is on record: reshard that one",
                String::from_utf8_lossy(key),
                String::from_utf8_lossy(logical)
            ));
        }
        let from = match &record {
            Some(record) => record.layout.clone(),
            None => layouts.of(key).map_or_else(|| layout(1, 0), |layout| Layout::clone(layout)),
        };
        let to = match record.as_ref().and_then(|record| record.moves.as_ref()) {
            Some(moves) if moves.to.shards != shards => {
                return usage(format!(
                    "The key {:?} of table {table} is being moved from {} to {} shards; let that end first: the same command with --shards {} goes \
                     on with it",
                    String::from_utf8_lossy(key),
                    from.shards,
                    moves.to.shards,
                    moves.to.shards
                ));
            }
            Some(moves) => moves.to.clone(),
            None => layout(shards, from.version + 1),
        };
        if !heatsink_layout::Moving::is_possible(&from, &to) {
            return usage(format!(
                "The key is laid out as {from}, which cannot be changed while clients write"
            ));
        }
        let table =
            Arc::new(Table::new(schema.clone(), Arc::new(layouts)).with_key_layouts(Arc::new(of_shard)));
        let changer = Changer::new(registry.clone(), Fencing::shared(rules.fence(), "reshard"));
        let key = Key { table, bytes: key.to_vec() };
        Ok(Reshard { registry, changer, described, table: recorded, record, key, from, to })
    }

    /// Whether the key is laid out so already, and nothing is left to do.
    pub fn is_done(&self) -> bool {
        let settled = self.record.as_ref().is_none_or(|record| record.settled && record.moves.is_none());
        settled && self.from.shards == self.to.shards
    }

    /// What it would do. Counts the key's items, which costs what reading them does.
    ///
    /// # Errors
    /// The store's.
    pub async fn plan(&self) -> Result<Plan, ReshardError> {
        let mut items = 0;
        for shard in 0..self.from.shards {
            items += self.count(shard).await?;
        }
        let stays =
            f64::from(self.from.shards.min(self.to.shards)) / f64::from(self.from.shards.max(self.to.shards));
        #[allow(
            clippy::cast_precision_loss,
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "a count for people"
        )]
        let to_move = (items as f64 * (1.0 - stays)).round() as u64;
        Ok(Plan {
            table: self.key.table.name.clone(),
            key: self.key.text(),
            from: self.from.shards,
            to: self.to.shards,
            phase: self.record.as_ref().and_then(|record| record.moves.as_ref()).map(|moves| moves.phase),
            items,
            to_move,
            // A put and a check, a check and a delete, each counted twice, and twice the check of a permit.
            write_units: to_move * 12,
            phases: vec![
                "RESERVE",
                "PREPARE",
                "HOLD",
                "CHECK (only if some request was not answered)",
                "MOVE",
                "STABLE",
            ],
            point_of_no_return: "CHECK, or MOVE where there is none",
            next_steps: Vec::new(),
        })
    }

    async fn count(&self, shard: u16) -> Result<u64, ReshardError> {
        let physical = self.key.physical(&self.from, shard)?;
        let (mut count, mut start) = (0, json!(null));
        loop {
            let mut body = json!({
                "TableName": self.key.table.name, "Select": "COUNT", "KeyConditionExpression": "#p = :p",
                "ExpressionAttributeNames": { "#p": self.key.table.key.partition.name }, "ExpressionAttributeValues": { ":p": physical },
            });
            if !start.is_null() {
                body["ExclusiveStartKey"] = start;
            }
            let mut page = self.registry.call_patiently(Operation::Query, body).await?;
            count += page["Count"].as_u64().unwrap_or(0);
            start = page["LastEvaluatedKey"].take();
            if start.is_null() {
                return Ok(count);
            }
        }
    }

    /// The record of a table of which only single keys are laid out.
    pub(crate) fn first_record(&self) -> Record {
        self.registry.first_record(&self.described, TableLayouts::default(), true)
    }
}
