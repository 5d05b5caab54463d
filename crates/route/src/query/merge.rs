//! The ordered merge of N sorted shards that arrive page by page, and its frontier.
//!
//! Pure: it knows neither requests nor items. A stream is what one shard gives; streams are
//! numbered in the order that breaks ties between equal keys.

use std::cmp::Ordering;
use std::collections::VecDeque;

#[cfg(test)]
mod tests;

/// How far a stream has been read.
#[derive(Debug)]
enum End<K> {
    /// Not at all.
    Unread,
    /// Up to this key; it has more, none of which comes before it.
    At(K),
    /// To its end.
    Done,
}

#[derive(Debug)]
struct ShardStream<K, T> {
    rows: VecDeque<(K, T)>,
    end: End<K>,
    /// How often it has been read.
    reads: u32,
    /// Its rows were forgotten: it is not read on.
    trimmed: bool,
}

/// What the merge gives next.
#[derive(Debug, PartialEq, Eq)]
pub enum Next<T> {
    /// The next row, and its stream.
    Row(usize, T),
    /// This stream must be read on before anything else can be said: nothing beyond the frontier,
    /// the smallest position up to which streams with more were read, is given out.
    Blocked(usize),
    /// Every stream is at its end.
    End,
}

/// A stream to be read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Want {
    /// Which stream.
    pub stream: usize,
    /// How many of the rows still wanted come after what was read of it, from whichever stream.
    pub rows: usize,
    /// How often it was read already.
    pub reads: u32,
}

/// The merge of streams that are sorted by `K`, ascending or all descending. Rows with equal keys
/// come in stream order.
#[derive(Debug)]
pub struct Merge<K, T> {
    streams: Vec<ShardStream<K, T>>,
    descending: bool,
    /// The streams that are not used up, as a heap: smallest position first.
    heap: Vec<usize>,
    stale: bool,
    /// The keys of the last two rows that were given.
    given: [Option<K>; 2],
}

impl<K: Ord, T> Merge<K, T> {
    /// A merge of `streams` streams, none read yet.
    pub fn new(streams: usize, descending: bool) -> Self {
        let stream = || ShardStream { rows: VecDeque::new(), end: End::Unread, reads: 0, trimmed: false };
        Merge {
            streams: (0..streams).map(|_| stream()).collect(),
            descending,
            heap: Vec::new(),
            stale: true,
            given: [None, None],
        }
    }

    /// Adds rows read from a stream, sorted, all after what it gave before. `more` is the key up to
    /// which it was read, if it has more.
    pub fn read(&mut self, stream: usize, rows: impl IntoIterator<Item = (K, T)>, more: Option<K>) {
        if let Some(stream) = self.streams.get_mut(stream) {
            stream.rows.extend(rows);
            stream.end = more.map_or(End::Done, End::At);
            stream.reads += 1;
            self.stale = true;
        }
    }

    /// Adds a stream behind all others, not read yet; nothing in it comes before `from`, if that is
    /// known. Its number.
    pub fn add(&mut self, from: Option<K>) -> usize {
        self.streams.push(ShardStream {
            rows: VecDeque::new(),
            end: from.map_or(End::Unread, End::At),
            reads: 0,
            trimmed: false,
        });
        self.stale = true;
        self.streams.len() - 1
    }

    /// Whether a stream has not been read.
    pub fn is_unread(&self, stream: usize) -> bool {
        self.streams.get(stream).is_some_and(|stream| stream.reads == 0 && !matches!(stream.end, End::Done))
    }

    /// Leaves a stream out.
    pub fn close(&mut self, stream: usize) {
        if let Some(stream) = self.streams.get_mut(stream) {
            stream.end = End::Done;
            self.stale = true;
        }
    }

    /// The next row in order.
    pub fn advance(&mut self) -> Next<T> {
        if self.stale {
            self.build();
        }
        let Some(&stream) = self.heap.first() else { return Next::End };
        let Some(first) = self.streams.get_mut(stream) else { return Next::End };
        let Some((key, row)) = first.rows.pop_front() else { return Next::Blocked(stream) };
        self.given.swap(0, 1);
        self.given[1] = Some(key);
        if first.rows.is_empty() && matches!(first.end, End::Done) {
            let last = self.heap.len() - 1;
            self.heap.swap(0, last);
            self.heap.truncate(last);
        }
        self.sift(0);
        Next::Row(stream, row)
    }

    /// Forgets the rows of streams that begin behind what will be given: `fills` is shown the rows
    /// at hand in order until it says that one is the last that is wanted. Gives the rows that were
    /// forgotten; their streams have more, behind all that is given, and are not read on.
    pub fn trim(&mut self, mut fills: impl FnMut(&T) -> bool) -> Vec<T>
    where
        K: Clone,
    {
        let mut hand: Vec<(&K, usize, &T)> = self
            .streams
            .iter()
            .enumerate()
            .flat_map(|(number, stream)| stream.rows.iter().map(move |(key, row)| (key, number, row)))
            .collect();
        hand.sort_by(|(a, a_stream, _), (b, b_stream, _)| self.order(a, *a_stream, b, *b_stream));
        let last = hand.iter().find(|(_, _, row)| fills(row)).map(|(key, ..)| (*key).clone());
        let Some(last) = last else { return Vec::new() };
        let mut forgotten = Vec::new();
        let descending = self.descending;
        for stream in &mut self.streams {
            let Some((first, _)) = stream.rows.front() else { continue };
            // Not where the keys are equal: whether the last row is tied is asked later.
            if if descending { *first < last } else { *first > last } {
                stream.end = End::At(first.clone());
                stream.trimmed = true;
                forgotten.extend(stream.rows.drain(..).map(|(_, row)| row));
                self.stale = true;
            }
        }
        forgotten
    }

    /// Whether the row that was given last has the key of the one before it, of the one that comes
    /// next, or `also`.
    pub fn tied(&self, also: Option<&K>) -> bool {
        let [before, Some(last)] = &self.given else { return false };
        let mut next = self.streams.iter().filter_map(|stream| stream.rows.front());
        before.as_ref() == Some(last) || also == Some(last) || next.any(|(key, _)| key == last)
    }

    /// The key of the row that was given last.
    pub fn last(&self) -> Option<&K> {
        self.given[1].as_ref()
    }

    /// Whether anything is left that was read, or that is in a stream not yet read.
    pub fn has_more_at_hand(&self) -> bool {
        self.streams
            .iter()
            .any(|stream| !stream.rows.is_empty() || stream.reads == 0 && !matches!(stream.end, End::Done))
    }

    /// Whether anything is left: rows, or streams with more.
    pub fn is_empty(&self) -> bool {
        self.streams.iter().all(|stream| stream.rows.is_empty() && matches!(stream.end, End::Done))
    }

    /// How many streams have more to be read.
    pub fn open(&self) -> usize {
        self.streams.iter().filter(|stream| !matches!(stream.end, End::Done)).count()
    }

    /// The streams that must be read on before the next `rows` rows can be given: those that have
    /// more and whose last position lies before the `rows`-th row at hand.
    pub fn wanted(&self, rows: usize) -> Vec<Want> {
        let is_open = |stream: &ShardStream<K, T>| !matches!(stream.end, End::Done) && !stream.trimmed;
        let open = self.streams.iter().enumerate().filter(|(_, stream)| is_open(stream));
        open.filter_map(|(number, stream)| {
            let before = match &stream.end {
                End::Unread | End::Done => 0,
                End::At(key) => self.before(key, number),
            };
            (before < rows).then(|| Want { stream: number, rows: rows - before, reads: stream.reads })
        })
        .collect()
    }

    /// How many rows at hand come no later than `key` in `stream`.
    fn before(&self, key: &K, stream: usize) -> usize {
        let streams = self.streams.iter().enumerate();
        streams
            .map(|(other, at)| {
                at.rows
                    .partition_point(|(found, _)| self.order(found, other, key, stream) != Ordering::Greater)
            })
            .sum()
    }

    fn order(&self, a: &K, a_stream: usize, b: &K, b_stream: usize) -> Ordering {
        let keys = if self.descending { b.cmp(a) } else { a.cmp(b) };
        keys.then(a_stream.cmp(&b_stream))
    }

    /// The order of two streams by what comes next in them; a stream that ran dry stands where it
    /// was read to.
    fn streams_in_order(&self, a: usize, b: usize) -> bool {
        match (self.position(a), self.position(b)) {
            (Some(first), Some(second)) => self.order(first, a, second, b) == Ordering::Less,
            (first, second) => first.is_none() && (second.is_some() || a < b),
        }
    }

    fn position(&self, stream: usize) -> Option<&K> {
        let stream = self.streams.get(stream)?;
        match (stream.rows.front(), &stream.end) {
            (Some((key, _)), _) | (None, End::At(key)) => Some(key),
            (None, End::Unread | End::Done) => None,
        }
    }

    fn build(&mut self) {
        let live = |stream: &ShardStream<K, T>| !stream.rows.is_empty() || !matches!(stream.end, End::Done);
        self.heap = (0..self.streams.len()).filter(|&at| self.streams.get(at).is_some_and(live)).collect();
        for at in (0..self.heap.len() / 2).rev() {
            self.sift(at);
        }
        self.stale = false;
    }

    /// Puts the stream at `at` where it belongs in the heap below it. The gap goes down to a leaf
    /// first and the stream climbs from there: the next row of a stream rarely comes first again,
    /// so this compares half as often as the usual way.
    fn sift(&mut self, at: usize) {
        let Some(&stream) = self.heap.get(at) else { return };
        let mut gap = at;
        while let Some(&left) = self.heap.get(2 * gap + 1) {
            let (child, next) = match self.heap.get(2 * gap + 2) {
                Some(&right) if self.streams_in_order(right, left) => (2 * gap + 2, right),
                _ => (2 * gap + 1, left),
            };
            self.heap[gap] = next;
            gap = child;
        }
        while gap > at {
            let parent = (gap - 1) / 2;
            if !self.streams_in_order(stream, self.heap[parent]) {
                break;
            }
            self.heap[gap] = self.heap[parent];
            gap = parent;
        }
        self.heap[gap] = stream;
    }
}
