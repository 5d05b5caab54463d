//! The streams of a gathered Query beside the merge of their rows: a stream has one number in both.
//! Not here: what is asked of a stream (`round`).

use heatsink_layout::Bucket;

use crate::collection::keys::Key;
use crate::collection::position::Position;
use crate::query::merge::Merge;
use crate::query::page::Row;
use crate::query::shard_streams::ShardStream;

/// Streams, and the merge of their rows.
pub(super) struct Merged {
    pub(super) streams: Vec<ShardStream>,
    pub(super) merge: Merge<Position, Row>,
    /// Whether the streams are ranges, each behind the one before.
    in_turn: bool,
}

impl Merged {
    /// No streams.
    pub(super) fn new(descending: bool) -> Self {
        Merged { streams: Vec::new(), merge: Merge::new(0, descending), in_turn: false }
    }

    /// Adds streams of which nothing comes before `from`, if that is known.
    pub(super) fn add(&mut self, streams: Vec<ShardStream>, from: Option<&Key>) {
        for stream in streams {
            let number = self.merge.add(from.map(|from| Some(from.clone()).into()));
            if stream.is_closed() {
                self.merge.close(number);
            }
            self.streams.push(stream);
        }
    }

    /// Adds the streams of ranges, in the direction of reading.
    pub(super) fn add_in_turn(&mut self, ranges: &[(ShardStream, Option<Key>)]) {
        self.in_turn = true;
        for (stream, from) in ranges {
            self.add(vec![stream.clone()], from.as_ref());
        }
    }

    /// Whether the streams are ranges, each behind the one before.
    pub(super) fn is_in_turn(&self) -> bool {
        self.in_turn
    }

    /// The bucket that a stream is of.
    pub(super) fn bucket(&self, stream: usize) -> Option<Bucket> {
        self.streams.get(stream).and_then(|stream| stream.slot.bucket)
    }

    /// Whether a stream is a bucket's, or a range's, that has not been read.
    pub(super) fn is_unopened(&self, stream: usize) -> bool {
        self.merge.is_unread(stream) && (self.in_turn || self.bucket(stream).is_some())
    }
}
