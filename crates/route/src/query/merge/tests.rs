//! The merge equals a sort, whatever the shards answer in whatever pages.

use proptest::prelude::*;

use super::*;

type Rows = Vec<(u8, usize)>;

/// Drains the merge against streams that answer with pages of the given sizes, and counts the reads
/// of every stream.
fn drain(streams: &[Rows], descending: bool, sizes: &[usize], rows: usize) -> (Rows, Vec<usize>) {
    let mut merge = Merge::new(streams.len(), descending);
    let (mut read, mut calls, mut out) = (vec![0; streams.len()], vec![0; streams.len()], Vec::new());
    let mut size = sizes.iter().cycle();
    loop {
        match merge.advance() {
            Next::Row(stream, row) => {
                let (key, number): (u8, usize) = row;
                assert!(number < read[stream]);
                out.push((key, stream));
            }
            Next::End => return (out, calls),
            Next::Blocked(blocked) => {
                let wanted = merge.wanted(rows);
                assert!(
                    wanted.iter().any(|want| want.stream == blocked && want.rows == rows),
                    "the blocked stream is asked"
                );
                for Want { stream, .. } in wanted {
                    assert!(
                        calls[stream] == 0 || read[stream] < streams[stream].len(),
                        "an exhausted stream is never asked again"
                    );
                    calls[stream] += 1;
                    let from = read[stream];
                    let to = (from + size.next().unwrap()).min(streams[stream].len());
                    read[stream] = to;
                    let page: Vec<_> =
                        (from..to).map(|at| (streams[stream][at].0, (streams[stream][at].0, at))).collect();
                    let more = (to < streams[stream].len()).then(|| {
                        streams[stream][..to].last().map_or(if descending { 255 } else { 0 }, |row| row.0)
                    });
                    merge.read(stream, page, more);
                }
            }
        }
    }
}

proptest! {
    #[test]
    fn merge_equals_sort(
        keys in prop::collection::vec((0_u8..20, 0_usize..7), 0..120),
        streams in 1_usize..8,
        descending: bool,
        sizes in prop::collection::vec(1_usize..9, 1..12),
        rows in 1_usize..30,
    ) {
        let mut split: Vec<Rows> = vec![Vec::new(); streams];
        for (key, stream) in keys {
            split[stream % streams].push((key, stream % streams));
        }
        for stream in &mut split {
            stream.sort_unstable();
            if descending {
                stream.reverse();
            }
        }
        let mut sorted: Rows = split.concat();
        sorted.sort_by_key(|&(key, stream)| (if descending { 255 - key } else { key }, stream));
        let (merged, _) = drain(&split, descending, &sizes, rows);
        prop_assert_eq!(merged, sorted);
    }
}

#[test]
fn a_tie_in_a_later_stream_waits_for_the_earlier_one() {
    let mut merge = Merge::new(2, false);
    merge.read(0, [(1, 'a')], Some(1));
    merge.read(1, [(1, 'x'), (2, 'y')], None);
    assert_eq!(merge.advance(), Next::Row(0, 'a'));
    assert_eq!(merge.advance(), Next::Blocked(0), "stream 0 may have another 1");
    merge.read(0, [(1, 'b')], Some(1));
    assert_eq!(merge.advance(), Next::Row(0, 'b'));
    merge.read(0, [], None);
    assert_eq!(merge.advance(), Next::Row(1, 'x'));
    assert_eq!(merge.advance(), Next::Row(1, 'y'));
    assert!(merge.is_empty());
    assert_eq!(merge.advance(), Next::End);
}

#[test]
fn only_streams_that_ran_dry_before_the_cut_are_asked() {
    let mut merge = Merge::new(3, false);
    merge.read(0, [(1, ()), (2, ())], Some(2));
    merge.read(1, [(3, ()), (9, ())], Some(9));
    merge.read(2, [(4, ()), (5, ())], None);
    assert_eq!(merge.wanted(2), [], "two rows are certain");
    assert_eq!(merge.wanted(5), [Want { stream: 0, rows: 3, reads: 1 }]);
    assert_eq!(
        merge.wanted(7),
        [Want { stream: 0, rows: 5, reads: 1 }, Want { stream: 1, rows: 1, reads: 1 }]
    );
    merge.close(0);
    assert_eq!((merge.open(), merge.wanted(5)), (1, vec![]));
}

proptest! {
    /// Whatever is let go of, the rows up to the one that fills the page are those of the untrimmed
    /// merge, and more is known to follow.
    #[test]
    fn trimming_forgets_nothing_that_is_given(
        streams in prop::collection::vec(prop::collection::vec(0_u8..20, 0..9), 1..8),
        wanted in 1_usize..20,
        descending: bool,
    ) {
        let filled = || {
            let mut merge = Merge::new(streams.len(), descending);
            for (stream, keys) in streams.iter().enumerate() {
                let mut keys = keys.clone();
                keys.sort_unstable();
                if descending {
                    keys.reverse();
                }
                merge.read(stream, keys.into_iter().map(|key| (key, (key, stream))), None);
            }
            merge
        };
        let (mut whole, mut trimmed) = (filled(), filled());
        let mut seen = 0;
        let forgotten = trimmed.trim(|_| {
            seen += 1;
            seen == wanted
        });
        let total: usize = streams.iter().map(Vec::len).sum();
        for _ in 0..wanted.min(total) {
            prop_assert_eq!(trimmed.advance(), whole.advance());
        }
        prop_assert_eq!(trimmed.tied(None), whole.tied(None));
        prop_assert_eq!(trimmed.is_empty(), whole.is_empty());
        prop_assert!(total >= wanted || forgotten.is_empty());
        prop_assert!(trimmed.wanted(1000).is_empty(), "what was forgotten is not read again");
    }
}
