//! Everything that exists in one state of the search: the store, the registry in it, gateways,
//! whoever changes layouts, and the clock.
//!
//! Time is a small number of ticks of a second. Whoever is stopped or killed simply takes no step;
//! so every party may be stopped anywhere.

use std::sync::Arc;

use heatsink_env::MonotonicInstant;
use heatsink_fence::{Epoch, Head};
use stateright::semantics::register::{Register, RegisterOp, RegisterRet};
use stateright::semantics::{ConsistencyTester, LinearizabilityTester};

use crate::change::Changer;
use crate::config::{Config, Other, Start};
use crate::gateway::Gateway;

/// A number of seconds.
pub type Tick = u8;
/// What an item holds; nought for no item.
pub type Value = u8;
/// The store's id of a table: the first that has the name, the second, …
pub type Id = u8;

/// The cell of the raw key; or the old form of an index key.
pub const RAW: usize = 0;
/// The cell of the item's shard; or the new form of an index key.
pub const SHARD: usize = 1;

/// The name of the only table.
pub const TABLE: &str = "t";

/// A tick as a moment.
pub fn at(tick: Tick) -> MonotonicInstant {
    MonotonicInstant(u64::from(tick) * 1_000_000_000)
}

/// How a request reads and writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Plan {
    /// As it was sent.
    Raw,
    /// In the shard.
    Sharded,
    /// Reads both forms of an index key, writes the old one.
    BothOld,
    /// Reads both forms of an index key, writes the new one.
    BothNew,
}

/// What a table's record says.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum RecordState {
    /// Seen empty once; nobody may write until all know.
    Pending,
    /// Sharded.
    Active,
    /// Not sharded: looked at, and not empty.
    Whole,
    /// About to be deleted.
    Going,
    /// Deleted.
    Gone,
    /// Items move to their shards. Nobody may read or write.
    Adopting,
    /// Items move back.
    Returning,
    /// Both forms of the index key are read, the old one is written.
    SpreadingOld,
    /// Both forms are read, the new one is written.
    SpreadingNew,
}

/// A table's record.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Record {
    pub version: u8,
    pub state: RecordState,
}

/// Who has the table's name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Name {
    /// Nobody on record.
    Free,
    /// That changer is about to make the table.
    Intent(u8),
    /// The table of that id.
    Bound(Id),
}

/// A call that nobody waits for any more, on its way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct LateCall {
    pub sent: Tick,
    pub cell: usize,
    pub value: Value,
}

/// The store's side of the table.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Store {
    pub table: Option<Id>,
    /// What a description may still show.
    pub former: Option<Id>,
    /// How many tables have had the name.
    pub made: u8,
    pub cells: [Value; 2],
    pub late: Vec<LateCall>,
}

/// A gateway's registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Entry {
    pub beat: u64,
    pub epoch: Epoch,
    pub unclean: Tick,
    pub ended: bool,
}

/// The registry's table.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Registry {
    pub head: Option<Arc<Head>>,
    /// Every gateway that began before there was a registry has noticed it.
    pub settled: bool,
    pub records: [Option<Record>; 3],
    pub name: Name,
    pub list: Vec<Option<Entry>>,
    /// The changers that have a claim to move items: one bit each.
    pub claims: u8,
}

/// What went wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Fault {
    /// The answers that clients were given fit no order of their requests: a write is lost, or a
    /// read was stale.
    Inexplicable,
    /// A request that is not sharded was answered while the store held a key of a shard.
    PhysicalKeySeen,
    /// An item lies where nobody looks for it.
    Misplaced,
}

/// The requests of all clients, and what they were answered. An operation without an answer may
/// have happened, or may yet.
pub type History = LinearizabilityTester<u8, Register<Value>>;

/// One state.
#[derive(Clone, Debug, PartialEq, Hash)]
pub struct World {
    pub now: Tick,
    pub store: Store,
    pub registry: Registry,
    pub gateways: Vec<Gateway>,
    pub changers: Vec<Changer>,
    /// How many of the things were done that happen without Heatsink.
    pub others: u8,
    /// How many operations were answered, and how many changes went to their end.
    pub answered: u8,
    pub finished: u8,
    pub history: Arc<History>,
    pub fault: Option<Fault>,
}

impl Store {
    /// Writes the item, as a call for the table's name does: to whichever table has the name.
    pub fn put(&mut self, config: &Config, cell: usize, value: Value) {
        if self.table.is_none() {
            return;
        }
        if config.index {
            self.cells = [0, 0];
        }
        if let Some(stored) = self.cells.get_mut(cell) {
            *stored = value;
        }
    }

    /// Makes a table, if none has the name.
    pub fn create(&mut self) -> Option<Id> {
        if self.table.is_some() {
            return None;
        }
        self.table = Some(self.made);
        self.made += 1;
        self.cells = [0, 0];
        self.table
    }
}

impl Plan {
    /// Which cell is written.
    pub fn writes(self) -> usize {
        match self {
            Plan::Raw | Plan::BothOld => RAW,
            Plan::Sharded | Plan::BothNew => SHARD,
        }
    }

    /// What a read finds.
    pub fn reads(self, cells: [Value; 2]) -> Value {
        match self {
            Plan::Raw => cells[RAW],
            Plan::Sharded => cells[SHARD],
            Plan::BothOld | Plan::BothNew => cells[RAW].max(cells[SHARD]),
        }
    }
}

impl World {
    /// The beginning.
    pub fn begin(config: &Config) -> Self {
        let registered = |start| matches!(start, Start::Registered(_));
        let list = config.gateways.iter().map(|gateway| {
            registered(gateway.start).then_some(Entry { beat: 0, epoch: 0, unclean: 0, ended: false })
        });
        let changers = config.changers.iter().map(|_| Changer::default());
        let gateways = (0..config.gateways.len()).map(|gateway| Gateway::begin(config, gateway));
        let initial = config.stored[RAW].max(config.stored[SHARD]);
        World {
            now: 0,
            store: Store {
                table: config.table.then_some(0),
                former: None,
                made: u8::from(config.table),
                cells: config.stored,
                late: Vec::new(),
            },
            registry: Registry {
                head: config.registry.then(|| Arc::new(Head::default())),
                settled: config.registry,
                records: [config.record.map(|state| Record { version: 1, state }), None, None],
                name: if config.record.is_some() { Name::Bound(0) } else { Name::Free },
                list: list.collect(),
                claims: 0,
            },
            gateways: gateways.collect(),
            changers: changers.collect(),
            others: 0,
            answered: 0,
            finished: 0,
            history: Arc::new(LinearizabilityTester::new(Register(initial))),
            fault: None,
        }
    }

    /// The record of a table.
    pub fn record(&self, id: Id) -> Option<Record> {
        self.registry.records.get(usize::from(id)).copied().flatten()
    }

    /// The newest epoch.
    pub fn epoch(&self) -> Epoch {
        self.registry.head.as_ref().map_or(0, |head| head.epoch)
    }

    /// A client's operation begins: its first call is sent.
    pub fn invoke(&mut self, operation: u8, op: RegisterOp<Value>) {
        let history = Arc::make_mut(&mut self.history);
        history.on_invoke(operation, op).expect("each operation has its own number");
    }

    /// A client is given its answer. Only reads can show that something is wrong.
    pub fn answer(&mut self, operation: u8, answer: RegisterRet<Value>) {
        let read = matches!(answer, RegisterRet::ReadOk(_));
        let history = Arc::make_mut(&mut self.history);
        history.on_return(operation, answer).expect("it was begun");
        if read && !history.is_consistent() {
            self.fault.get_or_insert(Fault::Inexplicable);
        }
    }

    /// Somebody makes or deletes the table without Heatsink.
    pub fn other(&mut self, what: Other) -> Option<()> {
        match what {
            Other::Create => {
                self.store.create()?;
            }
            Other::Delete => self.delete_table()?,
        }
        self.others += 1;
        Some(())
    }

    /// Deletes the table. To clients its item is deleted.
    pub fn delete_table(&mut self) -> Option<()> {
        self.store.former = Some(self.store.table.take()?);
        self.store.cells = [0, 0];
        let operation = 200 + self.store.made;
        self.invoke(operation, RegisterOp::Write(0));
        self.answer(operation, RegisterRet::WriteOk);
        Some(())
    }

    /// The clock goes on. Calls that have been on their way for longer than the straggler bound
    /// never arrive.
    pub fn tick(&mut self, config: &Config) {
        self.now += 1;
        let now = self.now;
        self.store.late.retain(|call| config.unbounded || can_land(config, now, call.sent));
    }

    /// Looks whether an item lies where nobody looks for it, now that nothing is under way.
    pub fn check_places(&mut self, config: &Config) {
        let Some(table) = self.store.table else { return };
        let stray = match self.record(table).map(|record| record.state) {
            Some(RecordState::Active) => self.store.cells[RAW],
            Some(RecordState::Whole) | None => self.store.cells[SHARD],
            Some(_) => 0,
        };
        // A call that lands later than is assumed, of unknown outcome, may go astray. No answer
        // rests on it.
        if stray != 0 && !config.unbounded {
            self.fault.get_or_insert(Fault::Misplaced);
        }
    }
}

/// Whether a call can still take effect that was sent then.
pub fn can_land(config: &Config, now: Tick, sent: Tick) -> bool {
    config.unbounded || now == sent || at(now).since(at(sent)) < config.bounds.straggler
}
