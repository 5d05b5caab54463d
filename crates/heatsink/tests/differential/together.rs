//! Worlds in which several keys of a table move as a group, from before they begin until all are
//! where they go, while clients go on. Their records are written together, as a gateway writes those
//! that it moves beside each other, and every other key is a step behind. One gateway after the
//! other knows a step more, and at any time two take calls that are one step apart. Between the
//! requests items are on their way (`moving`); all of a key have moved when the first gateway comes
//! that knows its move to be over.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use futures::executor::block_on;
use futures::future::join_all;
use heatsink_control::{Control, KeyRecord, KeyWrites, Move, REGISTRY, registry::Registry};
use heatsink_dynamo::{KeyType, KeyValue, Number};
use heatsink_env::ManualEnv;
use heatsink_layout::{InForce, Layout, LayoutSource, Phase};
use heatsink_store::Store;

use crate::compare::Answer;
use crate::moving;
use crate::recorded::{self, layout, on_record};
use crate::schema::Table;
use crate::world::A_DAY;

/// Where a key is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    Before,
    In(Phase),
    Rests,
}

/// Where it is in turn. Its items are on the way for longer than each step.
const WAY: [At; 7] = [
    At::Before,
    At::In(Phase::Reserve),
    At::In(Phase::Prepare),
    At::In(Phase::Hold),
    At::In(Phase::Move),
    At::In(Phase::Move),
    At::Rests,
];

/// What gateways know, one after the other: so many steps.
pub const VIEWS: usize = WAY.len() + 1;

/// After so many calls the next step is known.
pub const CALLS: usize = 80;

/// Where that key of a table is as a gateway with a view knows it.
fn at(view: usize, nth: usize) -> At {
    WAY[view.saturating_sub(nth % 2).min(WAY.len() - 1)]
}

/// Whether keys move as a group under these rules.
pub fn has(rules: &str) -> bool {
    rules.trim_end().ends_with("# keys move together")
}

/// A sort key behind all that clients use.
fn high_water(table: &Table) -> KeyValue<'static> {
    match table.sort {
        Some((_, "N")) => KeyValue::N(Number::parse("9e120").unwrap()),
        Some((_, "B")) => KeyValue::B(vec![0xff; 64].into()),
        _ => KeyValue::S("\u{10ffff}".repeat(8).into()),
    }
}

/// Writes what the next gateway is to know of a table.
pub fn write(raw: &Arc<dyn Store>, table: &Table, view: usize) {
    let key_type = match table.partition.1 {
        "S" => KeyType::S,
        "B" => KeyType::B,
        _ => KeyType::N,
    };
    if table.sort.is_none() {
        return;
    }
    let (_, record) = on_record(raw, table);
    // Of now: the table does not rest.
    let env = ManualEnv::seeded(1);
    env.advance(A_DAY);
    let registry = Registry::new(raw.clone(), Arc::new(env), REGISTRY);
    let known = block_on(registry.key_records(&record.id)).unwrap();
    let mut changes: Vec<(Option<KeyRecord>, KeyRecord)> = Vec::new();
    for (nth, (key, shards, to, reserved)) in recorded::group(key_type).iter().enumerate() {
        let before = known.iter().find(|known| known.key == *key).cloned();
        let of_rule = record.layouts.of(key).map_or_else(|| layout(1), |of| Layout::clone(of));
        let (from, to) = (layout(*shards), layout(to.expect("it moves")));
        let (layout, moves) = match at(view, nth) {
            At::Before if from == of_rule => continue,
            At::Before => (from, None),
            At::In(phase) => {
                let moves = Move {
                    to,
                    phase,
                    reserved_before: *shards,
                    closing: false,
                    expires: recorded::expires(table).map(str::to_owned),
                    marks: nth % 3 == 0,
                    // Of every other key it is not known.
                    high_water: Some(high_water(table)).filter(|_| phase == Phase::Move && nth % 2 == 0),
                };
                (from, Some(moves))
            }
            At::Rests => (to, None),
        };
        if before.as_ref().is_some_and(|before| (&before.layout, &before.moves) == (&layout, &moves)) {
            continue;
        }
        let version = before.as_ref().map_or(1, |before| before.version + 1);
        let (key, settled, reserved, changed, since) = (key.to_vec(), moves.is_none(), *reserved, 0, 0);
        let to = KeyRecord { key, key_type, layout, moves, settled, reserved, version, changed, since };
        changes.push((before, to));
    }
    let writes = KeyWrites::default();
    let written = changes.iter().map(|(from, to)| writes.replace(&registry, &record, from.as_ref(), to));
    for written in block_on(join_all(written)) {
        written.unwrap().expect("nobody else writes");
    }
}

/// What the group's mover has done, as far as the newest gateway that takes calls knows.
pub struct Moved {
    raw: Arc<dyn Store>,
    tables: Vec<Table>,
    /// The layouts of each gateway.
    views: Vec<Control>,
    newest: AtomicUsize,
}

impl Moved {
    pub fn new(raw: &Arc<dyn Store>, tables: &[Table], views: Vec<Control>) -> Moved {
        Moved { raw: Arc::clone(raw), tables: tables.to_vec(), views, newest: AtomicUsize::new(0) }
    }

    /// How many steps the newest gateway that takes calls knows.
    pub fn newest(&self) -> usize {
        self.newest.load(Ordering::Relaxed)
    }

    /// Its layouts.
    pub fn control(&self) -> &Control {
        &self.views[self.newest()]
    }

    /// The next call may go to the gateway with that view.
    pub fn come_to(&self, view: usize) {
        while self.newest() < view.min(self.views.len() - 1) {
            let next = self.newest() + 1;
            // A call is on its way in this thread, and waits.
            std::thread::scope(|scope| {
                scope.spawn(|| self.tables.iter().for_each(|table| self.end(table, &self.views[next])));
            });
            self.newest.store(next, Ordering::Relaxed);
        }
    }

    /// All come to their end.
    pub fn end_all(&self) {
        self.come_to(self.views.len() - 1);
    }

    /// Moves, or folds, what is left of the keys that rest as `next` knows it.
    fn end(&self, table: &Table, next: &Control) {
        let Some(schema) = self.control().table(table.name) else { return };
        let rests = |key: &[u8]| matches!(next.in_force(&schema, key), InForce::Stable(_));
        moving::bring_all(table, self.control(), &*self.raw, rests);
        moving::fold_all(table, self.control(), &*self.raw, rests);
    }
}

/// Whether a position, or a token, was of before the first of the keys began to move, or a token of
/// the store was of before one of them did: that has to begin again
/// (docs/develop/decisions/0021-bare-positions.md).
pub fn is_to_begin_again(answer: &Answer) -> bool {
    let says = "Begin the Scan, the Query, or the statement again";
    !answer.pages.is_empty()
        && answer
            .error
            .as_ref()
            .is_some_and(|(_, message, _)| message.as_ref().is_some_and(|message| message.contains(says)))
}
