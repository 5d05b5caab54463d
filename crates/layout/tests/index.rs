//! Spread keys of indexes: golden vectors of the shard, and what is on record.
#![allow(clippy::unwrap_used, reason = "a test may panic")]

use std::sync::Arc;

use heatsink_dynamo::{AttributeDefinition, KeySchema, KeyType, TableSchema};
use heatsink_layout::{
    By, Glob, Hash, KeyLayout, Layout, MigrationPhase, OfIndex, PrimaryKey, SortKey, Strategy, Table,
    TableLayouts, ValueLayout, ValueMigration, codec,
};
use proptest::prelude::*;

fn attribute(name: &str) -> AttributeDefinition {
    AttributeDefinition { name: name.to_owned(), key_type: KeyType::S }
}

fn layouts(keys: &str, shards: u16) -> TableLayouts {
    let index = OfIndex { name: "by-status".to_owned(), attribute: attribute("status") };
    let strategy = Strategy::calculated(By::PrimaryKey);
    let layout = Layout { strategy, shards, hash: Hash::JumpXxh3, version: 1 };
    TableLayouts::new(vec![KeyLayout::of_index(index, Glob::new(keys), layout)])
}

fn table(keys: &str, shards: u16) -> Table {
    let key = KeySchema { partition: attribute("pk"), sort: Some(attribute("sk")) };
    let schema = TableSchema { name: "T".to_owned(), id: "1".to_owned(), key, indexes: Vec::new() };
    Table::new(schema, Arc::new(layouts(keys, shards)))
}

fn key<'a>(partition: &'a str, sort: &'a str) -> PrimaryKey<'a> {
    PrimaryKey { partition: SortKey::S(partition), sort: Some(SortKey::S(sort)) }
}

#[test]
fn a_scan_of_the_index_alone_has_another_order() {
    let table = table("*", 10);
    assert_eq!(table.scan_order(&[]), None);
    assert_eq!(table.scan_order(&["at"]), None);
    let order = table.scan_order(&["status", "at"]);
    assert!(order.is_some());
    assert_eq!(order, self::table("*", 10).scan_order(&["status"]), "it names the layouts, not the table");
    assert_ne!(order, self::table("*", 9).scan_order(&["status"]));
    assert_ne!(order, self::table("open", 10).scan_order(&["status"]));
}

/// Pinned for ever: items are found by it.
#[test]
fn shards_never_change() {
    let table = table("*", 10);
    let status = table.index_key("status").unwrap();
    let shards: Vec<u16> = ["1", "2", "3", "4", "5", "6", "7", "8"]
        .iter()
        .map(|sort| status.shard_of(b"open", key("order", sort)))
        .collect();
    assert_eq!(shards, GOLDEN);
    // Where one part ends and the other begins is part of what is hashed.
    let hundred = self::table("*", 1000);
    let status = hundred.index_key("status").unwrap();
    assert_ne!(status.shard_of(b"open", key("ab", "c")), status.shard_of(b"open", key("a", "bc")));
}

const GOLDEN: [u16; 8] = [1, 6, 3, 9, 3, 0, 1, 6];

#[test]
fn a_table_with_rules_for_indexes_alone_keeps_its_keys_whole() {
    let table = table("open*", 4);
    assert!(table.keys_are_whole());
    assert_eq!(table.logical(b"game#~3"), b"game#~3");
    assert!(!table.is_reserved(b"game#~3"));
    let status = table.index_key("status").unwrap();
    assert_eq!((status.shards(b"open"), status.shards(b"closed")), (4, 1));
    assert!(table.index_key("pk").is_none());
}

#[test]
fn the_record_says_which_index() {
    let recorded = serde_json::to_string(&layouts("*", 4)).unwrap();
    assert!(recorded.contains("\"index\":{\"name\":\"by-status\""), "{recorded}");
    assert_eq!(serde_json::from_str::<TableLayouts>(&recorded).unwrap(), layouts("*", 4));
    // Records of before there were index keys.
    let old = r#"[{"keys":"*","layout":{"strategy":{"Calculated":{"by":"SortKey"}},"shards":2,"hash":"JumpXxh3","version":1}}]"#;
    let old: TableLayouts = serde_json::from_str(old).unwrap();
    assert!(old.iter().all(|one| one.index().is_none()));
    assert!(!serde_json::to_string(&old).unwrap().contains("index"));
}

/// While `status` goes from one layout to another. 0 shards: plain values.
fn migrating(from: u16, to: u16, writes_new: bool) -> Table {
    let of = |shards| if shards == 0 { TableLayouts::default() } else { layouts("*", shards) };
    let phase =
        MigrationPhase { attributes: vec!["status".to_owned()], from: of(from), to: of(to), writes_new };
    table("*", from.max(to)).migrating(&phase)
}

/// A value on record.
fn on_record(value: &str, shards: u16, to: Option<(u16, bool)>, former: &[u16]) -> ValueLayout {
    let index = OfIndex { name: "by-status".to_owned(), attribute: attribute("status") };
    let migration = to.map(|(to, writes_new)| ValueMigration { to, writes_new, run: 7 });
    let most = former.iter().copied().chain(to.map(|(to, _)| to)).fold(shards, u16::max);
    ValueLayout {
        index,
        value: value.as_bytes().to_vec(),
        shards,
        migration,
        former: former.to_vec(),
        reserved: most + 2,
    }
}

fn with_values(values: &[ValueLayout]) -> Table {
    let key = KeySchema { partition: attribute("pk"), sort: Some(attribute("sk")) };
    let schema = TableSchema { name: "T".to_owned(), id: "1".to_owned(), key, indexes: Vec::new() };
    Table::new(schema, Arc::default()).with_value_layouts(values)
}

#[test]
fn only_the_value_on_record_is_spread_and_nothing_is_escaped() {
    let table = with_values(&[on_record("open", 4, None, &[])]);
    let status = table.index_key("status").unwrap();
    assert!(table.keys_are_whole() && !status.is_mixed());
    let mut spread = 0;
    for at in 0..50 {
        let sort = at.to_string();
        let own = key("p", &sort);
        // Longer, shorter, not canonical, of nobody on record, and beyond all shards that it ever
        // had.
        for value in ["done", "open#~04", "open#~6", "open#~99999", "done#~1", "open#~0", "#~1", "open#~1#~1"]
        {
            assert_eq!(status.checked_suffix(value.as_bytes(), own).unwrap(), "", "{value}");
            assert_eq!(status.logical(value.as_bytes()), value.as_bytes(), "{value}");
        }
        // Reserved, and never stored: nothing is read as one of them.
        for value in ["open#~4", "open#~5"] {
            status.checked_suffix(value.as_bytes(), own).unwrap_err();
            assert_eq!(status.logical(value.as_bytes()), value.as_bytes());
        }
        for value in ["open#~1", "open#~3"] {
            status.checked_suffix(value.as_bytes(), own).unwrap_err();
            assert_eq!(status.logical(value.as_bytes()), b"open");
        }
        let stored = status.form(b"open", own).unwrap();
        assert_eq!(status.logical(&stored), b"open");
        spread += usize::from(stored != b"open");
    }
    assert!(spread > 20);
}

#[test]
fn a_value_on_record_reads_back_and_names_another_order() {
    for (value, to, former) in [("open", None, &[][..]), ("\u{0}\u{e9}", Some((9, true)), &[1, 7][..])] {
        let one = on_record(value, 3, to, former);
        let text = serde_json::to_string(&one).unwrap();
        assert_eq!(serde_json::from_str::<ValueLayout>(&text).unwrap(), one, "{text}");
        for broken in [
            text.replace("\"shards\":3", "\"shards\":0"),
            text.replace("{\"S\":", "{\"N\":"),
            text.replace("reserved", "more"),
        ] {
            serde_json::from_str::<ValueLayout>(&broken).unwrap_err();
        }
    }
    let order = |shards| with_values(&[on_record("open", shards, None, &[])]).scan_order(&["status"]);
    assert!(order(3).is_some() && order(3) != order(4));
    assert_eq!(with_values(&[on_record("open", 3, None, &[])]).scan_order(&["at"]), None);
}

proptest! {
    /// Items that no walk of the index finds keep a form of any count that the value ever had. All
    /// are known, and all ways lead to shards that are read later.
    #[test]
    fn an_item_in_any_form_is_found_on_its_way(
        sort in ".{1,8}", shards in 1_u16..40, to in proptest::option::of((1_u16..40, any::<bool>())),
        former in proptest::collection::vec(1_u16..40, 0..4),
    ) {
        let layout = on_record("open", shards, to, &former);
        let table = with_values(std::slice::from_ref(&layout));
        let (status, key) = (table.index_key("status").unwrap(), key("p", &sort));
        let of = |shards| self::table("*", shards).index_key("status").unwrap().shard_of(b"open", key);
        let target = to.map_or(shards, |(to, _)| to);
        let suffixes = status.suffixes(b"open", key);
        let written = if let Some((to, true)) = to { to } else { shards };
        let stored = String::from_utf8(status.physical(b"open", of(written))).unwrap();
        prop_assert_eq!(suffixes[0].as_str(), &stored[4..]);
        for count in former.iter().copied().chain([shards, target]) {
            let stored = status.physical(b"open", of(count));
            prop_assert!(status.forms(b"open", key).contains(&stored));
            prop_assert_eq!(status.logical(&stored), b"open");
            prop_assert!(of(count) < status.shards(b"open"));
            prop_assert!(of(count) == of(target) || status.stage(b"open", of(count)) < status.stage(b"open", of(target)));
        }
    }

    /// What a migration rests on: gateways read both forms, the two steps write one each, and items
    /// go from shards that are read first to those that are read after them, and nowhere else.
    #[test]
    fn items_only_enter_shards_that_are_read_last(
        value in "[a#~0-9]{1,12}", sort in ".{1,8}", from in 0_u16..40, to in 0_u16..40,
    ) {
        let of = |shards: u16| table("*", shards.max(1));
        let (steady, key, value) = ([of(from), of(to)], key("p", &sort), value.as_bytes());
        let [old, new] = [0, 1].map(|at| steady[at].index_key("status").unwrap().shard_of(value, key));
        for writes_new in [false, true] {
            let table = migrating(from, to, writes_new);
            let status = table.index_key("status").unwrap();
            let forms = status.suffixes(value, key);
            let form = |shard| String::from_utf8(status.physical(value, shard)[value.len()..].to_vec()).unwrap();
            prop_assert!(forms.contains(&form(old)) && forms.contains(&form(new)));
            prop_assert_eq!(&forms[0], &form(if writes_new { new } else { old }));
            prop_assert_eq!(forms.len(), if old == new { 1 } else { 2 });
            prop_assert!(old < status.shards(value) && new < status.shards(value));
            prop_assert!(old == new || status.stage(value, old) < status.stage(value, new));
            prop_assert_eq!(status.form(value, key).unwrap(), status.physical(value, new));
            prop_assert!(status.forms(value, key).contains(&status.physical(value, old)));
            let refused = (from == 0 || to == 0) && codec::is_reserved(value);
            match status.checked_suffix(value, key) {
                Ok(suffix) => prop_assert!(!refused && suffix == forms[0]),
                Err(_) => prop_assert!(refused, "plain and spread values cannot be told apart"),
            }
        }
    }

    #[test]
    fn what_is_stored_reads_back(value in "[a#~0-9]{1,12}", sort in ".{1,8}", shards in 1_u16..40) {
        let table = table("*", shards);
        let status = table.index_key("status").unwrap();
        let stored = [value.as_bytes(), status.suffixes(value.as_bytes(), key("p", &sort))[0].as_bytes()].concat();
        prop_assert_eq!(status.logical(&stored), value.as_bytes());
        let shard = status.shard_of(value.as_bytes(), key("p", &sort));
        prop_assert!(shard < shards);
        prop_assert_eq!(status.physical(value.as_bytes(), shard), stored);
    }
}
