//! The next round of a gathered Query: which streams are asked, for how many items each, and in
//! which bodies. Not here: what becomes of the answers (`super`).

use heatsink_dynamo::Operation;

use super::fill::PageFill;
use super::merged::Merged;
use super::opening::Opening;
use super::wanted::Wanted;
use crate::collection::keys::explained;
use crate::collection::template::Ask;
use crate::learned::item_sizes::{PAGE_BYTES, likely, mean};
use crate::query::merge::Want;
use crate::query::page::count;
use crate::{PhysicalCall, Round, Target};

/// How many bytes the bodies of one round hold, and how many its answers are expected to. What is
/// beyond them waits for the next round.
const ROUND_BODIES: usize = 16 * 1024 * 1024;
const ROUND_ANSWERS: f64 = 32.0 * PAGE_BYTES;

/// How many shards are asked at first while nothing is known of the size of the items.
const PROBED: usize = 32;

/// What decides the next round.
pub(super) struct NextRound<'a> {
    pub(super) wanted: &'a Wanted,
    pub(super) merged: &'a Merged,
    pub(super) opening: &'a Opening,
    pub(super) fill: &'a PageFill,
    /// Whether a few shards are asked first while nothing is known of the size of the items.
    pub(super) probes: bool,
}

impl NextRound<'_> {
    /// The round, of as many calls as its bounds let in. `blocked` is the stream without which the
    /// merge cannot go on.
    pub(super) fn round(&self, blocked: usize) -> Round {
        let mut shares = self.shares(Some(blocked));
        shares.sort_by_key(|(stream, _)| *stream != blocked);
        let size = self.fill.item_size();
        let known = !self.probes || self.fill.knows_item_size();
        let (mut bodies, mut answers) = (0, 0.0);
        let mut calls: Vec<PhysicalCall> = Vec::new();
        for (stream, share) in shares {
            let full = bodies >= ROUND_BODIES || answers >= ROUND_ANSWERS || !known && calls.len() >= PROBED;
            if full {
                break;
            }
            let Some(call) = self.call(stream, share) else { continue };
            bodies += call.body.len();
            // An item has 400 KB at most, and a page 1 MB.
            answers += (count(share) * size).min(PAGE_BYTES);
            calls.push(call);
        }
        // A bucket's page is read while the store still looks for others in the directory, and in
        // shard 0 for what has no time.
        calls.sort_by_key(|call| (self.merged.bucket(call.id).is_none(), call.id));
        Round { answers: bytes(answers), bodies: self.bodies_left(&calls), calls }
    }

    /// How many bytes of bodies are sent at least: the merge gives no row before every shard was
    /// read. Which buckets and ranges will be, nobody knows.
    fn bodies_left(&self, calls: &[PhysicalCall]) -> usize {
        if !self.wanted.reads_all() {
            return 0;
        }
        let Merged { streams, merge, .. } = self.merged;
        let unread = (0..streams.len()).filter(|stream| merge.is_unread(*stream)).count();
        calls.iter().map(|call| call.body.len()).min().unwrap_or_default().saturating_mul(unread)
    }

    /// The streams to ask next, and how many items of each.
    pub(super) fn shares(&self, blocked: Option<usize>) -> Vec<(usize, usize)> {
        let by_bytes = self.fill.rows_left_by_bytes();
        let left = self.fill.rows_left();
        let merge = &self.merged.merge;
        let mut wanted = merge.wanted(left);
        let all = merge.open();
        let in_order = self.wanted.buckets().filter(|buckets| buckets.in_order());
        if let Some(buckets) = in_order {
            self.opening.hold_back(buckets, blocked, &mut wanted, self.merged);
        }
        let in_turn = self.merged.is_in_turn();
        if in_turn {
            self.opening.hold_ranges_back(blocked, &mut wanted, self.merged);
        }
        let bucket = |want: &Want| self.merged.streams.get(want.stream).and_then(|stream| stream.slot.bucket);
        let share = |want: Want| {
            let open = match in_order {
                Some(buckets) => buckets.shards(bucket(&want)).into(),
                // What is wanted next lies in one range.
                None if in_turn => 1,
                None => all,
            };
            let share = match want.reads {
                0 if left == by_bytes => mean(want.rows, open),
                0 => likely(want.rows, open),
                // Where one shard holds most of what is wanted, its share doubles from round to
                // round.
                reads => likely(want.rows, open).saturating_mul(1 << (reads - 1).min(16)).min(want.rows),
            };
            (want.stream, share)
        };
        wanted.into_iter().map(share).collect()
    }

    /// The physical call that asks a stream for `share` items.
    fn call(&self, number: usize, share: usize) -> Option<PhysicalCall> {
        let stream = self.merged.streams.get(number)?;
        let call = |body| PhysicalCall {
            id: number,
            retry_throttled: true,
            ..PhysicalCall::only(Operation::Query, body)
        };
        if let Some(buckets) = self.wanted.buckets().filter(|_| self.opening.is_directory(number)) {
            return Some(call(self.opening.directory_body(buckets)));
        }
        let gathering = &self.wanted.gathering;
        let target = Target {
            shard: stream.slot.shard,
            key: explained(&stream.partition),
            items: share,
            item_bytes: self.fill.item_size(),
            consistent: gathering.reader.consistent,
        };
        let body = gathering.template.body(Ask {
            partition: &stream.partition,
            others: &stream.others,
            conditions: &stream.parts.first()?.conditions,
            start: stream.start.as_deref(),
            limit: Some(share),
        });
        Some(PhysicalCall { target: Some(target), ..call(body) })
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "the sum of a round's pages")]
fn bytes(expected: f64) -> usize {
    expected as usize
}
