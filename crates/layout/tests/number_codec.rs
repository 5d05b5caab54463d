//! The codec of numbers is injective and invertible, over all numbers.

#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

use heatsink_dynamo::Number;
use heatsink_layout::number_codec::{canonical, has_room, split_shard, suffix};
use proptest::prelude::*;

fn number(text: &str) -> Number {
    Number::parse(text).unwrap()
}

/// The physical key, as text; a key without room has shard 0 alone.
fn encode(logical: &str, shard: u16) -> Option<String> {
    let logical = canonical(logical)?;
    suffix(logical.as_bytes(), shard).map(|suffix| format!("{logical}{suffix}"))
}

fn decode(physical: &str) -> (&str, u16) {
    let (logical, shard) = split_shard(physical.as_bytes()).unwrap_or((physical.as_bytes(), 0));
    (std::str::from_utf8(logical).unwrap(), shard)
}

/// What the design says: v + sign(v) × (709551 × 10^4 + shard) × 10^-16.
fn designed(logical: &str, shard: u16) -> Number {
    let sign = if number(logical) < Number::ZERO { "-" } else { "" };
    let added = 7_095_510_000_u64 + u64::from(shard);
    number(logical).plus(number(&format!("{sign}{added}e-16"))).unwrap()
}

/// Numbers of all shapes, many of them written like shards or nearly so.
fn any_number() -> impl Strategy<Value = String> {
    let digits = "[0-9]{1,20}";
    prop_oneof![
        (any::<bool>(), digits, "[0-9]{0,6}").prop_map(|(negative, whole, fraction)| {
            format!("{}{whole}.{fraction}", if negative { "-" } else { "" })
        }),
        (any::<bool>(), "[0-9]{1,21}", "[0-9]{0,6}", "[0-9]{0,5}").prop_map(
            |(negative, whole, own, shard)| {
                format!("{}{whole}.{own:0<6}709551{shard}", if negative { "-" } else { "" })
            }
        ),
        ("[-+]?[0-9]{1,38}", -130_i32..100).prop_map(|(digits, exponent)| format!("{digits}e{exponent}")),
        proptest::sample::select(
            [
                "0",
                "-0",
                "0.0",
                "0e5",
                "1",
                "1.0",
                "100",
                "1e2",
                "-12.5",
                "1e-6",
                "1e-7",
                "1e19",
                "1e20",
                "18446744073709551615",
                "99999999999999999999.999999",
                "-99999999999999999999.999999",
                "1e125",
                "1e-130",
                "99999999999999999999999999999999999999",
                "-0.0000007095510001",
                "0.0000007095510001",
                "0.0000007095510000",
                "12.00000070955100011",
            ]
            .map(str::to_owned)
            .to_vec()
        ),
    ]
    .prop_filter("a number", |text| Number::parse(text).is_ok())
}

fn shard() -> impl Strategy<Value = u16> {
    prop_oneof![0..20_u16, 0..10_000_u16, proptest::sample::select(vec![10, 100, 1_000, 9_990, 9_999])]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8192))]

    #[test]
    fn decoding_undoes_encoding(logical in any_number(), shard in shard()) {
        let own = canonical(&logical).unwrap();
        prop_assume!(shard > 0 || split_shard(own.as_bytes()).is_none());
        match encode(&logical, shard) {
            Some(physical) => {
                prop_assert_eq!(decode(&physical), (&*own, shard));
                prop_assert_eq!(canonical(&physical).unwrap(), &*physical);
            }
            None => prop_assert!(!has_room(own.as_bytes())),
        }
    }

    #[test]
    fn no_two_keys_meet(a in (any_number(), shard()), b in (any_number(), shard())) {
        for (logical, shard) in [&a, &b] {
            let own = canonical(logical).unwrap();
            prop_assume!(*shard > 0 || split_shard(own.as_bytes()).is_none());
        }
        if let (Some(one), Some(other)) = (encode(&a.0, a.1), encode(&b.0, b.1)) {
            let same = number(&a.0) == number(&b.0) && a.1 == b.1;
            prop_assert_eq!(number(&one) == number(&other), same);
        }
    }

    #[test]
    fn a_physical_key_is_the_number_that_the_design_says(logical in any_number(), shard in 1..10_000_u16) {
        if has_room(canonical(&logical).unwrap().as_bytes()) {
            let physical = encode(&logical, shard).unwrap();
            prop_assert_eq!(number(&physical), designed(&logical, shard));
        }
        prop_assert_eq!(encode(&logical, 0).unwrap(), canonical(&logical).unwrap());
    }

    #[test]
    fn what_is_read_as_a_shard_is_one(physical in any_number()) {
        let physical = canonical(&physical).unwrap();
        if let Some((logical, shard)) = split_shard(physical.as_bytes()) {
            let logical = std::str::from_utf8(logical).unwrap();
            prop_assert_eq!(encode(logical, shard).unwrap(), &*physical);
        }
    }

    #[test]
    fn canonical_texts_are_those_of_dynamodb(text in any_number()) {
        let text_of = number(&text).to_string();
        prop_assert_eq!(canonical(&text).unwrap(), &*text_of);
        prop_assert_eq!(canonical(&text_of).unwrap(), &*text_of);
    }

    #[test]
    fn any_text_is_read_or_refused(text in "[-+0-9.eE ]{0,60}") {
        prop_assert_eq!(canonical(&text).is_some(), Number::parse(&text).is_ok());
    }

    #[test]
    fn any_bytes_decode_to_a_prefix(bytes in proptest::collection::vec(any::<u8>(), 0..40)) {
        if let Some((logical, _)) = split_shard(&bytes) {
            prop_assert!(bytes.starts_with(logical));
        }
        let _ = (has_room(&bytes), suffix(&bytes, 3));
    }
}

#[test]
fn keys_that_are_tried_are_where_they_are_documented() {
    for (logical, shard, physical) in [
        ("12", 3, "12.0000007095510003"),
        ("12.5", 3, "12.5000007095510003"),
        ("-12.5", 10, "-12.500000709551001"),
        ("0", 1, "0.0000007095510001"),
        ("-0", 1, "0.0000007095510001"),
        ("0.000001", 9_999, "0.0000017095519999"),
        ("-99999999999999999999.999999", 1_000, "-99999999999999999999.9999997095511"),
    ] {
        assert_eq!(encode(logical, shard).as_deref(), Some(physical));
    }
    for without_room in ["1e20", "0.0000001", "1e125", "-1e-130", "12.0000007095510003"] {
        assert_eq!(encode(without_room, 1), None, "{without_room}");
        assert!(!has_room(canonical(without_room).unwrap().as_bytes()));
    }
    // A negative number beside 0 is a client's own.
    assert_eq!(split_shard(b"-0.0000007095510001"), None);
}
