//! What all plans of one router share: what it has learned from answers, the turns of counters, its
//! clock. And how a plan has a part of its request planned.
//!
//! The router stands above all plans; whoever plans a request once more, or a Query within another
//! request, asks for that here.

use std::sync::Arc;
use std::sync::atomic::{AtomicU16, Ordering};

use heatsink_dynamo::{Error, Operation};
use heatsink_layout::{LayoutSource, Table};

use crate::Plan;
use crate::context::{Named, Places};
use crate::directory::known::KnownBuckets;
use crate::learned::item_sizes::ItemSizes;
use crate::learned::tokens::Tokens;
use crate::request::Request;
use crate::unrecorded::KnownRows;

/// Plans valid requests on items. The router does; plans that have a part of their request planned
/// stand below it, and reach it by this.
pub(crate) trait ItemPlanner: std::fmt::Debug + Send + Sync {
    /// As [`Shared::plan_at`].
    fn plan(
        &self,
        shared: &Shared,
        operation: Operation,
        request: &Request<'_>,
        table: &Arc<Table>,
        layouts: &dyn LayoutSource,
        places: Option<&Places>,
    ) -> Result<(Plan, Vec<Named>), Error>;
}

/// What the plans of one router share.
#[derive(Clone, Debug)]
pub(crate) struct Shared {
    /// What the items of each table weigh, learned from answers.
    pub(crate) sizes: Arc<ItemSizes>,
    /// What is known of the directory of buckets.
    pub(crate) buckets: Arc<KnownBuckets>,
    /// The keys that were entered of tables that get other layouts.
    pub(crate) entered: Arc<KnownRows>,
    /// How many updates of counters were given a fragment.
    turns: Arc<AtomicU16>,
    /// What transactions with tokens were sent as, where that does not follow from them.
    pub(crate) tokens: Tokens,
    clock: Option<Clock>,
    planner: Arc<dyn ItemPlanner>,
}

/// Tells the time, in milliseconds since 1970.
#[derive(Clone)]
struct Clock(Arc<dyn Fn() -> u64 + Send + Sync>);

impl std::fmt::Debug for Clock {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Clock")
    }
}

impl Shared {
    /// Nothing is learned yet, and no time is known.
    pub(crate) fn new(planner: Arc<dyn ItemPlanner>) -> Self {
        let (sizes, buckets, entered, turns, tokens) = Default::default();
        Shared { sizes, buckets, entered, turns, tokens, clock: None, planner }
    }

    /// The same, with a clock.
    pub(crate) fn with_clock(self, clock: impl Fn() -> u64 + Send + Sync + 'static) -> Self {
        Shared { clock: Some(Clock(Arc::new(clock))), ..self }
    }

    /// The time in milliseconds since 1970, if it is known.
    pub(crate) fn now(&self) -> Option<u64> {
        self.clock.as_ref().map(|clock| clock.0())
    }

    /// The fragment of a counter that takes the next update: each in turn.
    pub(crate) fn next_fragment(&self, shards: u16) -> u16 {
        self.turns.fetch_add(1, Ordering::Relaxed) % shards.max(1)
    }

    /// The plan of a valid request, after the rows of the buckets that it is the first to put
    /// something into. `places`: where its items lie, if they were looked for. Where not, also
    /// gives the items whose place was assumed.
    ///
    /// # Errors
    /// As [`Router::plan`](crate::Router::plan).
    pub(crate) fn plan_at(
        &self,
        operation: Operation,
        request: &Request<'_>,
        table: &Arc<Table>,
        layouts: &dyn LayoutSource,
        places: Option<&Places>,
    ) -> Result<(Plan, Vec<Named>), Error> {
        self.planner.plan(self, operation, request, table, layouts, places)
    }
}
