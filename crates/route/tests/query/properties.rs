//! For any items, conditions, limits and page sizes.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::*;

/// An index, and what it is sorted by.
const INDEXES: [(Option<&str>, Option<&str>); 7] = [
    (None, Some("sk")),
    (Some("local"), Some("score")),
    (Some("global"), Some("score")),
    (Some("names"), Some("name")),
    (Some("bare"), None),
    (Some("team"), Some("score")),
    (Some("inverted"), Some("pk")),
];

fn items() -> impl Strategy<Value = Vec<Item>> {
    let item = (0..2_u8, "[ab]{1,5}", 0..6_i8, 0..3_u8, "[xy]{1,2}", any::<bool>(), 0..9_u8);
    prop::collection::vec(item, 0..80).prop_map(|rows| {
        let mut seen = BTreeSet::new();
        let rows = rows.into_iter().filter(|(pk, sk, ..)| seen.insert((*pk, sk.clone())));
        rows.map(|(pk, sk, score, team, name, scored, v)| {
            let mut item = Item::new();
            item.insert("pk".into(), text(["game", "game#~1"][usize::from(pk)]));
            item.insert("sk".into(), text(sk));
            item.insert("team".into(), text(format!("t{}", team.min(1))));
            item.insert("name".into(), text(name));
            item.insert("v".into(), Value::N(v.to_string()));
            if scored {
                item.insert("score".into(), Value::N(score.to_string()));
            }
            item
        })
        .collect()
    })
}

#[derive(Clone, Debug)]
struct Asked {
    index: usize,
    pk: usize,
    test: usize,
    operands: (usize, usize),
    descending: bool,
    limit: Option<usize>,
    filter: usize,
    shape: usize,
    consistent: bool,
}

fn asked() -> impl Strategy<Value = Asked> {
    (
        0..INDEXES.len(),
        0..2_usize,
        0..9_usize,
        (0..6_usize, 0..6_usize),
        any::<bool>(),
        prop::option::of(1..9_usize),
        0..4_usize,
        0..4_usize,
        any::<bool>(),
    )
        .prop_map(|(index, pk, test, operands, descending, limit, filter, shape, consistent)| Asked {
            index,
            pk,
            test,
            operands: (operands.0.min(operands.1), operands.0.max(operands.1)),
            descending,
            limit,
            filter,
            shape,
            consistent,
        })
}

impl Asked {
    fn body(&self) -> String {
        let (index, sort) = INDEXES[self.index];
        let by_team = matches!(index, Some("team" | "inverted"));
        let mut names = serde_json::json!({ "#p": if by_team { "team" } else { "pk" } });
        let partition = if by_team { ["t0", "t1"][self.pk] } else { ["game", "game#~1"][self.pk] };
        let mut values = serde_json::json!({ ":p": { "S": partition } });
        let mut condition = "#p = :p".to_owned();
        let literal = |at: usize| match sort {
            Some("score") => serde_json::json!({ "N": at.to_string() }),
            Some("pk") => serde_json::json!({ "S": (["a", "game", "game#", "game#~1", "game#~1", "x"][at]) }),
            Some("name") => serde_json::json!({ "S": (["w", "x", "xy", "y", "yx", "z"][at]) }),
            _ => serde_json::json!({ "S": (["a", "aab", "ab", "ba", "bab", "c"][at]) }),
        };
        let begins = if sort == Some("score") { "#s = :a" } else { "begins_with(#s, :a)" };
        let tests = ["#s = :a", "#s < :a", "#s <= :a", "#s > :a", "#s >= :a", "#s BETWEEN :a AND :b", begins];
        if let (Some(sort), Some(test)) = (sort, tests.get(self.test)) {
            names["#s"] = sort.into();
            values[":a"] = literal(self.operands.0);
            if test.contains(":b") {
                values[":b"] = literal(self.operands.1);
            }
            condition = format!("#p = :p AND {test}");
        }
        let mut body = serde_json::json!({ "TableName": "Games", "KeyConditionExpression": condition });
        if let Some(index) = index {
            body["IndexName"] = index.into();
        }
        match self.filter {
            0 => {}
            1 => {
                body["FilterExpression"] = "v > :v".into();
                values[":v"] = serde_json::json!({ "N": "4" });
            }
            // A global index on another attribute lets filters mention the table's partition key.
            2 if index == Some("team") => {
                body["FilterExpression"] = "(pk = :f)".into();
                values[":f"] = serde_json::json!({ "S": "game" });
            }
            _ => body["FilterExpression"] = "v < :v AND attribute_exists(v)".into(),
        }
        if self.filter > 1 && values.get(":f").is_none() {
            values[":v"] = serde_json::json!({ "N": "7" });
        }
        match self.shape {
            1 => body["ProjectionExpression"] = "v, team".into(),
            2 => body["Select"] = "COUNT".into(),
            3 => body["ProjectionExpression"] = "sk, v.x, pk".into(),
            _ => {}
        }
        body["ExpressionAttributeNames"] = names;
        body["ExpressionAttributeValues"] = values;
        if self.descending {
            body["ScanIndexForward"] = false.into();
        }
        if let Some(limit) = self.limit {
            body["Limit"] = limit.into();
        }
        if self.consistent && matches!(index, None | Some("local")) {
            body["ConsistentRead"] = true.into();
        }
        body.to_string()
    }
}

fn sorted(items: &[Item]) -> Vec<Vec<u8>> {
    let mut sorted: Vec<Vec<u8>> = items.iter().map(|item| Value::M(item.clone()).to_json()).collect();
    sorted.sort();
    sorted
}

fn keys(items: &[Item], sort: Option<&str>) -> Vec<Option<Value>> {
    items.iter().map(|item| sort.and_then(|sort| item.get(sort).cloned())).collect()
}

/// All pages that the store itself gives.
fn unsharded(store: &Fake, body: &str) -> Vec<Page> {
    let mut pages: Vec<Page> = vec![page(store.query(&Bytes::from(body.to_owned())).unwrap())];
    while let Some(last) = pages.last().and_then(|page| page.last.clone()) {
        let next = with(body, "ExclusiveStartKey", &last);
        pages.push(page(store.query(&Bytes::from(next)).unwrap()));
    }
    pages
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, ..ProptestConfig::default() })]

    #[test]
    fn all_pages_together_are_the_unsharded_answer(
        items in items(),
        asked in asked(),
        shards in 1_u16..8,
        pages in prop::collection::vec(1_usize..7, 0..5),
    ) {
        let (index, sort) = INDEXES[asked.index];
        let shards = Shards(shards);
        let sharded = Fake { items: shards.store(&items), pages, filters: shards.0 == 1 || index == Some("team") || index.is_none(), ..Fake::default() };
        let plain = Fake { items, filters: true, ..Fake::default() };
        let body = asked.body();
        let unlimited = json::splice_members(body.as_bytes(), &[("Limit", None)]).unwrap();
        let expected = page(plain.query(&Bytes::from(unlimited)).unwrap());
        let found = read_all(&Router::new(), &shards, &sharded, &body);

        let counted: usize = found.iter().map(|page| page.count).sum();
        let scanned: usize = found.iter().map(|page| page.scanned).sum();
        prop_assert_eq!((counted, scanned), (expected.count, expected.scanned));
        let rows: Vec<Item> = found.iter().flat_map(|page| page.items.clone()).collect();
        prop_assert_eq!(sorted(&rows), sorted(&expected.items));
        prop_assert_eq!(keys(&rows, sort), keys(&expected.items, sort));
        if index.is_none() {
            prop_assert_eq!(&rows, &expected.items);
        }
        let single = sharded.pages.is_empty();
        for page in &found {
            if let (Some(limit), Some(last)) = (asked.limit, &page.last) {
                // One physical Query passes the store's short pages on.
                prop_assert!(page.scanned == limit || !single, "{page:?}");
                let cursor = read_item(last).unwrap();
                prop_assert!(cursor.len() <= 4 && cursor.contains_key("sk"));
                prop_assert!([text("game"), text("game#~1")].contains(&cursor["pk"]), "{cursor:?}");
            }
            prop_assert!(json::member(&page.body, "ConsumedCapacity").unwrap().is_none(), "not asked for");
        }
        // The next page tells when no limit does: nothing ends early.
        prop_assert!(asked.limit.is_some() || found.len() == 1 || !single);
    }

    #[test]
    fn gathered_pages_are_exact(
        items in items(), asked in asked(), shards in 2_u16..8, pages in prop::collection::vec(1_usize..7, 0..5),
    ) {
        let asked = Asked { index: asked.index % 5, test: 7, ..asked };
        let shards = Shards(shards);
        let sharded = Fake { items: shards.store(&items), pages, ..Fake::default() };
        let found = read_all(&Router::new(), &shards, &sharded, &asked.body());
        let (last, full) = found.split_last().unwrap();
        if let Some(limit) = asked.limit {
            prop_assert!(full.iter().all(|page| page.scanned == limit) && last.scanned < limit);
        } else {
            prop_assert!(full.is_empty());
        }
    }

    /// On the table pages end where DynamoDB's do, with the cursors that DynamoDB gives and takes.
    #[test]
    fn pages_and_cursors_of_the_table_are_the_unsharded_ones(
        items in items(), asked in asked(), shards in 1_u16..8, limit in 1_usize..9,
    ) {
        let asked = Asked { index: 0, limit: Some(limit), ..asked };
        let shards = Shards(shards);
        let sharded = Fake { items: shards.store(&items), filters: shards.0 == 1 || asked.test == 0, ..Fake::default() };
        let plain = Fake { items, filters: true, ..Fake::default() };
        let found = read_all(&Router::new(), &shards, &sharded, &asked.body());
        let pages = |pages: Vec<Page>| -> Vec<_> {
            let last = |page: &Page| page.last.as_ref().map(|last| read_item(last).unwrap());
            pages.into_iter().map(|page| (last(&page), page.items, page.count, page.scanned)).collect()
        };
        prop_assert_eq!(pages(found), pages(unsharded(&plain, &asked.body())));
    }

    /// A cursor of the client's own, wherever it stands. DynamoDB refuses one on the inclusive end;
    /// here it gets an empty page, since Heatsink once gave such cursors out.
    #[test]
    fn any_cursor_is_gone_on_from(
        items in items(), asked in asked(), shards in 1_u16..8, at in "[ab]{1,4}",
    ) {
        let asked = Asked { index: 0, limit: None, ..asked };
        let shards = Shards(shards);
        let sharded = Fake { items: shards.store(&items), filters: shards.0 == 1 || asked.test == 0, ..Fake::default() };
        let plain = Fake { items, filters: true, ..Fake::default() };
        let cursor = serde_json::json!({ "pk": { "S": (["game", "game#~1"][asked.pk]) }, "sk": { "S": at } }).to_string();
        let body = with(&asked.body(), "ExclusiveStartKey", cursor.as_bytes());
        let (found, _) = run(&Router::new(), &shards, &sharded, &body);
        match plain.query(&Bytes::from(body)).map(page) {
            Ok(expected) => {
                let found = found.unwrap();
                prop_assert_eq!((found.items, found.count, found.last), (expected.items, expected.count, expected.last));
            }
            Err(error) if error.message.as_deref() == Some(fake::AT_END) => {
                let found = found.unwrap();
                prop_assert_eq!((found.items.len(), found.count, found.scanned, found.last), (0, 0, 0, None));
            }
            Err(error) => prop_assert_eq!(found.unwrap_err().message, error.message),
        }
    }
}
