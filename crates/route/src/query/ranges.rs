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
        let (asked, descending) = (Range::of(query.conditions.first()), query.descending);
        let cursor = query.cursor()?.and_then(|cursor| cursor.into_iter().nth(1)).map(|(at, _)| at);
        let common = ShardStreams::new(query, layout)?;
        let slot = |number: u16| Slot::shard(layout.slot_number(number));
        let mut streams = Vec::new();
        match &cursor {
            // The store refuses it.
            Some(at) if !asked.contains(at) => {
                streams.extend(common.stream(slot(points.range_of(at))).map(|stream| (stream, None)));
            }
            _ => {
                let rest = match &cursor {
                    Some(at) => asked.clone().from(Bound::Excluded(at.clone()), descending),
                    None => asked.clone(),
                };
                let mut open =
                    if rest.clone().express().is_some() { matching(points, &rest) } else { vec![] };
                if descending {
                    open.reverse();
                }
                for number in open {
                    // Where there is none, the key is too long for it, and so were its items.
                    let Some(stream) = common.stream(slot(number)) else { continue };
                    let (from, below) = points.bounds(number);
                    let part = asked.clone().between(from, below);
                    let stream =
                        if part == asked { Some(stream) } else { within(stream, part, cursor.as_ref()) };
                    let bound = if descending { below } else { from };
                    streams.extend(stream.map(|stream| (stream, bound.cloned())));
                }
            }
        }
        // Where nothing can match, the store still has to see the request to refuse what is wrong
        // with it.
        if streams.is_empty() {
            let number = cursor.as_ref().map_or(0, |at| points.range_of(at));
            let Some(mut stream) = common.stream(slot(number)) else {
                physical(query.schema, layout, &query.partition, slot(number))?;
                return Err(Unplanned::Invalid);
            };
            if let Some(at) = &cursor {
                stream.behind_end(at);
                stream.start = None;
            }
            streams.push((stream, None));
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

/// What of a stream lies in a part of what is asked for. A slot may still hold copies of items that
/// have left it, which the store would find. It goes on from a cursor that is in the part.
fn within(stream: ShardStream, part: Range, cursor: Option<&Key>) -> Option<ShardStream> {
    let starts = cursor.is_some_and(|at| part.contains(at));
    let start = stream.start.clone().filter(|_| starts);
    Some(ShardStream { start, ..stream.within(part)? })
}

/// The ranges that hold keys of a range, the lowest first.
fn matching(points: &SplitPoints, range: &Range) -> Vec<u16> {
    let can_hold = |number: &u16| points.can_hold(*number, range.lower.as_ref(), range.upper.as_ref());
    (0..points.ranges()).filter(can_hold).collect()
}
