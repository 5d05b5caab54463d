//! Worlds in which keys become counters, get more fragments, fewer, and become whole again while
//! clients go on: one gateway after the other knows a change more, and at any time two take calls
//! that are one change apart.

use std::sync::Arc;

use futures::executor::block_on;
use heatsink_control::{KeyRecord, Move};
use heatsink_dynamo::KeyType;
use heatsink_layout::{Hash, Layout, Phase, Strategy};
use heatsink_store::Store;

use crate::counters::COUNTED;
use crate::generate::Step;
use crate::recorded::on_record;
use crate::schema::Table;

/// A change of every key: to its first or second number of fragments, in that phase, or at rest; or
/// back from it.
#[derive(Clone, Copy, Debug)]
pub enum View {
    Nothing,
    On(usize, Phase),
    Rests(usize),
    Back(usize, Phase),
    IsBack(usize),
}

/// What gateways know, one after the other.
pub const VIEWS: [View; 15] = [
    View::Nothing,
    View::On(0, Phase::Reserve),
    View::On(0, Phase::Prepare),
    View::Rests(0),
    View::On(1, Phase::Reserve),
    View::On(1, Phase::Prepare),
    View::Rests(1),
    View::Back(1, Phase::Reserve),
    View::Back(1, Phase::Prepare),
    View::Back(1, Phase::Move),
    View::IsBack(1),
    View::Back(0, Phase::Reserve),
    View::Back(0, Phase::Prepare),
    View::Back(0, Phase::Move),
    View::IsBack(0),
];

/// After so many calls the oldest gateway takes no more: a case comes to the end.
pub const CALLS: usize = 30;

/// A key, the most shards that it had when it was moved before all this, and its two numbers of
/// fragments.
type Key = (&'static [u8], Option<u16>, [u16; 2]);

/// Clients use no key that is one of their shards.
const STRINGS: &[Key] = &[
    (b"game#~1", None, [3, 5]),
    (b"game#1", None, [4, 9]),
    (b"a", Some(4), [2, 4]),
    (b"b", None, [4, 6]),
    (b"a!", Some(2), [5, 6]),
];
const NUMBERS: &[Key] = &[(b"10", None, [3, 5]), (b"2.5", Some(4), [2, 4]), (b"-12.5", None, [4, 9])];
const BINARIES: &[Key] = &[(b"a#~1", None, [3, 4]), (b"b", Some(3), [2, 7]), (b"\x00\xff", None, [4, 5])];

/// Whether counters get more fragments under these rules.
pub fn has(rules: &str) -> bool {
    rules.trim_end().ends_with("# counters widen")
}

/// The most fragments of a counter in these worlds.
pub fn most_shards() -> usize {
    STRINGS
        .iter()
        .chain(NUMBERS)
        .chain(BINARIES)
        .flat_map(|(_, _, counts)| counts)
        .copied()
        .max()
        .unwrap_or(1)
        .into()
}

/// A token that comes back after a change is another request to the store
/// (docs/explain/reshard.md).
pub fn hide(steps: &mut [Step]) {
    for step in steps {
        if let Some(body) = step.body.as_object_mut() {
            body.remove("ClientRequestToken");
        }
    }
}

fn counter(shards: u16) -> Layout {
    let strategy = Strategy::Counter { attributes: vec![COUNTED.to_owned()] };
    Layout { strategy, shards, hash: Hash::JumpXxh3, version: 1 }
}

/// Writes what the next gateway is to know of a table.
pub fn write(raw: &Arc<dyn Store>, table: &Table, rules: &str, view: View) {
    let (key_type, keys) = match table.partition.1 {
        "S" => (KeyType::S, STRINGS),
        "B" => (KeyType::B, BINARIES),
        _ => (KeyType::N, NUMBERS),
    };
    for (key, moved, counts) in keys {
        // Without a sort key none can have been moved.
        let moved = moved.filter(|_| table.sort.is_some());
        // What the rules of the worlds with rules give it.
        let of_rule =
            if rules.contains("\"g*\"") && key.starts_with(b"g") { counter(2) } else { Layout::none() };
        let before = |which: usize| if which == 0 { of_rule.clone() } else { counter(counts[0]) };
        let back = |which: usize| if which == 0 { Layout::none() } else { counter(counts[0]) };
        let had = moved.unwrap_or(of_rule.shards);
        let (layout, moves, reserved, settled) = match view {
            View::Nothing if moved.is_none() => continue,
            View::Nothing => (of_rule.clone(), None, had, true),
            View::On(which, phase) => {
                let to = counter(counts[which]);
                let reserved_before = if which == 0 { had } else { had.max(counts[0]) };
                let reserved = reserved_before.max(to.shards);
                let moves = Move {
                    to,
                    phase,
                    reserved_before,
                    closing: false,
                    expires: None,
                    marks: false,
                    high_water: None,
                };
                (before(which), Some(moves), reserved, false)
            }
            View::Rests(which) => (counter(counts[which]), None, had.max(counts[which]), which == 1),
            View::Back(which, phase) => {
                let reserved = had.max(counts[1]);
                let moves = Move {
                    to: back(which),
                    phase,
                    reserved_before: reserved,
                    closing: false,
                    expires: None,
                    marks: false,
                    high_water: None,
                };
                (counter(counts[which]), Some(moves), reserved, false)
            }
            View::IsBack(which) => (back(which), None, had.max(counts[1]), which == 0),
        };
        let (registry, record) = on_record(raw, table);
        let found = block_on(registry.key_record(&record.id, key, key_type)).unwrap();
        let version = found.as_ref().map_or(1, |found| found.version + 1);
        let (key, changed, since) = (key.to_vec(), 0, 0);
        let to = KeyRecord { key, key_type, layout, moves, settled, reserved, version, changed, since };
        let written = block_on(registry.replace_key(&record, found.as_ref(), &to)).unwrap();
        written.expect("nobody else writes");
    }
}
