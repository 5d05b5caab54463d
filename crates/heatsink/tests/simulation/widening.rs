//! The hot key is a counter, or becomes one, and gets more fragments, or fewer, or becomes whole
//! again, while clients add to it, set it, delete it and read it. Or it lies in buckets of an hour, and those to come get other numbers
//! of shards: some items are of this hour, some of the next ones. Runs of `heatsink reshard start`
//! are killed and stopped at any of their calls; so are gateways.
//!
//! Some items are added to by everybody, and each addition is told apart ([`Counters`]). Each of
//! the others has one client, which does one thing after the other through any gateway: so it knows
//! exactly what the item can hold, and nothing may be left behind of what was deleted or set.

use std::cell::Cell;
use std::collections::BTreeSet;
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use futures::future::{FutureExt, LocalBoxFuture, join_all, select};
use heatsink_control::reshard_intent::WantedLayout;
use heatsink_dynamo::Outcome;
use heatsink_workers::{ReshardReport, WorkerError};

use crate::client::PATIENCE;
use crate::clock::{seconds, up_to};
use crate::counters::Counters;
use crate::network::{self, Weather};
use crate::reshard::{FENCE, Mishap, Phases, mishap};
use crate::stories::{Played, play_with};
use crate::table::VOTES;
use crate::widening_client::How;
use crate::world::{World, name};

const HOURS: &str = "[[rule]]\ntable = \"Board\"\nstrategy = \"bucket\"\nbucket = \"hour\"\n";
/// After so long a request whose outcome is unknown has taken effect or never will: the longest
/// stop of a gateway, and the bound on stragglers.
const SURELY: Duration = Duration::from_secs(40);
/// So many runs widen a counter, or the weather is too bad for it.
const TRIES: usize = 7;
/// So often a run may meet with a mishap until one is left alone.
const UNLUCKY: usize = 4;

struct Stage {
    world: Rc<World>,
    /// Whether the key lies in buckets; otherwise it is a counter.
    buckets: bool,
    seed: u64,
    rules: String,
    counts: Vec<u16>,
    counters: Counters,
    added: Vec<String>,
    owned: Vec<String>,
    calls: u64,
    pace: Duration,
    mischief: Option<Duration>,
    mishaps: bool,
    busy: Cell<usize>,
    widening: Cell<bool>,
    phases: Arc<Phases>,
}

/// Plays a seed.
pub fn play(seed: u64) -> Played {
    let world = World::new(seed);
    let (stage, weather) = Stage::draw(Rc::clone(&world), seed);
    play_with(&world, async move { stage.script(weather).await })
}

/// So many fragments.
pub fn counter(shards: u16) -> WantedLayout {
    WantedLayout { counter: Some(vec!["n".to_owned()]), ..shards.into() }
}

impl Stage {
    fn draw(world: Rc<World>, seed: u64) -> (Stage, Weather) {
        let mut rng = Rng::with_seed(seed.wrapping_add(0xc0_47e5));
        let ruled = rng.u32(0..3) == 0;
        let buckets = seed % 4 == 3;
        let rule = match (buckets, ruled) {
            (true, _) => HOURS,
            (false, true) => VOTES,
            (false, false) => "rule = []\n",
        };
        let rules = format!("{rule}{FENCE}");
        let latest = network::latest(&mut rng);
        let weather = Weather::within_bounds(&mut rng, latest);
        for _ in 0..[1, 2, 2, 3][rng.usize(..4)] {
            world.add_gateway(&rules);
        }
        let mut counts = vec![if ruled { 6 } else { [2, 3, 5][rng.usize(..3)] }];
        for _ in 0..rng.usize(..3) {
            counts.push(counts.last().unwrap() + rng.u16(1..4));
        }
        let items = |letter: &str, count: usize| (0..count).map(|at| format!("{letter}{at}")).collect();
        let (mut added, mut owned): (Vec<String>, Vec<String>) =
            (items("p", rng.usize(1..=2)), items("q", rng.usize(1..=2)));
        if buckets {
            // Simulations begin with the first hour of the year, and end within it.
            let of_an_hour = |item: &mut String, hour: u32| *item = format!("2026-01-01T{hour:02}#{item}");
            added.iter_mut().for_each(|item| of_an_hour(item, 0));
            owned.iter_mut().for_each(|item| of_an_hour(item, rng.u32(1..4)));
            let last = counts.len() - 1;
            // Fewer, too.
            counts[last] = 1 + counts[last] % 4;
        } else {
            // And back, as far as it goes or less far; and there again.
            let mut rng = Rng::with_seed(seed.wrapping_add(0xbac_c0de));
            if rng.bool() {
                let most = *counts.last().unwrap();
                let left = if rng.bool() { 1 } else { rng.u16(1..most) };
                counts.push(left);
                counts.extend(rng.bool().then(|| left + rng.u16(1..4)));
            }
        }
        let stage = Stage {
            buckets,
            seed,
            rules,
            counts,
            counters: Counters::new(Rc::clone(&world), added.clone()),
            added,
            owned,
            calls: rng.u64(8..=14),
            pace: Duration::from_millis([100, 400, 1_500][rng.usize(..3)]),
            mischief: rng.bool().then(|| seconds(rng.u64(2..=12))),
            mishaps: rng.bool(),
            busy: Cell::new(0),
            widening: Cell::new(true),
            phases: Arc::default(),
            world,
        };
        (stage, weather)
    }

    fn rng(&self, role: u64) -> Rng {
        Rng::with_seed(self.seed.wrapping_mul(7_919).wrapping_add(role))
    }

    async fn script(self, weather: Weather) -> Vec<String> {
        let world = &self.world;
        world.log.line(format!(
            "Widening to {:?}, {} gateways, {weather:?}, rules {:?}",
            self.counts,
            world.gateways(),
            self.rules
        ));
        // By rules an empty table becomes one of counters; without, any table may.
        world.create_past().await;
        for gateway in 0..world.gateways() {
            if let Err(why) = world.start_surely(gateway).await {
                world.book.fault(format!("{} does not start: {why}", name(gateway)));
            }
        }
        self.make_known().await;
        world.network.set(weather);
        let adders = 2;
        self.busy.set(adders + self.owned.len());
        let mut parts: Vec<LocalBoxFuture<'_, ()>> =
            vec![self.mischief().boxed_local(), self.operator().boxed_local()];
        parts.extend((0..adders).map(|client| self.adds(client).boxed_local()));
        parts.extend(self.owned.iter().enumerate().map(|(at, item)| self.owns(at, item).boxed_local()));
        join_all(parts).await;
        world.clear_up().await;
        world.start_all().await;
        self.finish().await;
        self.counters.end(&self.rules).await
    }

    /// The table is on record as the rules say, before a run puts it there without them.
    async fn make_known(&self) {
        for gateway in 0..self.world.gateways() {
            let mut tries = 0;
            while let Err(error) = self.counters.read_all(gateway).await {
                tries += 1;
                if tries == 100 {
                    return self.world.book.fault(format!("no Query through {}: {error}", name(gateway)));
                }
                self.world.clock.sleep(seconds(1)).await;
            }
        }
    }

    /// A pause between two calls of a client: for a time, or until the next phase begins.
    async fn pause(&self, rng: &mut Rng) {
        let pause = self.world.clock.sleep(up_to(rng, self.pace));
        if self.widening.get() && rng.bool() {
            select(self.phases.next(), self.world.clock.sleep(seconds(4))).await;
        }
        pause.await;
    }

    /// A client that adds, and reads what was added.
    async fn adds(&self, client: usize) {
        let mut rng = self.rng(100 + client as u64);
        for _ in 0..self.calls {
            self.pause(&mut rng).await;
            let gateway = rng.usize(..self.world.gateways());
            let item = &self.added[rng.usize(..self.added.len())];
            match rng.u32(0..7) {
                0 => self.counters.read_all(gateway).await,
                1 => self.counters.scan(gateway).await,
                2 => self.counters.read(gateway, item).await.map(drop),
                _ => self.counters.add(gateway, item, PATIENCE).await,
            }
            .unwrap_or_else(|error| self.world.log.line(format!("  not by {}: {error}", name(gateway))));
        }
        self.busy.set(self.busy.get() - 1);
    }

    /// The one client of an item.
    async fn owns(&self, at: usize, item: &str) {
        let mut rng = self.rng(200 + at as u64);
        let mut may_hold = BTreeSet::from([None]);
        for round in 0..self.calls {
            self.pause(&mut rng).await;
            let gateway = rng.usize(..self.world.gateways());
            let number = i64::try_from(round).unwrap() * 1_000 + rng.i64(1..1_000);
            let mut does =
                [Does::Put, Does::Set, Does::Delete, Does::Add, Does::Add, Does::Get][rng.usize(..6)];
            // Only buckets that are empty can get another number of shards.
            if self.buckets && rng.bool() {
                does = Does::Delete;
            }
            let how = How::ALL[rng.usize(..How::ALL.len())];
            self.does(gateway, item, does, how, number, &mut may_hold).await;
        }
        self.busy.set(self.busy.get() - 1);
        while self.widening.get() || self.busy.get() > 0 {
            self.world.clock.sleep(seconds(5)).await;
        }
        // In good weather, and through each gateway.
        for _ in 0..20 {
            self.world.clock.sleep(seconds(5)).await;
            for gateway in 0..self.world.gateways() {
                self.does(gateway, item, Does::Get, How::Alone, 0, &mut may_hold).await;
            }
            if may_hold.len() == 1 {
                return;
            }
        }
    }

    async fn does(
        &self,
        gateway: usize,
        item: &str,
        does: Does,
        how: How,
        number: i64,
        may_hold: &mut BTreeSet<Option<i64>>,
    ) {
        let answer = does.ask(&self.world, gateway, item, how, number).await;
        let after: BTreeSet<Option<i64>> = may_hold.iter().map(|held| does.after(*held, number)).collect();
        self.world
            .log
            .line(format!("  {item}: {does:?} {number}, {how:?}, by {}: {answer:?}", name(gateway)));
        match answer {
            Ok(seen) if does == Does::Get => {
                if !may_hold.contains(&seen) {
                    self.world.book.fault(format!(
                        "{}, {how:?}, shows {seen:?} of {item}, which can hold {may_hold:?}",
                        name(gateway)
                    ));
                }
                *may_hold = BTreeSet::from([seen]);
            }
            Ok(_) => *may_hold = after,
            Err(error) if error.outcome == Outcome::Unknown && does != Does::Get => {
                may_hold.extend(after);
                self.world.clock.sleep(SURELY).await;
            }
            Err(_) => {}
        }
    }

    /// Widens the counter, once and again.
    async fn operator(&self) {
        let mut rng = self.rng(3);
        self.world.clock.sleep(up_to(&mut rng, self.pace * 3)).await;
        for count in &self.counts {
            let mut unlucky = if self.mishaps { UNLUCKY } else { 0 };
            for _ in 0..TRIES {
                let befalls = unlucky > 0 && rng.u32(0..4) > 0;
                unlucky = unlucky.saturating_sub(1);
                if self.run(*count, befalls.then(|| mishap(&mut rng))).await {
                    break;
                }
                self.world.clock.sleep(up_to(&mut rng, seconds(2))).await;
            }
            self.world.clock.sleep(up_to(&mut rng, self.pace * 2)).await;
        }
        self.widening.set(false);
    }

    fn wanted(&self, count: u16) -> WantedLayout {
        if self.buckets || count == 1 { count.into() } else { counter(count) }
    }

    /// One run. Whether the counter has so many fragments then.
    async fn run(&self, count: u16, mishap: Option<Mishap>) -> bool {
        match self.world.reshard(&self.rules, self.wanted(count), &self.phases, mishap).await {
            Some(Ok(ReshardReport { to, moved, .. })) => {
                // Of a counter fragments are, into the items that they are parts of.
                if moved > 0 && self.buckets {
                    self.world.book.fault(format!("{moved} items were moved"));
                }
                to == count
            }
            // Nobody puts anything in the way of it.
            Some(Err(WorkerError::Stopped(why))) => {
                self.world.book.fault(format!("to {count} fragments: {why}"));
                false
            }
            _ => false,
        }
    }

    /// Stops gateways, also right when they send a call, and lets them go on; kills them and starts
    /// them again; until the clients are done.
    async fn mischief(&self) {
        let (world, mut rng) = (&self.world, self.rng(2));
        let Some(pause) = self.mischief else { return };
        loop {
            world.clock.sleep(up_to(&mut rng, pause)).await;
            if self.busy.get() == 0 && !self.widening.get() {
                return;
            }
            let gateway = rng.usize(..world.gateways());
            if rng.u32(0..3) == 0 {
                world.kill(gateway);
                world.clock.sleep(up_to(&mut rng, seconds(5))).await;
                let _ = world.start_surely(gateway).await;
                continue;
            }
            if rng.bool() {
                let sends = world.network.sent(&name(gateway), "\"game", rng.usize(..4), rng.u32(0..8) == 0);
                select(sends, world.clock.sleep(seconds(5))).await;
            }
            let longest = seconds([1, 5, 15][rng.usize(..3)]);
            world.stop(gateway, true);
            world.clock.sleep(up_to(&mut rng, longest)).await;
            world.stop(gateway, false);
        }
    }

    /// The last run ends what the weather left, in a few tries at most.
    async fn finish(&self) {
        // A run that was killed may have left an earlier count on its way, which goes first.
        let mut why = String::new();
        for count in self.counts.iter().cycle().take(3 * self.counts.len()) {
            match self.world.reshard(&self.rules, self.wanted(*count), &self.phases, None).await {
                Some(Ok(_)) if Some(count) == self.counts.last() => return,
                Some(Err(error)) => why = error.to_string(),
                _ => {}
            }
        }
        self.world
            .book
            .fault(format!("the counter is not widened to {:?} in good weather: {why}", self.counts));
    }
}

/// What the one client of an item does. What it asks for is in `widening_client`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Does {
    Put,
    Set,
    Delete,
    Add,
    Get,
}

impl Does {
    /// What a counter holds after it that held that before.
    pub fn after(self, held: Option<i64>, number: i64) -> Option<i64> {
        match self {
            Does::Put | Does::Set => Some(number),
            Does::Delete => None,
            Does::Add => Some(held.unwrap_or_default() + number),
            Does::Get => held,
        }
    }
}

#[test]
fn a_counter_that_widens_loses_and_keeps_nothing() {
    crate::play_seeds("a_counter_that_widens_loses_and_keeps_nothing", 150, |_| {
        crate::stories::Story::Widening
    });
}
