//! Which store says what is right: it runs unsharded, and below sharding.

use std::sync::Arc;

use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use serde::{Deserialize, Serialize};

use crate::local::Local;

/// A kind of store.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Judge {
    /// The embedded engine.
    #[default]
    Engine,
    /// DynamoDB Local (`local`).
    DynamoDbLocal,
}

impl Judge {
    /// An empty store.
    pub fn store(self) -> Arc<dyn Store> {
        match self {
            Judge::Engine => Arc::new(Embedded::memory().expect("memory")),
            Judge::DynamoDbLocal => Arc::new(Local::new()),
        }
    }

    /// Whether it can have that test table: the server knows one key attribute of each kind.
    pub fn has(self, table: &str) -> bool {
        self == Judge::Engine || table != crate::schema::SEVERAL
    }

    /// One of so many steps of each operation has to be accepted, or more.
    pub fn refuses_fewer_than(self) -> usize {
        match self {
            Judge::Engine => 3,
            // It refuses projections into keys too: of a BatchGetItem, in which each table may have
            // a mistake, it accepts 31 in 100.
            Judge::DynamoDbLocal => 4,
        }
    }

    /// How many steps to draw for a case of `wanted`.
    pub fn steps_to_draw(self, wanted: usize) -> usize {
        match self {
            Judge::Engine => wanted,
            // What it does not have is left out: one step in four.
            Judge::DynamoDbLocal => wanted * 8 / 5,
        }
    }

    /// From how many cases on a run says how far it is.
    pub fn long_run(self) -> u64 {
        match self {
            Judge::Engine => 2_000,
            Judge::DynamoDbLocal => 250,
        }
    }

    /// How often a failing case is run again to cut it down.
    pub fn most_tries(self) -> usize {
        match self {
            Judge::Engine => usize::MAX,
            // Seconds each; a large case takes minutes.
            Judge::DynamoDbLocal => 60,
        }
    }

    /// The command that runs a kept case again, without its file.
    pub fn replays_with(self) -> &'static str {
        match self {
            Judge::Engine => "cargo test -p heatsink --test differential",
            Judge::DynamoDbLocal => "clients/local-judge",
        }
    }
}
