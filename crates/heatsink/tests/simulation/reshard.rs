//! The hot key moves from layout to layout, there and back, while clients use it: one run of
//! `heatsink reshard start` after the other, or two at once, killed and stopped at any of their
//! calls. In some stories another key moves beside it; in half of these gateways move both as a group,
//! as they are asked to, and are killed and stopped themselves. Weather and mischief are those of the other stories.
//!
//! Calls land within the bounds here: that is what the protocol assumes. What clients ask is in
//! `reshard_client`.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastrand::Rng;
use futures::channel::oneshot;
use futures::future::{FutureExt, LocalBoxFuture, join, join_all, select};
use heatsink_control::reshard_intent::WantedLayout;
use heatsink_dynamo::KeyValue;
use heatsink_history::{Operation, State, Value};
use heatsink_layout::{By, Hash, Layout, SortKey, SplitPoints, Strategy};
use heatsink_workers::{Progress, ReshardReport, WorkerError};

use crate::client::{EXPIRING, PATIENCE, Reply, partition_of};
use crate::clock::{seconds, up_to};
use crate::network::{self, Weather};
use crate::stories::{Played, play_with};
use crate::table::OWN;
use crate::world::{World, name};
use crate::{KEY, OTHER, TABLE};

/// Bounds within which a story needs few looks: what is late here is late by seconds.
pub const FENCE: &str = "[fence]\nlease = \"8s\"\nheartbeat = \"2s\"\npoll = \"3s\"\nstraggler = \"4s\"\n";
/// Longer than the lease and the bound on stragglers.
const QUIET: Duration = Duration::from_secs(13);
/// So often a run may meet with a mishap until one is left alone.
const UNLUCKY: usize = 4;
/// Items that are only written together, and of two keys that move beside each other one of each.
const PAIR: [&str; 2] = ["q0", "q1"];
const PAIR_APART: [&str; 2] = ["q0", "other1"];
/// So many runs bring a move to its end, or the weather is too bad for it. In good weather they
/// must.
const TRIES: usize = 7;
/// So long gateways have in bad weather until something else is asked for; in good weather it is
/// enough.
const CARRIED_WITHIN: Duration = Duration::from_secs(120);

/// What befalls a run: at which of its calls, and whether that one never arrives. It is stopped for
/// a time, or killed.
#[derive(Clone, Copy, Debug)]
pub struct Mishap {
    /// Only calls that hold this are counted.
    pub text: &'static str,
    pub before: usize,
    pub vanishes: bool,
    pub stops: Option<Duration>,
}

/// How the table has time to live.
#[derive(Clone, Copy, Debug)]
enum Expires {
    Always,
    /// Gateways are asked to turn it on, until one does.
    Later,
}

/// Who waits for the next phase of the move.
#[derive(Default)]
pub struct Phases(Mutex<Vec<oneshot::Sender<()>>>);

impl Phases {
    pub fn next(&self) -> oneshot::Receiver<()> {
        let (tell, told) = oneshot::channel();
        self.0.lock().unwrap().push(tell);
        told
    }
}

impl Progress for Phases {
    fn state(&self, _: heatsink_reshard::State) {
        for waits in self.0.lock().unwrap().drain(..) {
            let _ = waits.send(());
        }
    }
}

/// One simulation, as its seed has drawn it.
pub struct Stage {
    pub world: Rc<World>,
    seed: u64,
    rules: String,
    /// All of them; the last two are only written together, as a [pair](Self::pair).
    pub items: Vec<String>,
    /// The keys that move, beside each other.
    keys: &'static [&'static str],
    /// Whether gateways move them as a group, and no runs of the command do.
    carried: bool,
    /// The layouts that each gets.
    wanted: Vec<WantedLayout>,
    clients: u64,
    calls: u64,
    pub pace: Duration,
    weather: Weather,
    mischief: Option<Duration>,
    /// Whether runs meet with mishaps.
    mishaps: bool,
    /// Whether the table has time to live, or gets it while clients write.
    expires: Option<Expires>,
    written: Cell<i64>,
    busy: Cell<u64>,
    moving: Cell<bool>,
    phases: Arc<Phases>,
}

/// Plays a seed.
pub fn play(seed: u64) -> Played {
    let world = World::new(seed);
    let stage = Rc::new(Stage::draw(Rc::clone(&world), seed));
    play_with(&world, async move { stage.script().await })
}

impl Stage {
    fn draw(world: Rc<World>, seed: u64) -> Stage {
        let mut rng = Rng::with_seed(seed.wrapping_add(0x5e_5ade));
        let ruled = rng.bool();
        // Of every second seed with rules, writes of an item that come together go as one.
        let combines = if seed.is_multiple_of(2) { "combine = true\n" } else { "" };
        let rules = match ruled {
            true => format!("{OWN}{combines}{FENCE}"),
            false => format!("rule = []\n{FENCE}"),
        };
        let latest = network::latest(&mut rng);
        let spared = rng.bool();
        let punctual = [network::PAST, "run"][usize::from(spared)];
        let weather = Weather { punctual, ..Weather::within_bounds(&mut rng, latest) };
        for _ in 0..[1, 2, 2, 3][rng.usize(..4)] {
            world.add_gateway(&rules);
        }
        let mut wanted = Vec::new();
        let mut before = if ruled { 4 } else { 1 };
        let steps = [1, 1, 2, 3][rng.usize(..4)];
        // Of these draws the others do not depend: a seed without lists is the story that it was.
        let mut lists = Rng::with_seed(seed.wrapping_add(0x0005_1075));
        let names = lists.u32(..3) == 0;
        let ranges = Rng::with_seed(seed.wrapping_add(0x0072_616e)).u32(..3) == 0;
        for _ in 0..steps {
            let others: Vec<u16> = [1, 2, 3, 5, 8].into_iter().filter(|count| *count != before).collect();
            before = others[rng.usize(..others.len())];
            wanted.push(match ranges || names && lists.bool() {
                true if ranges && lists.u32(..3) > 0 => in_ranges(&mut lists, before),
                true if !ranges => in_slots(&mut lists, before),
                // A key in ranges is asked for another number by a hash.
                _ if ranges => WantedLayout { by: Some(By::SortKey), ..before.into() },
                _ => before.into(),
            });
        }
        let together = seed.is_multiple_of(3);
        let keys: &[&str] = if together { &[KEY, OTHER] } else { &[KEY] };
        let has_registry = !seed.is_multiple_of(4);
        let carried = together && has_registry && Rng::with_seed(seed.wrapping_add(0x00ca_441e)).bool();
        let mut items: Vec<String> = (0..rng.usize(2..=3)).map(|at| format!("p{at}")).collect();
        items.extend(together.then(|| "other0".to_owned()));
        items.extend(if together { PAIR_APART } else { PAIR }.map(str::to_owned));
        Stage {
            seed,
            rules,
            items,
            keys,
            carried,
            wanted,
            clients: rng.u64(1..=3),
            calls: rng.u64(7..=12),
            pace: Duration::from_millis([100, 400, 1_500][rng.usize(..3)]),
            weather,
            mischief: rng.bool().then(|| seconds(rng.u64(2..=12))),
            mishaps: rng.bool(),
            expires: [None, None, Some(Expires::Always), Some(Expires::Later)][rng.usize(..4)],
            written: Cell::new(0),
            busy: Cell::new(0),
            moving: Cell::new(true),
            phases: Arc::default(),
            world,
        }
    }

    /// The keys that its items have.
    pub fn keys(&self) -> &'static [&'static str] {
        self.keys
    }

    /// The items that are written alone, and with any others.
    pub fn singles(&self) -> &[String] {
        &self.items[..self.items.len() - PAIR.len()]
    }

    /// The two that are only written together.
    pub fn pair(&self) -> &[String] {
        &self.items[self.items.len() - PAIR.len()..]
    }

    fn rng(&self, role: u64) -> Rng {
        Rng::with_seed(self.seed.wrapping_mul(7_919).wrapping_add(role))
    }

    /// A value that was not written before. Sums of what is added never lead from one to another.
    pub fn value(&self) -> Value {
        self.written.set(self.written.get() + 1_000);
        let number = self.written.get();
        let expires = self.expires.is_some() && number / 1_000 % 3 > 0;
        Value { number, label: if expires { EXPIRING } else { 0 } }
    }

    /// All of it. Returns what is wrong in the end.
    async fn script(self: Rc<Self>) -> Vec<String> {
        let world = &self.world;
        world.log.line(format!(
            "Reshard to {:?}, {}{} gateways, {} clients, expires {:?}, {:?}, rules {:?}",
            self.wanted.iter().map(WantedLayout::in_words).collect::<Vec<String>>(),
            if self.carried { "carried by " } else { "" },
            world.gateways(),
            self.clients,
            self.expires,
            self.weather,
            self.rules
        ));
        world.create_past().await;
        if let Some(Expires::Always) = self.expires {
            world.expire_past().await;
        }
        if self.carried {
            world.carry();
        }
        for gateway in 0..world.gateways() {
            if let Err(why) = world.start_surely(gateway).await {
                world.book.fault(format!("gateway {gateway} does not start: {why}"));
            }
        }
        for item in self.singles() {
            self.put_surely(item).await;
        }
        world.network.set(self.weather);
        self.busy.set(self.clients);
        let mut parts: Vec<LocalBoxFuture<'_, ()>> =
            vec![self.mischief().boxed_local(), self.operator().boxed_local(), self.expiry().boxed_local()];
        parts.extend((0..self.clients).map(|client| {
            let mut rng = self.rng(100 + client);
            let stage = &self;
            async move {
                for _ in 0..stage.calls {
                    stage.pause(&mut rng).await;
                    stage.act(&mut rng).await;
                }
                stage.busy.set(stage.busy.get() - 1);
            }
            .boxed_local()
        }));
        join_all(parts).await;
        self.end().await
    }

    async fn put_surely(&self, item: &str) {
        for _ in 0..100 {
            if let Reply::Answered(_) = self.world.call(0, item, Operation::Put(self.value()), PATIENCE).await
            {
                return;
            }
            self.world.clock.sleep(seconds(1)).await;
        }
        self.world.book.fault(format!("{item} cannot be put"));
    }

    /// A pause between two calls of a client: for a time, or until the next phase begins.
    pub async fn pause(&self, rng: &mut Rng) {
        let pause = self.world.clock.sleep(up_to(rng, self.pace));
        if self.moving.get() && rng.bool() {
            let patience = self.world.clock.sleep(seconds(4));
            select(self.phases.next(), patience).await;
        }
        pause.await;
    }

    /// Takes the keys to each layout.
    async fn operator(&self) {
        if self.carried {
            let (mut rng, mut commands) = (self.rng(3), self.rng(5));
            for wanted in &self.wanted {
                self.world.clock.sleep(up_to(&mut rng, self.pace * 3)).await;
                // What a command has begun that is killed, a gateway ends.
                if commands.bool() {
                    let key = self.keys[commands.usize(..self.keys.len())];
                    self.run(key, wanted, self.mishaps.then(|| mishap(&mut commands))).await;
                    self.world.until_carried(&[key], CARRIED_WITHIN).await;
                    self.world.nothing_is_left().await;
                }
                self.world.ask_for(&self.rules, self.keys, wanted).await;
                self.world.until_carried(self.keys, CARRIED_WITHIN).await;
            }
            return self.moving.set(false);
        }
        let keys = (0..).zip(self.keys).map(|(at, key)| self.take(key, self.rng(3 + at * 7)));
        join_all(keys).await;
        self.moving.set(false);
    }

    /// Takes one key to each layout.
    async fn take(&self, key: &'static str, mut rng: Rng) {
        self.world.clock.sleep(up_to(&mut rng, self.pace * 3)).await;
        for wanted in &self.wanted {
            let mut unlucky = if self.mishaps { UNLUCKY } else { 0 };
            for _ in 0..TRIES {
                let mut run = |rng: &mut Rng| {
                    let befalls = unlucky > 0 && rng.u32(0..4) > 0;
                    unlucky = unlucky.saturating_sub(1);
                    self.run(key, wanted, befalls.then(|| mishap(rng)))
                };
                let (first, second) = (run(&mut rng), rng.u32(0..4) == 0);
                let done = if second && self.mishaps {
                    let late = up_to(&mut rng, seconds(6));
                    let other = run(&mut rng);
                    let other = async {
                        self.world.clock.sleep(late).await;
                        other.await
                    };
                    let (one, other) = join(first, other).await;
                    one || other
                } else {
                    first.await
                };
                if done {
                    break;
                }
                self.world.clock.sleep(up_to(&mut rng, seconds(2))).await;
            }
            self.world.clock.sleep(up_to(&mut rng, self.pace * 2)).await;
        }
    }

    /// One run. Whether the key has so many shards then.
    async fn run(&self, key: &'static str, wanted: &WantedLayout, mishap: Option<Mishap>) -> bool {
        match self.world.reshard_key(&self.rules, (key, wanted.clone()), &self.phases, mishap).await {
            Some(Ok(ReshardReport { to, .. })) => to == wanted.shards,
            // Nobody puts anything in the way of it.
            Some(Err(WorkerError::Stopped(why))) if why.contains("was not moved") => {
                self.world.book.fault(format!("to {}: {why}", wanted.in_words()));
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
            if self.busy.get() == 0 && !self.moving.get() {
                return;
            }
            let gateway = rng.usize(..world.gateways());
            match rng.u32(0..4) {
                0 => {
                    world.kill(gateway);
                    world.clock.sleep(up_to(&mut rng, seconds(5))).await;
                    let _ = world.start_surely(gateway).await;
                }
                how => {
                    if how > 1 {
                        let sends =
                            world.network.sent(&name(gateway), KEY_TEXT, rng.usize(..4), rng.u32(0..8) == 0);
                        select(sends, world.clock.sleep(seconds(5))).await;
                    }
                    let longest = seconds([1, 5, 15][rng.usize(..3)]);
                    world.stop(gateway, true);
                    world.clock.sleep(up_to(&mut rng, longest)).await;
                    world.stop(gateway, false);
                }
            }
        }
    }

    /// The store deletes what has expired, some of it at a time, until the clients are done.
    async fn expiry(&self) {
        let (world, mut rng) = (&self.world, self.rng(4));
        let Some(expires) = self.expires else { return };
        while self.busy.get() > 0 || self.moving.get() {
            // Often: two copies of an item are seldom there for long.
            world.clock.sleep(up_to(&mut rng, Duration::from_millis(400))).await;
            if world.expires().await {
                world.delete_expired(|| rng.bool()).await;
            } else if let Expires::Later = expires {
                world.expire(rng.usize(..world.gateways()), true).await;
            }
        }
    }

    /// The weather clears, every gateway runs, and all that is there is read.
    async fn end(&self) -> Vec<String> {
        let world = &self.world;
        world.log.line("the weather clears");
        world.network.set(Weather::default());
        (0..world.gateways()).for_each(|gateway| world.stop(gateway, false));
        world.clock.sleep(QUIET).await;
        world.start_all().await;
        let layouts = if self.carried {
            self.carried_out().await
        } else {
            let mut layouts = Vec::new();
            for key in self.keys {
                layouts.push((*key, self.finish(key).await));
            }
            layouts
        };
        for gateway in 0..world.gateways() {
            for item in self.items.iter().take(1) {
                // A look-up that somebody gave up in bad weather may tell the next request of its
                // lost answer.
                let mut reply = world.call(gateway, item, Operation::Get, PATIENCE).await;
                if matches!(&reply, Reply::NotDone(error) if error.retryable()) {
                    reply = world.call(gateway, item, Operation::Get, PATIENCE).await;
                }
                if let Reply::NotDone(error) = reply {
                    world.book.fault(format!("{item} cannot be read through {}: {error}", name(gateway)));
                }
            }
            if let Err(error) = self.query_all(gateway, gateway == 1).await {
                world.book.fault(format!("no Query through {}: {error}", name(gateway)));
            }
            if gateway == 0
                && let Err(error) = world.scan(gateway, &self.items, 3).await
            {
                world.book.fault(format!("no Scan through {}: {error}", name(gateway)));
            }
        }
        self.compare(&layouts).await;
        world.book.judge()
    }

    /// The last run ends what the weather left, if anything, in a few tries at most. Returns the
    /// layout that the key has then.
    async fn finish(&self, key: &'static str) -> Layout {
        let mut wanted = self.wanted.last().cloned().unwrap_or_else(|| 1.into());
        let mut why = String::new();
        for _ in 0..3 {
            match self.world.reshard_key(&self.rules, (key, wanted.clone()), &self.phases, None).await {
                Some(Ok(report)) => return laid_out(&report),
                Some(Err(WorkerError::Usage(other))) if other.contains("let that end first") => {
                    wanted = named(&other);
                }
                ended => {
                    why = ended.and_then(Result::err).map_or_else(String::new, |error| error.to_string())
                }
            }
        }
        let asked = wanted.in_words();
        self.world.book.fault(format!("{key} does not come to {asked} in good weather: {why}"));
        Layout::none()
    }

    /// What gateways were asked for last comes to its end. Returns the layouts that the keys have
    /// then.
    async fn carried_out(&self) -> Vec<(&'static str, Layout)> {
        let world = &self.world;
        let wanted = self.wanted.last().cloned().unwrap_or_else(|| 1.into());
        for _ in 0..2 {
            world.ask_for(&self.rules, self.keys, &wanted).await;
            if !world.until_carried(self.keys, CARRIED_WITHIN).await {
                world.book.fault("a key does not come to its end in good weather".to_owned());
            }
        }
        world.all_have(self.keys, wanted.shards).await;
        let records = world.key_records().await;
        let layout = |key: &str| records.iter().find(|one| one.key == key.as_bytes()).map(|one| &one.layout);
        self.keys.iter().map(|key| (*key, layout(key).cloned().unwrap_or_else(Layout::none))).collect()
    }

    /// In the store each item lies once, in the shard that the layout names, as gateways show it.
    async fn compare(&self, layouts: &[(&str, Layout)]) {
        let whole = Layout::none();
        let rows = self.world.rows_by_key().await;
        for (physical, item, _) in &rows {
            let key = partition_of(item);
            let layout = layouts.iter().find(|(of, _)| *of == key).map_or(&whole, |(_, layout)| layout);
            let shard = layout.shard_of(Some(SortKey::S(item)));
            let home = if shard == 0 { key.to_owned() } else { format!("{key}#~{shard}") };
            if *physical != home {
                self.world.book.fault(format!("{item} lies under {physical} and not under {home}"));
            }
        }
        for item in &self.items {
            let lying: Vec<State> =
                rows.iter().filter(|(_, sort, _)| sort == item).map(|(_, _, value)| *value).collect();
            let invoked = self.world.book.moment();
            if lying.len() > 1 {
                self.world.book.fault(format!("{item} lies {} times in the store", lying.len()));
            }
            let seen = lying.first().copied().flatten();
            self.world.book.call(item, invoked, Operation::Get, Some(heatsink_history::Answer::Saw(seen)));
        }
    }
}

/// So many shards in slots of which some are far off, and some those of other shards.
fn in_slots(rng: &mut Rng, shards: u16) -> WantedLayout {
    let mut numbers: Vec<u16> = (0..shards + 3).collect();
    rng.shuffle(&mut numbers);
    numbers.truncate(shards.into());
    WantedLayout { slots: Some(numbers), ..shards.into() }
}

/// So many ranges, some of which hold an item or two.
fn in_ranges(rng: &mut Rng, ranges: u16) -> WantedLayout {
    let mut points = vec!["a", "other1", "p0", "p0x", "p1", "p2", "q", "q1", "r"];
    rng.shuffle(&mut points);
    points.truncate(usize::from(ranges).saturating_sub(1));
    points.sort_unstable();
    match ranges {
        1 => ranges.into(),
        _ => split_points(&points).into(),
    }
}

fn split_points(texts: &[&str]) -> SplitPoints {
    let points = texts.iter().map(|text| KeyValue::S((*text).to_owned().into()));
    SplitPoints::new(points.collect()).expect("they ascend")
}

/// The layout that a key has after a run.
fn laid_out(report: &ReshardReport) -> Layout {
    let strategy = match &report.split_at {
        Some(points) => Strategy::range(points.clone()),
        None if report.to == 1 => Strategy::None,
        None => Strategy::calculated(By::SortKey),
    };
    let layout = Layout { strategy, shards: report.to, hash: Hash::JumpXxh3, version: 1 };
    match &report.slots[..] {
        [] => layout,
        slots => layout.with_slots(slots).expect("a list that is on record is one"),
    }
}

/// What has to end first, as the refusal of another run names it.
fn named(refusal: &str) -> WantedLayout {
    let after = |flag: &str| refusal.split(flag).nth(1).and_then(|rest| rest.split(' ').next());
    let list = |text: &str| text.split(',').map(|slot| slot.parse().expect("a slot")).collect();
    let points: Vec<&str> =
        refusal.split("--split-at \"").skip(1).filter_map(|rest| rest.split('"').next()).collect();
    if !points.is_empty() {
        return WantedLayout { slots: after("--slots ").map(list), ..split_points(&points).into() };
    }
    let shards: u16 = after("--shards ").and_then(|shards| shards.parse().ok()).expect("it names the count");
    let by = refusal.contains("--strategy calculated").then_some(By::SortKey);
    WantedLayout { by, slots: after("--slots ").map(list), ..shards.into() }
}

/// What requests on items hold.
const KEY_TEXT: &str = "\"game";

pub fn mishap(rng: &mut Rng) -> Mishap {
    let (text, calls) = match rng.u32(0..4) {
        0 => (TABLE, 20),
        1 => (KEY_TEXT, 12),
        2 => ("TransactItems", 20),
        _ => ("", 70),
    };
    let longest = seconds([1, 5, 15][rng.usize(..3)]);
    let stops = rng.bool().then(|| up_to(rng, longest));
    Mishap { text, before: rng.usize(..calls), vanishes: rng.u32(0..3) == 0, stops }
}

#[test]
fn a_key_that_moves_stays_linearizable() {
    crate::play_seeds("a_key_that_moves_stays_linearizable", 300, |_| crate::stories::Story::Reshard);
}
