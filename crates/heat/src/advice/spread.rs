//! By which strategy a key gets shards: by a hash of its sort keys, or in ranges of them.
//!
//! Ranges are right where writes spread over the sort keys and reads ask for pages in order: a page
//! then costs what it costs of a whole key. They are wrong where sort keys grow, because all new
//! items lie in the last range, and where the pages alone fill a partition, because they are all of
//! one range.
//!
//! Not here: how many shards it gets (`count`), where its ranges begin (`policy`).

use heatsink_layout::MOST_RANGES;
use serde::Serialize;

use super::limits::NEAR;
use super::observed::Observed;
use crate::PARTITION_READS;

/// From this share of growing sort keys on, the last range takes too much of the writes.
const GROWING: f64 = 0.2;

/// A strategy, by its name in rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Spread {
    /// By a hash of the sort key: every Query reads all shards.
    Calculated,
    /// In ranges of the sort key: a page in order is of one range.
    Range,
}

impl Spread {
    /// For a key that was seen so, and that needs so many shards.
    pub(crate) fn of(seen: &Observed, shards: u16) -> Self {
        if seen.in_ranges {
            return Spread::Range;
        }
        let (writes, reads) = seen.filled();
        // All pages may be of one range.
        let pages = (seen.asked_reads() - seen.asked_gets()) / PARTITION_READS;
        let is_right = seen.divides
            && seen.sort_key
            && !seen.local_index
            && !seen.of_index
            && seen.shards <= 1
            && shards <= MOST_RANGES
            && seen.growing < GROWING
            && seen.queries > 0.0
            && writes >= reads
            && pages < NEAR;
        if is_right { Spread::Range } else { Spread::Calculated }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Scores of a leaderboard whose top 100 is read.
    fn scores() -> Observed {
        Observed {
            writes: 5_000.0,
            reads: 90.0,
            queries: 20.0,
            page: 100,
            shards: 1,
            sort_key: true,
            divides: true,
            ..Observed::default()
        }
    }

    #[test]
    fn a_leaderboard_gets_ranges_and_what_they_do_not_help_gets_a_hash() {
        assert_eq!(Spread::of(&scores(), 10), Spread::Range);
        let others = [
            ("sort keys grow", Observed { growing: 0.9, ..scores() }),
            ("nothing is known of the sort keys", Observed { divides: false, ..scores() }),
            ("nobody asks for a page", Observed { queries: 0.0, ..scores() }),
            ("pages fill a partition", Observed { reads: 2_900.0, queries: 500.0, ..scores() }),
            ("reads alone are hot", Observed { writes: 10.0, reads: 4_000.0, ..scores() }),
            ("a local index reads all", Observed { local_index: true, ..scores() }),
            ("a value of an index", Observed { of_index: true, ..scores() }),
            ("it has shards by a hash", Observed { shards: 4, ..scores() }),
        ];
        for (why, seen) in others {
            assert_eq!(Spread::of(&seen, 10), Spread::Calculated, "{why}");
        }
        assert_eq!(Spread::of(&scores(), 65), Spread::Calculated, "a key has at most 64 ranges");
        assert_eq!(Spread::of(&Observed { in_ranges: true, shards: 4, ..scores() }, 10), Spread::Range);
    }
}
