//! What a search is over: who takes part, what they do, how the world begins, and which rule of the
//! protocol is left out.

use std::time::Duration;

use heatsink_fence::Bounds;

use crate::world::{Plan, RecordState, Tick, Value};

/// A request of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Op {
    /// Writes the item, whatever it was before.
    Put,
    /// Reads the item.
    Get,
}

/// How a gateway begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// It has not looked for a registry yet.
    New,
    /// It is on the list, has a lease, and knows this of the table.
    Registered(Option<Plan>),
}

/// One gateway.
#[derive(Clone, Debug)]
pub struct GatewayConfig {
    /// Whether its rules want the table sharded. It then sends nothing raw.
    pub shards: bool,
    pub start: Start,
    /// What its clients ask for, one after the other.
    pub ops: &'static [Op],
}

/// A change of the layout.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// An empty table comes under its rule.
    FirstUse,
    /// A table that is not empty does not.
    Refuse,
    /// A table is made through Heatsink, sharded.
    Create,
    /// A table is made through Heatsink by a gateway without rules, though its name was sharded
    /// before.
    CreateWhole,
    /// A table is deleted through Heatsink.
    Delete,
    /// The items of a table are spread.
    Adopt,
    /// The items of a table are brought back.
    Return,
    /// The key of an index is spread while clients write.
    SpreadIndex,
}

/// What happens to the table without Heatsink.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Other {
    /// Somebody makes it.
    Create,
    /// Somebody deletes it.
    Delete,
}

/// A rule that a test leaves out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    RecordBeforeHead,
    LeaseBeforeSending,
    GateBeforeSending,
    GateOnDelivery,
    LeaseOnDelivery,
    StragglersOfTheSilent,
    UncleanCounted,
    ListAfterPublication,
    RegisterBeforeReading,
    LeaseFromSending,
    LookUpRedone,
    PendingAcknowledged,
    NotFoundAnswered,
    IntentBeforeCreate,
    NameChecked,
    BoundHasRecord,
    RegistrySettled,
    SettledOnRecord,
    OneLeaseWithoutRegistry,
    GateWithoutRegistry,
    RemovedOnlyWhenSilent,
    EndedIsCertain,
    StragglersOfTheEnded,
    BeatsDiffer,
    ClaimChecked,
    StepWaitedFor,
    TakeoverPublishes,
    DeleteAnnounced,
    IntentAcknowledged,
}

/// One configuration.
#[derive(Clone, Debug)]
pub struct Config {
    pub gateways: Vec<GatewayConfig>,
    /// Who changes the layout, each with its changes in order. Whoever is killed simply does
    /// nothing any more.
    pub changers: Vec<&'static [Kind]>,
    pub others: &'static [Other],
    /// Whether the table is there at the beginning, what its record says, and what is stored: at
    /// the raw key, in the shard.
    pub table: bool,
    pub record: Option<RecordState>,
    pub stored: [Value; 2],
    /// Whether the registry is there at the beginning.
    pub registry: bool,
    pub bounds: Bounds,
    /// When the clock stops.
    pub horizon: Tick,
    /// Calls may go unanswered, and take effect later than that, within the straggler bound.
    pub calls_lost: bool,
    /// How many acknowledgements of each gateway may be written without the gateway learning of it.
    pub beats_lost: u8,
    /// Gateways write their registrations although nothing is new, and silent ones are removed.
    pub heartbeats: bool,
    /// The process of this gateway may end, and others can tell.
    pub ends: Option<usize>,
    /// The answer to a look at the head is worked on later than it was given; else at once, and
    /// acknowledged at once.
    pub slow: bool,
    /// Requests may stop between any two of their steps. Else a look-up, admission with sending,
    /// and landing with delivery are one step each: as long as the checks in between are made, to
    /// stop there is the same as to stop before.
    pub fine: bool,
    /// Descriptions of the table may be out of date.
    pub stale: bool,
    /// The item has one place, and the two cells are the forms of its index key: a write in one
    /// form ends the other.
    pub index: bool,
    /// Calls may take effect at any time after they were sent: the assumption about the network
    /// does not hold.
    pub unbounded: bool,
    /// How many changes can go to their end at least: of several that begin at once, only one may.
    pub least_finished: usize,
    pub left_out: Vec<Rule>,
}

impl Config {
    /// Two gateways on the list before one table without record.
    pub fn new(gateways: Vec<GatewayConfig>, changers: Vec<&'static [Kind]>) -> Self {
        Config {
            gateways,
            changers,
            others: &[],
            table: true,
            record: None,
            stored: [0, 0],
            registry: true,
            bounds: bounds(1, 1, SELDOM),
            horizon: 3,
            calls_lost: true,
            beats_lost: 0,
            heartbeats: false,
            ends: None,
            slow: false,
            fine: false,
            stale: false,
            index: false,
            unbounded: false,
            least_finished: 1,
            left_out: Vec::new(),
        }
    }

    pub fn without(mut self, rule: Rule) -> Self {
        self.left_out.push(rule);
        self.fine |= matches!(
            rule,
            Rule::LeaseBeforeSending
                | Rule::GateBeforeSending
                | Rule::GateWithoutRegistry
                | Rule::LookUpRedone
                | Rule::GateOnDelivery
                | Rule::LeaseOnDelivery
        );
        self
    }

    /// Whether a rule is kept.
    pub fn keeps(&self, rule: Rule) -> bool {
        !self.left_out.contains(&rule)
    }

    /// The bounds that a gateway has.
    pub fn bounds_of(&self, _gateway: usize) -> Bounds {
        match self.keeps(Rule::OneLeaseWithoutRegistry) {
            true => self.bounds,
            false => Bounds { lease: self.bounds.lease + Duration::from_secs(2), ..self.bounds },
        }
    }
}

/// A heartbeat that is never due while the clock runs.
pub const SELDOM: Duration = Duration::from_secs(100);
/// A heartbeat by which reads prolong a lease for one tick after a registration.
pub const OFTEN: Duration = Duration::from_millis(500);

/// Bounds in ticks of a second.
pub fn bounds(lease: u64, straggler: u64, heartbeat: Duration) -> Bounds {
    Bounds {
        lease: Duration::from_secs(lease),
        heartbeat,
        poll: Duration::from_millis(500),
        straggler: Duration::from_secs(straggler),
    }
}

/// A gateway with a rule for the table.
pub fn with_rule(start: Start, ops: &'static [Op]) -> GatewayConfig {
    GatewayConfig { shards: true, start, ops }
}

/// A gateway without rules.
pub fn without_rule(start: Start, ops: &'static [Op]) -> GatewayConfig {
    GatewayConfig { shards: false, start, ops }
}
