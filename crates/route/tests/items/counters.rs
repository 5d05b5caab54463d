//! Reads of counters.

use crate::common::json;
use bytes::Bytes;
use heatsink_dynamo::{Code, Operation};
use heatsink_route::Router;
use heatsink_testkit::{Step, Stepped};
use serde_json::{Value, json as value};

use super::{Store, assigned, counters, get, votes};

#[test]
fn a_counter_is_the_sum_of_its_fragments() {
    let mut store = votes();
    let answer = store.read(&counters(), Operation::GetItem, &get("a")).unwrap();
    assert_eq!(answer["Item"], value!({ "pk": { "S": "a" }, "n": { "N": "321" }, "name": { "S": "x" } }));
    assert_eq!(store.operations(), [Operation::BatchGetItem]);
    // Without a base fragment there is no item, whatever the others hold.
    assert_eq!(store.read(&counters(), Operation::GetItem, &get("b")).unwrap(), value!({}));
}

#[test]
fn a_read_that_shows_no_number_goes_to_the_base_fragment() {
    let mut body = get("a");
    body["ProjectionExpression"] = value!("#n");
    body["ExpressionAttributeNames"] = value!({ "#n": "name" });
    let mut store = votes();
    let answer = store.call(&counters(), Operation::GetItem, &body, |operation, sent| {
        assert_eq!((operation, sent), (Operation::GetItem, &body));
        Ok(value!({ "Item": { "name": { "S": "x" } } }))
    });
    assert_eq!(answer.unwrap()["Item"], value!({ "name": { "S": "x" } }));
}

#[test]
fn what_is_explained_is_what_is_sent_first() {
    let put = value!({ "TableName": "Tab", "Item": { "pk": { "S": "a" }, "n": { "N": "5" } } });
    let cases = [
        (counters(), Operation::GetItem, get("a")),
        (counters(), Operation::PutItem, put.clone()),
        (assigned(), Operation::GetItem, get("a")),
        (assigned(), Operation::DeleteItem, get("a")),
        (
            assigned(),
            Operation::BatchGetItem,
            value!({ "RequestItems": { "Tab": { "Keys": [{ "pk": { "S": "a" } }] } } }),
        ),
    ];
    for (layouts, operation, body) in cases {
        let plan = Router::new().plan(operation, &Bytes::from(body.to_string()), &layouts).unwrap();
        let explained = plan.explain();
        let mut store = votes();
        store.call(&layouts, operation, &body, |_, _| Ok(value!({}))).unwrap();
        let (first, sent) = &store.sent[0];
        assert_eq!(explained.calls[0].operation, first.name(), "{operation:?}");
        assert_eq!(explained.calls[0].body, *sent, "{operation:?}");
    }
    let plan =
        Router::new().plan(Operation::GetItem, &Bytes::from(get("a").to_string()), &counters()).unwrap();
    assert!((plan.explain().calls[0].estimate.as_ref().unwrap().read_units - 1.5).abs() < 1e-9);
}

#[test]
fn get_item_asks_again_for_what_was_left_unread() {
    let mut store = votes();
    store.unread = [("a#~1".to_owned(), 2), ("a#~2".to_owned(), 1)].into();
    let answer = store.read(&counters(), Operation::GetItem, &get("a")).unwrap();
    assert_eq!(answer["Item"]["n"], value!({ "N": "321" }));
    let asked =
        |(_, body): &(Operation, Value)| body["RequestItems"]["Tab"]["Keys"].as_array().unwrap().len();
    assert_eq!(store.sent.iter().map(asked).collect::<Vec<_>>(), [3, 2, 1]);
    store.unread = [("a#~1".to_owned(), usize::MAX)].into();
    let error = store.read(&counters(), Operation::GetItem, &get("a")).unwrap_err();
    assert_eq!(error.code, Code::ProvisionedThroughputExceededException);
}

#[test]
fn a_batch_hands_back_an_item_of_which_a_fragment_was_left_unread() {
    let mut store = votes();
    store.items.insert("c".to_owned(), value!({ "pk": { "S": "c" }, "n": { "N": "4" } }));
    store.unread = [("a#~2".to_owned(), 1)].into();
    let keys = value!([{ "pk": { "S": "a" } }, { "pk": { "S": "c" } }]);
    let part = value!({ "Keys": keys, "ConsistentRead": true });
    let body = value!({ "RequestItems": { "Tab": part, "Other": { "Keys": [{ "id": { "N": "1" } }] } } });
    let answer = store.read(&counters(), Operation::BatchGetItem, &body).unwrap();
    let found = value!([{ "pk": { "S": "c" }, "n": { "N": "4" } }]);
    assert_eq!(answer["Responses"], value!({ "Tab": found, "Other": [{ "id": { "N": "1" } }] }));
    let left = value!({ "Tab": { "Keys": [{ "pk": { "S": "a" } }], "ConsistentRead": true } });
    assert_eq!(answer["UnprocessedKeys"], left);
    assert_eq!(store.operations(), [Operation::BatchGetItem]);
}

#[test]
fn a_table_that_a_batch_names_by_its_name_and_by_its_arn_is_read_for_each() {
    let mut store = votes();
    store.items.insert("c".to_owned(), value!({ "pk": { "S": "c" }, "n": { "N": "5" } }));
    let arn = "arn:aws:dynamodb:eu-west-1:1:table/Tab";
    let keys = |key: &str| value!({ "Keys": [{ "pk": { "S": key } }] });
    let body = value!({ "RequestItems": { "Tab": keys("a"), (arn): keys("c") } });
    let answer = store.read(&counters(), Operation::BatchGetItem, &body).unwrap();
    assert_eq!(answer["Responses"]["Tab"][0]["n"]["N"], "321", "{answer}");
    assert_eq!(answer["Responses"][arn][0]["n"]["N"], "5", "{answer}");
}

#[test]
fn a_transaction_reads_every_fragment_and_answers_with_the_clients_actions() {
    let body = value!({ "TransactItems": [{ "Get": get("a") }, { "Get": get("b") }] });
    let mut store = votes();
    let stored = store.items.clone();
    let answer = store.call(&counters(), Operation::TransactGetItems, &body, |_, body| {
        let item = |action: &Value| {
            let key = action["Get"]["Key"]["pk"]["S"].as_str().unwrap();
            stored.get(key).map_or_else(|| value!({}), |item| value!({ "Item": item }))
        };
        let actions = body["TransactItems"].as_array().unwrap();
        assert_eq!(actions.len(), 6);
        Ok(value!({ "Responses": actions.iter().map(item).collect::<Vec<_>>() }))
    });
    let responses = answer.unwrap()["Responses"].clone();
    assert_eq!(responses[0]["Item"]["n"], value!({ "N": "321" }));
    assert_eq!(responses, value!([responses[0].clone(), {}]));
}

#[test]
fn a_scan_of_counters_does_not_end_at_a_page_that_holds_nothing() {
    let mut pages = vec![
        value!({ "Items": [], "Count": 0, "ScannedCount": 0, "LastEvaluatedKey": { "pk": { "S": "a#~1" } } }),
        value!({ "Items": [{ "pk": { "S": "b" }, "name": { "S": "y" } }], "Count": 1, "ScannedCount": 1 }),
    ]
    .into_iter();
    let mut store = votes();
    let body = value!({ "TableName": "Tab", "ProjectionExpression": "pk" });
    let answer = store.call(&counters(), Operation::Scan, &body, |operation, _| {
        assert_eq!(operation, Operation::Scan);
        Ok(pages.next().unwrap())
    });
    let answer = answer.unwrap();
    assert_eq!((&answer["Count"], answer.get("LastEvaluatedKey")), (&1.into(), None), "{answer}");
    assert_eq!(store.operations(), [Operation::Scan, Operation::Scan]);
}

#[test]
fn a_scan_that_meets_fragments_only_asks_for_more_from_round_to_round() {
    let body = value!({ "TableName": "Tab", "Limit": 1, "ProjectionExpression": "pk" });
    let plan = Router::new().plan(Operation::Scan, &Bytes::from(body.to_string()), &counters()).unwrap();
    let mut running = Stepped::new(plan);
    let mut asked = Vec::new();
    for key in ["a#~1", "a#~2", "b"] {
        let Step::Call(calls) = running.step() else { panic!("a call") };
        asked.push((json(&calls[0].body)["Limit"].as_u64().unwrap(), calls[0].retry_throttled));
        let at = value!({ "pk": { "S": key } });
        let page = value!({ "Items": [at], "Count": 1, "ScannedCount": 1, "LastEvaluatedKey": at });
        running.answer(calls[0].id, Ok(Bytes::from(page.to_string())));
    }
    let Step::Done(Ok(answer)) = running.step() else { panic!("an answer") };
    assert_eq!(json(&answer)["Items"], value!([{ "pk": { "S": "b" } }]));
    // A client whose first call is throttled tries again itself.
    assert_eq!(asked, [(1, false), (2, true), (4, true)]);
}

#[test]
fn a_batch_of_more_than_sixteen_megabytes_comes_in_several_answers() {
    let names: Vec<String> = (0..60).map(|number| format!("c{number:02}")).collect();
    let blob = "x".repeat(350_000);
    let items: Vec<(&str, Value)> =
        names.iter().map(|name| (&**name, value!({ "n": { "N": "1" }, "blob": { "S": blob } }))).collect();
    let mut store = Store::with(&items);
    let key = |name: &String| value!({ "pk": { "S": name } });
    let mut left = value!({ "Tab": { "Keys": names.iter().map(key).collect::<Vec<_>>() } });
    let mut answers = Vec::new();
    while left != value!({}) {
        let body = value!({ "RequestItems": left });
        let answer = store.read(&counters(), Operation::BatchGetItem, &body).unwrap();
        answers.push(answer["Responses"]["Tab"].as_array().unwrap().len());
        left = answer["UnprocessedKeys"].clone();
    }
    // 47 of 350,007 bytes each are 15.7 MB.
    assert_eq!(answers, [47, 13]);
}
