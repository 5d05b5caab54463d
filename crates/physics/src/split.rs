//! Chooses where a hot partition is split, or why not (docs/explain/partitions.md#split-for-heat).
//! A plain function of the sampled traffic.

use crate::heat::Sample;
use crate::key_position::{KeyPosition, SortKey};

/// Fewer samples than these say nothing.
const ENOUGH: usize = 32;

/// A split between item collections is taken if it leaves no more than this share of the traffic on
/// one side, in hundredths. If not, a better one may fall inside a collection.
const FAIR: usize = 75;

/// A split that leaves more than this on one side gains nothing, in hundredths.
const USELESS: usize = 95;

/// Why a hot partition is not split.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Refusal {
    /// Nearly all traffic goes to one item.
    SingleItem,
    /// Nearly all traffic goes to one item collection, along a sort key that only rises or only
    /// falls.
    MonotonicSortKey,
    /// Nearly all traffic goes to one item collection of a table with a local index.
    LocalIndex,
    /// Nearly all traffic goes to one item collection, and [`crate::Rules::one_key_one_partition`]
    /// is on.
    OneKey,
}

impl Refusal {
    /// For display: one word.
    pub const fn name(self) -> &'static str {
        match self {
            Refusal::SingleItem => "single-item",
            Refusal::MonotonicSortKey => "monotonic-sort-key",
            Refusal::LocalIndex => "local-index",
            Refusal::OneKey => "one-key",
        }
    }
}

/// What keeps splits out of item collections.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Inside {
    Allowed,
    Never(Refusal),
}

/// A boundary between two neighbouring samples, and the heavier side's share.
#[derive(Clone, Copy)]
struct Cut {
    point: KeyPosition,
    heavier: usize,
}

/// The split point for the traffic in `samples` (oldest first); `None` if they are too few to tell.
pub(crate) fn choose(samples: &[Sample], inside: Inside) -> Option<Result<KeyPosition, Refusal>> {
    let count = samples.len();
    if count < ENOUGH {
        return None;
    }
    let mut sorted: Vec<KeyPosition> = samples.iter().map(|sample| sample.point).collect();
    sorted.sort_unstable();
    let (mut between, mut within): (Option<Cut>, Option<Cut>) = (None, None);
    for (nth, two) in sorted.windows(2).enumerate() {
        let heavier = (nth + 1).max(count - nth - 1);
        let (best, point) = match (two[0].position == two[1].position, two[0] == two[1]) {
            (_, true) => continue,
            (true, false) => (&mut within, two[1]),
            (false, false) => (&mut between, KeyPosition::first(middle(two[0].position, two[1].position))),
        };
        if best.is_none_or(|best| heavier < best.heavier) {
            *best = Some(Cut { point, heavier });
        }
    }
    let no_more_than = |hundredths: usize| move |cut: &Cut| cut.heavier * 100 <= count * hundredths;
    if let Some(cut) = between.filter(no_more_than(FAIR)) {
        return Some(Ok(cut.point));
    }
    // One collection has most of it.
    let refusal = match inside {
        Inside::Never(refusal) => Some(refusal),
        Inside::Allowed => monotonic(samples, heaviest(&sorted)).then_some(Refusal::MonotonicSortKey),
    };
    let within = within.filter(|_| refusal.is_none());
    let best = [between, within].into_iter().flatten().min_by_key(|cut| cut.heavier);
    match best.filter(no_more_than(USELESS)) {
        Some(cut) => Some(Ok(cut.point)),
        None if single(&sorted) => Some(Err(Refusal::SingleItem)),
        None => Some(Err(refusal.unwrap_or(Refusal::SingleItem))),
    }
}

/// After `left`, no later than at `right`.
fn middle(left: u64, right: u64) -> u64 {
    left + (right - left).div_ceil(2)
}

/// The item collection with the most samples.
fn heaviest(sorted: &[KeyPosition]) -> u64 {
    let runs = sorted.chunk_by(|a, b| a.position == b.position);
    runs.max_by_key(|run| run.len()).and_then(|run| run.first()).map_or(0, |point| point.position)
}

/// Whether one item has nearly all samples. A table without sort key has one item per collection.
fn single(sorted: &[KeyPosition]) -> bool {
    let most = sorted.chunk_by(|a, b| a == b).map(<[KeyPosition]>::len).max().unwrap_or(0);
    most * 100 > sorted.len() * USELESS
}

/// Whether the traffic on a collection only rises or only falls along the sort key
/// (docs/explain/partitions.md#split-for-heat), up to one step in ten: requests overtake each
/// other. Judged by the writes, where there are any to speak of.
fn monotonic(samples: &[Sample], position: u64) -> bool {
    let of = |writes: bool| -> Vec<SortKey> {
        let these =
            samples.iter().filter(|sample| sample.point.position == position && sample.writes == writes);
        these.map(|sample| sample.point.sort).collect()
    };
    let (writes, reads) = (of(true), of(false));
    let judged = if writes.len() >= reads.len() { writes } else { reads };
    let rising = judged.windows(2).filter(|two| two[0] < two[1]).count();
    let falling = judged.windows(2).filter(|two| two[0] > two[1]).count();
    let steps = rising + falling;
    steps >= 8 && rising.min(falling) * 10 <= steps
}

#[cfg(test)]
mod tests {
    use super::*;

    fn writes(points: impl Iterator<Item = KeyPosition>) -> Vec<Sample> {
        points.map(|point| Sample { point, writes: true }).collect()
    }

    fn shuffled(nth: u64) -> u64 {
        nth.wrapping_mul(0x9e37_79b9_7f4a_7c15)
    }

    #[test]
    fn between_two_keys() {
        let two = writes((0..100).map(|nth| KeyPosition::first(10 + 90 * (nth % 2))));
        assert_eq!(choose(&two, Inside::Never(Refusal::LocalIndex)), Some(Ok(KeyPosition::first(55))));
        assert_eq!(choose(&two[..10], Inside::Allowed), None);
    }

    #[test]
    fn at_the_middle_of_the_traffic_not_of_the_range() {
        let skewed =
            writes((0..200).map(|nth| KeyPosition::first(1_000 + nth)).chain([KeyPosition::first(u64::MAX)]));
        let point = choose(&skewed, Inside::Allowed).unwrap().unwrap();
        assert!((1_095..1_105).contains(&point.position), "{point:?}");
    }

    #[test]
    fn inside_a_collection_along_the_sort_key() {
        let random = writes((0..200).map(|nth| KeyPosition::new(7, SortKey::ordinal(shuffled(nth)))));
        let point = choose(&random, Inside::Allowed).unwrap().unwrap();
        let left = random.iter().filter(|sample| sample.point < point).count();
        assert_eq!((point.position, left), (7, 100));
        assert_eq!(choose(&random, Inside::Never(Refusal::LocalIndex)), Some(Err(Refusal::LocalIndex)));
        assert_eq!(choose(&random, Inside::Never(Refusal::OneKey)), Some(Err(Refusal::OneKey)));
    }

    #[test]
    fn not_where_it_would_gain_nothing() {
        let one = writes((0..100).map(|_| KeyPosition::first(7)));
        assert_eq!(choose(&one, Inside::Allowed), Some(Err(Refusal::SingleItem)));
        assert_eq!(choose(&one, Inside::Never(Refusal::LocalIndex)), Some(Err(Refusal::SingleItem)));
        let rising = writes((0..100).map(|nth| KeyPosition::new(7, SortKey::ordinal(nth))));
        assert_eq!(choose(&rising, Inside::Allowed), Some(Err(Refusal::MonotonicSortKey)));
        let falling: Vec<Sample> = rising.into_iter().rev().collect();
        assert_eq!(choose(&falling, Inside::Allowed), Some(Err(Refusal::MonotonicSortKey)));
    }

    #[test]
    fn a_hot_item_is_isolated_step_by_step() {
        // Nine in ten go to one key, the rest to keys before and behind it.
        let mixed = |nth: u64| if nth.is_multiple_of(10) { shuffled(nth) } else { 1 << 63 };
        let mut traffic = writes((0..256).map(|nth| KeyPosition::first(mixed(nth))));
        let mut cuts = 0;
        while let Some(Ok(point)) = choose(&traffic, Inside::Allowed) {
            let hot = KeyPosition::first(1 << 63);
            traffic.retain(|sample| (sample.point < point) == (hot < point));
            cuts += 1;
        }
        assert!((1..4).contains(&cuts), "{cuts}");
        assert_eq!(choose(&traffic, Inside::Allowed), Some(Err(Refusal::SingleItem)));
    }
}
