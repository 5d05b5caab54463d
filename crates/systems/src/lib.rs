//! Five small applications that met a hot key, each run before and after a rule on the embedded
//! store behind its partitions.
//!
//! The applications speak DynamoDB and know nothing of shards; only the rules differ between before
//! and after. Time is virtual: the partitions' clock moves with the schedule of the load, so a run
//! is exact, is the same every time, and takes as long as its work. One part is not the same every
//! time: a conversation that is sharded while messages are sent (`live`). The same heat in real
//! time and over HTTP is `heatsink-lab demo leaderboard`.
//!
//! docs/explain/systems.md tells of each. Its rules are the files in `examples/`. Where an account
//! came with code, `run.py` or `run.mjs` beside them is the same application in that language, over
//! HTTP and in real time (`clients/run --alone`).
//!
//! Not here: the command that runs them (`heatsink-lab demo`), and `heatsink-lab demo leaderboard`,
//! which runs in real time.

pub mod chat;
mod counted_store;
pub mod events;
mod late_load;
pub mod leaderboard;
mod live;
pub mod ops_log;
mod stage;
mod story;
pub mod votes;

use futures::future::{BoxFuture, FutureExt};

pub use stage::{Fault, Load, Stage};
pub use story::{Finding, Phase, Shown, Story};

/// One of the systems.
pub struct System {
    /// Its name on the command line.
    pub name: &'static str,
    /// What breaks in it, in a line.
    pub about: &'static str,
    /// Runs it.
    pub run: fn() -> BoxFuture<'static, Result<Story, Fault>>,
}

/// All of them. Not a constant: whoever uses one compiles all five anew.
pub static SYSTEMS: &[System] = &[
    System {
        name: "ranking",
        about: "A viral leaderboard's questions: top 100 and next pages, own score, rank; by score and by player; yesterday's scores adopted",
        run: || leaderboard::run().boxed(),
    },
    System {
        name: "chat",
        about: "One busy conversation: shards for it alone, messages sent twice, history in order; sharded while messages are sent",
        run: || chat::run().boxed(),
    },
    System {
        name: "events",
        about: "Busy users and tenants: random, days, days with shards, and the suffixes people append by hand",
        run: || events::run().boxed(),
    },
    System {
        name: "votes",
        about: "Votes on one item, and ballots that an index lists under one key: the index holds its table back",
        run: || votes::run().boxed(),
    },
    System {
        name: "ops-log",
        about: "An operations log under one key: buckets of days bound its size, shards lift its rate, an audit tells which keys matter",
        run: || ops_log::run().boxed(),
    },
];
