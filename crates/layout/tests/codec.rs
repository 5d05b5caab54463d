//! The codec is injective and invertible.

use heatsink_layout::codec::{decode, encode, is_reserved, suffix};
use heatsink_layout::{KeyTooLong, MAX_PARTITION_KEY};
use proptest::collection::vec;
use proptest::prelude::*;

/// Keys made of the pieces that suffixes are made of, so that near-collisions are common.
fn tricky() -> impl Strategy<Value = Vec<u8>> {
    let pieces: [&[u8]; 13] = [
        b"#~",
        b"#",
        b"~",
        b"0",
        b"1",
        b"7",
        b"12",
        b"99999",
        b"65535",
        b"#~0",
        b"#~3",
        b"game",
        b"\xff\x00",
    ];
    let piece = proptest::sample::select(pieces.to_vec());
    prop_oneof![vec(piece, 0..7).prop_map(|pieces| pieces.concat()), vec(any::<u8>(), 0..40)]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    #[test]
    fn decoding_undoes_encoding(logical in tricky(), shard in any::<u16>()) {
        let physical = encode(&logical, shard).unwrap();
        let decoded = decode(&physical);
        prop_assert_eq!((decoded.logical, decoded.shard), (&logical[..], shard));
    }

    #[test]
    fn no_two_keys_meet(a in (tricky(), 0..20_u16), b in (tricky(), 0..20_u16)) {
        let (one, other) = (encode(&a.0, a.1).unwrap(), encode(&b.0, b.1).unwrap());
        prop_assert_eq!(a == b, one == other);
    }

    #[test]
    fn encoding_only_appends(text in "[a-z#~0-9]{0,12}", shard in any::<u16>()) {
        let physical = String::from_utf8(encode(text.as_bytes(), shard).unwrap()).unwrap();
        prop_assert_eq!(physical, format!("{text}{}", suffix(text.as_bytes(), shard)));
    }

    #[test]
    fn any_bytes_decode_to_a_prefix(physical in vec(any::<u8>(), 0..40)) {
        prop_assert!(physical.starts_with(decode(&physical).logical));
    }

    #[test]
    fn shard_0_of_an_ordinary_key_is_the_key(logical in tricky()) {
        prop_assume!(!is_reserved(&logical));
        prop_assert_eq!(encode(&logical, 0).unwrap(), logical);
    }
}

#[test]
fn golden() {
    let cases: &[(&str, u16, &str)] = &[
        ("game_x", 0, "game_x"),
        ("game_x", 3, "game_x#~3"),
        ("game#1", 0, "game#1"),
        ("game#1", 12, "game#1#~12"),
        ("game#~1", 0, "game#~1#~0"),
        ("game#~1", 2, "game#~1#~0#~2"),
        ("game#~0", 0, "game#~0#~0"),
        ("game#~0", 1, "game#~0#~0#~1"),
        ("x#~3#~0#~2", 0, "x#~3#~0#~2#~0"),
        ("x#~3#~0#~2", 4, "x#~3#~0#~2#~0#~4"),
        ("x#~03", 0, "x#~03"),
        ("x#~123456", 0, "x#~123456"),
        ("x#~99999", 0, "x#~99999#~0"),
        ("#~5", 65535, "#~5#~0#~65535"),
        ("x#~", 1, "x#~#~1"),
    ];
    for &(logical, shard, physical) in cases {
        assert_eq!(encode(logical.as_bytes(), shard).unwrap(), physical.as_bytes(), "{logical} {shard}");
        let decoded = decode(physical.as_bytes());
        assert_eq!((decoded.logical, decoded.shard), (logical.as_bytes(), shard), "{physical}");
    }
}

#[test]
fn the_suffix_counts_toward_the_key() {
    let longest = vec![b'k'; MAX_PARTITION_KEY];
    assert!(encode(&longest, 0).is_ok());
    assert_eq!(encode(&longest, 1), Err(KeyTooLong { logical: 2048, suffix: 3 }));
    assert!(encode(&longest[..2045], 9).is_ok());
    assert!(encode(&longest[..2045], 10).is_err());
}
