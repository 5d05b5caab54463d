//! Random loads: which keys there are, what is asked of each, and where they lie. Everything
//! follows from the seed.
//!
//! Not here: what becomes of a request (`world`), what ought to come of the load (`judge`).

use fastrand::Rng;

use crate::ground::{Ground, partition};

/// What one request asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Act {
    Put,
    /// A PartiQL statement that writes one item.
    Statement,
    Update,
    /// An UpdateItem that adds to a number.
    Add,
    /// BatchWriteItem of so many puts.
    Batch(u32),
    /// TransactWriteItems of so many puts.
    Transact(u32),
    GetStrong,
    GetEventual,
    /// A page of so many items.
    Query(u32),
    /// A put of a new item under one of many keys, which has the value of the index.
    Value,
}

/// What may come of a key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// More than its partition takes, by itself or with others.
    Hot,
    /// Little or something. It may lie where it burns.
    Cool,
    /// Too much, and nothing that changes keys helps.
    Fixed,
}

#[derive(Clone, Debug)]
pub struct Key {
    pub name: String,
    /// Whether it is a value of the index.
    pub index: bool,
    pub is_number: bool,
    pub role: Role,
    pub items: u64,
    /// Whether sort keys only grow.
    pub growing: bool,
    /// Whether all is asked of one item.
    pub one_item: bool,
    /// The items with which a range begins, if it lies in ranges from the start.
    pub split_at: Vec<u64>,
}

/// One kind of request for one key.
#[derive(Clone, Copy, Debug)]
pub struct Ask {
    pub key: usize,
    pub act: Act,
    /// Requests a second.
    pub per_second: f64,
    pub bytes: u32,
    /// The second in which it begins.
    pub begins: u64,
}

/// Write units and read units a second.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked {
    pub writes: f64,
    pub strong: f64,
    pub eventual: f64,
}

impl Asked {
    /// Which share of one partition that is, over so many shards.
    pub fn filled(self, shards: f64) -> f64 {
        let reads = (self.strong / 3_000.0).max((self.strong + 2.0 * self.eventual) / 9_000.0);
        (self.writes / 1_000.0).max(reads) / shards
    }
}

impl Act {
    pub fn items(self) -> u32 {
        match self {
            Act::Batch(items) | Act::Transact(items) => items,
            _ => 1,
        }
    }

    pub fn writes(self) -> bool {
        !matches!(self, Act::GetStrong | Act::GetEventual | Act::Query(_))
    }

    /// Units of one of its items, on a whole key.
    pub fn units(self, bytes: u32) -> f64 {
        let blocks = |bytes: f64, block: f64| (bytes / block).ceil().max(1.0);
        let bytes = f64::from(bytes);
        match self {
            Act::Transact(_) => 2.0 * blocks(bytes, 1_024.0),
            Act::GetStrong => blocks(bytes, 4_096.0),
            Act::GetEventual => blocks(bytes, 4_096.0) / 2.0,
            Act::Query(items) => blocks(bytes * f64::from(items), 4_096.0) / 2.0,
            Act::Value => 1.0,
            _ => blocks(bytes, 1_024.0),
        }
    }
}

/// What a page asks of a shard that has this share of it: what is there with three standard
/// deviations more, so that one round suffices.
pub fn likely(items: f64, share: f64) -> f64 {
    let mean = items * share;
    (mean + 3.0 * (mean * (1.0 - share)).sqrt()).ceil().clamp(1.0, items)
}

pub struct Scene {
    pub seed: u64,
    pub partitions: u64,
    pub indexed: bool,
    /// Whether the store tells its partitions.
    pub told: bool,
    pub gateways: usize,
    /// The second in which the first gateway is killed.
    pub killed: Option<u64>,
    pub keys: Vec<Key>,
    pub asks: Vec<Ask>,
    pub seconds: u64,
    /// Whether keys may get ranges of their sort keys.
    pub ranges: bool,
}

/// When hot keys begin.
pub const BEGIN: u64 = 4;

impl Scene {
    /// What is asked of a whole key.
    pub fn asked(&self, key: usize) -> Asked {
        self.asked_over(key, 1)
    }

    /// What is asked of a key with so many shards by a hash, of all of them together.
    pub fn asked_over(&self, key: usize, shards: usize) -> Asked {
        let mut sum = Asked::default();
        for ask in self.asks.iter().filter(|ask| ask.key == key) {
            let each = match ask.act {
                Act::Query(items) => {
                    let share = likely(f64::from(items), 1.0 / shards as f64);
                    shards as f64 * Act::Query(share as u32).units(ask.bytes)
                }
                act => act.units(ask.bytes),
            };
            let units = ask.per_second * f64::from(ask.act.items()) * each;
            match ask.act {
                Act::GetStrong => sum.strong += units,
                Act::GetEventual | Act::Query(_) => sum.eventual += units,
                _ => sum.writes += units,
            }
        }
        sum
    }

    /// Of that seed.
    pub fn drawn(seed: u64) -> Scene {
        let mut rng = Rng::with_seed(seed);
        let hot = [1, 1, 1, 1, 2, 2, 3, 4, 5, 7, 10, 10, 20, 50, 100][rng.usize(..15)];
        let indexed = rng.u8(..4) == 0;
        let mut cast = Cast::new(seed, rng, hot, indexed);
        cast.hot_keys(hot);
        if indexed {
            cast.value();
        }
        if cast.rng.u8(..6) == 0 {
            cast.fixed();
        }
        cast.warm_keys();
        cast.cool_keys();
        // Drawn apart, so that seeds keep their keys.
        if Rng::with_seed(seed ^ 0x4a6e).u8(..3) == 0 {
            cast.pages();
        }
        cast.scene
    }

    /// A whole key with a million items to which puts come evenly, and of which pages are read; its
    /// table's keys may get ranges.
    pub fn read_in_pages(units: f64, told: bool) -> Scene {
        let mut scene = Scene { told, ranges: true, ..Scene::equal(1, units, 1) };
        (scene.keys[0].growing, scene.keys[0].items) = (false, 1_000_000);
        scene.asks.push(Ask { key: 0, act: Act::Query(100), per_second: 20.0, bytes: 300, begins: BEGIN });
        scene
    }

    /// So many equal keys of puts, each on a partition of its own.
    pub fn equal(keys: usize, units: f64, gateways: usize) -> Scene {
        let mut cast = Cast::new(1, Rng::with_seed(keys as u64), keys, false);
        cast.scene.gateways = gateways;
        cast.scene.told = true;
        cast.scene.killed = None;
        cast.scene.partitions = if keys > 20 { 400 } else { 60 };
        cast.reground();
        for _ in 0..keys {
            let name = cast.alone("game");
            let key = cast.key(name, Role::Hot);
            let bytes = if keys > 1 { 4_000 } else { 900 };
            cast.ask(key, Act::Put, units, bytes, BEGIN);
        }
        cast.cool_keys();
        cast.scene
    }

    /// A key in ranges that begin at these of its million items; puts come evenly to all of them.
    pub fn in_ranges(split_at: &[u64], units: f64, told: bool) -> Scene {
        let mut scene = Scene { told, ..Scene::equal(1, units, 1) };
        (scene.keys[0].split_at, scene.keys[0].items) = (split_at.to_vec(), 1_000_000);
        scene
    }

    /// A hot value of an index.
    pub fn one_value() -> Scene {
        let mut cast = Cast::new(1, Rng::with_seed(5), 1, true);
        (cast.scene.gateways, cast.scene.told, cast.scene.killed) = (1, true, None);
        cast.scene.partitions = 60;
        cast.reground();
        let name = cast.alone("topic");
        let key = cast.key(name, Role::Hot);
        cast.scene.keys[key].index = true;
        cast.ask(key, Act::Value, 1_500.0, 200, BEGIN);
        cast.cool_keys();
        cast.scene
    }
}

struct Cast {
    rng: Rng,
    scene: Scene,
    ground: Ground,
    /// Partitions with a hot key.
    taken: Vec<usize>,
    named: u32,
}

impl Cast {
    fn new(seed: u64, mut rng: Rng, hot: usize, indexed: bool) -> Self {
        let partitions = [8, 16, 30, 60, 120][rng.usize(..5)];
        // Each hot key may be asked for several times what a partition takes.
        let partitions = u64::max(partitions, (hot as u64 * 5).min(400));
        let gateways = if rng.u8(..4) == 0 { 3 } else { 1 };
        let killed = (gateways > 1 && rng.u8(..3) == 0).then(|| rng.u64(BEGIN..BEGIN + 8));
        let scene = Scene {
            seed,
            partitions,
            indexed,
            told: rng.bool(),
            gateways,
            killed,
            keys: Vec::new(),
            asks: Vec::new(),
            seconds: 64,
            ranges: false,
        };
        Cast { rng, scene, ground: Ground::new(partitions, indexed), taken: Vec::new(), named: 0 }
    }

    fn reground(&mut self) {
        self.ground = Ground::new(self.scene.partitions, self.scene.indexed);
    }

    fn key(&mut self, name: String, role: Role) -> usize {
        let items = self.rng.u64(200..3_000);
        let growing = self.rng.bool();
        let split_at = Vec::new();
        let key =
            Key { name, index: false, is_number: false, role, items, growing, one_item: false, split_at };
        self.scene.keys.push(key);
        self.scene.keys.len() - 1
    }

    fn ask(&mut self, key: usize, act: Act, units: f64, bytes: u32, begins: u64) {
        let per_second = units / f64::from(act.items()) / act.units(bytes);
        self.scene.asks.push(Ask { key, act, per_second, bytes, begins });
    }

    fn partition_of(&mut self, name: &str, slot: u16) -> usize {
        let place = self.ground.place(name, slot);
        partition(&self.ground.firsts[0], place)
    }

    /// A name whose partition is as wanted.
    fn name(&mut self, prefix: &str, wanted: impl Fn(&[usize], usize) -> bool) -> String {
        for _ in 0..100_000 {
            self.named += 1;
            let name = format!("{prefix}_{}", self.named);
            let partition = self.partition_of(&name, 0);
            if wanted(&self.taken, partition) {
                return name;
            }
        }
        panic!("no partition is as wanted");
    }

    fn alone(&mut self, prefix: &str) -> String {
        let name = self.name(prefix, |taken, partition| !taken.contains(&partition));
        let partition = self.partition_of(&name, 0);
        self.taken.push(partition);
        name
    }

    fn begins(&mut self) -> u64 {
        if self.rng.u8(..3) == 0 { BEGIN + self.rng.u64(..12) } else { BEGIN }
    }

    fn hot_keys(&mut self, count: usize) {
        let together = self.rng.bool();
        let begin = self.begins();
        let mut left = count;
        while left > 0 {
            let begins = if together { begin } else { self.begins() };
            left -= 1;
            match self.rng.u8(..12) {
                // Two below the ceiling on one partition.
                0 | 1 => self.pair(begins),
                // A rival where the key's second shard will lie.
                2 if count <= 10 => {
                    let key = self.hot_key(count, begins);
                    let name = self.scene.keys[key].name.clone();
                    let partition = self.partition_of(&name, 1);
                    let rival = self.name("rival", |_, one| one == partition);
                    let rival = self.key(rival, Role::Cool);
                    let units = 500.0 + 400.0 * self.rng.f64();
                    let bytes = self.bytes(count);
                    self.ask(rival, Act::Put, units, bytes, BEGIN);
                }
                // Two over the ceiling on one partition.
                3 if count <= 10 => {
                    let key = self.hot_key(count, begins);
                    let name = self.scene.keys[key].name.clone();
                    let partition = self.partition_of(&name, 0);
                    let second = self.name("second", |_, one| one == partition);
                    let second = self.key(second, Role::Hot);
                    let units = 1_050.0 + 800.0 * self.rng.f64();
                    let bytes = self.bytes(count);
                    self.ask(second, Act::Put, units, bytes, begins);
                }
                _ => _ = self.hot_key(count, begins),
            }
        }
    }

    /// Bytes of an item: a load of many keys is one of large items, for fewer requests.
    fn bytes(&mut self, count: usize) -> u32 {
        match count {
            ..=2 => [300, 900, 900, 3_000, 10_000, 60_000][self.rng.usize(..6)],
            3..=10 => [900, 3_000, 4_000, 10_000, 30_000][self.rng.usize(..5)],
            _ => [4_000, 8_000, 16_000][self.rng.usize(..3)],
        }
    }

    fn hot_key(&mut self, count: usize, begins: u64) -> usize {
        let name = self.alone("game");
        let key = self.key(name, Role::Hot);
        let most = match count {
            ..=3 => 5.0,
            4..=10 => 2.0,
            _ => 0.6,
        };
        let factor = 1.05 + most * self.rng.f64() * self.rng.f64();
        let bytes = self.bytes(count);
        match self.rng.u8(..10) {
            0 => self.ask(key, Act::GetStrong, 3_000.0 * factor, bytes.max(8_000), begins),
            1 => self.ask(key, Act::GetEventual, 4_500.0 * factor, bytes.max(20_000), begins),
            2 => self.ask(key, Act::Query(100), 4_500.0 * factor.min(2.0), 2_000, begins),
            3 => self.ask(key, Act::Batch(25), 1_000.0 * factor, bytes.min(4_000), begins),
            4 => self.ask(key, Act::Transact(4), 1_000.0 * factor, bytes.min(8_000), begins),
            5 => {
                self.ask(key, Act::Update, 700.0 * factor, bytes, begins);
                self.ask(key, Act::Put, 300.0 * factor, 900, begins);
                self.ask(key, Act::GetStrong, 900.0 * factor, bytes.max(4_000), begins);
            }
            6 => {
                self.ask(key, Act::Batch(10), 500.0 * factor, bytes.min(4_000), begins);
                self.ask(key, Act::Statement, 500.0 * factor, bytes, begins);
            }
            _ => self.ask(key, Act::Put, 1_000.0 * factor, bytes, begins),
        }
        key
    }

    fn pair(&mut self, begins: u64) {
        let first = self.alone("left");
        let partition = self.partition_of(&first, 0);
        let second = self.name("right", |_, one| one == partition);
        let size = 0.6 + 0.35 * self.rng.f64();
        for (name, size) in [(first, size), (second, 1.05 - size + 0.55 * self.rng.f64())] {
            let key = self.key(name, Role::Hot);
            let act = [Act::Put, Act::Update, Act::Statement, Act::Batch(5)][self.rng.usize(..4)];
            let bytes = self.bytes(20);
            self.ask(key, act, 1_000.0 * size.min(0.95), bytes, begins);
        }
    }

    fn value(&mut self) {
        let name = self.alone("topic");
        let key = self.key(name, Role::Hot);
        self.scene.keys[key].index = true;
        let units = 1_100.0 + 1_500.0 * self.rng.f64();
        let begins = self.begins();
        self.ask(key, Act::Value, units, 300, begins);
        for _ in 0..3 {
            let name = self.name("subject", |_, _| true);
            let key = self.key(name, Role::Cool);
            self.scene.keys[key].index = true;
            let units = 20.0 + 40.0 * self.rng.f64();
            self.ask(key, Act::Value, units, 300, 0);
        }
    }

    /// A key that burns, and that no shards help.
    fn fixed(&mut self) {
        let name = self.alone("fixed");
        let key = self.key(name, Role::Fixed);
        if self.rng.bool() {
            self.scene.keys[key].is_number = true;
        } else {
            self.scene.keys[key].one_item = true;
        }
        let units = 1_100.0 + 900.0 * self.rng.f64();
        let begins = self.begins();
        self.ask(key, Act::Update, units, 4_000, begins);
    }

    /// Pages of what is written evenly are read now and then, and its keys may get ranges.
    fn pages(&mut self) {
        self.scene.ranges = true;
        for key in 0..self.scene.keys.len() {
            let one = &self.scene.keys[key];
            let is_written = self.scene.asks.iter().filter(|ask| ask.key == key).all(|ask| ask.act.writes());
            if one.role == Role::Hot && is_written && !one.index && !one.growing {
                self.ask(key, Act::Query(10), 20.0, 900, BEGIN);
            }
        }
    }

    /// Keys that are not hot alone, wherever they happen to lie.
    fn warm_keys(&mut self) {
        for _ in 0..self.rng.u64(0..=self.scene.partitions / 8) {
            let name = self.name("warm", |_, _| true);
            let key = self.key(name, Role::Cool);
            let units = 200.0 + 450.0 * self.rng.f64();
            self.ask(key, Act::Put, units, 5_000, 0);
        }
    }

    fn cool_keys(&mut self) {
        for nth in 0..10 + self.scene.partitions.min(60) / 2 {
            let name = match self.taken.get(nth as usize / 2).copied() {
                // Beside a hot key.
                Some(partition) if nth % 2 == 0 => self.name("title", |_, one| one == partition),
                _ => self.name("quiet", |_, _| true),
            };
            let key = self.key(name, Role::Cool);
            let units = 5.0 + 55.0 * self.rng.f64();
            let act = [Act::Put, Act::Put, Act::Update, Act::GetStrong][self.rng.usize(..4)];
            self.ask(key, act, units, 500, 0);
        }
    }
}
