//! Tables sharded by hand: the hashes that such code uses, and the keys that it writes.
//!
//! The golden vectors were computed by Python (`hashlib` and this FNV-1a, which shares no code with
//! ours):
//!
//! ```python
//! def fnv(b, bits):
//!     h, p = (0x811c9dc5, 0x01000193) if bits == 32 else (0xcbf29ce484222325, 0x100000001b3)
//!     for x in b: h = ((h ^ x) * p) & ((1 << bits) - 1)
//!     return h
//! [int(hashlib.md5(key).hexdigest(), 16) % n for n in (1, 2, 4, 5, 10, 16, 100, 1000, 65535)]  # and sha256, fnv
//! ```

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::cast_possible_wrap,
    clippy::cast_possible_truncation,
    reason = "a test fails by panicking, its helper functions included"
)]

use std::sync::Arc;

use heatsink_dynamo::{AttributeDefinition, KeySchema, KeyType, TableSchema};
use heatsink_layout::{
    Bucket, By, Epoch, Glob, Granularity, Hash, KeyLayout, Layout, PhysicalKeys, Slot, SortKey,
    Strategy as Spread, Table, TableLayouts, Template, TemplateError, Time, Unplaced, hash,
};
use proptest::prelude::*;

#[test]
fn golden_hashes() {
    let counts: [u16; 9] = [1, 2, 4, 5, 10, 16, 100, 1000, 65535];
    type Row = [u16; 9];
    // md5, sha256, fnv1a32, fnv1a64
    let cases: &[(&[u8], [Row; 4])] = &[
        (
            b"",
            [
                [0, 0, 2, 1, 6, 14, 66, 366, 50316],
                [0, 1, 1, 4, 9, 5, 49, 549, 3889],
                [0, 1, 1, 1, 1, 5, 61, 261, 7906],
                [0, 1, 1, 2, 7, 5, 37, 37, 4127],
            ],
        ),
        (
            b"a",
            [
                [0, 1, 1, 2, 7, 1, 97, 497, 21907],
                [0, 1, 3, 4, 9, 11, 99, 499, 39574],
                [0, 0, 0, 0, 0, 12, 20, 220, 3385],
                [0, 0, 0, 1, 6, 12, 96, 996, 65086],
            ],
        ),
        (
            b"event-67890",
            [
                [0, 1, 1, 4, 9, 9, 9, 609, 17679],
                [0, 0, 2, 0, 0, 14, 90, 390, 22835],
                [0, 0, 2, 0, 0, 14, 90, 190, 17905],
                [0, 0, 2, 3, 8, 14, 38, 638, 23363],
            ],
        ),
        (
            b"player_7",
            [
                [0, 1, 3, 0, 5, 7, 15, 415, 23115],
                [0, 0, 2, 1, 6, 14, 66, 766, 18931],
                [0, 0, 2, 4, 4, 14, 94, 694, 3769],
                [0, 0, 2, 1, 6, 14, 86, 286, 14701],
            ],
        ),
        (
            b"1718000000",
            [
                [0, 0, 0, 2, 2, 8, 72, 72, 64742],
                [0, 1, 3, 2, 7, 15, 47, 447, 62157],
                [0, 0, 0, 1, 6, 8, 96, 296, 28736],
                [0, 0, 0, 0, 0, 8, 0, 0, 62770],
            ],
        ),
        (
            b"12.5",
            [
                [0, 1, 1, 3, 3, 9, 13, 713, 5563],
                [0, 0, 2, 0, 0, 10, 90, 290, 10325],
                [0, 1, 3, 2, 7, 11, 67, 67, 14412],
                [0, 1, 3, 2, 7, 11, 87, 587, 6312],
            ],
        ),
        (
            b"\xff\x00\x01",
            [
                [0, 0, 0, 2, 2, 4, 12, 212, 33307],
                [0, 1, 1, 0, 5, 5, 45, 45, 6100],
                [0, 1, 1, 4, 9, 1, 49, 49, 50174],
                [0, 1, 1, 4, 9, 1, 69, 969, 10149],
            ],
        ),
    ];
    for (key, [md5, sha256, fnv1a32, fnv1a64]) in cases {
        assert_eq!(counts.map(|shards| hash::md5(key, shards)), *md5, "{key:?}");
        assert_eq!(counts.map(|shards| hash::sha256(key, shards)), *sha256, "{key:?}");
        assert_eq!(counts.map(|shards| hash::fnv1a32(key, shards)), *fnv1a32, "{key:?}");
        assert_eq!(counts.map(|shards| hash::fnv1a64(key, shards)), *fnv1a64, "{key:?}");
    }
    assert_eq!(hash::modulo(b"1234567890123456789012345678901234567890", 97), Some(28));
    assert_eq!(hash::modulo(b"007", 5), Some(2));
    for no_number in ["", "-3", "1.5", "12x"] {
        assert_eq!(hash::modulo(no_number.as_bytes(), 10), None, "{no_number}");
    }
}

fn template(text: &str, by: By, hash: Hash, shards: u16, time: Option<Time>) -> Layout {
    let template = Template::read(text).unwrap();
    Layout { strategy: Spread::Template { template, by, time }, shards, hash, version: 1 }
}

fn day() -> Option<Time> {
    Some(Time { granularity: Granularity::Day, prefix: String::new(), epoch: Epoch::Seconds })
}

fn table(layouts: Vec<(&str, Layout)>) -> Table {
    let attribute = |name: &str| AttributeDefinition { name: name.into(), key_type: KeyType::S };
    let key = KeySchema { partition: attribute("pk"), sort: Some(attribute("sk")) };
    let schema = TableSchema { name: "T".into(), id: "t".into(), key, indexes: Vec::new() };
    let layouts = layouts.into_iter().map(|(keys, layout)| KeyLayout::new(Glob::new(keys), layout));
    Table::new(schema, Arc::new(TableLayouts::new(layouts.collect())))
}

/// The physical key of an item in a table of one rule.
fn physical(keys: &str, layout: &Layout, logical: &str, sort: SortKey<'_>) -> Result<String, Unplaced> {
    let table = table(vec![(keys, layout.clone())]);
    let slot = layout.slot_of(Some(sort))?;
    let physical = table.physical(logical.as_bytes(), layout, slot)?;
    assert_eq!(table.decode(&physical), (logical.as_bytes(), Some(slot)), "{physical:?}");
    Ok(String::from_utf8(physical).unwrap())
}

/// Keys as Python, Go and JavaScript write them; computed by hand from the golden hashes above.
#[test]
fn golden_keys() {
    let by_sort = |text, hash, shards| template(text, By::SortKey, hash, shards, None);
    let event = SortKey::S("event-67890");
    let key = |layout: &Layout, sort| physical("*", layout, "user-12345", sort).unwrap();
    assert_eq!(key(&by_sort("{pk}#{shard}", Hash::Md5, 10), event), "user-12345#9");
    assert_eq!(key(&by_sort("{pk}.{shard+1}", Hash::Md5, 10), event), "user-12345.10");
    assert_eq!(key(&by_sort("{pk}#{shard}", Hash::Sha256, 100), event), "user-12345#90");
    assert_eq!(key(&by_sort("{pk}-s{shard}.x", Hash::Fnv1a32, 1000), event), "user-12345-s190.x");
    assert_eq!(key(&by_sort("{pk}#{shard}", Hash::Fnv1a64, 10), event), "user-12345#8");
    assert_eq!(key(&by_sort("{pk}#{shard}", Hash::Modulo, 4), SortKey::S("1234567")), "user-12345#3");
    assert_eq!(key(&by_sort("{pk}#{shard}", Hash::Modulo, 4), SortKey::N("1.234567e6")), "user-12345#3");
    assert_eq!(key(&by_sort("{pk}#{shard}", Hash::Md5, 10), SortKey::N("1718000000.0")), "user-12345#2");
    let part = By::Part { separator: "#".into(), part: 1 };
    let part = template("{pk}#{shard}", part, Hash::Md5, 10, None);
    assert_eq!(key(&part, SortKey::S("0000123#player_7")), "user-12345#5");
    let bucket = template("{pk}#{bucket}", By::SortKey, Hash::JumpXxh3, 1, day());
    assert_eq!(key(&bucket, SortKey::S("2026-06-22T01:00:00Z#threat")), "user-12345#2026-06-22");
    assert_eq!(key(&bucket, SortKey::N("1782090000")), "user-12345#2026-06-22");
    let both = template("{pk}#{bucket:%Y%m%d}#{shard}", By::SortKey, Hash::Md5, 5, day());
    assert_eq!(key(&both, SortKey::N("1718000000")), "user-12345#20240610#2");
    assert!(matches!(bucket.slot_of(Some(SortKey::S("x"))), Err(Unplaced::NoTime(_))));
    assert_eq!(key(&by_sort("{shard}#{pk}", Hash::Md5, 10), event), "9#user-12345");
    assert_eq!(key(&by_sort("{shard:02}.{pk}", Hash::Md5, 10), event), "09.user-12345");
    assert_eq!(key(&by_sort("s{shard+1:03d}/{pk}/x", Hash::Fnv1a32, 1000), event), "s191/user-12345/x");
    assert_eq!(key(&by_sort("{pk}#{shard:02}", Hash::Sha256, 100), event), "user-12345#90");
    assert_eq!(key(&by_sort("{pk}#{shard+1:02}", Hash::Md5, 10), SortKey::N("1718000000")), "user-12345#03");
    assert_eq!(key(&by_sort("{pk}#{shard:02}", Hash::Fnv1a32, 1000), event), "user-12345#190");
    let week = Some(Time { granularity: Granularity::Week, prefix: String::new(), epoch: Epoch::Seconds });
    let weekly = |text| template(text, By::SortKey, Hash::Md5, 5, week.clone());
    assert_eq!(key(&weekly("{bucket}#{pk}#{shard}"), SortKey::S("2024-12-30T07")), "2025-W01#user-12345#1");
    assert_eq!(key(&weekly("{pk}-{bucket:%GW%V}-{shard}"), SortKey::N("1718000000")), "user-12345-2024W24-2");
}

#[test]
fn an_externally_assigned_shard_does_not_follow_from_the_key() {
    let layout = template("{pk}#{shard}", By::SortKey, Hash::Random, 10, None);
    let sort = Some(SortKey::S("0000123"));
    assert!(!layout.follows_from_key());
    assert_eq!(layout.slots_of(sort).unwrap().len(), 10);
    let jump = Layout { hash: Hash::JumpXxh3, ..layout.clone() };
    assert_eq!(layout.hashed_slot(sort), jump.slot_of(sort));
    assert!(matches!(layout.slot_of(sort), Err(Unplaced::NotFromKey)));
}

#[test]
fn templates_that_cannot_be_read_back_are_refused() {
    use TemplateError::{Begin, Count, Placeholder, Separator};
    for (text, error) in [
        ("", Begin),
        ("#{shard}", Begin),
        ("{pk}#{pk}#{shard}", Begin),
        ("{shard}{pk}", Separator),
        ("{shard}1#{pk}", Separator),
        ("{shard}{bucket}#{pk}", Separator),
        ("{shard}#{pk}#{shard}", Count),
        ("{pk}#{shard:2}", Placeholder("shard:2".into())),
        ("{pk}#{shard:06}", Placeholder("shard:06".into())),
        ("{pk}\"{shard}", TemplateError::Literal('"')),
        ("{pk}\\{shard}", TemplateError::Literal('\\')),
        ("{pk}\n{shard}", TemplateError::Literal('\n')),
        ("{pk}", Count),
        ("{pk}#x", Count),
        ("{pk}{shard}", Separator),
        ("{pk}#1{shard}", Separator),
        ("{pk}#{bucket}{shard}", Separator),
        ("{pk}#{shard}#{shard}", Count),
        ("{pk}#{hash}", Placeholder("hash".into())),
        ("{pk}#{shard-1}", Placeholder("shard-1".into())),
        ("{pk}#{shard", Placeholder("shard".into())),
    ] {
        assert_eq!(Template::read(text), Err(error), "{text}");
    }
    assert!(Template::read("{pk}#{bucket:%Y%m}").unwrap().fits(Granularity::Month));
    assert!(!Template::read("{pk}#{bucket:%Y%m}").unwrap().fits(Granularity::Day));
    assert!(Template::read("{bucket:%G%V}#{pk}").unwrap().fits(Granularity::Week));
    assert!(!Template::read("{bucket:%Y%V}#{pk}").unwrap().fits(Granularity::Week));
    // The day is no field here, and would be missing from the key.
    assert!(!Template::read("{pk}#{bucket:%Y%m%%d}").unwrap().fits(Granularity::Day));
    assert!(!Template::read("{pk}#{bucket:%Y%m%d%}").unwrap().fits(Granularity::Day));
}

#[test]
fn keys_that_would_collide_are_refused_and_all_others_are_not() {
    let rule = template("{pk}#{shard}", By::SortKey, Hash::Md5, 10, None);
    let table = table(vec![("user-*", rule.clone())]);
    let whole = Layout::none();
    let slot = Slot::shard(3);
    let suffix = |key: &[u8], layout: &Layout, slot| table.affixes(key, layout, slot).unwrap().after;
    assert_eq!(suffix(b"user-1", &rule, slot), "#3");
    // Itself matched by the rule, it lies one level deeper.
    assert_eq!(suffix(b"user-1#3", &rule, slot), "#3");
    assert_eq!(suffix(b"config", &whole, Slot::default()), "");
    assert_eq!(suffix(b"config#3", &whole, Slot::default()), "");
    assert_eq!(table.decode(b"user-1#10"), (&b"user-1#10"[..], None));
    let narrow = self::table(vec![("user-1#3", whole.clone()), ("user-*", rule.clone())]);
    let error = narrow.affixes(b"user-1#3", &whole, Slot::default()).unwrap_err();
    assert!(matches!(error, Unplaced::Collides { .. }), "{error}");
}

/// Keys made of the pieces that templates write.
fn tricky() -> impl Strategy<Value = String> {
    let pieces = [
        "a",
        "b",
        "#",
        "#0",
        "#1",
        "#12",
        ".",
        ".3",
        "#2026-06-22",
        "2026",
        "#~1",
        "9",
        "0#",
        "12#",
        "01.",
        "#03",
    ];
    prop::collection::vec(prop::sample::select(pieces.to_vec()), 1..6).prop_map(|pieces| pieces.concat())
}

fn layouts() -> impl Strategy<Value = Vec<(&'static str, Layout)>> {
    let layout = (0..10_usize, 1..14_u16).prop_map(|(kind, shards)| match kind {
        0 => template("{pk}#{shard}", By::SortKey, Hash::Md5, shards, None),
        1 => template("{pk}.{shard+1}", By::SortKey, Hash::Md5, shards, None),
        2 => template("{pk}#{bucket}#{shard}", By::SortKey, Hash::Md5, shards, day()),
        3 => template("{pk}#{bucket}", By::SortKey, Hash::Md5, 1, day()),
        4 => template("{shard}#{pk}", By::SortKey, Hash::Md5, shards, None),
        5 => template("{shard+1:02}.{pk}", By::SortKey, Hash::Md5, shards, None),
        6 => template("{pk}#{shard:02}", By::SortKey, Hash::Md5, shards, None),
        7 => template("{bucket}#{pk}#{shard}", By::SortKey, Hash::Md5, shards, day()),
        8 => template("a{shard}#{pk}#", By::SortKey, Hash::Md5, shards, None),
        _ => Layout::none(),
    });
    let keys = prop::sample::select(vec!["*", "a*", "*#1", "b?*", "a#1*"]);
    prop::collection::vec((keys, layout), 1..4).prop_map(|mut layouts| {
        // So that the table has templates whatever was drawn.
        layouts.push(("zz*", template("{pk}#{shard}", By::SortKey, Hash::Md5, 2, None)));
        layouts
    })
}

/// Texts that may be templates.
fn texts() -> impl Strategy<Value = String> {
    let pieces =
        ["{pk}", "{shard}", "{shard+1}", "{shard:02}", "{shard+9:03}", "#", "1", "a", "0#", "#0", "."];
    prop::collection::vec(prop::sample::select(pieces.to_vec()), 1..6).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(4096))]

    /// A template that is not refused gives two keys, or two shards of one, never the same physical
    /// key.
    #[test]
    fn templates_that_are_taken_are_injective(
        text in texts(), a in tricky(), b in tricky(), shards in (0..1_200_u16, 0..1_200_u16),
    ) {
        let Ok(template) = Template::read(&text) else { return Ok(()) };
        let physical = |key: &str, shard| template.affixes(Slot::shard(shard)).around(key.as_bytes());
        let (one, other) = (physical(&a, shards.0), physical(&b, shards.1));
        prop_assert_eq!(one == other, (&a, shards.0) == (&b, shards.1), "{}", text);
        prop_assert_eq!(template.decode(&one, None), Some((a.as_bytes(), Slot::shard(shards.0))), "{}", text);
    }

    /// A key is taken as a shard where the item with that sort key belongs to it, and nowhere else;
    /// and then it is that item's physical key.
    #[test]
    fn a_key_taken_as_a_shard_is_its_items_physical_key(
        layouts in layouts(), key in tricky(), shard in 0..14_u16, sort in "[a-z]{0,3}",
    ) {
        let table = table(layouts);
        let all = vec![PhysicalKeys::AsShard; table.layouts().iter().count()];
        let Some(layout) = table.layouts().of(key.as_bytes()).cloned() else { return Ok(()) };
        let sort = Some(SortKey::S(&sort));
        let (Ok(own), None) = (layout.slot_of(sort), layout.time()) else { return Ok(()) };
        let slot = Slot::shard(shard % layout.shards);
        let Ok(physical) = table.physical(key.as_bytes(), &layout, slot) else { return Ok(()) };
        let table = table.with_physical_keys(all);
        if layout.template().is_some() {
            let taken = table.as_shard(&physical, sort).expect("it is written so");
            prop_assert_eq!(taken.is_ok(), own == slot);
            prop_assert_eq!(table.physical(&physical, &Layout::none(), Slot::default()), Ok(physical));
        } else {
            prop_assert!(table.as_shard(&physical, sort).is_none());
        }
    }

    /// Two items of one physical key are items of one logical key, in one slot.
    #[test]
    fn no_two_keys_meet(
        layouts in layouts(), a in tricky(), b in tricky(),
        days in (0..3_i64, 0..3_i64), shards in (0..13_u16, 0..13_u16),
    ) {
        let table = table(layouts);
        let written = |key: &str, day: i64, shard: u16| {
            let whole = Layout::none();
            let layout = table.layouts().of(key.as_bytes()).map_or(&whole, |layout| layout);
            let bucket = layout.time().and_then(|_| Bucket::at((20_000 + day) * 86_400, Granularity::Day));
            let slot = Slot { bucket, shard: shard % layout.shards };
            let physical = table.physical(key.as_bytes(), layout, slot).ok()?;
            Some((key.to_owned(), layout.template().map(|_| slot), physical))
        };
        let (one, other) = (written(&a, days.0, shards.0), written(&b, days.1, shards.1));
        for (key, slot, physical) in [&one, &other].into_iter().flatten() {
            prop_assert_eq!(table.decode(physical), (key.as_bytes(), *slot));
        }
        if let (Some(one), Some(other)) = (one, other) {
            prop_assert_eq!(one.2 == other.2, (one.0, one.1) == (other.0, other.1));
        }
    }
}
