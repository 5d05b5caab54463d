//! What happens in a simulation, drawn from its seed: gateways, clients and their calls, the
//! weather, processes that stop and die, and one kind of change to the table or its layout.

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;
use futures::future::{FutureExt, LocalBoxFuture, join_all};
use heatsink_dynamo::Operation as Wire;
use heatsink_history::{Operation, Value};
use heatsink_workers::{Direction, WorkerError};

use crate::client::PATIENCE;
use crate::clock::{seconds, up_to};
use crate::counters::Counters;
use crate::network::{self, Weather};
use crate::table::{BY_STATUS, DAYS, OWN, VOTES};
use crate::world::World;

/// What changes while clients go on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Story {
    /// Nothing: the table is there and known.
    Steady,
    /// The table is made while clients write to it.
    Birth,
    /// The table is dropped and made again.
    Rebirth,
    /// Gateways are started without the rule, and restarted with it one by one.
    Rollout,
    /// The index's keys are adopted, and brought back.
    Index,
    /// The table's own keys are adopted, and brought back.
    Adoption,
    /// The table's keys lie in buckets of time. It is dropped and made again.
    Buckets,
    /// Numbers are added to in every shard, while the table comes under its rule and somebody turns
    /// on time to live.
    Counters,
    /// The hot key moves to other shards, and back. It has seeds of its own.
    Reshard,
    /// The hot key becomes a counter of more and more fragments. It has seeds of its own.
    Widening,
    /// All keys of the table get other layouts, and those of before. It has seeds of its own.
    Turning,
}

impl Story {
    const ALL: [Story; 8] = [
        Story::Steady,
        Story::Birth,
        Story::Rebirth,
        Story::Rollout,
        Story::Index,
        Story::Adoption,
        Story::Buckets,
        Story::Counters,
    ];

    /// The story of a seed.
    pub fn of(seed: u64) -> Story {
        Story::ALL[(seed % Story::ALL.len() as u64) as usize]
    }
}

/// What came of a simulation.
pub struct Played {
    pub wrong: Vec<String>,
    pub log: Vec<String>,
    pub calls: usize,
    pub writes: usize,
}

/// Plays a seed.
pub fn play(seed: u64, story: Story) -> Played {
    if story == Story::Reshard {
        return crate::reshard::play(seed);
    }
    if story == Story::Widening {
        return crate::widening::play(seed);
    }
    if story == Story::Turning {
        return crate::turning::play(seed);
    }
    let world = World::new(seed);
    let stage = Rc::new(Stage::draw(Rc::clone(&world), seed, story));
    play_with(&world, async move { stage.script().await })
}

/// Plays a script that returns all that is wrong.
pub fn play_with(world: &Rc<World>, script: impl Future<Output = Vec<String>> + 'static) -> Played {
    let wrong = Arc::new(Mutex::new(Vec::new()));
    let told = Arc::clone(&wrong);
    world.run(async move { *told.lock().unwrap() = script.await });
    let (calls, writes) = world.book.counts();
    let wrong = std::mem::take(&mut *wrong.lock().unwrap());
    Played { wrong, log: world.log.take(), calls, writes }
}

/// One simulation, as its seed has drawn it.
struct Stage {
    world: Rc<World>,
    story: Story,
    seed: u64,
    /// The rules of every gateway in the end.
    rules: String,
    items: Vec<String>,
    clients: u64,
    calls: u64,
    /// The longest pause between two calls of a client.
    pace: Duration,
    weather: Weather,
    /// The longest time between two mischiefs that befall gateways; `None` for none.
    mischief: Option<Duration>,
    written: Cell<i64>,
    /// Clients that have not come to their end.
    busy: Cell<u64>,
    /// An adoption that the weather let come to no end.
    unfinished: RefCell<Option<(String, Direction)>>,
}

impl Stage {
    fn draw(world: Rc<World>, seed: u64, story: Story) -> Stage {
        let mut rng = Rng::with_seed(seed);
        let rules = match story {
            Story::Index if rng.bool() => String::new(),
            Story::Index => OWN.to_owned(),
            Story::Adoption => String::new(),
            Story::Buckets => DAYS.to_owned(),
            Story::Counters => VOTES.to_owned(),
            _ if rng.bool() => OWN.to_owned(),
            _ => format!("{OWN}{BY_STATUS}"),
        };
        let beyond = rng.u32(0..8) == 0;
        let latest = if beyond { 60 } else { [1, 5, 15, 29][rng.usize(..4)] };
        let latest = seconds(latest);
        let mut one_in = |n: &[u64]| if rng.bool() { n[rng.usize(..n.len())] } else { 0 };
        let weather = Weather {
            late: one_in(&[5, 20, 50]),
            latest,
            punctual: network::PAST,
            lost: one_in(&[10, 40]),
            throttled: one_in(&[10, 40]),
            twice: one_in(&[5, 20]),
            split: one_in(&[2, 10]),
            torn: 0,
            stale: Duration::from_millis(one_in(&[100, 1_000, 5_000])),
            patience: if beyond && rng.bool() { seconds(90) } else { network::PATIENCE },
        };
        world.book.set_beyond(beyond);
        for _ in 0..rng.usize(2..=4) {
            let some = [Story::Rollout, Story::Rebirth, Story::Counters].contains(&story);
            let without = some && rng.bool();
            world.add_gateway(if without { "" } else { &rules });
        }
        Stage {
            story,
            seed,
            rules,
            items: (0..rng.usize(2..=4))
                .map(|at| match story {
                    Story::Buckets => format!("2026-01-0{}T00:00:00Z", at / 2 + 1 + at % 2 * 3),
                    _ => format!("p{at}"),
                })
                .collect(),
            clients: rng.u64(2..=4),
            calls: rng.u64(12..=18),
            pace: Duration::from_millis([50, 500, 3_000, 8_000][rng.usize(..4)]),
            weather,
            mischief: rng.bool().then(|| seconds(rng.u64(2..=20))),
            written: Cell::new(0),
            busy: Cell::new(0),
            unfinished: RefCell::new(None),
            world,
        }
    }

    fn rng(&self, role: u64) -> Rng {
        Rng::with_seed(self.seed.wrapping_mul(7_919).wrapping_add(role))
    }

    /// All of it. Returns what is wrong in the end.
    async fn script(self: Rc<Self>) -> Vec<String> {
        let world = &self.world;
        world.log.line(format!(
            "{:?}, {} gateways, {} clients, {:?}, rules {:?}",
            self.story,
            world.gateways(),
            self.clients,
            self.weather,
            self.rules
        ));
        let there = !matches!(self.story, Story::Birth | Story::Rollout | Story::Counters);
        if there && self.story != Story::Steady {
            world.create_past().await;
        }
        for gateway in 0..world.gateways() {
            if let Err(why) = world.start_surely(gateway).await {
                world.book.fault(format!("gateway {gateway} does not start: {why}"));
            }
        }
        if there {
            self.make_known().await;
        }
        world.network.set(self.weather);
        let counters = Counters::new(Rc::clone(world), self.items.clone());
        self.busy.set(self.clients);
        let mut parts: Vec<LocalBoxFuture<'_, ()>> =
            vec![self.mischief().boxed_local(), self.change().boxed_local()];
        parts.extend((0..self.clients).map(|client| match self.story {
            Story::Counters => self.counting_client(client, &counters).boxed_local(),
            _ => self.client(client).boxed_local(),
        }));
        join_all(parts).await;
        // A request to drop the table may have been late.
        world.network.set(Weather::default());
        world.clock.sleep(seconds(90)).await;
        world.create_past().await;
        if self.story == Story::Counters {
            return counters.end(&self.rules).await;
        }
        let unfinished = self.unfinished.take();
        if let Some((rules, direction)) = unfinished {
            world.adopt_surely(&rules, direction).await;
        }
        world.end(&self.items, &self.rules).await
    }

    /// The table is there and every gateway has long known it, before the clients begin.
    async fn make_known(&self) {
        if self.story == Story::Steady {
            self.world.change_table(0, Wire::CreateTable).await;
        }
        let mut rng = self.rng(1);
        for gateway in 0..self.world.gateways() {
            for item in &self.items {
                for _ in 0..200 {
                    let put = Operation::Put(self.value(&mut rng));
                    if let crate::client::Reply::Answered(_) =
                        self.world.call(gateway, item, put, PATIENCE).await
                    {
                        break;
                    }
                    self.world.clock.sleep(seconds(1)).await;
                }
            }
        }
        self.world.clock.sleep(seconds(20)).await;
    }

    fn value(&self, rng: &mut Rng) -> Value {
        // Sums of what is added never lead from one to another.
        self.written.set(self.written.get() + 1_000);
        Value { number: self.written.get(), label: rng.u8(0..3) }
    }

    async fn client(&self, client: u64) {
        let mut rng = self.rng(100 + client);
        for _ in 0..self.calls {
            self.world.clock.sleep(up_to(&mut rng, self.pace)).await;
            let gateway = rng.usize(..self.world.gateways());
            let item = &self.items[rng.usize(..self.items.len())];
            let patience = if rng.u32(0..8) == 0 { up_to(&mut rng, seconds(5)) } else { PATIENCE };
            let operation = match rng.u32(0..16) {
                0..4 => Operation::Put(self.value(&mut rng)),
                4..6 => Operation::Create(self.value(&mut rng)),
                6..8 => Operation::Update(self.value(&mut rng)),
                8 => Operation::Delete,
                9..11 => Operation::Add(rng.i64(1..10)),
                11..13 => Operation::Get,
                other => {
                    self.read_many(&mut rng, gateway, other).await;
                    continue;
                }
            };
            self.world.call(gateway, item, operation, patience).await;
        }
        self.busy.set(self.busy.get() - 1);
    }

    /// A client that adds, and reads what was added.
    async fn counting_client(&self, client: u64, counters: &Counters) {
        let mut rng = self.rng(100 + client);
        for _ in 0..self.calls {
            self.world.clock.sleep(up_to(&mut rng, self.pace)).await;
            let gateway = rng.usize(..self.world.gateways());
            let item = &self.items[rng.usize(..self.items.len())];
            let patience = if rng.u32(0..8) == 0 { up_to(&mut rng, seconds(5)) } else { PATIENCE };
            match rng.u32(0..6) {
                0 => counters.read_all(gateway).await,
                1 => counters.read(gateway, item).await.map(drop),
                _ => counters.add(gateway, item, patience).await,
            }
            .unwrap_or_else(|error| self.world.log.line(format!("  not by gateway {gateway}: {error}")));
        }
        self.busy.set(self.busy.get() - 1);
    }

    async fn read_many(&self, rng: &mut Rng, gateway: usize, how: u32) {
        let limit = rng.usize(1..5);
        let read = match how {
            13 => self.world.query(gateway, &self.items, None, limit, true).await,
            14 => {
                // While values are rewritten a row can leave one shard and come to another between
                // two reads.
                let still = self.story != Story::Index;
                let label = Some(rng.u8(1..3));
                self.world.query(gateway, &self.items, label, limit, still).await
            }
            _ => self.world.scan(gateway, &self.items, limit).await,
        };
        if let Err(error) = read {
            self.world.log.line(format!("  a read of many by gateway {gateway} fails: {error}"));
        }
    }

    /// Stops gateways and lets them go on, kills them and starts them again, until the clients are
    /// done.
    async fn mischief(&self) {
        let (world, mut rng) = (&self.world, self.rng(2));
        let Some(pause) = self.mischief else { return };
        loop {
            world.clock.sleep(up_to(&mut rng, pause)).await;
            if self.busy.get() == 0 {
                return;
            }
            let gateway = rng.usize(..world.gateways());
            if rng.bool() {
                let longest = seconds([2, 15, 60][rng.usize(..3)]);
                world.stop(gateway, true);
                world.clock.sleep(up_to(&mut rng, longest)).await;
                world.stop(gateway, false);
            } else {
                world.kill(gateway);
                world.clock.sleep(up_to(&mut rng, seconds(10))).await;
                let _ = world.start_surely(gateway).await;
            }
        }
    }

    /// The change that the story is about.
    async fn change(&self) {
        let (world, mut rng) = (&self.world, self.rng(3));
        world.clock.sleep(up_to(&mut rng, self.pace * 5)).await;
        match self.story {
            Story::Steady | Story::Reshard | Story::Widening | Story::Turning => {}
            Story::Birth => self.create(&mut rng).await,
            Story::Counters => {
                self.create(&mut rng).await;
                for _ in 0..rng.u32(0..4) {
                    world.clock.sleep(up_to(&mut rng, self.pace * 3)).await;
                    world.expire(rng.usize(..world.gateways()), rng.u32(0..3) > 0).await;
                }
            }
            Story::Rebirth | Story::Buckets => {
                for _ in 0..rng.u32(1..=2) {
                    self.drop_table(&mut rng).await;
                    world.clock.sleep(up_to(&mut rng, self.pace * 3)).await;
                    self.create(&mut rng).await;
                    world.clock.sleep(up_to(&mut rng, self.pace * 5)).await;
                }
            }
            Story::Rollout => {
                self.create(&mut rng).await;
                let mut order: Vec<usize> = (0..world.gateways()).collect();
                rng.shuffle(&mut order);
                for gateway in order {
                    world.clock.sleep(up_to(&mut rng, self.pace * 3)).await;
                    world.set_rules(gateway, &self.rules);
                    world.kill(gateway);
                    let _ = world.start_surely(gateway).await;
                }
            }
            Story::Index | Story::Adoption => {
                let rules = match self.story {
                    Story::Index => format!("{}{BY_STATUS}", self.rules),
                    _ => OWN.to_owned(),
                };
                for direction in [Direction::Adopt, Direction::Back, Direction::Adopt] {
                    if !self.adopt(&mut rng, &rules, direction).await || rng.u32(0..3) == 0 {
                        return;
                    }
                    world.clock.sleep(up_to(&mut rng, self.pace * 3)).await;
                }
            }
        }
    }

    /// Runs `heatsink adopt` until it has ended well; it may be killed on the way.
    async fn adopt(&self, rng: &mut Rng, rules: &str, direction: Direction) -> bool {
        for _ in 0..12 {
            let life = if rng.bool() { up_to(rng, seconds(40)) } else { seconds(3_600) };
            match self.world.adopt(rules, direction, life).await {
                Some(Ok(_)) => return true,
                // A run before this one had ended, but for its answer.
                Some(Err(WorkerError::Usage(_))) if direction == Direction::Back => return true,
                _ => self.world.clock.sleep(up_to(rng, seconds(5))).await,
            }
        }
        *self.unfinished.borrow_mut() = Some((rules.to_owned(), direction));
        false
    }

    async fn create(&self, rng: &mut Rng) {
        if rng.bool() {
            self.world.create_past().await;
        } else {
            self.world.change_table(rng.usize(..self.world.gateways()), Wire::CreateTable).await;
        }
    }

    /// Has the table dropped, by a request that bypasses Heatsink or by a gateway. One that is
    /// being adopted no gateway drops.
    async fn drop_table(&self, rng: &mut Rng) {
        if rng.bool() || self.unfinished.borrow().is_some() {
            self.world.drop_past().await;
        } else {
            self.world.change_table(rng.usize(..self.world.gateways()), Wire::DeleteTable).await;
        }
    }
}
