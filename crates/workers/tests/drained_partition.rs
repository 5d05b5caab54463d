//! How much a mover takes of what clients leave of the drained partition, and what clients notice
//! of it: the real mover against the partitions of `heatsink-physics`, in virtual time.
//!
//! The registry is the embedded store's. The items are only counted: what matters here is what
//! their reads and transactions cost, and when.
//!
//! Not here: whether every item is moved rightly (the simulation of `heatsink`).
#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    clippy::cast_precision_loss,
    reason = "a test fails by panicking, and counts little"
)]

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use fastrand::Rng;
use futures::FutureExt;
use futures::executor::{LocalPool, block_on};
use futures::future::BoxFuture;
use futures::task::LocalSpawnExt;
use heatsink_control::Rules;
use heatsink_dynamo::{Code, Error, Operation};
use heatsink_env::{Env, ManualEnv, MonotonicInstant};
use heatsink_layout::{By, Hash, Layout, SortKey, Strategy};
use heatsink_physics::{
    Access, Demand, KeyRange, Mode, PARTITION_WRITES, PartitionSnapshot, ResourceId, Tables, Units, position,
};
use heatsink_reshard::{Phase, State};
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use heatsink_workers::{DEFAULT_RATE, Progress, Reshard, ReshardOptions};
use serde_json::{Value as Json, json};

const TABLE: &str = "Leaderboards";
const KEY: &str = "game_x";
/// Write units of the old partition that an item's move takes.
const UNITS: u64 = 4;
/// Items of a page of 1 MB.
const PAGE: usize = 2_600;
/// Time goes on in such steps.
const STEP: Duration = Duration::from_micros(100);

/// Sleeps as a process does: its timer knows whole milliseconds, and wakes it a little late.
struct Timer(ManualEnv);

impl Env for Timer {
    fn now(&self) -> MonotonicInstant {
        self.0.now()
    }

    fn unix_millis(&self) -> u64 {
        self.0.unix_millis()
    }

    fn random(&self) -> u64 {
        self.0.random()
    }

    fn sleep(&self, pause: Duration) -> BoxFuture<'static, ()> {
        let now = self.now();
        let tick = (now + pause).0.div_ceil(1_000_000) * 1_000_000;
        self.0.sleep(MonotonicInstant(tick).since(now) + STEP)
    }
}

/// A store some milliseconds away, whose table lies in 60 partitions.
struct Far {
    env: ManualEnv,
    registry: Embedded,
    tables: Mutex<Tables>,
    table: ResourceId,
    /// The items that have not moved.
    old: Mutex<BTreeSet<String>>,
    rng: Mutex<Rng>,
    /// The longest way there, or back.
    way: Duration,
}

impl Far {
    fn new(env: ManualEnv, case: Case) -> Far {
        let registry = Embedded::memory().unwrap();
        let table = json!({
            "TableName": TABLE, "BillingMode": "PAY_PER_REQUEST",
            "KeySchema": [{ "AttributeName": "pk", "KeyType": "HASH" }, { "AttributeName": "sk", "KeyType": "RANGE" }],
            "AttributeDefinitions": [
                { "AttributeName": "pk", "AttributeType": "S" }, { "AttributeName": "sk", "AttributeType": "S" },
            ],
        });
        block_on(registry.call(Operation::CreateTable, Bytes::from(table.to_string()))).unwrap();
        let mut tables = Tables::default();
        let mode = Mode::Provisioned { read: 90_000, write: 30_000 };
        let table = tables.create(env.now().0, TABLE.into(), mode);
        let old = (0..case.items).map(|nth| format!("a{nth:09}")).collect();
        let rng = Mutex::new(Rng::with_seed(1));
        Far { env, registry, tables: Mutex::new(tables), table, old: Mutex::new(old), rng, way: case.way }
    }

    fn way(&self) -> BoxFuture<'static, ()> {
        self.env.sleep(self.way.mul_f64(self.rng.lock().unwrap().f64()))
    }

    fn demand(&self, access: Access, physical: &str, units: u64) -> Demand {
        let place = KeyRange::key(position(physical.as_bytes()));
        Demand { on: self.table, access, place, units: Units::whole(units) }
    }

    /// Whether a put of a client is accepted.
    fn put(&self, physical: &str) -> bool {
        let put = self.demand(Access::Write, physical, 1);
        self.tables.lock().unwrap().offer(self.env.now().0, &[put]).is_ok()
    }

    /// The partition that the key leaves.
    fn drained(&self) -> PartitionSnapshot {
        let table = self.tables.lock().unwrap().snapshot(self.env.now().0, TABLE).unwrap().remove(0);
        let left = position(KEY.as_bytes());
        table.partitions.into_iter().find(|one| (one.first..=one.last).contains(&left)).unwrap()
    }

    fn answer(&self, operation: Operation, body: &Bytes) -> Result<Json, Error> {
        let request: Json = serde_json::from_slice(body).unwrap();
        match operation {
            Operation::Query if request["TableName"] == TABLE => self.page(&request),
            Operation::TransactWriteItems
                if request.to_string().contains(&format!("\"TableName\":\"{TABLE}\"")) =>
            {
                self.transaction(&request)
            }
            _ => {
                let done = block_on(self.registry.call(operation, body.clone()))?;
                Ok(serde_json::from_slice(&done).unwrap())
            }
        }
    }

    fn page(&self, request: &Json) -> Result<Json, Error> {
        let physical = request["ExpressionAttributeValues"][":p"]["S"].as_str().unwrap();
        let after = request["ExclusiveStartKey"]["sk"]["S"].as_str().unwrap_or_default();
        let most = request["Limit"].as_u64().map_or(PAGE, |limit| limit as usize);
        let old = self.old.lock().unwrap();
        let rows = old.iter().filter(|sort| physical == KEY && sort.as_str() > after);
        let items: Vec<Json> =
            rows.take(most).map(|sort| json!({ "pk": { "S": KEY }, "sk": { "S": sort } })).collect();
        let units = (items.len() as u64).div_ceil(10).max(1);
        let read = self.demand(Access::Strong, physical, units);
        let admitted = self.tables.lock().unwrap().offer(self.env.now().0, &[read]);
        admitted.map_err(|_| Error::bare(Code::ProvisionedThroughputExceededException))?;
        let last = if items.len() == most { items.last().cloned() } else { None };
        Ok(json!({
            "Items": items, "Count": items.len(), "ScannedCount": items.len(), "LastEvaluatedKey": last,
            "ConsumedCapacity": { "TableName": TABLE, "CapacityUnits": units },
        }))
    }

    /// A transaction of a pull: two units for each of its actions in the table.
    fn transaction(&self, request: &Json) -> Result<Json, Error> {
        let actions: Vec<&Json> = request["TransactItems"]
            .as_array()
            .unwrap()
            .iter()
            .flat_map(|one| one.as_object().unwrap().values())
            .collect();
        let own = actions.iter().filter(|action| action["TableName"] == TABLE);
        let key = |action: &Json| {
            if action["Item"].is_null() { action["Key"].clone() } else { action["Item"].clone() }
        };
        let demands: Vec<Demand> = own
            .map(|action| self.demand(Access::Write, key(action)["pk"]["S"].as_str().unwrap(), 2))
            .collect();
        if self.tables.lock().unwrap().offer(self.env.now().0, &demands).is_err() {
            let reasons: Vec<Json> =
                actions.iter().map(|_| json!({ "Code": "ProvisionedThroughputExceeded" })).collect();
            return Err(
                Error::bare(Code::TransactionCanceledException).with("CancellationReasons", reasons.into())
            );
        }
        for one in request["TransactItems"].as_array().unwrap() {
            if let Some(sort) = one["Delete"]["Key"]["sk"]["S"].as_str() {
                self.old.lock().unwrap().remove(sort);
            }
        }
        Ok(json!({}))
    }
}

impl Store for Far {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        async move {
            self.way().await;
            // The embedded store answers on threads of its own, in no time.
            let done =
                std::thread::scope(|scope| scope.spawn(|| self.answer(operation, &body)).join().unwrap());
            self.way().await;
            done.map(|done| Bytes::from(done.to_string()))
        }
        .boxed()
    }
}

/// A moment of a move: when it was, what the drained partition had taken by then, and how many
/// items had moved.
type Moment = (MonotonicInstant, f64, u64);

/// When the items began to move, when clients had gone, and when the last item was there.
#[derive(Default)]
struct Seen {
    begun: Option<Moment>,
    alone: Option<Moment>,
    ended: Option<Moment>,
    items: u64,
    /// Items that had been moved after each second.
    by_second: Vec<u64>,
}

struct Watch {
    far: Arc<Far>,
    seen: Mutex<Seen>,
}

impl Watch {
    fn now(&self) -> Moment {
        (self.far.env.now(), self.far.drained().writes, self.seen.lock().unwrap().items)
    }
}

impl Progress for Watch {
    fn state(&self, state: State) {
        let now = self.now();
        let mut seen = self.seen.lock().unwrap();
        match state {
            State::Moving { phase: Phase::Move, closing: false } => seen.begun = Some(now),
            State::Stable { settled: false, .. } => seen.ended = Some(now),
            _ => {}
        }
    }

    fn moved(&self, items: u64) {
        let mut seen = self.seen.lock().unwrap();
        let Some((begun, ..)) = seen.begun else { return };
        let second = self.far.env.now().since(begun).as_secs() as usize;
        seen.items = items;
        let seconds = seen.by_second.len().max(second + 1);
        seen.by_second.resize(seconds, items);
        seen.by_second[second] = items;
    }
}

/// A key, and who else uses it.
#[derive(Clone, Copy, Debug)]
struct Case {
    items: u64,
    /// The key's shards afterwards.
    shards: u16,
    /// Puts per second of clients from the cutover on, for so many seconds.
    puts: u64,
    seconds: u64,
    /// The longest way to the store, or back.
    way: Duration,
}

/// How it went.
struct Moved {
    seconds: f64,
    /// Units that the mover took of the drained partition ÷ those that clients left, while they
    /// were there.
    share: f64,
    /// Whole seconds from when clients had gone until the mover took nine tenths of the partition;
    /// `None` where the items were all moved before.
    found: Option<usize>,
    /// The largest share of throttled puts in a second.
    worst: f64,
    /// Items that were moved in each second.
    items: Vec<u64>,
    /// Accepted and throttled puts of each second.
    puts: Vec<[u64; 2]>,
}

/// Puts of clients, each into the shard that it has from the cutover on: what was accepted and what
/// throttled in each second.
async fn put(watch: Arc<Watch>, case: Case, tally: Rc<RefCell<Vec<[u64; 2]>>>) {
    let far = &watch.far;
    let strategy = Strategy::calculated(By::SortKey);
    let layout = Layout { strategy, shards: case.shards, hash: Hash::JumpXxh3, version: 1 };
    let begun = far.env.now();
    for nth in 0..case.puts * case.seconds {
        let due = begun + Duration::from_micros(nth * 1_000_000 / case.puts);
        if due > far.env.now() {
            far.env.sleep(due.since(far.env.now())).await;
        }
        let accepted = match layout.shard_of(Some(SortKey::S(&format!("b{nth:09}")))) {
            0 => far.put(KEY),
            shard => far.put(&format!("{KEY}#~{shard}")),
        };
        let second = far.env.now().since(begun).as_secs() as usize;
        let mut tally = tally.borrow_mut();
        let seconds = tally.len().max(second + 1);
        tally.resize(seconds, [0, 0]);
        tally[second][usize::from(!accepted)] += 1;
    }
    if case.puts > 0 {
        let now = watch.now();
        watch.seen.lock().unwrap().alone = Some(now);
    }
}

fn moved(case: Case, seed: u64) -> Moved {
    let time = ManualEnv::seeded(seed);
    let far = Arc::new(Far::new(time.clone(), case));
    let watch = Arc::new(Watch { far: Arc::clone(&far), seen: Mutex::default() });
    let (tally, over) = (Rc::new(RefCell::new(Vec::new())), Rc::new(Cell::new(false)));
    let mut pool = LocalPool::new();
    let (store, ends, watches) = (Arc::clone(&far), Rc::clone(&over), Arc::clone(&watch));
    let env = Arc::new(Timer(time.clone()));
    let mover = async move {
        let rules = Rules::default();
        let prepared =
            Reshard::prepare(store, env, &rules, TABLE, KEY.as_bytes(), case.shards, false).await.unwrap();
        prepared.run(ReshardOptions { exclusive: true, rate: DEFAULT_RATE }, &*watches).await.unwrap();
        ends.set(true);
    };
    pool.spawner().spawn_local(mover).unwrap();
    let mut clients = Some(put(Arc::clone(&watch), case, Rc::clone(&tally)));
    loop {
        pool.run_until_stalled();
        if over.get() {
            break;
        }
        if watch.seen.lock().unwrap().begun.is_some()
            && let Some(clients) = clients.take()
        {
            pool.spawner().spawn_local(clients).unwrap();
            continue;
        }
        time.advance(STEP);
    }
    let seen = watch.seen.lock().unwrap();
    let (begun, ended) = (seen.begun.unwrap(), seen.ended.unwrap());
    let seconds = ended.0.since(begun.0).as_secs_f64();
    let beside = seen.alone.unwrap_or(ended);
    let taken = ((beside.2 - begun.2) * UNITS) as f64;
    let left = PARTITION_WRITES as f64 * beside.0.since(begun.0).as_secs_f64() - (beside.1 - begun.1 - taken);
    let puts = tally.borrow().clone();
    let throttled =
        puts.iter().map(|[accepted, throttled]| *throttled as f64 / (accepted + throttled).max(1) as f64);
    let worst = throttled.fold(0.0, f64::max);
    let items: Vec<u64> =
        seen.by_second.iter().scan(0, |last, now| Some(*now - std::mem::replace(last, *now))).collect();
    let found = seen.alone.and_then(|alone| {
        let mut after = items.iter().skip(alone.0.since(begun.0).as_secs() as usize);
        after.position(|items| items * UNITS * 10 >= PARTITION_WRITES * 9)
    });
    assert_eq!(seen.items, case.items - far.old.lock().unwrap().len() as u64);
    Moved { seconds, share: taken / left, found, worst, items, puts }
}

/// How often a case is run: `HEATSINK_RUNS`, or so often.
const RUNS: u64 = 3;

/// 5,000 puts a second over 16 shards, as `heatsink-lab demo reshard` has them. Two of the shards
/// lie in the drained partition: clients use 625 units of it.
const VIRAL: Case =
    Case { items: 6_000, shards: 16, puts: 5_000, seconds: 60, way: Duration::from_millis(2) };

/// A mover takes at least so much of what clients leave while they are there, and they do not
/// notice: the median of runs whose requests come at other moments. When the mover meets a throttle
/// is chance, and so is what a throttled second is worth. Once clients have gone, it has the whole
/// partition soon: from the least that they leave here, 230 units a second, its curve takes 12.6 s.
fn takes(least: f64, case: Case) {
    let median = |mut values: Vec<f64>| {
        values.sort_by(f64::total_cmp);
        values[values.len() / 2]
    };
    let (mut shares, mut worsts) = (Vec::new(), Vec::new());
    let asked = std::env::var("HEATSINK_RUNS").ok().and_then(|runs| runs.parse().ok());
    for seed in 1..=asked.unwrap_or(RUNS) {
        let Moved { seconds, share, found, worst, items, puts } = moved(case, seed);
        println!(
            "{case:?}, seed {seed}: {share:.3} of what was left, in {seconds:.1} s; all of it {found:?} s after clients had gone; throttled at worst {worst:.4} of a second's puts"
        );
        println!("items by second: {items:?}\naccepted and throttled puts by second: {puts:?}");
        assert!(found.is_none_or(|seconds| seconds <= 14), "it had all of the partition after {found:?} s");
        shares.push(share);
        worsts.push(worst);
    }
    let (share, worst) = (median(shares), median(worsts));
    assert!(share >= least, "{share} of what was left");
    assert!(worst < 0.01, "{worst} of the puts of a second were throttled");
}

#[test]
fn it_takes_what_clients_leave_and_they_do_not_notice() {
    takes(0.90, VIRAL);
}

#[test]
fn it_takes_what_clients_leave_of_a_store_that_is_far() {
    takes(0.90, Case { way: Duration::from_millis(20), ..VIRAL });
}

/// Of 13 shards, too, two lie there.
#[test]
fn it_takes_what_clients_leave_who_use_three_quarters() {
    takes(0.90, Case { shards: 13, ..VIRAL });
}

#[test]
fn it_takes_the_whole_partition_where_nobody_else_is() {
    takes(0.90, Case { items: 10_000, puts: 0, ..VIRAL });
}
