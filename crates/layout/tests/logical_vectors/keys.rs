//! Rows of single keys: many that are written by the codec, and many that nearly are.

use heatsink_dynamo::{KeyType, Value};
use heatsink_layout::{Bucket, Granularity, Layout, Slot, Table, number_codec};
use serde_json::{Value as Json, json};

use crate::logical_vectors::{forms, texts};

/// The value of a key: bytes of UTF-8, raw binary, a number's text.
pub fn value(key: &[u8], key_type: KeyType) -> Json {
    let text = || String::from_utf8(key.to_vec()).unwrap();
    let value = match key_type {
        KeyType::S => Value::S(text()),
        KeyType::B => Value::B(key.to_vec().into()),
        KeyType::N => Value::N(text()),
    };
    serde_json::from_slice(&value.to_json()).unwrap()
}

fn row(form: &Json, key_type: KeyType, stored: &[u8], (logical, slot): (&[u8], Slot)) -> Json {
    json!({
        "form": form, "value": value(stored, key_type), "logical": value(logical, key_type),
        "shard": slot.shard, "bucket": slot.bucket.map(|bucket| bucket.to_string()),
    })
}

/// A physical key as it is stored, or as an engine writes its number, read.
fn read(form: &Json, table: &Table, stored: &[u8]) -> Json {
    let key_type = table.key.partition.key_type;
    let canonical = match key_type {
        KeyType::N => {
            let text = std::str::from_utf8(stored).unwrap();
            number_codec::canonical(text).map(|text| text.into_owned().into_bytes())
        }
        KeyType::S | KeyType::B => None,
    };
    let physical = canonical.as_deref().unwrap_or(stored);
    let (logical, slot) = table.decode(physical);
    row(form, key_type, stored, (logical, slot.unwrap_or_default()))
}

/// Rows of keys that the table writes, which read as what was written, and of any other keys.
pub fn of_table(form: &Json, table: &Table, written: &[(&[u8], Slot)], others: &[&[u8]]) -> Vec<Json> {
    let mut rows = Vec::new();
    for (logical, slot) in written {
        let whole = Layout::none();
        let layout = table.layout_of(logical).map_or(&whole, |layout| layout);
        // Refused to clients: no stream shows it.
        let Ok(physical) = table.physical(logical, layout, *slot) else { continue };
        assert_eq!(table.decode(&physical).0, *logical, "{physical:?}");
        rows.push(read(form, table, &physical));
    }
    rows.extend(others.iter().map(|stored| read(form, table, stored)));
    rows
}

/// Every key in every slot.
fn each<'a>(keys: &[&'a [u8]], slots: &[Slot]) -> Vec<(&'a [u8], Slot)> {
    keys.iter().flat_map(|key| slots.iter().map(|slot| (*key, *slot))).collect()
}

fn shards(shards: &[u16]) -> Vec<Slot> {
    shards.iter().map(|shard| Slot::shard(*shard)).collect()
}

/// Text of the pieces that physical keys are made of, in an order that never changes.
fn mixed(pieces: &[&[u8]], count: usize) -> Vec<Vec<u8>> {
    let mut state = 0x2545_f491_4f6c_dd1d_u64;
    let mut next = |below: usize| {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize % below
    };
    (0..count).map(|_| (0..=next(5)).flat_map(|_| pieces[next(pieces.len())].to_vec()).collect()).collect()
}

const PIECES: [&[u8]; 12] =
    [b"#~", b"#", b"~", b"0", b"1", b"12", b"#~0", b"#~3", b"#~0#~0", b"k", "é".as_bytes(), b"65535"];

fn slices(keys: &[Vec<u8>]) -> Vec<&[u8]> {
    keys.iter().map(Vec::as_slice).collect()
}

pub fn bytes<'a>(texts: &[&'a str]) -> Vec<&'a [u8]> {
    texts.iter().map(|text| text.as_bytes()).collect()
}

fn binary() -> [&'static [u8]; 7] {
    [b"\x00", b"\xff\xfe", b"\xc3", b"\xed\xa0\x80#~1", b"\x80#~0", b"\xf0\x9f#~65535", b"\n#~4\n"]
}

fn suffix() -> Vec<Json> {
    let form = json!({ "kind": "suffix" });
    let mixed = mixed(&PIECES, 40);
    let others = [texts::of(texts::NEARLY), slices(&mixed)].concat();
    let slots = shards(&[0, 3, 10, 65535]);
    let text = forms::table(KeyType::S, vec![forms::of("*", forms::calculated(16))]);
    let mut rows = of_table(&form, &text, &each(&texts::of(texts::TEXTS), &slots), &others);
    let raw = forms::table(KeyType::B, vec![forms::of("*", forms::calculated(16))]);
    let keys = [&binary()[..], &[b"", b"a#~1", b"a#~1#~0"]].concat();
    rows.extend(of_table(&form, &raw, &each(&keys, &shards(&[0, 9])), &others[..12]));
    rows
}

fn buckets() -> Vec<Json> {
    let form = json!({ "kind": "buckets" });
    let at = |seconds, granularity, shard| Slot { bucket: Bucket::at(seconds, granularity), shard };
    let slots = [
        Slot::default(),
        at(1_782_090_000, Granularity::Day, 0),
        at(1_782_090_000, Granularity::Hour, 3),
        at(951_782_400, Granularity::Month, 12),
        at(1_609_459_200, Granularity::Week, 1),
    ];
    let keys = ["OPS_LOG", "", "a#~3", "a#~2026-06-22", "a#~2026-06#~0", "#~2026-W26", "é#~2026-06-22T23#~1"];
    let mixed =
        mixed(&[b"#~", b"#~0", b"#~2", b"#~2026-06-22", b"2026-W01", b"#~2026-06", b"T05", b"k", b"-22"], 30);
    let others = [texts::of(texts::BUCKETS), slices(&mixed)].concat();
    let written = each(&bytes(&keys), &slots);
    let mut rows = of_table(&form, &forms::buckets(KeyType::S), &written, &others);
    let raw: [&[u8]; 2] = [b"\xff\x00", b"\xff#~2026-06-22"];
    rows.extend(of_table(&form, &forms::buckets(KeyType::B), &each(&raw, &slots), &[b"\xff#~2026-02-30"]));
    rows
}

fn numbers() -> Vec<Json> {
    let form = json!({ "kind": "suffix" });
    let table = forms::table(KeyType::N, vec![forms::of("*", forms::calculated(9_999))]);
    let keys = [
        "0",
        "1",
        "-1",
        "12.5",
        "-12.5",
        "100",
        "0.000001",
        "-0.000001",
        "0.1",
        "18446744073709551615",
        "10000000000000000000",
        "99999999999999999999.999999",
        "-99999999999999999999.999999",
        "-1234567890.05",
    ];
    let written = each(&bytes(&keys), &shards(&[0, 1, 10, 9_000, 9_999]));
    of_table(&form, &table, &written, &texts::of(texts::NUMBERS))
}

fn whole() -> Vec<Json> {
    let form = json!({ "kind": "whole" });
    let table = |key_type| forms::table(key_type, vec![forms::of_index(KeyType::S, 4)]);
    let mut rows = of_table(&form, &table(KeyType::S), &[], &bytes(&["a", "a#~3", "a#~0", "a#~2026-06-22"]));
    rows.extend(of_table(&form, &table(KeyType::B), &[], &[b"\xff#~3"]));
    rows.extend(of_table(&form, &table(KeyType::N), &[], &bytes(&["12.0000007095510003", "12.50", "1E2"])));
    rows
}

/// Keys of one table on record, with how many slots are each one's own.
fn recorded_of(key_type: KeyType, keys: &[(&[u8], u16)], slots: &[u16], others: &[&[u8]]) -> Vec<Json> {
    let named = |(key, reserved): &(&[u8], u16)| {
        let name =
            value(key, key_type).as_object().unwrap().values().next().unwrap().as_str().unwrap().to_owned();
        (name, Json::from(*reserved))
    };
    let reserved: serde_json::Map<String, Json> = keys.iter().map(named).collect();
    let form = json!({ "kind": "recorded", "reserved": reserved });
    let on_record: Vec<_> =
        keys.iter().map(|(key, reserved)| (*key, *reserved, forms::calculated(*reserved))).collect();
    let table = forms::with_recorded(forms::table(key_type, Vec::new()), &on_record);
    let written: Vec<(&[u8], Slot)> = keys
        .iter()
        .flat_map(|(key, reserved)| slots.iter().map(move |slot| (*key, Slot::shard(*slot % reserved))))
        .collect();
    of_table(&form, &table, &written, others)
}

fn recorded() -> Vec<Json> {
    let keys: [(&[u8], u16); 7] = [
        (b"hot", 4),
        (b"hot#~7", 3),
        (b"whole", 1),
        ("日本😀".as_bytes(), 200),
        (b"", 3),
        (b"x#~0", 5),
        (b"big", 65_535),
    ];
    let others = [
        "hot#~4",
        "hot#~0",
        "hot#~03",
        "hot#~99999",
        "cold#~1",
        "whole#~1",
        "hot#~7#~3",
        "hot#~1#~1",
        "hot#~0#~1",
        "#~1",
        "#~3",
        "x#~0#~0#~1",
        "x#~1",
        "hot\n#~1",
        "hot#~1\n",
        "big#~65534",
        "big#~65535",
        "hot#~٣",
    ];
    let mut rows = recorded_of(KeyType::S, &keys, &[0, 1, 2, 3], &bytes(&others));
    let binary: [(&[u8], u16); 2] = [(b"\xff\x00", 4), (b"\x80", 2)];
    rows.extend(recorded_of(
        KeyType::B,
        &binary,
        &[0, 1, 3],
        &[b"\xff\x00#~4", b"\x80#~2", b"\x81#~1", b"\xff#~1"],
    ));
    let numbers: [(&[u8], u16); 3] = [(b"12.5", 4), (b"0", 20), (b"-7", 9_999)];
    let others = [
        "12.5000007095510004",
        "12.5000007095510003",
        "125000007095510003e-16",
        "13.0000007095510003",
        "-12.5000007095510003",
        "-0.0000007095510001",
        "0.000000709551002",
        "0.0000007095510019",
        "12.50",
        "7.0000007095510001",
        "-7.0000007095519998",
    ];
    rows.extend(recorded_of(KeyType::N, &numbers, &[0, 1, 3, 10], &bytes(&others)));
    rows
}

/// Stored values of an index's key.
fn attributes() -> Vec<Json> {
    let stored = [
        "open",
        "open#~3",
        "open#~4",
        "open#~1#~0",
        "open#~1#~0#~2",
        "done#~1",
        "open#~0",
        "",
        "#~1",
        "é#~03",
    ];
    let table = forms::table(KeyType::S, vec![forms::of_index(KeyType::S, 16)]);
    let values = forms::table(KeyType::S, Vec::new())
        .with_value_layouts(&[forms::value_on_record("open", 4), forms::value_on_record("open#~1", 3)]);
    let forms = [
        (json!({ "kind": "suffix" }), table),
        (json!({ "kind": "recorded", "reserved": { "open": 4, "open#~1": 3 } }), values),
    ];
    let mut rows = Vec::new();
    for (form, table) in forms {
        let key = table.index_key("status").unwrap();
        rows.extend(stored.iter().map(|stored| {
            let decoded = key.decode(stored.as_bytes());
            row(&form, KeyType::S, stored.as_bytes(), (decoded.logical, Slot::shard(decoded.shard)))
        }));
    }
    rows
}

pub fn rows() -> Vec<Json> {
    [suffix(), buckets(), numbers(), whole(), recorded(), attributes()].concat()
}
