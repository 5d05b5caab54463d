//! Traffic in which nothing is hot: what is done about it, and what is advised, over thousands of
//! windows in which most requests are drawn and not counted.

use std::time::Duration;

use fastrand::Rng;
use heatsink_env::MonotonicInstant;
use heatsink_heat::costs::RequestKind;
use heatsink_heat::detect::{Kind, Outcome};
use heatsink_heat::policy::{Facts, KeyFacts, Policy, Settings};
use heatsink_heat::{KeyLoad, Recent, shardable_loads};

use crate::gateway::{Gateway, Part, Seen};

const KEYS: usize = 10_000;
/// Items a second, of a unit each. The hottest key of the zipf traffic takes 600 of them.
const ITEMS: u64 = 16_000;

#[derive(Clone, Copy, Debug)]
enum Shape {
    Uniform,
    Zipf,
    /// In each second other ten keys take 600 units each.
    Rotating,
}

#[derive(Clone, Copy, Debug)]
enum Calls {
    Single,
    Batches,
    Transactions,
    Statements,
}

impl Calls {
    fn of(self) -> (u64, u32, RequestKind) {
        match self {
            Calls::Single => (1, 1, RequestKind::Put),
            Calls::Batches => (25, 25, RequestKind::Put),
            Calls::Transactions => (4, 100, RequestKind::Put),
            Calls::Statements => (1, 1, RequestKind::Change),
        }
    }
}

struct Whole;

impl Facts for Whole {
    fn key(&self, _: &KeyLoad) -> KeyFacts {
        KeyFacts::whole(Settings { patience: Duration::ZERO, ..Settings::DEFAULT })
    }
}

/// The sums of the keys' probabilities by Zipf's law.
fn zipf() -> Vec<f64> {
    let mut sum = 0.0;
    (1..=KEYS)
        .map(|rank| {
            sum += (rank as f64).powf(-0.8);
            sum
        })
        .collect()
}

/// Keys that are acted on, and windows with advice.
fn alarms(shape: Shape, calls: Calls, windows: u64) -> (usize, usize) {
    let mut rng = Rng::with_seed(7);
    let mut gateway = Gateway::new(11, 0);
    let (mut policy, mut recent) = (Policy::default(), Recent::default());
    let names: Vec<String> = (0..KEYS).map(|key| format!("key_{key}")).collect();
    let sums = zipf();
    let (items, most, request) = calls.of();
    let (mut acts, mut advised) = (0, 0);
    for window in 0..windows {
        for call in 0..ITEMS / items {
            let now = window * 1_000 + call * 1_000 * items / ITEMS;
            let keys: Vec<usize> = (0..items)
                .map(|_| match shape {
                    Shape::Rotating if rng.u64(..ITEMS) < 6_000 => window as usize * 10 + rng.usize(..10),
                    Shape::Uniform | Shape::Rotating => rng.usize(..KEYS),
                    Shape::Zipf => {
                        let at = rng.f64() * sums[KEYS - 1];
                        sums.partition_point(|sum| *sum < at)
                    }
                })
                .collect();
            let sorts: Vec<[u8; 8]> = keys.iter().map(|_| rng.u64(..).to_be_bytes()).collect();
            let seen: Vec<Seen<'_>> = keys
                .iter()
                .zip(&sorts)
                .enumerate()
                .map(|(at, (key, sort))| Seen {
                    at,
                    part: Part { index: false, kind: Kind::Write },
                    key: &names[key % KEYS],
                    is_number: false,
                    request,
                    units: 1_000,
                    outcome: Outcome::Done,
                    page: None,
                    is_page: false,
                    sort: Some(sort),
                    bytes: 500,
                    adds: false,
                })
                .collect();
            gateway.count(now, most, &seen, &[]);
        }
        let end = (window + 1) * 1_000;
        let (loads, parts) = gateway.window(end);
        let at = MonotonicInstant(0) + Duration::from_millis(end);
        acts += policy.look(at, &loads, &Whole).decisions.len();
        recent.ended(window + 1, || shardable_loads(&parts));
        advised += usize::from(!recent.hot(|_| 1).is_empty());
    }
    (acts, advised)
}

/// Plays so many windows of each kind of traffic.
fn play(windows: u64) {
    let (mut advised, mut all) = (0, 0);
    for shape in [Shape::Uniform, Shape::Zipf, Shape::Rotating] {
        for calls in [Calls::Single, Calls::Batches, Calls::Transactions, Calls::Statements] {
            let (acts, of_these) = alarms(shape, calls, windows);
            println!("{shape:?}, {calls:?}: {acts} actions, advice in {of_these} of {windows} windows");
            assert_eq!(acts, 0, "{shape:?}, {calls:?}");
            advised += of_these;
            all += usize::try_from(windows).unwrap();
        }
    }
    println!("advice in {advised} of {all} windows");
    assert!(advised <= all / 1_000, "advice in {advised} of {all} windows");
}

#[test]
fn where_nothing_is_hot_nothing_is_done_and_next_to_nothing_advised() {
    play(90);
}

/// `just closed-loop`.
#[test]
#[ignore = "two minutes"]
fn of_a_thousand_windows_of_each_kind_nothing_is_done() {
    play(1_000);
}
