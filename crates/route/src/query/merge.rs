//! The ordered merge of N sorted shards that arrive page by page, and its frontier.
//!
//! Pure: it knows neither requests nor items. Lanes are shards in the order that breaks ties between equal keys.

use std::cmp::Ordering;
use std::collections::VecDeque;

#[cfg(test)]
mod tests;

/// How far a lane has been read.
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
struct Lane<K, T> {
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
    /// The next row, and its lane.
    Row(usize, T),
    /// This lane must be read on before anything else can be said: nothing beyond the frontier, the smallest position up to
    /// which lanes with more were read, is given out.
    Blocked(usize),
    /// Every lane is at its end.
    End,
}

/// A lane to be read on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Want {
    /// Which lane.
    pub lane: usize,
    /// How many of the rows still wanted come after what was read of it, from whichever lane.
    pub rows: usize,
    /// How often it was read already.
    pub reads: u32,
}

/// The merge of lanes that are sorted by `K`, ascending or all descending. Rows with equal keys come in lane order.
#[derive(Debug)]
pub struct Merge<K, T> {
    lanes: Vec<Lane<K, T>>,
    descending: bool,
    /// The lanes that are not used up, as a heap: smallest position first.
    heap: Vec<usize>,
    stale: bool,
    /// The keys of the last two rows that were given.
    given: [Option<K>; 2],
}

impl<K: Ord, T> Merge<K, T> {
    /// A merge of `lanes` lanes, none read yet.
    pub fn new(lanes: usize, descending: bool) -> Self {
        let lane = || Lane { rows: VecDeque::new(), end: End::Unread, reads: 0, trimmed: false };
        Merge {
            lanes: (0..lanes).map(|_| lane()).collect(),
            descending,
            heap: Vec::new(),
            stale: true,
            given: [None, None],
        }
    }

    /// Adds rows read from a lane, sorted, all after what it gave before. `more` is the key up to which it was read,
    /// if it has more.
    pub fn read(&mut self, lane: usize, rows: impl IntoIterator<Item = (K, T)>, more: Option<K>) {
        if let Some(lane) = self.lanes.get_mut(lane) {
            lane.rows.extend(rows);
            lane.end = more.map_or(End::Done, End::At);
            lane.reads += 1;
            self.stale = true;
        }
    }

    /// Adds a lane behind all others, not read yet; nothing in it comes before `from`, if that is known. Its number.
    pub fn add(&mut self, from: Option<K>) -> usize {
        self.lanes.push(Lane {
            rows: VecDeque::new(),
            end: from.map_or(End::Unread, End::At),
            reads: 0,
            trimmed: false,
        });
        self.stale = true;
        self.lanes.len() - 1
    }

    /// Whether a lane has not been read.
    pub fn is_unread(&self, lane: usize) -> bool {
        self.lanes.get(lane).is_some_and(|lane| lane.reads == 0 && !matches!(lane.end, End::Done))
    }

    /// Leaves a lane out.
    pub fn close(&mut self, lane: usize) {
        if let Some(lane) = self.lanes.get_mut(lane) {
            lane.end = End::Done;
            self.stale = true;
        }
    }

    /// The next row in order.
    pub fn advance(&mut self) -> Next<T> {
        if self.stale {
            self.build();
        }
        let Some(&lane) = self.heap.first() else { return Next::End };
        let Some(first) = self.lanes.get_mut(lane) else { return Next::End };
        let Some((key, row)) = first.rows.pop_front() else { return Next::Blocked(lane) };
        self.given.swap(0, 1);
        self.given[1] = Some(key);
        if first.rows.is_empty() && matches!(first.end, End::Done) {
            let last = self.heap.len() - 1;
            self.heap.swap(0, last);
            self.heap.truncate(last);
        }
        self.sift(0);
        Next::Row(lane, row)
    }

    /// Forgets the rows of lanes that begin behind what will be given: `fills` is shown the rows at hand in order until it says that one is
    /// the last that is wanted. Gives the rows that were forgotten; their lanes have more, behind all that is given, and are not read on.
    pub fn trim(&mut self, mut fills: impl FnMut(&T) -> bool) -> Vec<T>
    where
        K: Clone,
    {
        let mut hand: Vec<(&K, usize, &T)> = self
            .lanes
            .iter()
            .enumerate()
            .flat_map(|(number, lane)| lane.rows.iter().map(move |(key, row)| (key, number, row)))
            .collect();
        hand.sort_by(|(a, a_lane, _), (b, b_lane, _)| self.order(a, *a_lane, b, *b_lane));
        let last = hand.iter().find(|(_, _, row)| fills(row)).map(|(key, ..)| (*key).clone());
        let Some(last) = last else { return Vec::new() };
        let mut forgotten = Vec::new();
        let descending = self.descending;
        for lane in &mut self.lanes {
            let Some((first, _)) = lane.rows.front() else { continue };
            // Not where the keys are equal: whether the last row is tied is asked later.
            if if descending { *first < last } else { *first > last } {
                lane.end = End::At(first.clone());
                lane.trimmed = true;
                forgotten.extend(lane.rows.drain(..).map(|(_, row)| row));
                self.stale = true;
            }
        }
        forgotten
    }

    /// Whether the row that was given last has the key of the one before it, of the one that comes next, or `also`.
    pub fn tied(&self, also: Option<&K>) -> bool {
        let [before, Some(last)] = &self.given else { return false };
        let mut next = self.lanes.iter().filter_map(|lane| lane.rows.front());
        before.as_ref() == Some(last) || also == Some(last) || next.any(|(key, _)| key == last)
    }

    /// The key of the row that was given last.
    pub fn last(&self) -> Option<&K> {
        self.given[1].as_ref()
    }

    /// Whether anything is left that was read, or that is in a lane not yet read.
    pub fn has_more_at_hand(&self) -> bool {
        self.lanes
            .iter()
            .any(|lane| !lane.rows.is_empty() || lane.reads == 0 && !matches!(lane.end, End::Done))
    }

    /// Whether anything is left: rows, or lanes with more.
    pub fn is_empty(&self) -> bool {
        self.lanes.iter().all(|lane| lane.rows.is_empty() && matches!(lane.end, End::Done))
    }

    /// How many lanes have more to be read.
    pub fn open(&self) -> usize {
        self.lanes.iter().filter(|lane| !matches!(lane.end, End::Done)).count()
    }

    /// The lanes that must be read on before the next `rows` rows can be given: those that have more and whose last
    /// position lies before the `rows`-th row at hand.
    pub fn wanted(&self, rows: usize) -> Vec<Want> {
        let is_open = |lane: &Lane<K, T>| !matches!(lane.end, End::Done) && !lane.trimmed;
        let open = self.lanes.iter().enumerate().filter(|(_, lane)| is_open(lane));
        open.filter_map(|(number, lane)| {
            let before = match &lane.end {
                End::Unread | End::Done => 0,
                End::At(key) => self.before(key, number),
            };
            (before < rows).then(|| Want { lane: number, rows: rows - before, reads: lane.reads })
        })
        .collect()
    }

    /// How many rows at hand come no later than `key` in `lane`.
    fn before(&self, key: &K, lane: usize) -> usize {
        let lanes = self.lanes.iter().enumerate();
        lanes
            .map(|(other, at)| {
                at.rows.partition_point(|(found, _)| self.order(found, other, key, lane) != Ordering::Greater)
            })
            .sum()
    }

    fn order(&self, a: &K, a_lane: usize, b: &K, b_lane: usize) -> Ordering {
        let keys = if self.descending { b.cmp(a) } else { a.cmp(b) };
        keys.then(a_lane.cmp(&b_lane))
    }

    /// The order of two lanes by what comes next in them; a lane that ran dry stands where it was read to.
    fn lanes_in_order(&self, a: usize, b: usize) -> bool {
        match (self.position(a), self.position(b)) {
            (Some(first), Some(second)) => self.order(first, a, second, b) == Ordering::Less,
            (first, second) => first.is_none() && (second.is_some() || a < b),
        }
    }

    fn position(&self, lane: usize) -> Option<&K> {
        let lane = self.lanes.get(lane)?;
        match (lane.rows.front(), &lane.end) {
            (Some((key, _)), _) | (None, End::At(key)) => Some(key),
            (None, End::Unread | End::Done) => None,
        }
    }

    fn build(&mut self) {
        let live = |lane: &Lane<K, T>| !lane.rows.is_empty() || !matches!(lane.end, End::Done);
        self.heap = (0..self.lanes.len()).filter(|&at| self.lanes.get(at).is_some_and(live)).collect();
        for at in (0..self.heap.len() / 2).rev() {
            self.sift(at);
        }
        self.stale = false;
    }

    /// Puts the lane at `at` where it belongs in the heap below it. The gap goes down to a leaf first and the lane climbs
    /// from there: the next row of a lane rarely comes first again, so this compares half as often as the usual way.
    fn sift(&mut self, at: usize) {
        let Some(&lane) = self.heap.get(at) else { return };
        let mut gap = at;
        while let Some(&left) = self.heap.get(2 * gap + 1) {
            let (child, next) = match self.heap.get(2 * gap + 2) {
                Some(&right) if self.lanes_in_order(right, left) => (2 * gap + 2, right),
                _ => (2 * gap + 1, left),
            };
            self.heap[gap] = next;
            gap = child;
        }
        while gap > at {
            let parent = (gap - 1) / 2;
            if !self.lanes_in_order(lane, self.heap[parent]) {
                break;
            }
            self.heap[gap] = self.heap[parent];
            gap = parent;
        }
        self.heap[gap] = lane;
    }
}
