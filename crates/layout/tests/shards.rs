//! Hashes stay what they were, shards stay in range, and equal sort keys meet.
//!
//! The golden vectors were computed by Python's `xxhash` (3.x) and this jump hash, which shares no
//! code with ours:
//!
//! ```python
//! def jump(key, n):
//!     b, j = -1, 0
//!     while j < n:
//!         b = j
//!         key = (key * 2862933555777941757 + 1) & (2**64-1)
//!         j = int((b + 1) * (float(1 << 31) / float((key >> 33) + 1)))
//!     return b
//! [jump(xxhash.xxh3_64_intdigest(key), n) for n in (1, 2, 4, 10, 16, 100, 1000, 65535)]
//! ```

use heatsink_layout::hash::{jump_xxh3, jump_xxh3_counts};
use heatsink_layout::{By, Hash, Layout, SortKey, Strategy as Spread};
use proptest::collection::vec;
use proptest::prelude::*;

fn calculated(by: By, shards: u16) -> Layout {
    Layout { strategy: Spread::calculated(by), shards, hash: Hash::JumpXxh3, version: 1 }
}

#[test]
fn golden() {
    let counts = [1, 2, 4, 10, 16, 100, 1000, 65535];
    let cases: &[(&[u8], [u16; 8])] = &[
        (b"", [0, 0, 0, 0, 0, 52, 241, 52560]),
        (b"a", [0, 1, 1, 8, 14, 14, 350, 52287]),
        (b"player_7", [0, 0, 0, 4, 4, 92, 92, 92]),
        (b"0000123#player_7", [0, 1, 1, 1, 11, 81, 81, 16555]),
        (b"-125e-1", [0, 1, 1, 8, 12, 86, 645, 43220]),
        (b"0", [0, 1, 3, 8, 8, 55, 278, 49557]),
        (b"\xff\x00\x01", [0, 0, 0, 0, 0, 0, 306, 55303]),
    ];
    for (key, expected) in cases {
        assert_eq!(counts.map(|shards| jump_xxh3(key, shards)), *expected, "{key:?}");
    }
}

#[test]
fn numbers_are_hashed_as_their_value() {
    let layout = calculated(By::SortKey, 1000);
    for spelling in ["-12.5", "-12.50", "-012.5", "-1.25e1", "-1.25E+1", "-125e-1", "-0.00125e4"] {
        // "-125e-1" over 1,000 in the golden vectors.
        assert_eq!(layout.shard_of(Some(SortKey::N(spelling))), 645, "{spelling}");
    }
    for zero in ["0", "-0", "0.0", "+0", "0e7", "00"] {
        assert_eq!(layout.shard_of(Some(SortKey::N(zero))), 278, "{zero}");
    }
}

#[test]
fn one_part_decides() {
    let layout = calculated(By::Part { separator: "#".into(), part: 1 }, 10);
    assert_eq!(layout.shard_of(Some(SortKey::S("0000123#player_7"))), jump_xxh3(b"player_7", 10));
    assert_eq!(layout.shard_of(Some(SortKey::S("0000999#player_7#x"))), jump_xxh3(b"player_7", 10));
    assert_eq!(layout.shard_of(Some(SortKey::S("0000123"))), jump_xxh3(b"0000123", 10));
    assert_eq!(layout.shard_of(Some(SortKey::S("0000123#"))), jump_xxh3(b"", 10));
    assert_eq!(layout.shard_of(Some(SortKey::B(b"1#a"))), jump_xxh3(b"1#a", 10));
}

#[test]
fn without_strategy_or_sort_key_everything_lies_in_shard_0() {
    assert_eq!(Layout::none().shard_of(Some(SortKey::S("a"))), 0);
    assert_eq!(calculated(By::SortKey, 1000).shard_of(None), 0);
}

proptest! {
    #[test]
    fn in_range(key in vec(any::<u8>(), 0..40), shards in any::<u16>()) {
        prop_assert!(jump_xxh3(&key, shards) < shards.max(1));
    }

    #[test]
    fn growth_moves_only_into_new_shards(key in vec(any::<u8>(), 0..40), from in 1..2000_u16, more in 0..2000_u16) {
        let (before, after) = (jump_xxh3(&key, from), jump_xxh3(&key, from + more));
        prop_assert!(after == before || after >= from);
    }

    #[test]
    fn equal_numbers_meet(digits in 0..i64::MAX, zeros in 0..6_usize, shift in -20..20_i64, shards in 1..500_u16) {
        let layout = calculated(By::SortKey, shards);
        let plain = format!("{digits}e{shift}");
        let moved = format!("{digits}{}e{}", "0".repeat(zeros), shift - zeros as i64);
        let point = format!("00{digits}.{}e{shift}", "0".repeat(zeros));
        let expected = layout.shard_of(Some(SortKey::N(&plain)));
        prop_assert_eq!(layout.shard_of(Some(SortKey::N(&moved))), expected);
        prop_assert_eq!(layout.shard_of(Some(SortKey::N(&point))), expected);
    }

    #[test]
    fn any_text_as_a_number_is_harmless(text in ".{0,20}", shards in 1..500_u16) {
        prop_assert!(calculated(By::SortKey, shards).shard_of(Some(SortKey::N(&text))) < shards);
    }
}

proptest! {
    #[test]
    fn the_counts_of_a_shard_are_those_that_give_it(key in vec(any::<u8>(), 0..20), shard in 0_u16..40, most in 1_u16..60) {
        let giving: Vec<u16> = (1..=most).filter(|shards| jump_xxh3(&key, *shards) == shard).collect();
        let expected = giving.first().copied().zip(giving.last().copied());
        prop_assert_eq!(jump_xxh3_counts(&key, shard, most), expected);
        prop_assert!(expected.is_none_or(|(least, greatest)| giving.len() == usize::from(greatest - least) + 1));
    }
}
