//! The merge equals a sort, whatever the shards answer in whatever pages.

use proptest::prelude::*;

use super::*;

type Rows = Vec<(u8, usize)>;

/// Drains the merge against lanes that answer with pages of the given sizes, and counts the reads of every lane.
fn drain(lanes: &[Rows], descending: bool, sizes: &[usize], rows: usize) -> (Rows, Vec<usize>) {
    let mut merge = Merge::new(lanes.len(), descending);
    let (mut read, mut calls, mut out) = (vec![0; lanes.len()], vec![0; lanes.len()], Vec::new());
    let mut size = sizes.iter().cycle();
    loop {
        match merge.advance() {
            Next::Row(lane, row) => {
                let (key, number): (u8, usize) = row;
                assert!(number < read[lane]);
                out.push((key, lane));
            }
            Next::End => return (out, calls),
            Next::Blocked(blocked) => {
                let wanted = merge.wanted(rows);
                assert!(
                    wanted.iter().any(|want| want.lane == blocked && want.rows == rows),
                    "the blocked lane is asked"
                );
                for Want { lane, .. } in wanted {
                    assert!(
                        calls[lane] == 0 || read[lane] < lanes[lane].len(),
                        "an exhausted lane is never asked again"
                    );
                    calls[lane] += 1;
                    let from = read[lane];
                    let to = (from + size.next().unwrap()).min(lanes[lane].len());
                    read[lane] = to;
                    let page: Vec<_> =
                        (from..to).map(|at| (lanes[lane][at].0, (lanes[lane][at].0, at))).collect();
                    let more = (to < lanes[lane].len()).then(|| {
                        lanes[lane][..to].last().map_or(if descending { 255 } else { 0 }, |row| row.0)
                    });
                    merge.read(lane, page, more);
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn merge_equals_sort(
        keys in prop::collection::vec((0_u8..20, 0_usize..7), 0..120),
        lanes in 1_usize..8,
        descending: bool,
        sizes in prop::collection::vec(1_usize..9, 1..12),
        rows in 1_usize..30,
    ) {
        let mut split: Vec<Rows> = vec![Vec::new(); lanes];
        for (key, lane) in keys {
            split[lane % lanes].push((key, lane % lanes));
        }
        for lane in &mut split {
            lane.sort_unstable();
            if descending {
                lane.reverse();
            }
        }
        let mut sorted: Rows = split.concat();
        sorted.sort_by_key(|&(key, lane)| (if descending { 255 - key } else { key }, lane));
        let (merged, _) = drain(&split, descending, &sizes, rows);
        prop_assert_eq!(merged, sorted);
    }
}

#[test]
fn a_tie_in_a_later_lane_waits_for_the_earlier_one() {
    let mut merge = Merge::new(2, false);
    merge.read(0, [(1, 'a')], Some(1));
    merge.read(1, [(1, 'x'), (2, 'y')], None);
    assert_eq!(merge.advance(), Next::Row(0, 'a'));
    assert_eq!(merge.advance(), Next::Blocked(0), "lane 0 may have another 1");
    merge.read(0, [(1, 'b')], Some(1));
    assert_eq!(merge.advance(), Next::Row(0, 'b'));
    merge.read(0, [], None);
    assert_eq!(merge.advance(), Next::Row(1, 'x'));
    assert_eq!(merge.advance(), Next::Row(1, 'y'));
    assert!(merge.is_empty());
    assert_eq!(merge.advance(), Next::End);
}

#[test]
fn only_lanes_that_ran_dry_before_the_cut_are_asked() {
    let mut merge = Merge::new(3, false);
    merge.read(0, [(1, ()), (2, ())], Some(2));
    merge.read(1, [(3, ()), (9, ())], Some(9));
    merge.read(2, [(4, ()), (5, ())], None);
    assert_eq!(merge.wanted(2), [], "two rows are certain");
    assert_eq!(merge.wanted(5), [Want { lane: 0, rows: 3, reads: 1 }]);
    assert_eq!(merge.wanted(7), [Want { lane: 0, rows: 5, reads: 1 }, Want { lane: 1, rows: 1, reads: 1 }]);
    merge.close(0);
    assert_eq!((merge.open(), merge.wanted(5)), (1, vec![]));
}

proptest! {
    /// Whatever is let go of, the rows up to the one that fills the page are those of the untrimmed merge, and more is known to follow.
    #[test]
    fn trimming_forgets_nothing_that_is_given(
        lanes in prop::collection::vec(prop::collection::vec(0_u8..20, 0..9), 1..8),
        wanted in 1_usize..20,
        descending: bool,
    ) {
        let filled = || {
            let mut merge = Merge::new(lanes.len(), descending);
            for (lane, keys) in lanes.iter().enumerate() {
                let mut keys = keys.clone();
                keys.sort_unstable();
                if descending {
                    keys.reverse();
                }
                merge.read(lane, keys.into_iter().map(|key| (key, (key, lane))), None);
            }
            merge
        };
        let (mut whole, mut trimmed) = (filled(), filled());
        let mut seen = 0;
        let forgotten = trimmed.trim(|_| {
            seen += 1;
            seen == wanted
        });
        let total: usize = lanes.iter().map(Vec::len).sum();
        for _ in 0..wanted.min(total) {
            prop_assert_eq!(trimmed.advance(), whole.advance());
        }
        prop_assert_eq!(trimmed.tied(None), whole.tied(None));
        prop_assert_eq!(trimmed.is_empty(), whole.is_empty());
        prop_assert!(total >= wanted || forgotten.is_empty());
        prop_assert!(trimmed.wanted(1000).is_empty(), "what was forgotten is not read again");
    }
}
