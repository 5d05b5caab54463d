//! A table whose keys may be resharded: whether they can be, and to which layouts. Changes nothing.

use std::sync::Arc;

use heatsink_control::describe::Described;
use heatsink_control::registry::Registry;
use heatsink_control::reshard_intent::WantedLayout;
use heatsink_control::rules::{MAX_COUNTER_SHARDS, can_count};
use heatsink_control::{
    Changer, Fencing, KeyRecord, MAX_KEY_RECORDS, Record, Rules, State, TableLayouts, claim, tags,
};
use heatsink_dynamo::{KeyType, Operation};
use heatsink_env::Env;
use heatsink_layout::{By, Hash, InForce, KeyLayouts, Layout, Moving, RecordedKey, Strategy, Table};
use heatsink_store::Store;
use serde_json::json;

use crate::announcer::Announcer;
use crate::error::{ReshardError, usage};
use crate::key::Key;
use crate::prepare::Reshard;

/// The most shards of a key.
const MOST_SHARDS: u16 = 1_000;

/// A table whose keys may be resharded.
pub struct TableContext {
    registry: Registry,
    announcer: Announcer,
    described: Described,
    recorded: Option<Record>,
    layouts: Arc<TableLayouts>,
    records: Vec<KeyRecord>,
    table: Arc<Table>,
    expires: Option<String>,
}

/// The layout that is wanted of a key that is laid out as `from`.
fn target(from: &Layout, wanted: &WantedLayout) -> Layout {
    if let Some(attributes) = wanted.counter.clone() {
        let strategy = Strategy::Counter { attributes };
        return Layout { strategy, shards: wanted.shards, hash: Hash::JumpXxh3, version: from.version + 1 };
    }
    let by = wanted.by.clone().or_else(|| by(from).cloned()).unwrap_or(By::SortKey);
    let strategy = if wanted.shards == 1 { Strategy::None } else { Strategy::Calculated { by } };
    Layout { strategy, shards: wanted.shards, hash: Hash::JumpXxh3, version: from.version + 1 }
}

fn by(layout: &Layout) -> Option<&By> {
    match &layout.strategy {
        Strategy::Calculated { by } => Some(by),
        _ => None,
    }
}

/// Whether two layouts put every item in the same place.
pub(crate) fn same(one: &Layout, other: &Layout) -> bool {
    one.shards == other.shards
        && (one.shards == 1 || one.strategy == other.strategy && one.hash == other.hash)
}

/// Whether a layout is what is wanted.
pub(crate) fn is_wanted(layout: &Layout, wanted: &WantedLayout) -> bool {
    let by_wanted = wanted.shards == 1 || wanted.by.is_none() || wanted.by.as_ref() == by(layout);
    layout.shards == wanted.shards && by_wanted && wanted.counter.as_deref() == layout.counter_attributes()
}

/// Whether two lists name the same.
fn alike(one: &[String], other: &[String]) -> bool {
    one.len() == other.len() && one.iter().all(|name| other.contains(name))
}

fn number_of_shards(shards: u16) -> Result<(), ReshardError> {
    match (1..=MOST_SHARDS).contains(&shards) {
        true => Ok(()),
        false => usage(format!("A key has 1 to {MOST_SHARDS} shards, and {shards} were asked for")),
    }
}

impl TableContext {
    /// Checks whether keys of a table can be resharded. `streams_confirmed`: the table may have a stream, whose readers will see the items move.
    ///
    /// # Errors
    /// [`ReshardError::Usage`] with the reason why not, and what to do.
    pub async fn read(
        store: Arc<dyn Store>,
        env: Arc<dyn Env>,
        rules: &Rules,
        table: &str,
        streams_confirmed: bool,
    ) -> Result<Self, ReshardError> {
        let registry = Registry::new(store, env, &rules.fence().registry);
        let Some(described) = registry.describe(table).await? else {
            return usage(format!("There is no table {table}"));
        };
        can_be_sharded(&described)?;
        if !streams_confirmed {
            without_stream(&registry, table).await?;
        }
        if let Some(problem) = tags::foreign(&registry, &described).await? {
            return usage(problem);
        }
        let schema = &described.schema;
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
        let expires = registry.time_to_live(table).await?;
        if !claim::is_possible(&registry).await? {
            return usage(format!(
                "The store of table {table} has no TransactWriteItems, by which items are moved"
            ));
        }
        let records = match &recorded {
            Some(record) if record.keys > 0 => registry.key_records(&record.id).await?,
            _ => Vec::new(),
        };
        let known = records.iter().map(|one| {
            let in_force = InForce::Stable(Arc::new(one.layout.clone()));
            (
                one.key.clone(),
                RecordedKey { in_force, reserved: one.reserved, since: one.since, settled: one.settled },
            )
        });
        let layouts = Arc::new(layouts);
        let keys = Arc::new(KeyLayouts::new(1, known));
        let table = Arc::new(Table::new(schema.clone(), Arc::clone(&layouts)).with_key_layouts(keys));
        if expires.is_some() && table.has_counters() {
            return usage(expiring_counters(&table.name));
        }
        let changer = Changer::new(registry.clone(), Fencing::shared(rules.fence(), "reshard"));
        let announcer = Announcer::Beside(changer);
        Ok(TableContext { registry, announcer, described, recorded, layouts, records, table, expires })
    }

    /// The registry that the table is on record in.
    pub fn registry(&self) -> &Registry {
        &self.registry
    }

    /// The store's id of the table.
    pub fn id(&self) -> &str {
        &self.described.schema.id
    }

    /// The table, as it is laid out.
    pub fn table(&self) -> &Arc<Table> {
        &self.table
    }

    /// The type of its partition key.
    pub fn key_type(&self) -> KeyType {
        self.described.schema.key.partition.key_type
    }

    /// Whether it has a local index.
    pub fn has_local_index(&self) -> bool {
        self.described.schema.indexes.iter().any(|index| index.local)
    }

    /// The records of its keys.
    pub fn records(&self) -> &[KeyRecord] {
        &self.records
    }

    /// The record of one key.
    pub fn record(&self, key: &[u8]) -> Option<&KeyRecord> {
        self.records.iter().find(|one| one.key == key)
    }

    /// What a key has without a record of its own: what a rule on record gives it, or one shard.
    pub fn without_record(&self, key: &[u8]) -> WantedLayout {
        let layout = self.layouts.of(key);
        let shards = layout.map_or(1, |layout| layout.shards);
        let counter = layout.and_then(|layout| layout.counter_attributes()).map(<[String]>::to_vec);
        WantedLayout { shards, by: layout.and_then(|layout| by(layout)).cloned(), counter }
    }

    /// Whether a key holds counters, or is about to.
    pub fn is_counter(&self, key: &[u8]) -> bool {
        self.laid_out(key).counter_attributes().is_some()
    }

    /// Whether shards can be given to a key without being asked for: its items are spread as they are.
    pub(crate) fn can_spread(&self, key: &[u8]) -> bool {
        self.described.schema.key.sort.is_some() && !self.is_counter(key)
    }

    /// The layout that a key has, or is about to have.
    fn laid_out(&self, key: &[u8]) -> Layout {
        let of_rule = || self.layouts.of(key).map_or_else(Layout::none, |layout| Layout::clone(layout));
        self.record(key).map_or_else(of_rule, |record| match &record.moves {
            Some(moves) => moves.to.clone(),
            None => record.layout.clone(),
        })
    }

    /// What is wanted of a key, in full: of a counter its numbers too, as they are on record.
    #[must_use]
    pub fn in_full(&self, key: &[u8], wanted: &WantedLayout) -> WantedLayout {
        let mut wanted = wanted.clone();
        let has = self.laid_out(key);
        match (&mut wanted.counter, has.counter_attributes()) {
            (None, Some(own)) if wanted.by.is_none() => wanted.counter = Some(own.to_vec()),
            (Some(named), Some(own)) if named.is_empty() || alike(named, own) => *named = own.to_vec(),
            _ => {}
        }
        wanted
    }

    /// The keys on record that have other layouts than they would have without it, each with that one. Keys that move are among them.
    pub fn elsewhere(&self) -> Vec<(Vec<u8>, WantedLayout)> {
        let with = self.records.iter().map(|one| (one, self.without_record(&one.key)));
        with.filter(|(one, wanted)| one.moves.is_some() || !is_wanted(&one.layout, wanted))
            .map(|(one, wanted)| (one.key.clone(), wanted))
            .collect()
    }

    /// The key of another record that moves, or whose last move may still have late requests: one key of a table moves at a time.
    ///
    /// # Errors
    /// [`ReshardError::Busy`] that names it.
    pub fn alone(&self, key: &[u8]) -> Result<(), ReshardError> {
        let other = self.records.iter().find(|one| one.key != key && (one.moves.is_some() || !one.settled));
        match other {
            None => Ok(()),
            Some(other) => Err(ReshardError::Busy(format!(
                "The key {:?} of table {} is being resharded; one key of a table moves at a time. `heatsink reshard status` says how far it is",
                String::from_utf8_lossy(&other.key),
                self.table.name
            ))),
        }
    }

    /// A reshard of one key, by its bytes. Other keys that move are not looked at.
    ///
    /// # Errors
    /// [`ReshardError::Usage`] with the reason why it is not possible, and what to do.
    pub fn reshard(&self, key: &[u8], wanted: &WantedLayout) -> Result<Reshard, ReshardError> {
        let text = |key: &[u8]| String::from_utf8_lossy(key).into_owned();
        let table = &self.table.name;
        let wanted = &self.in_full(key, wanted);
        number_of_shards(wanted.shards)?;
        self.part_of_text(wanted)?;
        self.can_count(wanted)?;
        if key.is_empty() {
            return usage("A partition key is never empty");
        }
        let record = self.record(key).cloned();
        if record.is_none() && self.records.len() >= MAX_KEY_RECORDS {
            return usage(format!("Table {table} has {MAX_KEY_RECORDS} keys on record, which is the most"));
        }
        if let Some((logical, _)) = self.table.key_layouts().shard(key) {
            return usage(format!(
                "{:?} is the physical key of a shard of {:?}, which is on record: reshard that one",
                text(key),
                text(logical)
            ));
        }
        let from = match &record {
            Some(record) => record.layout.clone(),
            None => self.layouts.of(key).map_or_else(Layout::none, |layout| Layout::clone(layout)),
        };
        let to = match record.as_ref().and_then(|record| record.moves.as_ref()) {
            Some(moves) if !is_wanted(&moves.to, wanted) => {
                return usage(format!(
                    "The key {:?} of table {table} is being moved from {} to {} shards; let that end first: the same command with --shards {} goes \
                     on with it",
                    text(key),
                    from.shards,
                    moves.to.shards,
                    moves.to.shards
                ));
            }
            Some(moves) => moves.to.clone(),
            None => target(&from, wanted),
        };
        if !same(&from, &to) || to.counter_attributes().is_some() {
            self.can_change(key, &from, &to)?;
        }
        let owner = Key { table: Arc::clone(&self.table), bytes: key.to_vec() };
        owner.physical(&to, to.shards - 1).map_err(|error| {
            ReshardError::Usage(format!("The key {:?} is too long for so many shards: {error}", text(key)))
        })?;
        Ok(Reshard {
            registry: self.registry.clone(),
            announcer: self.announcer.clone(),
            described: self.described.clone(),
            table: self.recorded.clone(),
            record,
            key: owner,
            from,
            to,
            expires: self.expires.clone(),
        })
    }

    /// Whether one layout of a key can follow another.
    fn can_change(&self, key: &[u8], from: &Layout, to: &Layout) -> Result<(), ReshardError> {
        let (key, table) = (String::from_utf8_lossy(key), &self.table.name);
        if to.counter_attributes().is_none() && self.described.schema.key.sort.is_none() {
            return usage(format!(
                "Table {table} has no sort key: each of its keys is one item, which cannot lie in several shards. A number in it that is only added to \
                 can: say --strategy counter --attribute NAME"
            ));
        }
        if Moving::is_possible(from, to) || from.strategy == to.strategy && from.shards == to.shards {
            return Ok(());
        }
        let sharded = format!("The key {key:?} of table {table} has {} shards", from.shards);
        match (from.counter_attributes(), to.counter_attributes()) {
            (Some(own), Some(other)) if own == other => usage(format!("{sharded}. {}", never_narrower(own))),
            (Some(own), _) => usage(format!(
                "The key {key:?} of table {table} is a counter of {}, and becomes nothing else while clients use it. It can only get more shards",
                own.join(", ")
            )),
            (None, Some(_)) if from.shards > 1 => usage(format!(
                "{sharded}, and a counter grows out of a whole key: bring its items back with --shards 1 first"
            )),
            (None, Some(_)) => usage("A counter has 2 shards or more: with one it would be the key as it is"),
            (None, None) => {
                usage(format!("The key is laid out as {from}, which cannot be changed while clients write"))
            }
        }
    }

    /// Whether numbers are named that can be added to.
    fn can_count(&self, wanted: &WantedLayout) -> Result<(), ReshardError> {
        let Some(attributes) = &wanted.counter else { return Ok(()) };
        if wanted.by.is_some() {
            return usage(
                "A counter's fragments are no items that a sort key could spread: leave the separator out",
            );
        }
        if attributes.is_empty() || attributes.iter().any(String::is_empty) {
            return usage("A counter needs the names of the numbers that are added to: --attribute likes");
        }
        if let Some(twice) = attributes.iter().enumerate().find(|(at, name)| attributes[..*at].contains(name))
        {
            return usage(format!("--attribute {} is given twice", twice.1));
        }
        if wanted.shards > MAX_COUNTER_SHARDS {
            return usage(format!(
                "A counter has at most {MAX_COUNTER_SHARDS} shards: setting or deleting it is one transaction over its fragments, and a transaction has at \
                 most {MAX_COUNTER_SHARDS} actions"
            ));
        }
        if self.expires.is_some() {
            return usage(expiring_counters(&self.table.name));
        }
        can_count(attributes, &self.described.schema).or_else(|why| {
            usage(format!(
                "No key of table {} can be a counter of {}: {why}",
                self.table.name,
                attributes.join(", ")
            ))
        })
    }

    /// Whether a part of the sort key is wanted that it can have.
    fn part_of_text(&self, wanted: &WantedLayout) -> Result<(), ReshardError> {
        let sort = self.described.schema.key.sort.as_ref();
        match &wanted.by {
            Some(By::Part { separator, .. }) if separator.is_empty() => usage("A separator is never empty"),
            Some(By::Part { .. }) if sort.is_some_and(|sort| sort.key_type != KeyType::S) => usage(format!(
                "The sort key of table {} is no string, so it has no parts: leave the separator out",
                self.table.name
            )),
            Some(By::PrimaryKey) => usage("A key's items are spread by their sort key, or by a part of it"),
            _ => Ok(()),
        }
    }
}

fn expiring_counters(table: &str) -> String {
    format!(
        "Table {table} has time to live, which would delete counters in parts: turn it off before a key is a counter"
    )
}

/// Why a counter keeps its shards, and what can be done instead.
pub fn never_narrower(attributes: &[String]) -> String {
    let names = attributes.join(", ");
    format!(
        "It is a counter of {names}, whose parts lie in all of them: it never gets fewer, since they would have to be added up while clients add to them. \
         There is no way back. It costs reads alone, half a unit for each shard. While nobody adds to it, an UpdateItem that SETs {names} to what \
         was read brings each number into one item"
    )
}

fn can_be_sharded(described: &Described) -> Result<(), ReshardError> {
    let (schema, status) = (&described.schema, &described.status);
    let table = &schema.name;
    if status != "ACTIVE" && !status.is_empty() {
        return usage(format!("Table {table} is {status}; wait until it is ACTIVE"));
    }
    if schema.key.partition.key_type == KeyType::N {
        return usage(format!(
            "The partition key of table {table} is a number, and a number has no room for a shard"
        ));
    }
    Ok(())
}

async fn without_stream(registry: &Registry, table: &str) -> Result<(), ReshardError> {
    let answer = registry.call(Operation::DescribeTable, json!({ "TableName": table })).await?;
    let description = &answer["Table"];
    let replicas = description["Replicas"].as_array().is_some_and(|replicas| !replicas.is_empty());
    if !replicas && description["StreamSpecification"]["StreamEnabled"] != true {
        return Ok(());
    }
    usage(format!(
        "Table {table} has a stream{}: its readers would see each item that moves inserted under its new key and removed under the old one. \
         A counter's parts are items to them. Say --confirm-streams if they can bear that",
        if replicas { " and replicas" } else { "" }
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_decides_the_shard_stays_unless_another_thing_is_wanted() {
        let part = By::Part { separator: "#".to_owned(), part: 1 };
        let wanted = |shards: u16, by: Option<&By>| WantedLayout { by: by.cloned(), ..shards.into() };
        let whole = Layout::none();
        let by_part = target(&whole, &wanted(4, Some(&part)));
        assert_eq!(by(&target(&whole, &wanted(4, None))), Some(&By::SortKey));
        assert_eq!(by(&target(&by_part, &wanted(8, None))), Some(&part));
        assert!(!same(&by_part, &target(&by_part, &wanted(4, Some(&By::SortKey)))));
        assert!(same(&whole, &target(&by_part, &wanted(1, Some(&part)))));
        assert!(
            is_wanted(&by_part, &wanted(4, None)) && !is_wanted(&by_part, &wanted(4, Some(&By::SortKey)))
        );
    }
}
