//! Items that may lie in several slots: fragments of counters are summed, externally assigned shards are looked into, and what is explained
//! is what is sent.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test may panic, its helpers too")]

mod common;

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use common::{json, run};
use heatsink_dynamo::{
    AttributeDefinition, Code, Error, KeySchema, KeyType, Operation, Outcome, TableSchema,
};
use heatsink_layout::{
    By, Glob, Hash, InForce, KeyLayout, Layout, LayoutSource, Strategy, Table, TableLayouts, Template,
};
use heatsink_route::Router;
use heatsink_testkit::{Step, Stepped};
use serde_json::{Value, json as value};

/// Every key of the tables `Tab` and `Two` is laid out so.
#[derive(Clone)]
struct All(Layout);

/// Counters of three fragments; `n` is summed.
fn counters() -> All {
    let strategy = Strategy::Counter { attributes: vec!["n".to_owned()] };
    All(Layout { strategy, shards: 3, hash: Hash::JumpXxh3, version: 1 })
}

/// Three shards that other writers assign: `a.1`, `a.2`, `a.3`.
fn assigned() -> All {
    let template = Template::read("{pk}.{shard+1}").unwrap();
    let strategy = Strategy::Template { template, by: By::SortKey, time: None };
    All(Layout { strategy, shards: 3, hash: Hash::Random, version: 1 })
}

impl LayoutSource for All {
    fn table(&self, name: &str) -> Option<Arc<Table>> {
        let partition = AttributeDefinition { name: "pk".to_owned(), key_type: KeyType::S };
        let schema = TableSchema {
            name: name.to_owned(),
            id: name.to_owned(),
            key: KeySchema { partition, sort: None },
            indexes: Vec::new(),
        };
        let layouts = TableLayouts::new(vec![KeyLayout::new(Glob::new("*"), self.0.clone())]);
        matches!(name.rsplit('/').next(), Some("Tab" | "Two"))
            .then(|| Arc::new(Table::new(schema, Arc::new(layouts))))
    }

    fn in_force(&self, _: &Table, _: &[u8]) -> InForce {
        InForce::Stable(Arc::new(self.0.clone()))
    }

    fn handle(&self) -> Arc<dyn LayoutSource> {
        Arc::new(self.clone())
    }
}

/// A store that knows BatchGetItem; everything else is answered by what the test says.
#[derive(Default)]
struct Store {
    /// The items of `Tab`, by their partition key.
    items: BTreeMap<String, Value>,
    /// How often the item with that key is left unread.
    unread: BTreeMap<String, usize>,
    /// What was sent.
    sent: Vec<(Operation, Value)>,
}

impl Store {
    fn with(items: &[(&str, Value)]) -> Self {
        let item = |(key, item): &(&str, Value)| {
            let mut item = item.clone();
            item["pk"] = value!({ "S": key });
            ((*key).to_owned(), item)
        };
        Store { items: items.iter().map(item).collect(), ..Store::default() }
    }

    fn batch(&mut self, body: &Value) -> Value {
        let (mut responses, mut unread) = (value!({}), value!({}));
        for (name, part) in body["RequestItems"].as_object().unwrap() {
            if name == "Other" {
                responses[name] = part["Keys"].clone();
                continue;
            }
            let (mut found, mut left) = (Vec::new(), Vec::new());
            for key in part["Keys"].as_array().unwrap() {
                let text = key["pk"]["S"].as_str().unwrap();
                match self.unread.get_mut(text).filter(|times| **times > 0) {
                    Some(times) => {
                        *times -= 1;
                        left.push(key.clone());
                    }
                    None => found.extend(self.items.get(text).cloned()),
                }
            }
            responses[name] = value!(found);
            if !left.is_empty() {
                unread[name] = value!({ "Keys": left });
            }
        }
        value!({ "Responses": responses, "UnprocessedKeys": unread })
    }

    /// The client's answer.
    fn call(
        &mut self,
        layouts: &All,
        operation: Operation,
        body: &Value,
        mut other: impl FnMut(Operation, &Value) -> Result<Value, Error>,
    ) -> Result<Value, Error> {
        let plan = Router::new().plan(operation, &Bytes::from(body.to_string()), layouts)?;
        let answer = run(plan, |operation, body| {
            let body = json(body);
            self.sent.push((operation, body.clone()));
            let answer = match operation {
                Operation::BatchGetItem => Ok(self.batch(&body)),
                _ => other(operation, &body),
            };
            answer.map(|answer| Bytes::from(answer.to_string()))
        });
        answer.map(|body| json(&body))
    }

    fn read(&mut self, layouts: &All, operation: Operation, body: &Value) -> Result<Value, Error> {
        self.call(layouts, operation, body, |operation, _| panic!("{operation:?} is no read of these"))
    }

    fn operations(&self) -> Vec<Operation> {
        self.sent.iter().map(|(operation, _)| *operation).collect()
    }
}

fn number(n: &str) -> Value {
    value!({ "n": { "N": n } })
}

fn get(key: &str) -> Value {
    value!({ "TableName": "Tab", "Key": { "pk": { "S": key } } })
}

fn votes() -> Store {
    Store::with(&[
        ("a", value!({ "n": { "N": "1" }, "name": { "S": "x" } })),
        ("a#~1", number("20")),
        ("a#~2", number("300")),
        ("b#~1", number("7")),
    ])
}

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
fn an_item_is_found_in_whichever_shard_it_was_put() {
    for shard in ["a.1", "a.2", "a.3"] {
        let mut store = Store::with(&[(shard, number("1"))]);
        let answer = store.read(&assigned(), Operation::GetItem, &get("a")).unwrap();
        assert_eq!(answer["Item"], value!({ "pk": { "S": "a" }, "n": { "N": "1" } }));
    }
    let mut store = Store::with(&[("a.1", number("1")), ("a.3", number("1"))]);
    let error = store.read(&assigned(), Operation::GetItem, &get("a")).unwrap_err();
    assert!(error.to_string().contains("shard 0 and in shard 2"), "{error}");
}

#[test]
fn a_write_goes_where_the_item_lies_and_requires_that_it_still_does() {
    let mut conditions = Vec::new();
    for shard in ["a.1", "a.2", "a.3"] {
        let mut store = Store::with(&[(shard, number("1"))]);
        let answer = store.call(&assigned(), Operation::DeleteItem, &get("a"), |operation, body| {
            assert_eq!((operation, &body["Key"]["pk"]["S"]), (Operation::DeleteItem, &value!(shard)));
            conditions.push(body["ConditionExpression"].clone());
            Ok(value!({}))
        });
        assert_eq!(answer.unwrap(), value!({}));
        assert_eq!(store.operations(), [Operation::BatchGetItem, Operation::DeleteItem]);
    }
    // In its hashed slot alone an item may be created.
    let exists = value!("attribute_exists(#there)");
    assert_eq!(conditions.iter().filter(|condition| condition.is_null()).count(), 1);
    assert_eq!(conditions.iter().filter(|condition| **condition == exists).count(), 2);
}

#[test]
fn a_write_to_an_item_that_is_gone_looks_again() {
    let mut store = Store::with(&[]);
    let absent = store.call(&assigned(), Operation::DeleteItem, &get("a"), |_, body| Ok(body["Key"].clone()));
    let hashed = absent.unwrap()["pk"]["S"].as_str().unwrap().to_owned();
    let misplaced = ["a.1", "a.2", "a.3"].into_iter().find(|shard| *shard != hashed).unwrap();
    for moves in [true, false] {
        let mut store = Store::with(&[(misplaced, number("1"))]);
        let layouts = assigned();
        let body = Bytes::from(get("a").to_string());
        let plan = Router::new().plan(Operation::DeleteItem, &body, &layouts).unwrap();
        let mut written = Vec::new();
        let answer = run(plan, |operation, body| {
            let body = json(body);
            if operation == Operation::BatchGetItem {
                return Ok(Bytes::from(store.batch(&body).to_string()));
            }
            let key = body["Key"]["pk"]["S"].as_str().unwrap().to_owned();
            written.push(key.clone());
            if key == hashed {
                return Ok(Bytes::from_static(b"{}"));
            }
            if moves {
                store = Store::with(&[(&hashed, number("1"))]);
            }
            Err(Error::new(Code::ConditionalCheckFailedException, "The conditional request failed"))
        });
        if moves {
            assert_eq!(answer.unwrap(), "{}");
            assert_eq!(written, [misplaced, &hashed]);
        } else {
            // It lies where it lay: the condition that failed is the client's own.
            assert_eq!(answer.unwrap_err().code, Code::ConditionalCheckFailedException);
            assert_eq!(written, [misplaced]);
        }
    }
}

#[test]
fn each_table_of_a_transaction_is_looked_into() {
    let delete =
        |table: &str, key: &str| value!({ "Delete": { "TableName": table, "Key": { "pk": { "S": key } } } });
    let body = value!({ "TransactItems": [delete("Tab", "a"), delete("Two", "b"), delete("Tab", "c")] });
    let mut store = Store::with(&[("a.1", number("1")), ("b.2", number("1")), ("c.3", number("1"))]);
    let answer = store.call(&assigned(), Operation::TransactWriteItems, &body, |_, body| {
        let key = |at: usize| body["TransactItems"][at]["Delete"]["Key"]["pk"]["S"].clone();
        assert_eq!([key(0), key(1), key(2)], ["a.1", "b.2", "c.3"]);
        Ok(value!({}))
    });
    assert_eq!(answer.unwrap(), value!({}));
    let asked = |table: &str| {
        let keys = store.sent[0].1["RequestItems"][table]["Keys"].as_array().unwrap();
        keys.iter().map(|key| key["pk"]["S"].as_str().unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(asked("Tab"), ["a.1", "a.2", "a.3", "c.1", "c.2", "c.3"]);
    assert_eq!(asked("Two"), ["b.1", "b.2", "b.3"]);
    // Of the items their keys are enough, as they are now.
    let how = &store.sent[0].1["RequestItems"]["Two"];
    assert_eq!(
        (how["ConsistentRead"].as_bool(), how.get("ProjectionExpression").is_some()),
        (Some(true), true)
    );
}

#[test]
fn a_transaction_that_may_have_been_carried_out_goes_where_it_went() {
    let delete = value!({ "Delete": get("a") });
    let body = Bytes::from(value!({ "TransactItems": [delete], "ClientRequestToken": "t" }).to_string());
    for (outcome, looks) in [(Outcome::Unknown, 1), (Outcome::NotDone, 2)] {
        let router = Router::new().with_clock(|| 0);
        let mut store = Store::with(&[("a.1", number("1"))]);
        let mut looked = 0;
        for _ in 0..2 {
            let plan = router.plan(Operation::TransactWriteItems, &body, &assigned()).unwrap();
            let answer = run(plan, |operation, body| {
                if operation != Operation::BatchGetItem {
                    return Err(Error::unavailable("no answer", outcome));
                }
                looked += 1;
                Ok(Bytes::from(store.batch(&json(body)).to_string()))
            });
            assert_eq!(answer.unwrap_err().code, Code::ServiceUnavailable);
        }
        assert_eq!(looked, looks, "{outcome:?}");
    }
}

#[test]
fn an_add_goes_to_each_fragment_in_turn_and_creates_the_one_that_is_missing() {
    let mut body = get("a");
    body["UpdateExpression"] = value!("ADD n :one");
    body["ExpressionAttributeValues"] = value!({ ":one": { "N": "1" } });
    let (router, layouts) = (Router::new(), counters());
    let (mut keys, mut created) = (Vec::new(), Vec::new());
    for _ in 0..6 {
        let plan = router.plan(Operation::UpdateItem, &Bytes::from(body.to_string()), &layouts).unwrap();
        let answer = run(plan, |operation, sent| {
            let sent = json(sent);
            if operation == Operation::TransactWriteItems {
                let key = |action: &Value| action["Update"]["Key"]["pk"]["S"].as_str().unwrap().to_owned();
                created.push(sent["TransactItems"].as_array().unwrap().iter().map(key).collect::<Vec<_>>());
                return Ok(Bytes::from_static(b"{}"));
            }
            let key = sent["Key"]["pk"]["S"].as_str().unwrap().to_owned();
            keys.push(key.clone());
            assert_eq!(key == "a", sent["ConditionExpression"].is_null(), "{sent}");
            let missing = key == "a#~2";
            let refusal = Error::new(Code::ConditionalCheckFailedException, "The conditional request failed");
            if missing { Err(refusal) } else { Ok(Bytes::from_static(b"{}")) }
        });
        assert_eq!(answer.unwrap(), "{}");
    }
    assert_eq!(keys, ["a", "a#~1", "a#~2", "a", "a#~1", "a#~2"]);
    assert_eq!(created, [["a", "a#~2"], ["a", "a#~2"]]);
}

#[test]
fn what_is_more_than_a_key_is_the_stores_to_refuse() {
    let mut update = get("a");
    update["Key"]["v"] = value!({ "S": "x" });
    let delete = value!({ "RequestItems": { "Tab": [{ "DeleteRequest": { "Key": update["Key"] } }] } });
    let action = value!({ "TransactItems": [{ "Delete": update }] });
    for (operation, body) in [
        (Operation::UpdateItem, update),
        (Operation::BatchWriteItem, delete),
        (Operation::TransactWriteItems, action),
    ] {
        let mut store = votes();
        let refused =
            store.call(&counters(), operation, &body, |_, _| Err(Error::validation("more than a key")));
        assert_eq!(refused.unwrap_err().message.unwrap(), "more than a key");
        assert_eq!(store.sent, [(operation, body)]);
    }
}

#[test]
fn a_write_of_the_number_takes_it_out_of_all_other_fragments() {
    let put = value!({ "TableName": "Tab", "Item": { "pk": { "S": "a" }, "n": { "N": "5" } } });
    let mut store = votes();
    let answer = store.call(&counters(), Operation::PutItem, &put, |operation, body| {
        assert_eq!(operation, Operation::TransactWriteItems);
        let actions = body["TransactItems"].as_array().unwrap();
        assert_eq!(actions[0], value!({ "Put": put }));
        assert_eq!(actions[1], value!({ "Delete": get("a#~1") }));
        assert_eq!(actions[2], value!({ "Delete": get("a#~2") }));
        Ok(value!({}))
    });
    assert_eq!(answer.unwrap(), value!({}));
    let transaction = value!({ "TransactItems": [{ "Put": put }] });
    let answer = store.call(&counters(), Operation::TransactWriteItems, &transaction, |_, body| {
        let others = ["a#~1", "a#~2"].map(|key| value!({ "Delete": get(key) }));
        assert_eq!(body["TransactItems"], value!([{ "Put": put }, others[0], others[1]]));
        Ok(value!({}))
    });
    assert_eq!(answer.unwrap(), value!({}));
}

#[test]
fn whether_the_expressions_of_a_write_of_the_number_are_valid_the_store_says() {
    let mut body = get("a");
    body["UpdateExpression"] = value!("REMOVE n");
    body["ExpressionAttributeValues"] = value!({ ":unused": { "N": "1" } });
    let write = |refusal: &str| {
        let mut store = votes();
        let answer = store.call(&counters(), Operation::UpdateItem, &body, |operation, body| {
            if operation == Operation::TransactWriteItems {
                return Ok(value!({}));
            }
            assert_eq!(body["Key"], value!({ "pk": { "S": "" } }));
            Err(Error::validation(refusal))
        });
        (answer.map_err(|error| error.message.unwrap()), store.operations())
    };
    let unused = "Value provided in ExpressionAttributeValues unused in expressions: keys: {:unused}";
    assert_eq!(write(unused), (Err(unused.to_owned()), vec![Operation::UpdateItem]));
    // A store that finds nothing wrong but the key.
    let (answer, sent) = write("The AttributeValue for a key attribute cannot contain an empty string value");
    assert_eq!(answer, Ok(value!({})));
    assert_eq!(sent, [Operation::UpdateItem, Operation::TransactWriteItems]);
}

#[test]
fn a_statement_that_leaves_the_numbers_of_others_alone_goes_to_the_base_fragment() {
    let execute = |statement: &str| {
        let mut store = votes();
        let body = value!({ "Statement": statement });
        let answer = store.call(&counters(), Operation::ExecuteStatement, &body, |_, body| {
            // A refused statement is asked for under the name of no table.
            let text = body["Statement"].as_str().unwrap();
            let nowhere = Error::new(Code::ResourceNotFoundException, "Requested resource not found");
            if text.contains('!') { Err(nowhere) } else { Ok(value!({ "Items": [] })) }
        });
        (answer.map_err(|error| error.to_string()), store.sent)
    };
    for text in
        ["INSERT INTO Tab VALUE {'pk': 'a', 'n': 1}", "UPDATE Tab SET v = v + 1 WHERE pk = 'a' AND w = 2"]
    {
        let (answer, sent) = execute(text);
        assert_eq!(answer, Ok(value!({ "Items": [] })));
        assert_eq!(sent, [(Operation::ExecuteStatement, value!({ "Statement": text }))]);
    }
    for (text, why) in [
        ("INSERT INTO Tab VALUE {'pk': 'a', 'n': 'many'}", "takes numbers only"),
        ("UPDATE Tab SET n = n + 1 WHERE pk = 'a'", "SET cannot read n"),
        ("UPDATE Tab SET v = n WHERE pk = 'a'", "SET cannot read n"),
        ("UPDATE Tab SET n = 'many' WHERE pk = 'a'", "takes numbers only"),
        ("UPDATE Tab SET n = v WHERE pk = 'a'", "takes a number given in the request"),
        ("UPDATE Tab SET n.k = 1 WHERE pk = 'a'", "holds nothing"),
        ("UPDATE Tab SET v = 1 WHERE pk = 'a' AND n > 1", "a condition cannot read n"),
        ("UPDATE Tab SET v = 1 WHERE pk = 'a' RETURNING ALL OLD *", "would show a part"),
        ("UPDATE Tab SET n = 1 WHERE pk = 'a' RETURNING MODIFIED NEW *", "would show a part"),
        ("DELETE FROM Tab WHERE pk = 'a' RETURNING ALL OLD *", "would show a part"),
    ] {
        let refused = execute(text).0.unwrap_err();
        assert!(refused.contains("Not supported on a counter") && refused.contains(why), "{text}: {refused}");
    }
}

#[test]
fn a_statement_that_sets_or_deletes_the_numbers_is_a_transaction_over_all_fragments() {
    for text in [
        "UPDATE Tab SET n = 1, v = 2 WHERE pk = 'a'",
        "UPDATE Tab REMOVE n WHERE pk = 'a'",
        "DELETE FROM Tab WHERE pk = 'a'",
    ] {
        let body = value!({ "Statement": text, "ReturnConsumedCapacity": "TOTAL" });
        let delete = |key: &str| value!({ "Statement": "DELETE FROM Tab WHERE \"pk\" = ?", "Parameters": [{ "S": key }] });
        let answer = votes().call(&counters(), Operation::ExecuteStatement, &body, |operation, body| {
            assert_eq!(operation, Operation::ExecuteTransaction);
            let statements = value!([{ "Statement": text }, delete("a#~1"), delete("a#~2")]);
            assert_eq!(body, &value!({ "TransactStatements": statements, "ReturnConsumedCapacity": "TOTAL" }));
            Ok(value!({ "Responses": [], "ConsumedCapacity": [{ "TableName": "Tab", "CapacityUnits": 6.0 }] }))
        });
        let consumed = value!({ "TableName": "Tab", "CapacityUnits": 6.0 });
        assert_eq!(answer.unwrap(), value!({ "Items": [], "ConsumedCapacity": consumed }));
        let refused = votes().call(&counters(), Operation::ExecuteStatement, &body, |_, _| {
            Err(Error::validation("Validation failed in TransactStatements[0]: so it is"))
        });
        assert_eq!(refused.unwrap_err().message.unwrap(), "so it is");
        let other = value!({ "Statement": "DELETE FROM Other WHERE id = 'o'" });
        let both = value!({ "TransactStatements": [{ "Statement": text }, other] });
        let answer = votes().call(&counters(), Operation::ExecuteTransaction, &both, |_, body| {
            let statements = value!([{ "Statement": text }, other, delete("a#~1"), delete("a#~2")]);
            assert_eq!(body["TransactStatements"], statements);
            Ok(value!({ "Responses": [] }))
        });
        assert_eq!(answer.unwrap(), value!({ "Responses": [] }));
    }
}

fn puts(keys: &[&str]) -> Value {
    keys.iter().map(|key| value!({ "PutRequest": { "Item": { "pk": { "S": key } } } })).collect()
}

/// The counter's key in a transaction over its fragments.
fn written(body: &Value) -> &str {
    body["TransactItems"][0]["Put"]["Item"]["pk"]["S"].as_str().unwrap()
}

#[test]
fn a_batch_writes_each_counter_in_a_transaction_of_its_own() {
    let batch = value!({
        "RequestItems": {
            "Other": [{ "DeleteRequest": { "Key": { "id": { "S": "o" } } } }],
            "Tab": [{ "PutRequest": { "Item": { "pk": { "S": "a" }, "n": { "N": "5" } } } }, { "DeleteRequest": { "Key": { "pk": { "S": "b" } } } }],
        },
        "ReturnConsumedCapacity": "TOTAL", "ReturnItemCollectionMetrics": "SIZE",
    });
    let consumed = |table: &str| value!({ "TableName": table, "CapacityUnits": 2.0 });
    let collection =
        value!({ "ItemCollectionKey": { "pk": { "S": "a" } }, "SizeEstimateRangeGB": [0.0, 1.0] });
    let mut store = votes();
    let answer = store.call(&counters(), Operation::BatchWriteItem, &batch, |operation, body| {
        assert_eq!((&body["ReturnConsumedCapacity"], &body["ReturnItemCollectionMetrics"]), (&"TOTAL".into(), &"SIZE".into()));
        if operation == Operation::BatchWriteItem {
            assert_eq!(body["RequestItems"], value!({ "Other": batch["RequestItems"]["Other"] }));
            return Ok(value!({ "UnprocessedItems": {}, "ConsumedCapacity": [consumed("Other")] }));
        }
        let actions = body["TransactItems"].as_array().unwrap();
        assert_eq!(actions.len(), 3);
        if actions[0].get("Put").is_some() {
            assert_eq!(actions[0]["Put"]["Item"], batch["RequestItems"]["Tab"][0]["PutRequest"]["Item"]);
            assert_eq!(actions[1..], [value!({ "Delete": get("a#~1") }), value!({ "Delete": get("a#~2") })]);
        } else {
            let all = ["b", "b#~1", "b#~2"].map(|key| value!({ "Delete": get(key) }));
            assert_eq!(actions[..], all);
        }
        Ok(value!({ "ConsumedCapacity": [consumed("Tab")], "ItemCollectionMetrics": { "Tab": [collection] } }))
    });
    let mut sum = consumed("Tab");
    sum["CapacityUnits"] = value!(4.0);
    let expected = value!({
        "UnprocessedItems": {}, "ConsumedCapacity": [consumed("Other"), sum], "ItemCollectionMetrics": { "Tab": [collection] },
    });
    assert_eq!(answer.unwrap(), expected);
    let (batch, transact) = (Operation::BatchWriteItem, Operation::TransactWriteItems);
    assert_eq!(store.operations(), [batch, transact, transact], "the store checks the others first");
}

#[test]
fn what_a_batch_does_not_write_of_counters_comes_back() {
    let conflict = || {
        let reasons = value!([{ "Code": "TransactionConflict", "Message": "m" }, { "Code": "None" }, { "Code": "None" }]);
        Error::new(Code::TransactionCanceledException, "cancelled").with("CancellationReasons", reasons)
    };
    let throttled = || Error::new(Code::ProvisionedThroughputExceededException, "slow down");
    let batch = value!({ "RequestItems": { "Tab": puts(&["a", "b"]), "Other": puts(&["o", "p"]) } });
    let mut store = votes();
    let answer =
        store.call(&counters(), Operation::BatchWriteItem, &batch, |operation, body| match operation {
            Operation::BatchWriteItem => Ok(value!({ "UnprocessedItems": { "Other": puts(&["p"]) } })),
            _ if written(body) == "a" => Err(conflict()),
            _ => Ok(value!({})),
        });
    let left = value!({ "UnprocessedItems": { "Other": puts(&["p"]), "Tab": puts(&["a"]) } });
    assert_eq!(answer.unwrap(), left);
    let answer =
        store.call(&counters(), Operation::BatchWriteItem, &batch, |operation, body| match operation {
            Operation::BatchWriteItem => Err(throttled()),
            _ if written(body) == "a" => Err(conflict()),
            _ => Ok(value!({})),
        });
    let left = value!({ "UnprocessedItems": { "Other": puts(&["o", "p"]), "Tab": puts(&["a"]) } });
    assert_eq!(answer.unwrap(), left);
    // Of which nothing was written fails as a whole.
    let answer = store.call(&counters(), Operation::BatchWriteItem, &batch, |_, _| Err(throttled()));
    assert_eq!(answer.unwrap_err().code, Code::ProvisionedThroughputExceededException);
    let alone = value!({ "RequestItems": { "Tab": puts(&["a"]) } });
    let answer = store.call(&counters(), Operation::BatchWriteItem, &alone, |_, _| Err(conflict()));
    assert_eq!(answer.unwrap_err().code, Code::TransactionConflictException);
    // So does one of which the store refuses a write for good, and what was written is not known then.
    let answer =
        store.call(&counters(), Operation::BatchWriteItem, &batch, |operation, body| match operation {
            Operation::TransactWriteItems if written(body) == "b" => Err(Error::validation("no")),
            _ => Ok(value!({})),
        });
    assert_eq!(answer.unwrap_err().outcome, Outcome::Unknown);
}

#[test]
fn a_batch_with_a_mistake_writes_nothing() {
    let refused = |entries: Value| {
        let batch = value!({ "RequestItems": { "Other": puts(&["o"]), "Tab": entries } });
        let mut store = votes();
        let answer = store.call(&counters(), Operation::BatchWriteItem, &batch, |_, _| {
            Err(Error::validation("the store's words"))
        });
        (answer.unwrap_err().to_string(), store.sent)
    };
    let (words, sent) =
        refused(value!([{ "PutRequest": { "Item": { "pk": { "S": "a" }, "n": { "S": "many" } } } }]));
    assert!(words.contains("takes numbers only") && sent.is_empty(), "{words}");
    let both = value!({ "DeleteRequest": { "Key": { "pk": { "S": "b" } } }, "PutRequest": { "Item": { "pk": { "S": "a" } } } });
    let (words, sent) = refused(value!([both]));
    assert!(words.contains("more than one datatypes set") && sent.is_empty(), "{words}");
    // A key that comes twice, and one that is none: the store refuses the batch as it came.
    let (words, sent) = refused(puts(&["a", "b", "a"]));
    assert_eq!(
        (words.as_str(), sent[0].0),
        ("ValidationException: the store's words", Operation::BatchWriteItem)
    );
    let (words, sent) =
        refused(value!([{ "DeleteRequest": { "Key": { "pk": { "S": "a" }, "n": { "N": "1" } } } }]));
    assert_eq!(
        (words.as_str(), sent[0].0),
        ("ValidationException: the store's words", Operation::BatchWriteItem)
    );
    // What only the checks here find wrong is asked of the store before anything else is written.
    let large =
        value!([{ "PutRequest": { "Item": { "pk": { "S": "a" }, "v": { "S": "x".repeat(410_000) } } } }]);
    let (_, sent) = refused(large);
    assert_eq!(
        sent.iter().map(|(operation, _)| *operation).collect::<Vec<_>>(),
        [Operation::TransactWriteItems]
    );
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
