//! A Scan, a Query of an index, or a SELECT that is one of them, goes on after the layout of its
//! table has changed. Its cursor is refused by name: where it stands means nothing in the new
//! order. Under one layout every item comes once, whatever gateway is asked.
use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use heatsink::Gateway;
use heatsink_control::Rules;
use heatsink_dynamo::{Code, Error, Operation};
use heatsink_env::RealEnv;
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use heatsink_workers::{
    Adoption, AdoptionOptions, Direction, Unwatched, ValueAsked, ValueOptions, ValueReshard,
};
use serde_json::{Value as Json, json};

const ITEMS: usize = 200;
const NONE: &str = "";
const SIX: &str = "[[rule]]\ntable = \"Book\"\nstrategy = \"calculated\"\nshards = 6\n";
const FOUR: &str = "[[rule]]\ntable = \"Book\"\nstrategy = \"calculated\"\nshards = 4\n";
const INDEX: &str = "[[rule]]\ntable = \"Book\"\nindex = \"kinds\"\nstrategy = \"calculated\"\nshards = 5\n";
const STATEMENT: &str = "SELECT * FROM \"Book\"";
/// Read here, and not by the store.
const FILTERED: &str = "SELECT * FROM \"Book\" WHERE pk <> 'k9'";

type Shared = Arc<dyn Store>;

async fn gateway(store: &Shared, rules: &str) -> Gateway {
    let rules = Rules::read("rules", rules).unwrap();
    Gateway::builder(Arc::clone(store)).rules(rules).start().await.unwrap()
}

async fn call(service: &Gateway, operation: Operation, body: Json) -> Result<Json, Error> {
    let answer = service.call(operation, Bytes::from(body.to_string())).await?;
    Ok(serde_json::from_slice(&answer).unwrap())
}

/// A table with items, made and filled through a gateway with those rules.
async fn filled(rules: &str) -> Shared {
    let store: Shared = Arc::new(Embedded::memory().unwrap());
    let service = gateway(&store, rules).await;
    let attribute = |name: &str| json!({ "AttributeName": name, "AttributeType": "S" });
    let key = |hash: &str, range: &str| json!([{ "AttributeName": hash, "KeyType": "HASH" }, { "AttributeName": range, "KeyType": "RANGE" }]);
    let all = json!({ "ProjectionType": "ALL" });
    let table = json!({
        "TableName": "Book", "BillingMode": "PAY_PER_REQUEST", "KeySchema": key("pk", "sk"),
        "AttributeDefinitions": [attribute("pk"), attribute("sk"), attribute("kind"), attribute("at")],
        "LocalSecondaryIndexes": [{ "IndexName": "times", "KeySchema": key("pk", "at"), "Projection": all }],
        "GlobalSecondaryIndexes": [
            { "IndexName": "kinds", "KeySchema": key("kind", "at"), "Projection": all },
            { "IndexName": "ordered", "KeySchema": key("kind", "sk"), "Projection": all },
        ],
    });
    call(&service, Operation::CreateTable, table).await.unwrap();
    for number in 0..ITEMS {
        let item = json!({
            "pk": { "S": format!("k{}", number % 8) }, "sk": { "S": format!("{number:03}") },
            "kind": { "S": format!("x{}", number % 3) }, "at": { "S": format!("{}", number % 5) },
        });
        call(&service, Operation::PutItem, json!({ "TableName": "Book", "Item": item })).await.unwrap();
    }
    store
}

async fn adopt(store: &Shared, rules: &str, direction: Direction) {
    let rules = Rules::read("rules", rules).unwrap();
    let adoption = Adoption::prepare(Arc::clone(store), Arc::new(RealEnv), &rules, "Book", direction);
    let options = AdoptionOptions { concurrency: 4, exclusive: true };
    adoption.await.unwrap().run(options, &Unwatched).await.unwrap();
}

/// What a client reads page by page.
#[derive(Clone, Copy, Debug)]
struct Read {
    operation: Operation,
    cursor: (&'static str, &'static str),
    body: fn() -> Json,
}

fn scan(body: fn() -> Json) -> Read {
    Read { operation: Operation::Scan, cursor: ("LastEvaluatedKey", "ExclusiveStartKey"), body }
}

fn select(body: fn() -> Json) -> Read {
    Read { operation: Operation::ExecuteStatement, cursor: ("NextToken", "NextToken"), body }
}

fn query(body: fn() -> Json) -> Read {
    Read { operation: Operation::Query, cursor: ("LastEvaluatedKey", "ExclusiveStartKey"), body }
}

fn reads() -> Vec<Read> {
    vec![
        scan(|| json!({ "TableName": "Book", "Limit": 20 })),
        scan(|| {
            json!({ "TableName": "Book", "Limit": 20, "FilterExpression": "begins_with(pk, :k)",
            "ExpressionAttributeValues": { ":k": { "S": "k" } } })
        }),
        scan(|| json!({ "TableName": "Book", "Limit": 7, "Segment": 1, "TotalSegments": 3 })),
        scan(|| json!({ "TableName": "Book", "Limit": 20, "IndexName": "times" })),
        scan(|| json!({ "TableName": "Book", "Limit": 20, "IndexName": "kinds" })),
        select(|| json!({ "Statement": STATEMENT, "Limit": 20 })),
        select(|| json!({ "Statement": FILTERED, "Limit": 20 })),
    ]
}

/// Reads of indexes in which items have equal keys.
fn reads_of_indexes() -> Vec<Read> {
    vec![
        query(|| {
            json!({ "TableName": "Book", "Limit": 7, "IndexName": "kinds", "KeyConditionExpression": "kind = :k",
            "ExpressionAttributeValues": { ":k": { "S": "x1" } } })
        }),
        query(|| {
            json!({ "TableName": "Book", "Limit": 7, "IndexName": "kinds", "KeyConditionExpression": "kind = :k",
            "ExpressionAttributeValues": { ":k": { "S": "x1" }, ":n": { "S": "k9" } }, "FilterExpression": "pk <> :n",
            "ScanIndexForward": false })
        }),
        query(|| {
            json!({ "TableName": "Book", "Limit": 2, "IndexName": "times", "KeyConditionExpression": "pk = :k",
            "ExpressionAttributeValues": { ":k": { "S": "k1" } } })
        }),
        select(|| json!({ "Statement": "SELECT * FROM \"Book\".\"kinds\" WHERE kind = 'x1'", "Limit": 7 })),
        select(|| json!({ "Statement": "SELECT * FROM \"Book\".\"times\" WHERE pk = 'k1'", "Limit": 2 })),
    ]
}

/// Reads some pages: their items by key, and the request for the next one if there is more.
async fn pages(
    service: &Gateway,
    read: Read,
    mut body: Json,
    most: usize,
) -> Result<(BTreeMap<String, usize>, Option<Json>), Error> {
    let mut seen = BTreeMap::new();
    for _ in 0..most {
        let mut page = call(service, read.operation, body.clone()).await?;
        for item in page["Items"].as_array().unwrap() {
            let key = format!("{}/{}", item["pk"]["S"].as_str().unwrap(), item["sk"]["S"].as_str().unwrap());
            *seen.entry(key).or_insert(0) += 1;
        }
        match page.as_object_mut().unwrap().remove(read.cursor.0) {
            Some(cursor) => body[read.cursor.1] = cursor,
            None => return Ok((seen, None)),
        }
    }
    Ok((seen, Some(body)))
}

async fn begun(store: &Shared, rules: &str, read: Read) -> Json {
    let (seen, next) = pages(&gateway(store, rules).await, read, (read.body)(), 3).await.unwrap();
    assert!(!seen.is_empty());
    next.unwrap()
}

/// The client is told to begin again, and nothing was read.
async fn refused(store: &Shared, rules: &str, read: Read, next: Json) {
    match pages(&gateway(store, rules).await, read, next.clone(), usize::MAX).await {
        Err(error) => {
            assert_eq!(error.code, Code::ValidationException, "{read:?}: {error}");
            let message = error.message.unwrap();
            assert!(message.contains("egin the") && message.contains("again"), "{read:?}: {message}");
            assert!(message.contains("Book"), "{read:?}: {message}");
        }
        Ok((rest, _)) => panic!("{read:?} went on with {} items after {next}", rest.len()),
    }
}

#[tokio::test]
async fn a_cursor_from_before_an_adoption_is_refused() {
    for read in [reads(), reads_of_indexes()].concat() {
        let store = filled(NONE).await;
        let next = begun(&store, NONE, read).await;
        adopt(&store, SIX, Direction::Adopt).await;
        refused(&store, SIX, read, next.clone()).await;
        // The record holds, whatever rules a gateway has.
        refused(&store, NONE, read, next).await;
    }
}

#[tokio::test]
async fn a_cursor_from_before_the_way_back_is_refused() {
    for read in reads() {
        let store = filled(SIX).await;
        let next = begun(&store, SIX, read).await;
        adopt(&store, SIX, Direction::Back).await;
        refused(&store, NONE, read, next).await;
    }
    // Cursors of Queries name the layout on adopted tables.
    for read in reads_of_indexes() {
        let store = filled(NONE).await;
        adopt(&store, SIX, Direction::Adopt).await;
        let next = begun(&store, SIX, read).await;
        adopt(&store, SIX, Direction::Back).await;
        refused(&store, NONE, read, next).await;
    }
}

/// Applications find DynamoDB's own cursor where the table was empty when it was laid out.
#[tokio::test]
async fn a_query_of_an_index_has_a_plain_cursor_on_a_table_that_was_not_adopted() {
    let store = filled(SIX).await;
    for read in reads_of_indexes().into_iter().filter(|read| read.operation == Operation::Query) {
        let next = begun(&store, SIX, read).await;
        let names: Vec<&String> = next["ExclusiveStartKey"].as_object().unwrap().keys().collect();
        assert!(names.iter().all(|name| ["pk", "sk", "kind", "at"].contains(&name.as_str())), "{names:?}");
    }
}

#[tokio::test]
async fn a_cursor_of_another_number_of_shards_is_refused() {
    for read in [reads(), reads_of_indexes()].concat() {
        let store = filled(SIX).await;
        let next = begun(&store, SIX, read).await;
        adopt(&store, SIX, Direction::Back).await;
        adopt(&store, FOUR, Direction::Adopt).await;
        refused(&store, FOUR, read, next).await;
    }
}

#[tokio::test]
async fn a_cursor_from_before_an_index_changed_is_refused_on_that_index_alone() {
    let of = |name: &str| reads().into_iter().find(|read| (read.body)()["IndexName"] == name).unwrap();
    let store = filled(NONE).await;
    let (kinds, times) = (begun(&store, NONE, of("kinds")).await, begun(&store, NONE, of("times")).await);
    let table = begun(&store, NONE, reads()[0]).await;
    adopt(&store, INDEX, Direction::Adopt).await;
    refused(&store, INDEX, of("kinds"), kinds).await;
    for (read, next) in [(of("times"), times), (reads()[0], table)] {
        let (rest, _) = pages(&gateway(&store, INDEX).await, read, next, usize::MAX).await.unwrap();
        assert_eq!(rest.len(), ITEMS - 60, "nothing moved in it");
    }
    let kinds = begun(&store, INDEX, of("kinds")).await;
    adopt(&store, INDEX, Direction::Back).await;
    refused(&store, NONE, of("kinds"), kinds).await;
}

#[tokio::test]
async fn under_one_layout_every_item_comes_once_through_every_gateway() {
    let adopted = filled(NONE).await;
    adopt(&adopted, SIX, Direction::Adopt).await;
    for (store, rules) in [(filled(NONE).await, NONE), (filled(SIX).await, SIX), (adopted, SIX)] {
        for read in [reads(), reads_of_indexes()].concat() {
            let whole = gateway(&filled(NONE).await, NONE).await;
            let (all, _) = pages(&whole, read, (read.body)(), usize::MAX).await.unwrap();
            let expected = if read.operation == Operation::Scan { ITEMS } else { all.len() };
            let (one, other) = (gateway(&store, rules).await, gateway(&store, NONE).await);
            let (mut seen, mut next) = (BTreeMap::<String, usize>::new(), Some((read.body)()));
            let mut segment = 0;
            for turn in 0.. {
                let Some(body) = next.take() else {
                    segment += 1;
                    if (read.body)().get("Segment").is_none() || segment == 3 {
                        break;
                    }
                    let mut body = (read.body)();
                    body["Segment"] = json!((segment + 1) % 3);
                    next = Some(body);
                    continue;
                };
                let service = [&one, &other][turn % 2];
                let (page, more) = pages(service, read, body, 1).await.unwrap();
                page.into_iter().for_each(|(key, times)| *seen.entry(key).or_insert(0) += times);
                next = more;
            }
            assert_eq!(seen.len(), expected, "{read:?}");
            assert!(seen.values().all(|times| *times == 1), "{read:?}");
        }
    }
}

#[tokio::test]
async fn a_cursor_that_a_client_makes_of_a_key_is_taken_where_no_other_could_be_meant() {
    let start = json!({ "TableName": "Book", "Limit": 20,
        "ExclusiveStartKey": { "pk": { "S": "k3" }, "sk": { "S": "003" } } });
    // Items never lay otherwise.
    let store = filled(SIX).await;
    assert!(pages(&gateway(&store, SIX).await, reads()[0], start.clone(), 1).await.is_ok());
    // Here it may be one of before.
    let store = filled(NONE).await;
    adopt(&store, SIX, Direction::Adopt).await;
    refused(&store, SIX, reads()[0], start.clone()).await;
    // What is no key is the store's to refuse.
    let mut broken = start;
    broken["ExclusiveStartKey"] = json!({ "pk": { "S": "k3" } });
    let error = call(&gateway(&store, SIX).await, Operation::Scan, broken).await.unwrap_err();
    assert!(error.message.unwrap().contains("starting key"), "in the store's words");
}

/// No layout changes the order of a Query of the table: a cursor is a key of that order.
#[tokio::test]
async fn a_query_of_the_table_goes_on_through_adoption_and_back() {
    let read = query(|| {
        json!({ "TableName": "Book", "Limit": 6, "KeyConditionExpression": "pk = :k",
            "ExpressionAttributeValues": { ":k": { "S": "k3" } } })
    });
    for rules in [SIX, INDEX] {
        let store = filled(NONE).await;
        let (mut seen, mut next) = (Vec::new(), Some((read.body)()));
        for step in 0.. {
            let Some(body) = next.take() else { break };
            let sharded = step % 2 == 1;
            match step {
                0 => {}
                _ if sharded => adopt(&store, rules, Direction::Adopt).await,
                _ => adopt(&store, rules, Direction::Back).await,
            }
            let service = gateway(&store, if sharded { rules } else { NONE }).await;
            let (page, more) = pages(&service, read, body, 1).await.unwrap();
            seen.extend(page);
            next = more;
        }
        let once: BTreeMap<_, _> = seen.iter().cloned().collect();
        assert!(once.len() == 25 && seen.len() == 25 && once.values().all(|times| *times == 1), "{rules}");
    }
}

/// Where no other item has the cursor's index key, its place is the same under every layout. So it
/// is for a cursor that a client makes.
#[tokio::test]
async fn a_query_of_an_index_goes_on_where_no_other_item_has_its_index_key() {
    let read = query(|| {
        json!({ "TableName": "Book", "Limit": 12, "IndexName": "ordered", "KeyConditionExpression": "kind = :k",
            "ExpressionAttributeValues": { ":k": { "S": "x1" } }, "ReturnConsumedCapacity": "TOTAL" })
    });
    for rules in [SIX, INDEX, FOUR] {
        for rebuilt in [false, true] {
            let store = filled(NONE).await;
            let (mut seen, next) = pages(&gateway(&store, NONE).await, read, (read.body)(), 2).await.unwrap();
            let mut next = next.unwrap();
            adopt(&store, rules, Direction::Adopt).await;
            let service = gateway(&store, rules).await;
            if rebuilt {
                let (more, then) = pages(&service, read, next, 1).await.unwrap();
                seen.extend(more);
                next = then.unwrap();
                let cursor = next["ExclusiveStartKey"].as_object_mut().unwrap();
                assert!(cursor.remove("heatsink:layout").is_some());
            }
            let (rest, _) = pages(&service, read, next, usize::MAX).await.unwrap();
            assert!(rest.keys().all(|key| !seen.contains_key(key)), "{rules}");
            assert_eq!(seen.len() + rest.len(), 67, "{rules}");
        }
    }
}

/// An index whose keys, and whose table's, lie as they did goes on as it was.
#[tokio::test]
async fn a_query_of_another_index_than_the_one_that_changed_goes_on() {
    let read = reads_of_indexes()[2];
    let store = filled(NONE).await;
    let (before, next) = pages(&gateway(&store, NONE).await, read, (read.body)(), 3).await.unwrap();
    adopt(&store, INDEX, Direction::Adopt).await;
    let (rest, _) = pages(&gateway(&store, INDEX).await, read, next.unwrap(), usize::MAX).await.unwrap();
    assert_eq!((before.len(), rest.len()), (6, 19));
}

/// Items that the index of the reshard does not hold keep the form that they had, and another index
/// shows them under it.
#[tokio::test]
async fn a_scan_goes_on_behind_items_that_keep_a_former_form() {
    let store = filled(NONE).await;
    let service = gateway(&store, NONE).await;
    for number in 0..20 {
        let item = json!({ "pk": { "S": "k9" }, "sk": { "S": number.to_string() }, "kind": { "S": "x1" } });
        call(&service, Operation::PutItem, json!({ "TableName": "Book", "Item": item })).await.unwrap();
    }
    drop(service);
    let asked = ValueAsked { table: "Book", index: "kinds", value: "x1", shards: 5 };
    let rules = Rules::default();
    let reshard = ValueReshard::prepare(Arc::clone(&store), Arc::new(RealEnv), &rules, asked).await.unwrap();
    let delay = std::time::Duration::ZERO;
    let options = ValueOptions { concurrency: 4, exclusive: true, delay, rate: u32::MAX };
    reshard.run(options, &Unwatched).await.unwrap();
    for read in [
        scan(|| json!({ "TableName": "Book", "Limit": 1, "IndexName": "ordered" })),
        select(|| json!({ "Statement": "SELECT * FROM \"Book\".\"ordered\"", "Limit": 1 })),
    ] {
        let service = gateway(&store, NONE).await;
        let (seen, next) = pages(&service, read, (read.body)(), 2 * ITEMS).await.unwrap();
        assert_eq!((seen.len(), seen.values().max(), next), (ITEMS + 20, Some(&1), None), "{read:?}");
    }
}

/// Where an index holds former forms, a Scan of it reads the table. So an item that is in the index
/// from the first page to the last is shown once, also if it is overwritten and gets another value
/// meanwhile, which a Scan of an unsharded index may miss or show twice. One that comes into the
/// index behind the Scan's place in the table may be missed, as one that comes in behind its place
/// in an unsharded index.
#[tokio::test]
async fn a_scan_shows_once_what_is_in_an_index_with_former_forms_throughout() {
    let reads = [
        scan(|| json!({ "TableName": "Book", "Limit": 3, "IndexName": "ordered" })),
        select(|| json!({ "Statement": "SELECT * FROM \"Book\".\"ordered\"", "Limit": 3 })),
    ];
    let mut missed = 0;
    for (seed, read) in (0..6).flat_map(|seed| reads.map(|read| (seed, read))) {
        let mut rng = fastrand::Rng::with_seed(seed);
        let store = filled(NONE).await;
        let asked = ValueAsked { table: "Book", index: "kinds", value: "x1", shards: 5 };
        let rules = Rules::default();
        let reshard =
            ValueReshard::prepare(Arc::clone(&store), Arc::new(RealEnv), &rules, asked).await.unwrap();
        let delay = std::time::Duration::ZERO;
        let options = ValueOptions { concurrency: 4, exclusive: true, delay, rate: u32::MAX };
        reshard.run(options, &Unwatched).await.unwrap();
        let service = gateway(&store, NONE).await;
        // What is in the index now, what was at any time since the first page, and how often each
        // was shown.
        let name = |number: usize| (format!("k{}", number % 8), format!("{number:03}"));
        let mut within: BTreeMap<_, _> = (0..ITEMS).map(|number| (name(number), true)).collect();
        let (mut throughout, mut came): (std::collections::BTreeSet<_>, Vec<_>) =
            (within.keys().cloned().collect(), Vec::new());
        let (mut shown, mut next) = (BTreeMap::new(), Some((read.body)()));
        while let Some(body) = next {
            let (seen, more) = pages(&service, read, body, 1).await.unwrap();
            for (key, times) in seen {
                *shown.entry(key).or_insert(0) += times;
            }
            next = more;
            for _ in 0..4 {
                let number = rng.usize(..ITEMS);
                let (pk, sk) = name(number);
                let mut item = json!({ "pk": { "S": pk }, "sk": { "S": sk }, "at": { "S": "1" } });
                let holds = rng.u32(..3) > 0;
                if holds {
                    item["kind"] = json!({ "S": format!("x{}", rng.u32(..3)) });
                } else {
                    throughout.remove(&(pk.clone(), sk.clone()));
                }
                let was = within.insert((pk.clone(), sk.clone()), holds);
                if holds && was == Some(false) {
                    came.push((pk, sk));
                }
                call(&service, Operation::PutItem, json!({ "TableName": "Book", "Item": item }))
                    .await
                    .unwrap();
            }
        }
        let text = |(pk, sk): &(String, String)| format!("{pk}/{sk}");
        assert!(shown.values().all(|times| *times == 1), "{read:?}, seed {seed}: {shown:?}");
        let lost: Vec<String> = throughout.iter().map(text).filter(|key| !shown.contains_key(key)).collect();
        assert!(lost.is_empty() && throughout.len() > 3, "{read:?}, seed {seed}: {lost:?} of {throughout:?}");
        missed += came.iter().map(text).filter(|key| !shown.contains_key(key)).count();
    }
    assert!(missed > 0, "items came into the index behind the Scan");
}
