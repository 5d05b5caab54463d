//! The fewest shards by which each takes no more than a share of a partition. Their places are
//! chosen one by one, so that no two have to share a partition.
//!
//! Not here: counts for shards that lie as chance has it ([`advise`](crate::advise)).

use super::observed::Observed;
use crate::{Asked, PARTITION_READS, PARTITION_WRITES, assess};

/// The most shards of a key.
const MOST_SHARDS: u16 = 1_000;

/// What each of so many shards of a key is asked for. Units a second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Each {
    pub(crate) writes: f64,
    pub(crate) reads: f64,
}

impl Each {
    /// Of a key that was seen so, with so many shards. Each Query asks every shard for its share of
    /// the page, at least half a unit.
    pub(crate) fn of(seen: &Observed, shards: u16) -> Self {
        let asked = seen.as_asked();
        let modelled = |shards| assess(&Asked { partitions: Some(1), ..asked }, shards).costs.page_per_shard;
        let (now, then) = (seen.shards.max(1), f64::from(shards.max(1)));
        let gets = seen.asked_gets();
        let queries = (seen.asked_reads() - gets).max(0.0);
        // What a page costs is measured with the shards that there are; the model says how that
        // changes.
        let of_queries = if queries > 0.0 && seen.queries > 0.0 {
            let changes = modelled(shards) * then / (modelled(now) * f64::from(now)).max(1e-9);
            queries * changes / then
        } else {
            queries
        };
        Each { writes: seen.asked_writes() / then, reads: gets / then + of_queries }
    }

    /// Which share of a partition that is.
    pub(crate) fn filled(self) -> f64 {
        (self.writes / PARTITION_WRITES).max(self.reads / PARTITION_READS)
    }
}

/// The fewest shards of which each takes at most that share of a partition; `None` if no count
/// does.
pub(crate) fn fewest_shards(seen: &Observed, most_filled: f64) -> Option<u16> {
    let least = (Each::of(seen, 1).writes / PARTITION_WRITES / most_filled).ceil();
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "clamped to the range")]
    let least = least.clamp(1.0, f64::from(MOST_SHARDS)) as u16;
    (least..=MOST_SHARDS).find(|shards| Each::of(seen, *shards).filled() <= most_filled)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fewest(seen: Observed) -> Option<u16> {
        fewest_shards(&Observed { shards: 1, item_bytes: 300, page: 100, ..seen }, 0.75)
    }

    #[test]
    fn writes_and_gets_are_spread_and_pages_are_not() {
        assert_eq!(fewest(Observed { writes: 1_100.0, ..Observed::default() }), Some(2));
        assert_eq!(fewest(Observed { writes: 5_000.0, ..Observed::default() }), Some(7));
        // Strong reads of single items of 40 KB.
        assert_eq!(fewest(Observed { reads: 4_200.0, gets: 4_200.0, ..Observed::default() }), Some(2));
        // A page of 100 items of 300 bytes is 4 units; over more shards each takes at least half.
        let pages = |queries: f64| Observed { reads: queries * 4.0, queries, ..Observed::default() };
        assert!(fewest(pages(1_000.0)).is_some_and(|shards| (2..=6).contains(&shards)));
        assert_eq!(fewest(pages(9_000.0)), None, "each shard is asked for half a unit of each page");
    }
}
