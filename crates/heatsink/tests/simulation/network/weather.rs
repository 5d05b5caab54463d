//! How bad the network and the store are, and what becomes of one request.

use std::time::Duration;

use fastrand::Rng;
use heatsink_dynamo::Error;

/// How long a process waits for an answer, as an upstream's default is.
pub const PATIENCE: Duration = Duration::from_secs(20);

/// How long a request takes to the store, or an answer back, on a good day: up to this.
pub(super) const QUICK: Duration = Duration::from_millis(20);

/// Sends to the store directly, bypassing Heatsink, in any weather.
pub const PAST: &str = "past";

/// How bad the network and the store are. Of `n` requests one meets the mischief; 0 is never.
#[derive(Clone, Copy, Debug)]
pub struct Weather {
    /// Requests that arrive up to [`latest`](Self::latest) late.
    pub late: u64,
    pub latest: Duration,
    /// Requests of processes whose name begins so are never late.
    pub punctual: &'static str,
    /// Answers that never come, or that a broken connection takes with it.
    pub lost: u64,
    /// Requests that the store throttles.
    pub throttled: u64,
    /// Reads that arrive twice.
    pub twice: u64,
    /// BatchGetItem requests whose items are read at two moments.
    pub split: u64,
    /// Transactions on the registry that readers see half done for a while: the record of a table,
    /// but not yet that of its key.
    pub torn: u64,
    /// For how long DescribeTable may show what was there before a table was made or dropped:
    /// nothing, or another table.
    pub stale: Duration,
    /// How long a process waits for an answer.
    pub patience: Duration,
}

impl Default for Weather {
    fn default() -> Self {
        let nothing = Duration::ZERO;
        Weather {
            late: 0,
            latest: nothing,
            punctual: PAST,
            lost: 0,
            throttled: 0,
            twice: 0,
            split: 0,
            torn: 0,
            stale: nothing,
            patience: PATIENCE,
        }
    }
}

impl Weather {
    /// Bad weather in which calls land within the bounds of [`FENCE`](crate::reshard::FENCE), as the
    /// protocol of moves assumes: what is late comes up to `latest` late.
    pub fn within_bounds(rng: &mut Rng, latest: Duration) -> Self {
        let mut one_in = |n: &[u64]| if rng.bool() { n[rng.usize(..n.len())] } else { 0 };
        Weather {
            late: one_in(&[3, 6, 20]),
            latest,
            lost: one_in(&[30, 100]),
            throttled: one_in(&[10, 40]),
            twice: one_in(&[5, 20]),
            split: one_in(&[2, 10]),
            torn: one_in(&[2, 6]),
            patience: if rng.bool() { Duration::from_secs(3) } else { PATIENCE },
            ..Weather::default()
        }
    }
}

/// How late a call may be within those bounds.
pub fn latest(rng: &mut Rng) -> Duration {
    Duration::from_millis([1_000, 3_500, 3_900][rng.usize(..3)])
}

/// What becomes of one request.
#[derive(Clone, Copy, Debug)]
pub struct Fate {
    pub there: Duration,
    pub back: Duration,
    /// The answer is lost; the connection breaks, or is silent.
    pub lost: Option<Lost>,
    pub throttled: bool,
    pub twice: Option<Duration>,
    /// How much later the other part of a BatchGetItem is read.
    pub split: Option<Duration>,
    /// For how long a transaction that writes a key's record is seen half done.
    pub torn: Option<Duration>,
    /// What the store says instead of doing it.
    pub refused: Option<fn() -> Error>,
}

#[derive(Clone, Copy, Debug)]
pub enum Lost {
    Broken,
    Silent,
}

impl Fate {
    /// A request that arrives so late and is answered at once.
    pub fn late(there: Duration) -> Fate {
        let back = Duration::from_millis(1);
        Fate {
            there,
            back,
            lost: None,
            throttled: false,
            twice: None,
            split: None,
            torn: None,
            refused: None,
        }
    }
}

/// Later than any run ends.
pub(super) const NEVER: Duration = Duration::from_secs(365 * 24 * 3600);
