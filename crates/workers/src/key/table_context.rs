//! A table whose keys may be resharded: whether they can be, and to which layouts. Changes nothing.

use std::sync::Arc;

use heatsink_control::describe::{Described, shows_old_images};
use heatsink_control::registry::Registry;
use heatsink_control::reshard_intent::{WantedLayout, key_text};
use heatsink_control::{
    Announcer, Changer, Fencing, KeyRecord, KeyRecords, KeyWrites, MAX_KEY_RECORDS, Record, Rules, State,
    TableLayouts, claim, lost_registry, tags,
};
use heatsink_dynamo::{KeyType, Operation};
use heatsink_env::Env;
use heatsink_layout::{Layout, MOVED, Slot, Table, ValueLayout, in_slots, shards};
use heatsink_store::Store;
use serde_json::json;

use crate::error::{WorkerError, usage};
use crate::key::logical_key::Key;
use crate::key::reshard::Reshard;
use crate::key::steps;
use crate::key::wanted::{
    alike, by, can_change, can_have_ranges, can_have_slots, count_flag, expiring_counters, is_countable,
    is_wanted, number_of_shards, part_of_text, same, slots_flag, target,
};

/// A table whose keys may be resharded.
pub struct TableContext {
    registry: Registry,
    announcer: Announcer,
    described: Described,
    recorded: Option<Record>,
    layouts: Arc<TableLayouts>,
    records: Arc<KeyRecords>,
    table: Arc<Table>,
    expires: Option<String>,
    /// Why no item may move, if the table has a stream or replicas and that is not confirmed.
    streamed: Option<String>,
}

impl TableContext {
    /// Checks whether keys of a table can be resharded. `streams_confirmed`: the table may have a
    /// stream, whose readers will see the items move.
    ///
    /// # Errors
    /// [`WorkerError::Usage`] with the reason why not, and what to do.
    pub async fn read(
        store: Arc<dyn Store>,
        env: Arc<dyn Env>,
        rules: &Rules,
        table: &str,
        streams_confirmed: bool,
    ) -> Result<Self, WorkerError> {
        Self::read_sharing(store, env, rules, (table, streams_confirmed), None).await
    }

    /// The same for one of many keys of the table that begin beside each other in this process: they
    /// share what they read of the keys on record.
    pub(crate) async fn read_sharing(
        store: Arc<dyn Store>,
        env: Arc<dyn Env>,
        rules: &Rules,
        (table, streams_confirmed): (&str, bool),
        sharing: Option<&KeyWrites>,
    ) -> Result<Self, WorkerError> {
        let registry = rules.fence().registry_in(store, env);
        let Some(described) = registry.describe(table).await? else {
            return usage(format!("There is no table {table}"));
        };
        can_be_sharded(&described)?;
        let streamed = if streams_confirmed { None } else { streamed(&registry, table).await? };
        if let Some(problem) = tags::foreign(&registry, &described).await? {
            return usage(problem);
        }
        let schema = &described.schema;
        let recorded = registry.read(&schema.id).await?;
        if recorded.is_none()
            && let Some(problem) = lost_registry::refusal(&registry, &described).await?
        {
            return usage(problem);
        }
        if recorded.is_none() && rules.naming(schema).any(|(_, fits)| fits.is_ok()) {
            // A record that does not have what a rule says would contradict every gateway that has
            // the rule.
            return usage(format!(
                "Table {table} has rules, and is not on record with them yet. If it is empty, one request through a gateway that has them records it; \
                 otherwise run `heatsink adopt {table}`, or take the rules out"
            ));
        }
        let layouts = recorded.as_ref().map(|record| record.layouts.clone()).unwrap_or_default();
        if let Some(record) = &recorded
            && !matches!(record.state, State::Active | State::ChangingKeys(_))
        {
            return usage(format!(
                "Table {table} is being adopted, deleted or recorded; wait until that is done"
            ));
        }
        if layouts.iter().any(|one| one.layout().template().is_some()) {
            return usage(format!(
                "Table {table} is laid out by templates ({layouts}): code that writes by them beside Heatsink would go on with its own shards, so they stay as \
                 they are"
            ));
        }
        let expires = registry.time_to_live(table).await?;
        if !claim::is_possible(&registry).await? {
            return usage(format!(
                "The store of table {table} has no TransactWriteItems, by which items are moved"
            ));
        }
        let records = match (&recorded, sharing) {
            (Some(record), Some(writes)) => writes.all(&registry, record).await?,
            (Some(record), None) => Arc::new(registry.all_key_records(record).await?.into()),
            (None, _) => Arc::default(),
        };
        let layouts = Arc::new(layouts);
        let keys = Arc::clone(records.layouts());
        let table = Arc::new(Table::new(schema.clone(), Arc::clone(&layouts)).with_key_layouts(keys));
        if expires.is_some() && table.has_counters() {
            return usage(expiring_counters(&table.name));
        }
        let changer = Changer::new(registry.clone(), Fencing::shared(rules.fence(), "reshard"));
        let announcer = Announcer::Beside(Box::new(changer));
        Ok(TableContext {
            registry,
            announcer,
            described,
            recorded,
            layouts,
            records,
            table,
            expires,
            streamed,
        })
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

    /// The type of a global index's partition key, where that is one attribute.
    pub(crate) fn index_key_type(&self, index: &str) -> Option<KeyType> {
        let of_index = self.described.schema.indexes.iter().find(|one| one.name == index)?;
        let [attribute] = &*of_index.key.partition else { return None };
        Some(attribute.key_type)
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

    /// What a key has without a record of its own: what a rule on record gives it, or one shard; each
    /// in its usual slot, where the key has others now.
    pub fn without_record(&self, key: &[u8]) -> WantedLayout {
        let layout = self.table.by_rule(key);
        let shards = layout.map_or(1, |layout| layout.shards);
        let counter = layout.and_then(|layout| layout.counter_attributes()).map(<[String]>::to_vec);
        let has_others = self.record(key).is_some() && !self.laid_out(key).slots().is_empty();
        let slots = has_others.then(|| (0..shards).collect());
        let split_at = layout.and_then(|layout| layout.split_points()).cloned();
        WantedLayout {
            by: layout.and_then(|layout| by(layout)).cloned(),
            counter,
            split_at,
            slots,
            ..shards.into()
        }
    }

    /// Whether a key holds counters, or is about to.
    pub(crate) fn is_counter(&self, key: &[u8]) -> bool {
        self.laid_out(key).counter_attributes().is_some()
    }

    /// Whether its items have a sort key, by which shards spread them.
    pub(crate) fn has_sort_key(&self) -> bool {
        self.described.schema.key.sort.is_some()
    }

    /// Whether the table has a stream or replicas, and no word that its items may move.
    pub(crate) fn has_stream(&self) -> bool {
        self.streamed.is_some()
    }

    /// Why no item of the table may move yet, with what to do.
    pub fn unconfirmed(&self) -> Option<&str> {
        self.streamed.as_deref()
    }

    /// Whether its items expire.
    pub(crate) fn expires(&self) -> bool {
        self.expires.is_some()
    }

    /// What is on record of a value of an index.
    pub(crate) fn value(&self, index: &str, value: &[u8]) -> Option<&ValueLayout> {
        let values = self.recorded.iter().flat_map(|record| &record.values);
        values.into_iter().find(|one| one.index.name == index && one.value == value)
    }

    /// Whether keys of the table lie in buckets by its rules.
    pub(crate) fn has_buckets(&self) -> bool {
        self.layouts.iter().any(|one| one.layout().time().is_some())
    }

    /// The layout that a key has, or is about to have.
    pub(crate) fn laid_out(&self, key: &[u8]) -> Layout {
        let of_rule = || self.table.by_rule(key).map_or_else(Layout::none, |layout| Layout::clone(layout));
        self.record(key).map_or_else(of_rule, |record| match &record.moves {
            Some(moves) => moves.to.clone(),
            None => record.layout.clone(),
        })
    }

    /// Whether the table is on record.
    pub fn is_on_record(&self) -> bool {
        self.recorded.is_some()
    }

    /// What is wanted of a key, in full: of a counter its numbers too, as they are on record.
    #[must_use]
    pub fn in_full(&self, key: &[u8], wanted: &WantedLayout) -> WantedLayout {
        let mut wanted = wanted.clone();
        let has = self.laid_out(key);
        match (&mut wanted.counter, has.counter_attributes()) {
            // With one shard it is the key as it was.
            (counter, Some(_)) if wanted.shards == 1 => *counter = None,
            (None, Some(own)) if wanted.by.is_none() => wanted.counter = Some(own.to_vec()),
            (Some(named), Some(own)) if named.is_empty() || alike(named, own) => *named = own.to_vec(),
            _ => {}
        }
        wanted
    }

    /// The keys on record that have other layouts than they would have without it, each with that
    /// one. Keys that move are among them.
    pub fn elsewhere(&self) -> Vec<(Vec<u8>, WantedLayout)> {
        let with = self.records.iter().map(|one| (one, self.without_record(&one.key)));
        with.filter(|(one, wanted)| one.moves.is_some() || !is_wanted(&one.layout, wanted))
            .map(|(one, wanted)| (one.key.clone(), wanted))
            .collect()
    }

    /// A key for people.
    fn text(&self, key: &[u8]) -> String {
        key_text(key, self.table.key.partition.key_type)
    }

    /// Beside gateways of builds that move one key of a table at a time, this one moves alone, too:
    /// no other key moves, or may still have late requests of its last move, and no value of an index
    /// is rewritten.
    ///
    /// # Errors
    /// [`WorkerError::Busy`] that names what does.
    pub(crate) fn alone(&self, key: &[u8]) -> Result<(), WorkerError> {
        let values = self.recorded.iter().flat_map(|record| &record.values);
        let value = values.into_iter().find(|one| one.migration.is_some());
        let value = value.map(|one| {
            let (text, index) = (key_text(&one.value, one.index.attribute.key_type), &one.index.name);
            format!("value {text:?} of the index {index}")
        });
        let other = self.records.iter().find(|one| one.key != key && (one.moves.is_some() || !one.settled));
        match value.or_else(|| other.map(|one| format!("key {:?}", self.text(&one.key)))) {
            None => Ok(()),
            Some(other) => Err(WorkerError::Busy(format!(
                "The {other} of table {} is being resharded, and a gateway of an older build is registered: until it is replaced one change of a table \
                 goes on at a time. `heatsink reshard status` says how far it is",
                self.table.name
            ))),
        }
    }

    /// A reshard of one key, by its bytes. Other keys that move are not looked at.
    ///
    /// # Errors
    /// [`WorkerError::Usage`] with the reason why it is not possible, and what to do.
    pub fn reshard(&self, key: &[u8], wanted: &WantedLayout) -> Result<Reshard, WorkerError> {
        let text = |key: &[u8]| self.text(key);
        let (table, schema) = (&self.table.name, &self.described.schema);
        let wanted = &self.in_full(key, wanted);
        number_of_shards(wanted.shards)?;
        part_of_text(schema, wanted)?;
        is_countable(schema, self.expires.is_some(), wanted)?;
        can_have_slots(&self.laid_out(key), wanted)?;
        can_have_ranges(schema, &self.laid_out(key), wanted)?;
        if key.is_empty() {
            return usage("A partition key is never empty");
        }
        let record = self.record(key).cloned();
        if record.is_none() && self.records.len() >= MAX_KEY_RECORDS {
            return usage(format!("Table {table} has {MAX_KEY_RECORDS} keys on record, which is the most"));
        }
        if !self.table.can_have_shards(key) {
            return usage(format!(
                "The key {} of table {table} has no room for a shard: a number has, below 10^20 in magnitude and with at most six digits behind \
                 the point",
                text(key)
            ));
        }
        if let Some((logical, _)) = self.table.key_layouts().shard(key, self.key_type()) {
            return usage(format!(
                "{:?} is the physical key of a shard of {:?}, which is on record: reshard that one",
                text(key),
                text(logical)
            ));
        }
        let from = match &record {
            Some(record) => record.layout.clone(),
            None => self.table.by_rule(key).map_or_else(Layout::none, |layout| Layout::clone(layout)),
        };
        let to = match record.as_ref().and_then(|record| record.moves.as_ref()) {
            Some(moves) if !is_wanted(&moves.to, wanted) => {
                return usage(format!(
                    "The key {:?} of table {table} is being moved from {} to {}{}; let that end first: the same command with {}{} goes \
                     on with it",
                    text(key),
                    shards(from.shards),
                    moves.to.shards,
                    in_slots(moves.to.slots()),
                    count_flag(&moves.to),
                    slots_flag(moves.to.slots())
                ));
            }
            Some(moves) => moves.to.clone(),
            None => match target(&from, wanted) {
                to if to.time().is_some() && to.shards != from.shards => {
                    let (now, bounds) = (self.registry.env().unix_millis(), self.announcer.bounds());
                    steps::by_the_clock(&from, to.shards, now, steps::margin(bounds))?
                }
                to => to,
            },
        };
        if self.has_buckets() && from.time().is_none() {
            return usage(format!(
                "The key {:?} of table {table} lies in no buckets, and other keys of the table do ({}): of such tables only keys with buckets get other shards \
                 while clients use them",
                text(key),
                self.layouts
            ));
        }
        if let Some(why) = self.streamed.as_ref().filter(|_| from.time().is_none()) {
            return usage(why.clone());
        }
        if !same(&from, &to) || to.counter_attributes().is_some() {
            can_change(schema, key, &from, &to)?;
        }
        let owner = Key { table: Arc::clone(&self.table), bytes: key.to_vec() };
        let last = Slot { bucket: to.newest_from(), shard: to.slot_bound() - 1 };
        owner.in_slot(&to, last).map_err(|error| {
            WorkerError::Usage(format!("The key {:?} is too long for so many shards: {error}", text(key)))
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
            writes: Arc::default(),
            shares: Arc::default(),
        })
    }
}

fn can_be_sharded(described: &Described) -> Result<(), WorkerError> {
    let (schema, status) = (&described.schema, &described.status);
    let table = &schema.name;
    if status != "ACTIVE" && !status.is_empty() {
        return usage(format!("Table {table} is {status}; wait until it is ACTIVE"));
    }
    Ok(())
}

/// Why no item of the table may move without a word of the operator.
async fn streamed(registry: &Registry, table: &str) -> Result<Option<String>, WorkerError> {
    let answer = registry.call(Operation::DescribeTable, json!({ "TableName": table })).await?;
    let description = &answer["Table"];
    let replicas = description["Replicas"].as_array().is_some_and(|replicas| !replicas.is_empty());
    let stream = &description["StreamSpecification"];
    if !replicas && stream["StreamEnabled"] != true {
        return Ok(None);
    }
    let told = match shows_old_images(stream) {
        true => format!("there the old image has the attribute {MOVED}"),
        false => "which looks like a client's delete".to_owned(),
    };
    Ok(Some(format!(
        "Table {table} has a stream{}: its readers see each item that moves inserted under its new key and removed under the old one; {told} \
         (docs/how-to/read-a-stream.md). A counter's parts are items to them. Say --confirm-streams if they can bear that",
        if replicas { " and replicas" } else { "" },
    )))
}
