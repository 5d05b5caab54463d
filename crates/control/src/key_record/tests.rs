//! Records of keys: what older builds make of them, and whether items lie as they did.

use heatsink_dynamo::{KeyValue, Number};
use heatsink_layout::{
    Bucket, By, Epoch, Glob, Granularity, Hash, KeyLayout, Layout, Strategy, TableLayouts, Time,
};

use super::*;

/// Reads an item as somebody would have written it who meant it so.
fn read(item: &Json) -> Result<KeyRecord, Error> {
    KeyRecord::read(&crate::seal::sealed(item.clone()))
}

fn layout(strategy: Strategy, shards: u16) -> Layout {
    Layout { strategy, shards, hash: Hash::JumpXxh3, version: 2 }
}

fn counter(shards: u16) -> Layout {
    layout(Strategy::Counter { attributes: vec!["n".to_owned()] }, shards)
}

fn table() -> Record {
    Record {
        id: "1-2".to_owned(),
        name: "Posts".to_owned(),
        layouts: TableLayouts::default(),
        state: crate::State::Active,
        changed: Default::default(),
        version: 5,
        created: 0,
        made: None,
        adopted: true,
        keys: 5,
        tally: Some(Tally::NONE.with("key:p", 3)),
        touched: Default::default(),
        forgotten: 0,
        values: Vec::new(),
        numbers: false,
    }
}

fn record(layout: Layout, to: Option<(Layout, Phase)>) -> KeyRecord {
    let reserved_before = layout.slot_bound();
    let reserved = to.as_ref().map_or(reserved_before, |(to, _)| to.slot_bound().max(reserved_before));
    let moves = to.map(|(to, phase)| Move {
        to,
        phase,
        reserved_before,
        closing: false,
        expires: None,
        marks: false,
        high_water: None,
    });
    let (key, key_type) = (b"p".to_vec(), KeyType::S);
    KeyRecord { key, key_type, layout, moves, settled: true, reserved, version: 3, changed: 9, since: 4 }
}

#[test]
fn older_builds_read_no_record_of_a_counter() {
    let calculated = layout(Strategy::calculated(By::SortKey), 4);
    let widens = record(Layout::none(), Some((counter(4), Phase::Prepare)));
    let records = [
        (record(calculated.clone(), None), "3"),
        (record(Layout::none(), Some((calculated, Phase::Move))), "3"),
        (record(counter(4), None), "4"),
        (widens.clone(), "4"),
    ];
    for (record, form) in records {
        let item = record.item(&table()).unwrap();
        assert_eq!(item["form"]["N"], form);
        assert_eq!(read(&item).unwrap(), record);
    }
    // A counter in the form that older builds read was written by nobody; nor does one move.
    let broken = |form: &str, record: &KeyRecord| {
        let mut item = record.item(&table()).unwrap();
        item["form"]["N"] = json!(form);
        read(&item).unwrap_err().to_string()
    };
    assert!(broken("3", &widens).contains("damaged"));
    assert!(broken("5", &widens).contains("another version"));
    let moves = record(Layout::none(), Some((counter(4), Phase::Move)));
    assert!(broken("4", &moves).contains("damaged"));
}

#[test]
fn a_long_key_stands_by_its_hash_in_a_form_that_older_builds_refuse() {
    let calculated = layout(Strategy::calculated(By::SortKey), 4);
    let of = |key: Vec<u8>, key_type| KeyRecord { key, key_type, ..record(calculated.clone(), None) };
    for one in [of(vec![b'k'; 2_042], KeyType::S), of([0, 255].repeat(1_000), KeyType::B)] {
        let item = one.item(&table()).unwrap();
        assert_eq!(item["form"]["N"], "7");
        assert_eq!(read(&item).unwrap(), one);
        for (name, value) in
            [("key", json!({ "S": "b2theQ==" })), ("key", Json::Null), ("form", json!({ "N": "3" }))]
        {
            let mut broken = item.clone();
            broken[name] = value;
            let read = read(&broken);
            assert!(name == "form" && one.key_type == KeyType::S || read.is_err(), "{name}: {read:?}");
        }
    }
    // What earlier builds wrote is read as they wrote it, to the last byte that had room.
    let short = of(vec![b'k'; 1_020], KeyType::S);
    let item = short.item(&table()).unwrap();
    assert_eq!((&item["form"]["N"], item.get("key")), (&json!("3"), None));
    assert_eq!(item["sk"]["S"], format!("key:{}", "k".repeat(1_020)));
    assert_eq!(read(&item).unwrap(), short);
}

#[test]
fn numbers_stand_in_a_form_that_older_builds_refuse() {
    let calculated = layout(Strategy::calculated(By::SortKey), 4);
    for (layout, key) in [
        (calculated.clone(), "12.5"),
        (counter(4), "-7"),
        (calculated.clone().with_slots(&[3, 0, 9, 1]).unwrap(), "0"),
    ] {
        let one = KeyRecord { key: key.into(), key_type: KeyType::N, ..record(layout, None) };
        let item = one.item(&table()).unwrap();
        assert_eq!((&item["form"]["N"], &item["sk"]["S"]), (&json!("9"), &json!(format!("key:{key}"))));
        assert_eq!(read(&item).unwrap(), one);
        for (name, value) in [
            ("form", json!({ "N": "3" })),
            ("type", json!({ "S": "S" })),
            ("sk", json!({ "S": "key:12.50" })),
        ] {
            let mut broken = item.clone();
            broken[name] = value;
            assert!(read(&broken).is_err(), "{name}");
        }
    }
    let without_room = KeyRecord {
        key: b"1000000000000000000000".to_vec(),
        key_type: KeyType::N,
        ..record(calculated, None)
    };
    assert!(without_room.item(&table()).is_err());
}

#[test]
fn a_table_of_numbers_stands_in_a_form_that_older_builds_refuse() {
    let layouts = TableLayouts::new(vec![KeyLayout::new(Glob::new("*"), counter(4))]);
    for keys in [0, 5] {
        let tally = Some(Tally::NONE.with("key:p", 3)).filter(|_| keys > 0);
        let one = Record { layouts: layouts.clone(), numbers: true, keys, tally, ..table() };
        let item = one.item();
        assert_eq!(item["form"]["N"], "9");
        assert_eq!(Record::read(&item).unwrap(), one);
        assert_eq!(
            Record { numbers: false, ..one.clone() }.item()["form"]["N"],
            if keys > 0 { "3" } else { "2" }
        );
    }
}

fn buckets(shards: u16) -> Layout {
    let time = Time { granularity: Granularity::Day, prefix: String::new(), epoch: Epoch::Seconds };
    layout(Strategy::Bucket { time, by: By::SortKey, earlier: Vec::new() }, shards)
}

fn day(number: i64) -> Bucket {
    Bucket::at(number * 86_400, Granularity::Day).unwrap()
}

#[test]
fn older_builds_read_no_record_of_a_key_with_buckets() {
    let four = buckets(1).stepped(day(20), 4).unwrap();
    let fewer = four.stepped(day(30), 2).unwrap();
    let records = [
        record(buckets(2), None),
        record(buckets(1), Some((four.clone(), Phase::Reserve))),
        record(four.clone(), None),
        KeyRecord { reserved: 4, ..record(four.clone(), Some((fewer, Phase::Prepare))) },
    ];
    for record in &records {
        let item = record.item(&table()).unwrap();
        assert_eq!(item["form"]["N"], "6");
        assert_eq!(read(&item).unwrap(), *record);
        for former in ["3", "4"] {
            let mut item = item.clone();
            item["form"]["N"] = json!(former);
            assert!(read(&item).unwrap_err().to_string().contains("damaged"));
        }
    }
    // No such key goes further than PREPARE, becomes something else, or gives its oldest buckets
    // another number; nor are fewer names its own.
    let moves = |to: Layout, phase| record(buckets(1), Some((to, phase)));
    let calculated = layout(Strategy::calculated(By::SortKey), 4);
    for damaged in [
        moves(four.clone(), Phase::Hold),
        moves(buckets(4), Phase::Prepare),
        record(calculated, Some((four.clone(), Phase::Prepare))),
        KeyRecord { reserved: 3, ..record(four, None) },
    ] {
        let item = damaged.item(&table()).unwrap();
        assert!(read(&item).unwrap_err().to_string().contains("damaged"), "{damaged:?}");
    }
}

#[test]
fn buckets_that_get_another_number_of_shards_lie_as_they_did() {
    let four = buckets(1).stepped(day(20), 4).unwrap();
    let held = record(buckets(1), Some((four.clone(), Phase::Prepare)));
    assert!(record(buckets(1), None).lies_as(&held) && held.lies_as(&record(four.clone(), None)));
    assert!(!record(buckets(1), None).lies_as(&record(buckets(4), None)));
    let in_force = |phase| {
        let (_, recorded) = record(buckets(1), Some((four.clone(), phase))).recorded();
        let InForce::Stepping(stepping) = recorded.in_force else { panic!("{phase:?}") };
        (stepping.layout.shards, stepping.held_from)
    };
    assert_eq!(in_force(Phase::Reserve), (1, day(20)));
    assert_eq!(in_force(Phase::Prepare), (4, day(20)));
}

#[test]
fn a_counter_that_widens_lies_as_it_did() {
    let whole = record(Layout::none(), None);
    let widens = record(Layout::none(), Some((counter(4), Phase::Prepare)));
    assert!(whole.lies_as(&widens) && widens.lies_as(&record(counter(4), None)));
    let moves = record(Layout::none(), Some((layout(Strategy::calculated(By::SortKey), 4), Phase::Prepare)));
    assert!(!whole.lies_as(&moves));
}

#[test]
fn a_record_says_by_which_attribute_items_expire_and_an_unknown_one_is_refused() {
    let table = table();
    let of = |expires: Option<&str>| {
        let expires = expires.map(str::to_owned);
        let moves = Move {
            to: Layout::none(),
            phase: Phase::Move,
            reserved_before: 1,
            closing: false,
            expires,
            marks: false,
            high_water: None,
        };
        KeyRecord {
            key: b"game".to_vec(),
            key_type: KeyType::S,
            layout: Layout::none(),
            moves: Some(moves),
            settled: false,
            reserved: 1,
            version: 5,
            changed: 0,
            since: 2,
        }
    };
    for expires in [None, Some("gone")] {
        let record = of(expires);
        let item = record.item(&table).unwrap_or_default();
        assert_eq!(read(&item).ok(), Some(record.clone()));
        let (_, recorded) = record.recorded();
        let InForce::Moving(moving) = recorded.in_force else { panic!("it moves") };
        assert_eq!(moving.expires.as_deref(), expires);
    }
    // Without time to live it is the record that every build knows; what a build does not know it
    // refuses.
    let mut item = of(None).item(&table).unwrap_or_default();
    let text = item["moves"]["S"].as_str().unwrap_or_default().to_owned();
    assert!(!text.contains("expires"), "{text}");
    item["moves"]["S"] = json!(text.replacen('{', "{\"later\":1,", 1));
    let refused = read(&item).map_err(|error| error.to_string());
    assert!(refused.is_err_and(|why| why.contains("written by another version")));
}

#[test]
fn the_high_water_stands_beside_the_move_where_older_builds_do_not_look() {
    let to = || layout(Strategy::calculated(By::SortKey), 4);
    let of = |phase, high_water| {
        let mut record = record(Layout::none(), Some((to(), phase)));
        record.moves.as_mut().unwrap().high_water = high_water;
        record
    };
    let number = KeyValue::N(Number::parse("-12.50").unwrap());
    for high_water in [KeyValue::S("2026-01\"".into()), number, KeyValue::B(vec![0, 255].into())] {
        let record = of(Phase::Move, Some(high_water.clone()));
        let item = record.item(&table()).unwrap();
        assert!(!item["moves"]["S"].as_str().unwrap().contains("high"), "{item}");
        assert_eq!(read(&item).unwrap(), record);
        let (_, recorded) = record.recorded();
        let InForce::Moving(moving) = recorded.in_force else { panic!("it moves") };
        assert_eq!(moving.high_water, Some(high_water));
    }
    // Before MOVE items still come into the old slots.
    let item = of(Phase::Check, Some(KeyValue::S("a".into()))).item(&table()).unwrap();
    assert!(read(&item).unwrap_err().to_string().contains("damaged"));
}

fn in_slots(slots: &[u16]) -> Layout {
    let shards = u16::try_from(slots.len()).unwrap();
    layout(Strategy::calculated(By::SortKey), shards).with_slots(slots).unwrap()
}

#[test]
fn older_builds_read_no_record_of_a_key_with_slots_by_name() {
    let four = layout(Strategy::calculated(By::SortKey), 4);
    let long = KeyRecord { key: vec![b'k'; 1_500], ..record(in_slots(&[0, 1, 9, 3]), None) };
    let records = [
        record(in_slots(&[0, 1, 9, 3]), None),
        record(in_slots(&[5]), None),
        record(four.clone(), Some((in_slots(&[0, 1, 4, 3]), Phase::Move))),
        record(in_slots(&[7, 1]), Some((four, Phase::Reserve))),
        long,
    ];
    for record in &records {
        let item = record.item(&table()).unwrap();
        assert_eq!(item["form"]["N"], "8");
        assert_eq!(read(&item).unwrap(), *record);
        for former in ["3", "4", "6", "7"] {
            let mut item = item.clone();
            item["form"]["N"] = json!(former);
            assert!(read(&item).unwrap_err().to_string().contains("damaged"));
        }
    }
    // Of a long key the record has to hold the key itself.
    let mut item = records[4].item(&table()).unwrap();
    item.as_object_mut().unwrap().remove("key");
    assert!(read(&item).unwrap_err().to_string().contains("damaged"));
}

#[test]
fn a_record_with_a_damaged_list_of_slots_is_refused() {
    let good = record(in_slots(&[0, 1, 9, 3]), None).item(&table()).unwrap();
    let text = good["layout"]["S"].as_str().unwrap();
    let reserved = |item: &mut Json, reserved: &str| item["reserved"]["N"] = json!(reserved);
    for list in ["[0,1,9,9]", "[0,1,9]", "[0,1,9,3,4]", "[0,1,10000,3]", "[0,1,2,3]"] {
        let mut item = good.clone();
        item["layout"]["S"] = json!(text.replace("[0,1,9,3]", list));
        reserved(&mut item, "10001");
        let error = read(&item).unwrap_err().to_string();
        assert!(error.contains("damaged") && error.contains("Posts"), "{list}: {error}");
        let mut moves =
            record(Layout::none(), Some((in_slots(&[0, 1, 9, 3]), Phase::Move))).item(&table()).unwrap();
        let to = moves["moves"]["S"].as_str().unwrap().replace("[0,1,9,3]", list);
        moves["moves"]["S"] = json!(to);
        reserved(&mut moves, "10001");
        assert!(read(&moves).unwrap_err().to_string().contains("damaged"), "{list}");
    }
    // The highest slot has to be the key's own.
    let mut item = good;
    reserved(&mut item, "9");
    assert!(read(&item).unwrap_err().to_string().contains("damaged"));
}

#[test]
fn a_record_with_a_layout_that_no_key_can_have_is_damaged() {
    let four = layout(Strategy::calculated(By::SortKey), 4);
    let good = record(four, None).item(&table()).unwrap();
    let text = good["layout"]["S"].as_str().unwrap();
    assert!(read(&good).is_ok());
    for (from, to) in [
        ("\"shards\":4", "\"shards\":0"),
        ("\"SortKey\"", "\"PrimaryKey\""),
        ("\"SortKey\"", "{\"Part\":{\"separator\":\"\",\"part\":0}}"),
        ("{\"Calculated\":{\"by\":\"SortKey\"}}", "\"None\""),
    ] {
        let mut damaged = good.clone();
        damaged["layout"]["S"] = json!(text.replace(from, to));
        assert_ne!(damaged, good, "{from}");
        let error = read(&damaged).unwrap_err().to_string();
        assert!(error.contains("damaged"), "{to}: {error}");
    }
    let mut nothing = record(counter(4), None).item(&table()).unwrap();
    let counts = nothing["layout"]["S"].as_str().unwrap().replace("[\"n\"]", "[]");
    nothing["layout"]["S"] = json!(counts);
    assert!(read(&nothing).is_err());
}
