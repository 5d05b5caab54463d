//! Shards that others draw: equal sort keys in several of them all come, once, whatever the page;
//! and a cursor that was rebuilt from an item loses none.

use std::collections::BTreeSet;

use heatsink_layout::{Glob, KeyLayout, Slot, Strategy as Spread, TableLayouts, Template};
use proptest::prelude::*;

use super::*;

/// Every key over that many shards, assigned.
#[derive(Clone)]
struct Assigned(u16);

impl Assigned {
    fn layout(&self) -> Layout {
        let template = Template::read("{pk}.{shard+1}").unwrap();
        let strategy = Spread::Template { template, by: By::SortKey, time: None };
        Layout { strategy, shards: self.0, hash: Hash::Random, version: 1 }
    }

    fn table(&self) -> Arc<Table> {
        let layouts = TableLayouts::new(vec![KeyLayout::new(Glob::new("*"), self.layout())]);
        Arc::new(Table::new(schema(), Arc::new(layouts)))
    }

    /// An item for every sort key and shard.
    fn store(&self, placed: &BTreeSet<(u8, u16)>) -> Vec<Item> {
        let table = self.table();
        let item = |(sort, shard): &(u8, u16)| {
            let slot = Slot::shard(shard % self.0);
            let suffix = table.affixes(b"game", &self.layout(), slot).unwrap().after;
            Item::from([
                ("pk".to_owned(), text(format!("game{suffix}"))),
                ("sk".to_owned(), text(format!("{sort:02}"))),
                ("score".to_owned(), Value::N((sort % 3).to_string())),
                ("shard".to_owned(), Value::N(slot.shard.to_string())),
            ])
        };
        placed.iter().map(item).collect()
    }
}

impl LayoutSource for Assigned {
    fn table(&self, name: &str) -> Option<Arc<Table>> {
        (name == "Games").then(|| Assigned::table(self))
    }

    fn in_force(&self, _: &Table, _: &[u8]) -> InForce {
        InForce::Stable(Arc::new(self.layout()))
    }

    fn handle(&self) -> Arc<dyn LayoutSource> {
        Arc::new(self.clone())
    }
}

/// Where items may lie: few sort keys, so that most are in several shards.
fn placed(shards: u16) -> impl Strategy<Value = BTreeSet<(u8, u16)>> {
    prop::collection::btree_set((0..6_u8, 0..shards), 0..24)
}

struct Read {
    pages: Vec<Page>,
    /// The refusal of a cursor.
    refused: Option<Error>,
}

/// What a store answers that is only asked whether it takes a Query up to, or from, the sort
/// key 03.
fn asked(body: &Bytes) -> Result<Bytes, Error> {
    match json::member(body, "ExclusiveStartKey").unwrap() {
        Some(start) if read_item(start).unwrap()["sk"] == text("03") => Err(Error::validation(fake::AT_END)),
        _ => Ok(Bytes::from_static(b"{}")),
    }
}

/// Reads all pages. `rebuilt`: with cursors that have only the keys of the last item.
fn read(assigned: &Assigned, store: &Fake, body: &str, rebuilt: bool) -> Read {
    let router = Router::new();
    let mut next = body.to_owned();
    let mut pages: Vec<Page> = Vec::new();
    loop {
        let plan = router.plan(Operation::Query, &Bytes::copy_from_slice(next.as_bytes()), assigned).unwrap();
        let mut running = Stepped::new(plan);
        let answer = loop {
            match running.step() {
                Step::Call(calls) => {
                    for call in calls {
                        assert_eq!(call.operation, Operation::Query);
                        let legacy = json::member(&call.body, "KeyConditions").unwrap().is_some();
                        let answer = if legacy { asked(&call.body) } else { store.query(&call.body) };
                        running.answer(call.id, answer);
                    }
                }
                Step::Done(answer) => break answer,
            }
        };
        let page = match answer {
            Ok(answer) => page(answer),
            Err(error) => return Read { pages, refused: Some(error) },
        };
        let mut last = page.last.clone();
        pages.push(page);
        assert!(pages.len() < 1000, "endless pages");
        if let (true, Some(last)) = (rebuilt, &mut last) {
            *last = json::splice_members(last, &[("heatsink:shard", None)]).unwrap();
        }
        let Some(last) = last else { return Read { pages, refused: None } };
        next = with(body, "ExclusiveStartKey", &last);
    }
}

fn body(index: Option<&str>, limit: usize, descending: bool, bounds: Option<(u8, u8)>) -> String {
    let mut body = serde_json::json!({
        "TableName": "Games", "KeyConditionExpression": "pk = :p", "Limit": limit, "ScanIndexForward": !descending,
        "ExpressionAttributeValues": { ":p": { "S": "game" } },
    });
    if let Some(index) = index {
        body["IndexName"] = index.into();
    } else if let Some((same, _)) = bounds.filter(|(low, high)| low == high) {
        body["KeyConditionExpression"] = "pk = :p AND sk = :a".into();
        body["ExpressionAttributeValues"][":a"] = serde_json::json!({ "S": format!("{same:02}") });
    } else if let Some((low, high)) = bounds {
        body["KeyConditionExpression"] = "pk = :p AND sk BETWEEN :a AND :b".into();
        body["ExpressionAttributeValues"][":a"] = serde_json::json!({ "S": format!("{:02}", low.min(high)) });
        body["ExpressionAttributeValues"][":b"] = serde_json::json!({ "S": format!("{:02}", low.max(high)) });
    }
    body.to_string()
}

/// The sort key and the shard of every item, as it came.
fn rows(pages: &[Page]) -> Vec<(u8, u16)> {
    let row = |item: &Item| {
        assert_eq!(item["pk"], text("game"));
        let (Value::S(sort), Value::N(shard)) = (&item["sk"], &item["shard"]) else { panic!("{item:?}") };
        (sort.parse().unwrap(), shard.parse().unwrap())
    };
    pages.iter().flat_map(|page| &page.items).map(row).collect()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 300, ..ProptestConfig::default() })]

    #[test]
    fn equal_sort_keys_in_several_shards_all_come_once(
        shards in 2_u16..6, all in placed(6), limit in 1_usize..9, descending: bool, bounds in prop::option::of((0..6_u8, 0..6_u8)),
        index in prop::option::of(prop::sample::select(vec!["local", "global"])), short in prop::collection::vec(1_usize..5, 0..3),
    ) {
        let assigned = Assigned(shards);
        let placed: BTreeSet<(u8, u16)> = all.into_iter().map(|(sort, shard)| (sort, shard % shards)).collect();
        let store = Fake { items: assigned.store(&placed), pages: short, ..Fake::default() };
        let found = read(&assigned, &store, &body(index, limit, descending, bounds), false);
        prop_assert!(found.refused.is_none(), "{:?}", found.refused);
        let within = |sort: u8| index.is_some() || bounds.is_none_or(|(a, b)| (a.min(b)..=a.max(b)).contains(&sort));
        let mut expected: Vec<(u8, u16)> = placed.iter().copied().filter(|(sort, _)| within(*sort)).collect();
        let mut rows = rows(&found.pages);
        if index.is_none() {
            if descending {
                expected.reverse();
            }
            prop_assert_eq!(&rows, &expected);
        }
        rows.sort_unstable();
        expected.sort_unstable();
        prop_assert_eq!(rows, expected);
        let (last, full) = found.pages.split_last().unwrap();
        let end = bounds.filter(|_| index.is_none()).map(|(a, b)| if descending { a.min(b) } else { a.max(b) });
        let ended = last.items.last().is_some_and(|item| end.is_some_and(|end| item["sk"] == text(format!("{end:02}"))));
        prop_assert!(full.iter().all(|page| page.scanned == limit) && (last.scanned < limit || last.scanned == limit && ended));
    }

    /// The other shards' rows with the sort key of a cursor on the inclusive end are reached, and
    /// no shard is sent that cursor.
    #[test]
    fn ties_on_the_inclusive_end_all_come(
        shards in 2_u16..8, ties in 1_u16..8, limit in 1_usize..4, test in prop::sample::select(vec![("<=", false), (">=", true), ("BETWEEN", false), ("BETWEEN", true)]),
        legacy: bool,
    ) {
        let assigned = Assigned(shards);
        let placed: BTreeSet<(u8, u16)> = (0..ties.min(shards)).map(|shard| (3, shard)).chain([(2, 0), (4, 1)]).collect();
        let store = Fake { items: assigned.store(&placed), ..Fake::default() };
        let (operator, descending) = test;
        let mut body: serde_json::Value = serde_json::from_str(&body(None, limit, descending, Some((3, 3)))).unwrap();
        let operand = |text: &str| serde_json::json!({ "S": text });
        let values = match (operator, descending) {
            ("BETWEEN", false) => vec![operand("02"), operand("03")],
            ("BETWEEN", true) => vec![operand("03"), operand("04")],
            _ => vec![operand("03")],
        };
        if legacy {
            let members = body.as_object_mut().unwrap();
            members.remove("KeyConditionExpression");
            members.remove("ExpressionAttributeValues");
            let operator = match operator { "<=" => "LE", ">=" => "GE", other => other };
            body["KeyConditions"] = serde_json::json!({
                "pk": { "ComparisonOperator": "EQ", "AttributeValueList": [operand("game")] },
                "sk": { "ComparisonOperator": operator, "AttributeValueList": values },
            });
            // Of a legacy filter the store is asked first.
            body["QueryFilter"] = serde_json::json!({ "score": { "ComparisonOperator": "NOT_NULL" } });
        } else {
            let text = if values.len() == 2 { "BETWEEN :a AND :b".to_owned() } else { format!("{operator} :a") };
            body["KeyConditionExpression"] = format!("pk = :p AND sk {text}").into();
            body["ExpressionAttributeValues"] = serde_json::json!({ ":p": operand("game"), ":a": values[0] });
            if let Some(high) = values.get(1) {
                body["ExpressionAttributeValues"][":b"] = high.clone();
            }
        }
        let found = read(&assigned, &store, &body.to_string(), false);
        prop_assert!(found.refused.is_none(), "{:?}", found.refused);
        let mut expected: Vec<(u8, u16)> = placed.iter().copied().filter(|(sort, _)| if descending { *sort >= 3 } else { *sort <= 3 }).collect();
        if descending {
            expected.reverse();
        }
        prop_assert_eq!(rows(&found.pages), expected);
        prop_assert!(found.pages.iter().all(|page| page.scanned > 0), "nothing is left behind the last row");
    }

    #[test]
    fn a_cursor_that_was_rebuilt_from_an_item_loses_nothing(
        shards in 2_u16..6, all in placed(6), limit in 1_usize..9, descending: bool,
    ) {
        let assigned = Assigned(shards);
        let placed: BTreeSet<(u8, u16)> = all.into_iter().map(|(sort, shard)| (sort, shard % shards)).collect();
        let store = Fake { items: assigned.store(&placed), ..Fake::default() };
        let found = read(&assigned, &store, &body(None, limit, descending, None), true);
        let mut expected: Vec<(u8, u16)> = placed.iter().copied().collect();
        if descending {
            expected.reverse();
        }
        let rows = rows(&found.pages);
        match found.refused {
            None => prop_assert_eq!(rows, expected),
            Some(error) => {
                prop_assert!(error.message.unwrap().contains("does not say in which shard it stands"));
                let (sort, _) = *rows.last().unwrap();
                prop_assert!(placed.iter().filter(|(other, _)| *other == sort).count() > 1);
                prop_assert_eq!(&rows[..], &expected[..rows.len()]);
            }
        }
    }

    /// With sort keys that one shard holds each, cursors are DynamoDB's own.
    #[test]
    fn cursors_of_unique_sort_keys_are_plain(shards in 2_u16..6, all in placed(6), limit in 1_usize..5) {
        let assigned = Assigned(shards);
        let unique: std::collections::BTreeMap<u8, u16> = all.into_iter().map(|(sort, shard)| (sort, shard % shards)).collect();
        let placed = unique.into_iter().collect();
        let store = Fake { items: assigned.store(&placed), ..Fake::default() };
        let found = read(&assigned, &store, &body(None, limit, false, None), false);
        prop_assert_eq!(rows(&found.pages).len(), placed.len());
        for last in found.pages.iter().filter_map(|page| page.last.as_ref()) {
            prop_assert_eq!(read_item(last).unwrap().len(), 2);
        }
    }
}
