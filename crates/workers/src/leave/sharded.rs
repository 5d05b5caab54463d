//! What of a table is sharded, by its record, and what of that is on its way elsewhere.
//!
//! Not here: what brings it back (`step`).

use heatsink_control::registry::Registry;
use heatsink_control::reshard_intent::{ReshardIntent, WantedLayout};
use heatsink_control::{KeyRecord, Record, State};
use heatsink_dynamo::{Error, Operation};
use heatsink_layout::{KeyLayout, Layout, Strategy, ValueLayout};
use serde_json::json;

/// What of one table is sharded.
#[derive(Clone, Debug, PartialEq)]
pub struct Sharded {
    /// The table's record.
    pub record: Record,
    /// The records of its single keys, by key.
    pub keys: Vec<KeyRecord>,
    /// Whether the store still has the table.
    pub exists: bool,
    /// How many items it has, by the store's estimate.
    pub items: Option<u64>,
    /// How many bytes, by the store's estimate.
    pub bytes: Option<u64>,
}

/// What changes the layout of a table, and has to end before the table can leave.
#[derive(Clone, Debug, PartialEq)]
pub enum InTheWay {
    /// A reshard that is asked for.
    Asked(ReshardIntent),
    /// A key that moves, and nobody asks for it on record.
    Key(KeyRecord),
    /// A value of an index that gets other shards, and nobody asks for it on record.
    Value(ValueLayout),
    /// `heatsink adopt` brings the table under its rules.
    Adoption,
    /// The table is being recorded, or deleted.
    Lifecycle,
}

impl Sharded {
    /// That of every table on record, in the order of names. Reads the whole registry.
    ///
    /// # Errors
    /// The store's; a record that cannot be read.
    pub async fn all(registry: &Registry) -> Result<Vec<Self>, Error> {
        let mut records = registry.all().await?;
        records.sort_by(|a, b| (&a.name, &a.id).cmp(&(&b.name, &b.id)));
        let mut all = Vec::with_capacity(records.len());
        for record in records {
            all.push(Self::read(registry, record).await?);
        }
        Ok(all)
    }

    /// That of the table of this name; of tables of that name that do not exist any more, too.
    ///
    /// # Errors
    /// As [`all`](Self::all).
    pub async fn named(registry: &Registry, table: &str) -> Result<Vec<Self>, Error> {
        let mut found = Vec::new();
        for record in registry.named(table).await? {
            found.push(Self::read(registry, record).await?);
        }
        Ok(found)
    }

    async fn read(registry: &Registry, record: Record) -> Result<Self, Error> {
        let keys = registry.all_key_records(&record).await?;
        let described = registry.describe(&record.name).await?;
        let exists = described.is_some_and(|described| described.schema.id == record.id);
        let (mut items, mut bytes) = (None, None);
        if exists {
            let answer = registry.call(Operation::DescribeTable, json!({ "TableName": record.name })).await?;
            items = answer["Table"]["ItemCount"].as_u64();
            bytes = answer["Table"]["TableSizeBytes"].as_u64();
        }
        Ok(Sharded { record, keys, exists, items, bytes })
    }

    /// Whether the application itself shards some of its keys: by templates, or by shards that
    /// others draw. Such a table is left as it is.
    pub fn is_sharded_by_hand(&self) -> bool {
        let by_hand = |one: &KeyLayout| {
            one.index().is_none()
                && (one.layout().template().is_some() || one.layout().is_externally_assigned())
        };
        self.record.layouts.iter().any(by_hand)
    }

    /// Whether a rule on record is for keys of the table itself.
    pub fn has_own_rules(&self) -> bool {
        !self.record.layouts.own().is_empty()
    }

    /// Whether a rule on record has counters in several parts.
    pub fn has_counters_by_rule(&self) -> bool {
        self.record.layouts.iter().any(|one| is_spread_counter(one.layout()))
    }

    /// The keys on record that are not whole at rest.
    pub fn spread_keys(&self) -> impl Iterator<Item = &KeyRecord> {
        self.keys.iter().filter(|one| !is_whole(one))
    }

    /// The keys that have to be brought back one by one, while clients use them. Of a table with
    /// rules for its own keys the others come back with the whole table.
    pub fn keys_to_bring_back(&self) -> impl Iterator<Item = &KeyRecord> {
        let rules = self.has_own_rules();
        let stays = move |one: &&KeyRecord| {
            rules && one.moves.is_none() && one.settled && !is_spread_counter(&one.layout)
        };
        self.spread_keys().filter(move |one| !stays(one))
    }

    /// The values of indexes that have to be brought back one by one.
    pub fn values_to_bring_back(&self) -> impl Iterator<Item = &ValueLayout> {
        let rests = |one: &&ValueLayout| one.migration.is_none() && one.shards == 1 && one.extent() > 1;
        self.record.values.iter().filter(move |one| !rests(one))
    }

    /// Whether values of indexes have one shard and items may keep a form that they once had.
    pub fn has_former_forms(&self) -> bool {
        !self.record.values.is_empty() && self.values_to_bring_back().next().is_none()
    }

    /// What has to end before the table can leave: all but what brings keys and values back.
    pub fn in_the_way(&self, intents: &[ReshardIntent]) -> Vec<InTheWay> {
        let of_table = |one: &&ReshardIntent| one.table_id == self.record.id && one.is_open();
        let asked: Vec<&ReshardIntent> = intents.iter().filter(of_table).collect();
        let others = asked.iter().filter(|one| one.cancelled || !asks_for_whole(&one.request.layout));
        let mut found: Vec<InTheWay> = others.map(|one| InTheWay::Asked((*one).clone())).collect();
        let is_asked = |index: Option<&str>, key: &[u8]| {
            asked.iter().any(|one| one.index.as_deref() == index && one.key == key)
        };
        let comes_back = |one: &KeyRecord| {
            one.moves.as_ref().is_none_or(|moves| moves.to.shards == 1 && moves.to.slots().is_empty())
        };
        let keys = self.keys.iter().filter(|one| !comes_back(one) && !is_asked(None, &one.key));
        found.extend(keys.cloned().map(InTheWay::Key));
        let values = self.record.values.iter().filter(|one| {
            one.migration.is_some_and(|migration| migration.to > 1)
                && !is_asked(Some(&one.index.name), &one.value)
        });
        found.extend(values.cloned().map(InTheWay::Value));
        match &self.record.state {
            State::Adopting(_) | State::ChangingKeys(_) => found.push(InTheWay::Adoption),
            State::MigratingIndexKeys(migration) if migration.forward => found.push(InTheWay::Adoption),
            State::Pending | State::Deleting { .. } if self.exists => found.push(InTheWay::Lifecycle),
            _ => {}
        }
        found
    }
}

/// Whether that is what brings a key back.
pub fn asks_for_whole(wanted: &WantedLayout) -> bool {
    wanted.shards == 1 && wanted.counter.is_none() && wanted.slots.as_deref().is_none_or(|slots| slots == [0])
}

/// Whether a key rests as one that was never on record.
fn is_whole(one: &KeyRecord) -> bool {
    let layout = &one.layout;
    let whole = layout.shards == 1 && layout.slots().is_empty() && layout.time().is_none();
    one.moves.is_none()
        && one.settled
        && (whole || layout.strategy == Strategy::None && layout.slots().is_empty())
}

fn is_spread_counter(layout: &Layout) -> bool {
    layout.counter_attributes().is_some() && layout.shards > 1
}
