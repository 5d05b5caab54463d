//! All keys of the table get other layouts while clients use them and make new ones: whole, so many
//! shards, so many others, whole. Runs of `heatsink adopt` are killed and stopped at any of their
//! calls, two at once, and turned round; so are gateways.
//!
//! Calls land within the bounds here, as in `reshard`: that is what the protocol assumes.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use futures::future::{FutureExt, LocalBoxFuture, join, join_all};
use heatsink_control::Rules;
use heatsink_control::reshard_intent::Request;
use heatsink_dynamo::Operation as Wire;
use heatsink_env::Env;
use heatsink_history::{Operation, Value};
use heatsink_layout::DIRECTORY;
use heatsink_store::Store;
use heatsink_workers::{
    Direction, Here, LiveAdoption, LiveNext, PreparedLive, Progress, Unwatched, WorkerError,
};
use serde_json::json;

use crate::TABLE;
use crate::client::PATIENCE;
use crate::clock::{seconds, up_to};
use crate::network::{self, Weather};
use crate::reshard::{FENCE, Mishap, mishap};
use crate::stories::{Played, play_with};
use crate::world::{World, name};

/// So many runs turn the table, or the weather is too bad for it. In good weather they must.
const TRIES: usize = 8;
/// So often a run may meet with a mishap until one is left alone.
const UNLUCKY: usize = 4;
/// Items of several keys. The last ones are of keys that nobody has written to at first.
const ITEMS: [&str; 6] = ["p0", "p1", "other0", "third0", "fourth0", "idle0"];
/// So many of them are there at first.
const FIRST: usize = 4;

struct Stage {
    world: Rc<World>,
    seed: u64,
    /// The shards of every key, turn by turn; 1 is the way back.
    turns: Vec<u16>,
    items: Vec<String>,
    clients: u64,
    calls: u64,
    pace: Duration,
    mischief: Option<Duration>,
    mishaps: bool,
    written: Cell<i64>,
    busy: Cell<u64>,
    turning: Cell<bool>,
    /// The turn that was begun last. Another one is refused until it has ended.
    asked: Cell<u16>,
    /// What the table had before.
    before: Cell<u16>,
}

/// Plays a seed.
pub fn play(seed: u64) -> Played {
    let world = World::new(seed);
    let (stage, weather) = Stage::draw(Rc::clone(&world), seed);
    play_with(&world, async move { stage.script(weather).await })
}

/// The rules of a table whose keys have so many shards.
fn rules(shards: u16) -> String {
    match shards {
        1 => format!("rule = []\n{FENCE}"),
        _ => format!("[[rule]]\ntable = \"{TABLE}\"\nstrategy = \"calculated\"\nshards = {shards}\n{FENCE}"),
    }
}

/// One run of `heatsink adopt`, or `adopt --back`, within its own process.
pub async fn turn(store: Arc<dyn Store>, env: Arc<dyn Env>, shards: u16) -> Result<(), WorkerError> {
    let rules = Rules::read("rules", &rules(shards)).expect("the rules are valid");
    let direction = if shards == 1 { Direction::Back } else { Direction::Adopt };
    let prepared =
        LiveAdoption::prepare(Arc::clone(&store), Arc::clone(&env), &rules, (TABLE, direction), 100, false);
    let mut live = match prepared.await {
        Ok(PreparedLive::Live(live)) => live,
        Ok(PreparedLive::Done) => return Ok(()),
        Ok(PreparedLive::Offline(not_live)) => return Err(WorkerError::Stopped(not_live.why)),
        // Brought back, and off the record.
        Err(WorkerError::Usage(why)) if why.contains("not on record") => return Ok(()),
        Err(error) => return Err(error),
    };
    let here = Here::new(store, Arc::clone(&env), &rules.without_rules(), "simulated", false);
    let progress: Arc<dyn Progress> = Arc::new(Unwatched);
    while let LiveNext::Move(wishes) = live.next(&Unwatched).await? {
        let (by, asked) = ("simulated".to_owned(), env.unix_millis());
        let request = Request { layout: 1.into(), rate: 100_000, streams_confirmed: false, by, asked };
        live.move_here(&here, wishes, &request, &progress).await?;
    }
    Ok(())
}

impl Stage {
    fn draw(world: Rc<World>, seed: u64) -> (Stage, Weather) {
        let mut rng = Rng::with_seed(seed.wrapping_add(0x0007_a61e));
        let latest = network::latest(&mut rng);
        let weather = Weather::within_bounds(&mut rng, latest);
        for _ in 0..[1, 2, 2, 3][rng.usize(..4)] {
            world.add_gateway(&rules(1));
        }
        let turns = match rng.u32(0..4) {
            0 => vec![4],
            1 => vec![4, 1],
            2 => vec![3, 5, 1],
            _ => vec![2, 1, 4],
        };
        let stage = Stage {
            seed,
            turns,
            items: ITEMS.map(str::to_owned).to_vec(),
            clients: rng.u64(1..=3),
            calls: rng.u64(10..=18),
            pace: Duration::from_millis([400, 1_500, 4_000][rng.usize(..3)]),
            mischief: rng.bool().then(|| seconds(rng.u64(3..=15))),
            mishaps: rng.bool(),
            written: Cell::new(0),
            busy: Cell::new(0),
            turning: Cell::new(true),
            asked: Cell::new(1),
            before: Cell::new(1),
            world,
        };
        (stage, weather)
    }

    fn rng(&self, role: u64) -> Rng {
        Rng::with_seed(self.seed.wrapping_mul(7_919).wrapping_add(role))
    }

    /// A value that was not written before. Sums of what is added never lead from one to another.
    fn value(&self) -> Value {
        self.written.set(self.written.get() + 1_000);
        Value { number: self.written.get(), label: 0 }
    }

    async fn script(self, weather: Weather) -> Vec<String> {
        let world = &self.world;
        world.log.line(format!(
            "Turning to {:?}, {} gateways, {} clients, {weather:?}",
            self.turns,
            world.gateways(),
            self.clients
        ));
        world.create_past().await;
        world.start_all().await;
        for item in &self.items[..FIRST] {
            crate::scene::put(world, 0, item, self.value(), seconds(1)).await;
        }
        world.network.set(weather);
        self.busy.set(self.clients);
        let mut parts: Vec<LocalBoxFuture<'_, ()>> =
            vec![self.mischief().boxed_local(), self.operator().boxed_local()];
        parts.extend((0..self.clients).map(|client| self.client(client).boxed_local()));
        join_all(parts).await;
        world.clear_up().await;
        world.start_all().await;
        self.finish().await;
        world.end(&self.items, &rules(1)).await
    }

    async fn client(&self, client: u64) {
        let (world, mut rng) = (&self.world, self.rng(100 + client));
        for _ in 0..self.calls {
            world.clock.sleep(up_to(&mut rng, self.pace)).await;
            let gateway = rng.usize(..world.gateways());
            let item = &self.items[rng.usize(..self.items.len())];
            let operation = match rng.u32(0..16) {
                0..4 => Operation::Put(self.value()),
                4..6 => Operation::Create(self.value()),
                6..8 => Operation::Update(self.value()),
                8..10 => Operation::Delete,
                10..12 => Operation::Add(rng.i64(1..10)),
                12 | 13 => Operation::Get,
                how => {
                    let limit = rng.usize(1..5);
                    let read = match how {
                        14 => world.query(gateway, &self.items, None, limit, true).await,
                        _ => world.scan(gateway, &self.items, limit).await,
                    };
                    if let Err(error) = read {
                        world.log.line(format!("  a read of many by {} fails: {error}", name(gateway)));
                    }
                    continue;
                }
            };
            world.call(gateway, item, operation, PATIENCE).await;
        }
        self.busy.set(self.busy.get() - 1);
    }

    /// Turns the table, again and again.
    async fn operator(&self) {
        let (world, mut rng) = (&self.world, self.rng(3));
        world.clock.sleep(up_to(&mut rng, self.pace * 2)).await;
        for shards in &self.turns {
            self.asked.set(*shards);
            let mut ended = false;
            let mut unlucky = if self.mishaps { UNLUCKY } else { 0 };
            for _ in 0..TRIES {
                let mut run = |rng: &mut Rng| {
                    let befalls = unlucky > 0 && rng.u32(0..4) > 0;
                    unlucky = unlucky.saturating_sub(1);
                    self.run(self.asked.get(), befalls.then(|| mishap(rng)))
                };
                let (first, second) = (run(&mut rng), rng.u32(0..4) == 0);
                let done = if second && self.mishaps {
                    let late = up_to(&mut rng, seconds(10));
                    let other = run(&mut rng);
                    let other = async {
                        world.clock.sleep(late).await;
                        other.await
                    };
                    let (one, other) = join(first, other).await;
                    one || other
                } else {
                    first.await
                };
                ended |= done;
                if done {
                    self.before.set(self.asked.get());
                    break;
                }
                // Somebody takes it back on the way.
                if self.mishaps && rng.u32(0..4) == 0 {
                    let other = if self.asked.get() == *shards { self.before.get() } else { *shards };
                    self.asked.set(other);
                }
                world.clock.sleep(up_to(&mut rng, seconds(3))).await;
            }
            if !ended {
                break;
            }
            world.clock.sleep(up_to(&mut rng, self.pace * 2)).await;
        }
        self.turning.set(false);
    }

    /// One run. Whether the table has these layouts then.
    async fn run(&self, shards: u16, mishap: Option<Mishap>) -> bool {
        matches!(self.world.turn(shards, mishap).await, Some(Ok(())))
    }

    /// In good weather the turn that was begun last comes to its end, and keys lie as it says.
    async fn finish(&self) {
        let (world, last) = (&self.world, self.asked.get());
        let mut why = "killed".to_owned();
        for _ in 0..TRIES {
            match world.turn(last, None).await {
                Some(Ok(())) => return self.judge_keys(last).await,
                Some(Err(error)) => why = error.to_string(),
                None => {}
            }
            // What leads elsewhere ends first.
            if why.contains("End that first") {
                for shards in self.turns.iter().copied().chain([self.before.get()]) {
                    world.turn(shards, None).await;
                }
            }
            world.clock.sleep(seconds(10)).await;
        }
        world.book.fault(format!("the turn to {last} shards does not come to its end: {why}"));
    }

    async fn judge_keys(&self, shards: u16) {
        let rows = self.world.past(Wire::Scan, &json!({ "TableName": TABLE })).await.unwrap();
        for row in rows["Items"].as_array().unwrap() {
            if shards == 1 && row["pk"]["S"].as_str().is_some_and(|key| key.contains("#~")) {
                self.world.book.fault(format!("the table is whole, and {row} is not"));
            }
        }
        if shards == 1 && self.world.is_on_record().await {
            self.world.book.fault("the table came back, and is on record".to_owned());
        }
        let entered = self.world.past(Wire::Scan, &json!({ "TableName": DIRECTORY })).await;
        if let Some(row) = entered.ok().and_then(|rows| rows["Items"].as_array()?.first().cloned()) {
            self.world.book.fault(format!("{row} is left of what was entered"));
        }
    }

    /// Stops gateways and lets them go on, kills them and starts them again, until all is done.
    async fn mischief(&self) {
        let (world, mut rng) = (&self.world, self.rng(2));
        let Some(pause) = self.mischief else { return };
        loop {
            world.clock.sleep(up_to(&mut rng, pause)).await;
            if self.busy.get() == 0 && !self.turning.get() {
                return;
            }
            let gateway = rng.usize(..world.gateways());
            if rng.u32(0..3) == 0 {
                world.kill(gateway);
                world.clock.sleep(up_to(&mut rng, seconds(5))).await;
                let _ = world.start_surely(gateway).await;
            } else {
                let longest = seconds([1, 5, 15][rng.usize(..3)]);
                world.stop(gateway, true);
                world.clock.sleep(up_to(&mut rng, longest)).await;
                world.stop(gateway, false);
            }
        }
    }
}

#[test]
fn a_table_that_turns_stays_linearizable() {
    crate::play_seeds("a_table_that_turns_stays_linearizable", 100, |_| crate::stories::Story::Turning);
}
