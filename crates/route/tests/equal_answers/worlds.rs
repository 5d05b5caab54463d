//! Ways in which the items of the table `Tab` can lie, and a client before each.

use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::{
    AttributeDefinition, Error, IndexSchema, Item, KeySchema, KeyType, KeyValue, Operation, TableSchema,
};
use heatsink_layout::{
    By, DIRECTORY, Epoch, Glob, Granularity, Hash, InForce, KeyLayout, KeyLayouts, Layout, LayoutSource,
    MigrationPhase, Moving, OfIndex, Phase, RecordedKey, Slot, SplitPoints, Strategy, Table, TableLayouts,
    Template, Time,
};
use heatsink_route::Router;
use heatsink_testkit::{Step, Stepped};

use serde_json::Value as Json;

use crate::common::json;
use crate::equal_answers::store::Store;

/// How the items of a table lie.
#[derive(Clone)]
pub struct World {
    table: Arc<Table>,
    layout: Arc<Layout>,
    /// What is in force for the key `a`, where that is something else.
    moving: Option<Arc<Moving>>,
}

fn attribute(name: &str) -> AttributeDefinition {
    AttributeDefinition { name: name.to_owned(), key_type: KeyType::S }
}

fn index(name: &str, partition: &str, local: bool) -> IndexSchema {
    let key = KeySchema { partition: attribute(partition), sort: Some(attribute("at")) };
    IndexSchema { name: name.to_owned(), key: key.into(), local, projects_all: true, included: Vec::new() }
}

/// The table `Tab`: a local index by `at`, and global ones of the same key, of the key and `at`,
/// and of another attribute.
fn schema() -> TableSchema {
    TableSchema {
        name: "Tab".to_owned(),
        id: "1".to_owned(),
        key: KeySchema { partition: attribute("pk"), sort: Some(attribute("sk")) },
        indexes: vec![index("local", "pk", true), index("global", "pk", false), index("team", "team", false)],
    }
}

fn directory() -> Store {
    Store::new(TableSchema {
        name: DIRECTORY.to_owned(),
        id: "2".to_owned(),
        key: KeySchema { partition: attribute("pk"), sort: Some(attribute("sk")) },
        indexes: Vec::new(),
    })
}

fn layout(strategy: Strategy, shards: u16, hash: Hash) -> Layout {
    Layout { strategy, shards, hash, version: 1 }
}

/// How values of `team` are stored that are spread.
fn of_team() -> KeyLayout {
    let by_item = layout(Strategy::calculated(By::PrimaryKey), 3, Hash::JumpXxh3);
    let index = OfIndex { name: "team".to_owned(), attribute: attribute("team") };
    KeyLayout::of_index(index, Glob::new("*"), by_item)
}

pub fn calculated(shards: u16) -> Layout {
    layout(Strategy::calculated(By::SortKey), shards, Hash::JumpXxh3)
}

/// Over these slots, one for each shard.
pub fn in_slots(slots: &[u16]) -> Layout {
    calculated(u16::try_from(slots.len()).unwrap()).with_slots(slots).unwrap()
}

/// Ranges of the sort key, in the lowest slots.
pub fn ranges(points: &[&str]) -> Layout {
    let split_points =
        SplitPoints::new(points.iter().map(|point| KeyValue::S((*point).to_owned().into())).collect())
            .unwrap();
    let shards = split_points.ranges();
    layout(Strategy::range(split_points), shards, Hash::JumpXxh3)
}

impl World {
    fn of(layout: Layout, rules: Vec<KeyLayout>) -> Self {
        let table = Table::new(schema(), Arc::new(TableLayouts::new(rules)));
        World { table: Arc::new(table), layout: Arc::new(layout), moving: None }
    }

    fn ruled(layout: Layout) -> Self {
        World::of(layout.clone(), vec![KeyLayout::new(Glob::new("*"), layout)])
    }

    /// Over that many shards by a hash of the sort key.
    pub fn calculated(shards: u16) -> Self {
        World::of(calculated(shards), Vec::new())
    }

    /// The same, with slots by name: of all keys, since escaped ones share no physical key.
    pub fn in_slots(slots: &[u16]) -> Self {
        World::of(in_slots(slots), vec![KeyLayout::new(Glob::new("*"), in_slots(slots))])
    }

    /// In ranges, in these slots.
    pub fn ranges(points: &[&str], slots: &[u16]) -> Self {
        World::ruled(ranges(points).with_slots(slots).unwrap())
    }

    /// The same, with a binary partition key and a number as sort key.
    pub fn binary(shards: u16) -> Self {
        let mut schema = schema();
        let key = |name: &str, key_type| AttributeDefinition { name: name.to_owned(), key_type };
        schema.key = KeySchema { partition: key("pk", KeyType::B), sort: Some(key("sk", KeyType::N)) };
        for index in &mut schema.indexes {
            if index.name != "team" {
                index.key.partition = vec![schema.key.partition.clone()];
            }
        }
        World { table: Arc::new(Table::new(schema, Arc::default())), ..World::calculated(shards) }
    }

    /// The same on record, of a table that held items before.
    pub fn laid_out_later(shards: u16) -> Self {
        let rules = vec![KeyLayout::new(Glob::new("*"), calculated(shards))];
        let table = Table::new(schema(), Arc::new(TableLayouts::new(rules))).adopted(true);
        World { table: Arc::new(table), ..World::calculated(shards) }
    }

    pub fn schema(&self) -> TableSchema {
        TableSchema::clone(&self.table)
    }

    /// Items of which `n` is summed.
    pub fn counters() -> Self {
        World::ruled(layout(Strategy::Counter { attributes: vec!["n".to_owned()] }, 3, Hash::JumpXxh3))
    }

    /// In shards that other writers assign.
    pub fn assigned() -> Self {
        let template = Template::read("{pk}.{shard+1}").unwrap();
        World::ruled(layout(Strategy::Template { template, by: By::SortKey, time: None }, 3, Hash::Random))
    }

    /// A bucket for each day, of two shards.
    pub fn buckets() -> Self {
        let time = Time { granularity: Granularity::Day, prefix: String::new(), epoch: Epoch::Seconds };
        World::ruled(layout(
            Strategy::Bucket { time, by: By::SortKey, earlier: Vec::new() },
            2,
            Hash::JumpXxh3,
        ))
    }

    /// Over shards, and the key of the index `team` over shards of its own.
    pub fn spread() -> Self {
        World::of(calculated(4), vec![KeyLayout::new(Glob::new("*"), calculated(4)), of_team()])
    }

    /// The same, where values of the index begin to be stored so.
    pub fn migrating(writes_new: bool) -> Self {
        let phase =
            MigrationPhase { writes_new, ..MigrationPhase::spreading(&TableLayouts::new(vec![of_team()])) };
        let table = Table::new(schema(), Arc::default()).migrating(&phase);
        World { table: Arc::new(table), layout: Arc::new(calculated(4)), moving: None }
    }

    /// Whole keys, of which `a` moves from one layout to another.
    pub fn moving(from: Layout, to: Layout, phase: Phase) -> Self {
        let (from, to) = (Arc::new(from), Arc::new(to));
        World::of_moving(Moving { from, to, phase, expires: None, marks: false, high_water: None })
    }

    fn of_moving(moving: Moving) -> Self {
        let reserved = moving.from.slot_bound().max(moving.to.slot_bound());
        let moving = Arc::new(moving);
        let in_force = InForce::Moving(Arc::clone(&moving));
        let recorded = RecordedKey { in_force, reserved, since: 1, settled: false };
        let keys = Arc::new(KeyLayouts::new(1, [(b"a".to_vec(), recorded)]));
        let table = Table::new(schema(), Arc::default()).with_key_layouts(keys);
        World { table: Arc::new(table), layout: Arc::new(Layout::none()), moving: Some(moving) }
    }

    /// The same in that phase. Above the high water none of the old slots holds anything.
    fn at(&self, phase: Phase, high_water: Option<KeyValue<'static>>) -> Self {
        let moving = self.moving.as_ref().unwrap();
        World::of_moving(Moving { phase, high_water, ..Moving::clone(moving) })
    }
}

impl LayoutSource for World {
    fn table(&self, name: &str) -> Option<Arc<Table>> {
        (name == "Tab").then(|| Arc::clone(&self.table))
    }

    fn in_force(&self, _: &Table, key: &[u8]) -> InForce {
        match &self.moving {
            Some(moving) if key == b"a" => InForce::Moving(Arc::clone(moving)),
            _ => InForce::Stable(Arc::clone(&self.layout)),
        }
    }

    /// A table that held items before was laid out just now.
    fn has_rested(&self, table: &Table) -> bool {
        !table.is_adopted()
    }

    fn handle(&self) -> Arc<dyn LayoutSource> {
        Arc::new(self.clone())
    }
}

/// A client of a table that is stored so.
pub struct Sharded {
    pub world: World,
    router: Router,
    pub store: Store,
    directory: Store,
}

impl Sharded {
    pub fn new(world: World) -> Self {
        let router = Router::new().with_clock(|| 1_736_294_400_000);
        let store = Store::new(world.schema());
        Sharded { world, router, store, directory: directory() }
    }

    /// Enters a phase of the key that moves: MOVE with the high water of what is stored.
    pub fn enter(&mut self, phase: Phase) {
        let moving = self.world.moving.as_ref().unwrap();
        let place = |shard| self.world.table.physical(b"a", &moving.from, Slot::shard(shard)).unwrap();
        let old: Vec<_> = moving.from.slot_numbers().map(|slot| place(slot).to_vec()).collect();
        let key = |item: &Item, name: &str| KeyValue::from_value(&item[name]).unwrap().into_owned();
        let in_old = |item: &&Item| old.contains(&key(item, "pk").canonical_bytes().into_owned());
        let highest = self.store.items().filter(in_old).map(|item| key(item, "sk")).max();
        self.world = self.world.at(phase, highest.filter(|_| phase == Phase::Move));
    }

    pub fn call(&mut self, operation: Operation, body: &Bytes) -> Result<Bytes, Error> {
        let plan = self.router.plan(operation, body, &self.world)?;
        let explained = plan.explain();
        assert!(!explained.why.is_empty());
        let mut explained = explained.calls.into_iter();
        let mut running = Stepped::new(plan);
        let mut rounds = 0;
        let before = self.store.units;
        loop {
            let calls = match running.step() {
                Step::Done(answer) => {
                    let shown = answer.as_ref().ok().and_then(|answer| consumed(&json(answer)));
                    let asked =
                        matches!(json(body)["ReturnConsumedCapacity"].as_str(), Some("TOTAL" | "INDEXES"));
                    let reads_pages = matches!(operation, Operation::Query | Operation::Scan);
                    assert!(
                        !(asked && reads_pages && answer.is_ok()) || shown.is_some(),
                        "{operation:?} shows no cost"
                    );
                    if let Some(shown) = shown {
                        let cost = self.store.units - before;
                        // What it costs to bring an item to its new slot is not the client's.
                        let pulls = self.world.moving.is_some() && !operation.only_reads();
                        let is_all = (shown - cost).abs() < 1e-6 || pulls && shown < cost;
                        assert!(is_all, "{operation:?}: shows {shown} units of {cost}");
                    }
                    return answer;
                }
                Step::Call(calls) => calls,
            };
            rounds += 1;
            for call in calls {
                if rounds == 1 {
                    let explained = explained.next().map(|call| (call.operation, call.body));
                    let sent = (call.operation.name().to_owned(), json(&call.body));
                    assert_eq!(explained, Some(sent), "what is explained is sent first");
                }
                let hidden = call.body.windows(DIRECTORY.len()).any(|part| part == DIRECTORY.as_bytes());
                let store = if hidden { &mut self.directory } else { &mut self.store };
                running.answer(call.id, store.call(call.operation, &call.body));
            }
        }
    }
}

/// The units that an answer shows.
fn consumed(answer: &Json) -> Option<f64> {
    let units = |capacity: &Json| capacity["CapacityUnits"].as_f64().unwrap();
    Some(match answer.get("ConsumedCapacity")? {
        Json::Array(tables) => tables.iter().map(units).sum(),
        capacity => units(capacity),
    })
}
