//! The ranges of sort keys that a Query can find something in: opened in its direction, one, two,
//! four at a time, until the page is full.
//!
//! Of the table only: an index is in another order than the ranges, and reads all of them.

use std::ops::Bound;
use std::sync::Arc;

use heatsink_layout::{Layout, Slot, SplitPoints};

use super::request::Query;
use super::shard_streams::{ShardStream, ShardStreams};
use crate::collection::keys::{Key, physical};
use crate::collection::range::Range;
use crate::refusal::Unplanned;

/// The ranges of one Query, in its direction.
pub(crate) struct Ranges {
    /// Each with what none of its rows comes before.
    pub(crate) streams: Vec<(ShardStream, Option<Key>)>,
    /// How many the key has.
    of: u16,
    descending: bool,
}

impl Ranges {
    /// Those that the conditions of a Query can match, from its cursor on.
    ///
    /// # Errors
    /// As [`ShardStreams::new`]; a key that is too long for its slots.
    pub(crate) fn new(
        query: &Query<'_>,
        layout: &Arc<Layout>,
        points: &SplitPoints,
    ) -> Result<Self, Unplanned> {
        let range = Range::of(query.conditions.first());
        let cursor = query.cursor()?.and_then(|cursor| cursor.into_iter().nth(1)).map(|(at, _)| at);
        let range = match &cursor {
            Some(at) if range.contains(at) => range.from(Bound::Excluded(at.clone()), query.descending),
            _ => range,
        };
        let common = ShardStreams::new(query, layout)?;
        let mut open = matching(points, &range);
        if query.descending {
            open.reverse();
        }
        // Where nothing can match, the store still has to see the request to refuse what is wrong
        // with it.
        let nothing = open.is_empty();
        if nothing {
            open.push(0);
        }
        let mut streams = Vec::new();
        for number in open {
            let slot = Slot::shard(layout.slot_number(number));
            let Some(stream) = common.stream(slot) else {
                // Says why.
                physical(query.schema, layout, &query.partition, slot)?;
                continue;
            };
            let (from, below) = points.bounds(number);
            // A slot may still hold copies of items that have left it, which the store would find.
            let stream = match Range::of(query.conditions.first()).between(from, below) {
                part if nothing || part == Range::of(query.conditions.first()) => stream,
                part => {
                    let starts = cursor.as_ref().is_some_and(|at| part.contains(at));
                    let start = stream.start.clone().filter(|_| starts);
                    match stream.within(part) {
                        Some(stream) => ShardStream { start, ..stream },
                        None => continue,
                    }
                }
            };
            streams.push((stream, if query.descending { below } else { from }.cloned()));
        }
        Ok(Ranges { streams, of: points.ranges(), descending: query.descending })
    }

    /// The slot that holds all that can match, if one does.
    pub(crate) fn only(query: &Query<'_>, layout: &Layout) -> Option<Slot> {
        let points = layout.split_points().filter(|_| query.index.is_none())?;
        match *matching(points, &Range::of(query.conditions.first())) {
            [number] => Some(Slot::shard(layout.slot_number(number))),
            _ => None,
        }
    }

    /// Which ranges are opened, and how.
    pub(crate) fn why(&self) -> String {
        let order = if self.descending { "highest" } else { "lowest" };
        format!(
            "{} of the key's {} ranges can hold what is asked for: they are opened {order} first, one, two, four at a time, until the page is full",
            self.streams.len(),
            self.of
        )
    }
}

/// The ranges that hold keys of a range, the lowest first.
fn matching(points: &SplitPoints, range: &Range) -> Vec<u16> {
    let can_hold = |number: &u16| points.can_hold(*number, range.lower.as_ref(), range.upper.as_ref());
    (0..points.ranges()).filter(can_hold).collect()
}
