//! The first page under one layout, the rest under another: it is what an unsharded table has
//! there, or refused by name. Where a Scan stands means nothing under another layout; a Query of an
//! index goes on unless other items have the cursor's index key.

use bytes::Bytes;
use fastrand::Rng;
use heatsink_dynamo::{Code, Error, Operation};
use heatsink_route::Router;
use serde_json::{Value as Json, json};

use crate::common;
use crate::equal_answers::KEYS;
use crate::equal_answers::both::Both;
use crate::equal_answers::requests::Requests;
use crate::equal_answers::store::Store;
use crate::equal_answers::worlds::{Sharded, World};

/// The same items in a table without shards, and in two with them.
struct Tables {
    plain: Store,
    sharded: [Sharded; 2],
}

impl Tables {
    fn filled(requests: &mut Requests) -> Self {
        let [four, two] = [4, 2].map(World::laid_out_later);
        let mut tables = Tables { plain: Store::new(four.schema()), sharded: [four, two].map(Sharded::new) };
        for _ in 0..20 {
            let put = Bytes::from(json!({ "TableName": "Tab", "Item": requests.item() }).to_string());
            tables.plain.call(Operation::PutItem, &put).unwrap();
            for table in &mut tables.sharded {
                table.call(Operation::PutItem, &put).unwrap();
            }
        }
        tables
    }

    /// All pages, of which the first is read under one layout, and the others under the one with
    /// that number. And where the first ends.
    fn across(
        &mut self,
        operation: Operation,
        body: &Json,
        to: usize,
    ) -> (Result<Vec<Json>, Error>, Option<Json>) {
        let (mut found, mut next, mut first_end, mut from) = (Vec::new(), body.clone(), None, 0);
        loop {
            let answer = match self.sharded[from].call(operation, &Bytes::from(next.to_string())) {
                Ok(answer) => common::json(&answer),
                Err(error) => return (Err(error), first_end),
            };
            found.extend(answer["Items"].as_array().unwrap().clone());
            let Some(last) = answer.get("LastEvaluatedKey") else { return (Ok(found), first_end) };
            first_end.get_or_insert_with(|| last.clone());
            next["ExclusiveStartKey"] = last.clone();
            from = to;
        }
    }

    fn all(&mut self, operation: Operation, body: &Json) -> Vec<Json> {
        let mut body = body.clone();
        body.as_object_mut().unwrap().remove("Limit");
        common::json(&self.plain.call(operation, &Bytes::from(body.to_string())).unwrap())["Items"]
            .as_array()
            .unwrap()
            .clone()
    }
}

/// Clients make cursors of items, keep them while items go, and hand them to other Queries: a cursor
/// at each place, within the condition and outside, and where ranges begin.
#[test]
fn a_query_of_ranges_goes_on_wherever_a_client_says() {
    let sorts = ["2024", "2025-01-01T08", "2025-01-01T23", "2025-01-02", "2025-01-04", "2025-01-07", "none"];
    let values =
        |low: &str, high: &str| json!({ ":p": { "S": "a" }, ":l": { "S": low }, ":h": { "S": high } });
    for points in
        [&["2025-01-02"][..], &["2025-01-01T08", "2025-01-01T9", "2025-01-07"], &["2025-01-07T", "x"]]
    {
        let slots: Vec<u16> = (0..=u16::try_from(points.len()).unwrap()).rev().collect();
        let mut both = Both::new(World::ranges(points, &slots));
        for sort in sorts.iter().filter(|sort| **sort != "2025-01-04") {
            let item = json!({ "pk": { "S": "a" }, "sk": { "S": sort }, "v": { "S": "x" } });
            both.same(Operation::PutItem, &json!({ "TableName": "Tab", "Item": item }));
        }
        let tests = [
            "",
            "sk = :l",
            "sk < :l",
            "sk <= :l",
            "sk > :l",
            "sk >= :l",
            "sk BETWEEN :l AND :h",
            "begins_with(sk, :l)",
        ];
        for (test, low, start, descending) in
            tests.iter().flat_map(|test| sorts.map(|low| (*test, low))).flat_map(|(test, low)| {
                sorts.iter().flat_map(move |start| [false, true].map(|way| (test, low, *start, way)))
            })
        {
            // On the end that the condition includes there is an empty page, whatever the layout.
            let from_end = descending && [">=", "BETWEEN"].iter().any(|name| test.contains(name));
            if start == low && (from_end || !descending && test.contains("<=")) {
                continue;
            }
            let condition =
                if test.is_empty() { "pk = :p".to_owned() } else { format!("pk = :p AND {test}") };
            let mut named = values(low, "2025-01-05");
            let unused = [(":l", test.is_empty()), (":h", !test.contains(":h"))];
            for (name, _) in unused.into_iter().filter(|(_, unused)| *unused) {
                named.as_object_mut().unwrap().remove(name);
            }
            let body = json!({
                "TableName": "Tab", "KeyConditionExpression": condition, "ExpressionAttributeValues": named, "Limit": 2,
                "ScanIndexForward": !descending, "ExclusiveStartKey": { "pk": { "S": "a" }, "sk": { "S": start } },
            });
            both.same(Operation::Query, &body);
        }
    }
}

fn is_of_another_layout(error: &Error) -> bool {
    let message = error.message.as_deref().unwrap_or_default();
    error.code == Code::ValidationException && message.contains("is of another layout of table Tab")
}

fn sorted(items: &[Json]) -> Vec<String> {
    let mut sorted: Vec<String> = items.iter().map(Json::to_string).collect();
    sorted.sort_unstable();
    sorted
}

#[test]
fn a_query_of_an_index_goes_on_under_another_layout_unless_others_have_its_index_key() {
    let (mut refused, mut went_on) = (0, 0);
    for seed in 0..200 {
        let mut requests = Requests { rng: Rng::with_seed(seed), keys: KEYS, counters: false };
        let mut tables = Tables::filled(&mut requests);
        let index = requests.one(&["local", "global", "team"]);
        let (partition, value) = if index == "team" { ("team", "red") } else { ("pk", requests.pk()) };
        let body = json!({
            "TableName": "Tab", "IndexName": index, "Limit": requests.rng.usize(1..6), "ScanIndexForward": requests.rng.bool(),
            "KeyConditionExpression": format!("{partition} = :p"), "ExpressionAttributeValues": { ":p": { "S": value } },
        });
        let expected = tables.all(Operation::Query, &body);
        assert_eq!(sorted(&tables.across(Operation::Query, &body, 0).0.unwrap()), sorted(&expected));
        let (found, end) = tables.across(Operation::Query, &body, 1);
        let ties = end.map_or(0, |end| expected.iter().filter(|item| item["at"] == end["at"]).count());
        match found {
            Ok(found) => {
                assert!(ties < 2, "seed {seed}");
                assert_eq!(sorted(&found), sorted(&expected), "seed {seed}");
                went_on += ties;
            }
            Err(error) => {
                assert!(ties > 1 && is_of_another_layout(&error), "seed {seed}: {error}");
                refused += 1;
            }
        }
    }
    assert!(refused > 20 && went_on > 20, "{refused} refused, {went_on} went on");
}

#[test]
fn a_scan_goes_on_under_its_own_layout_alone() {
    for seed in 0..20 {
        let mut requests = Requests { rng: Rng::with_seed(seed), keys: KEYS, counters: false };
        let mut tables = Tables::filled(&mut requests);
        for index in [None, Some("global"), Some("team")] {
            let mut body = json!({ "TableName": "Tab", "Limit": 2 });
            if let Some(index) = index {
                body["IndexName"] = index.into();
            }
            let expected = tables.all(Operation::Scan, &body);
            assert_eq!(sorted(&tables.across(Operation::Scan, &body, 0).0.unwrap()), sorted(&expected));
            let error = tables.across(Operation::Scan, &body, 1).0.unwrap_err();
            assert!(is_of_another_layout(&error), "seed {seed}: {error}");
        }
    }
}

#[test]
fn what_is_no_cursor_is_the_stores_to_refuse() {
    let world = World::laid_out_later(4);
    let is_sent = |operation, index: Option<&str>, start: Json| {
        let mut body = json!({ "TableName": "Tab", "ExclusiveStartKey": start });
        if let Some(index) = index {
            body["IndexName"] = index.into();
        }
        if operation == Operation::Query {
            body["KeyConditionExpression"] = "pk = :p".into();
            body["ExpressionAttributeValues"] = json!({ ":p": { "S": "a" } });
        }
        Router::new().plan(operation, &Bytes::from(body.to_string()), &world).is_ok()
    };
    let key = json!({ "pk": { "S": "a" }, "sk": { "S": "b" } });
    // A cursor, but of before the table was laid out so.
    assert!(!is_sent(Operation::Scan, None, key.clone()));
    assert!(is_sent(Operation::Scan, None, json!({ "pk": { "S": "a" } })));
    assert!(is_sent(Operation::Scan, Some("global"), key.clone()));
    assert!(is_sent(Operation::Query, Some("global"), json!({ "pk": { "S": "a" } })));
}
