//! What a request's body takes in memory while it is carried out, against what is estimated of it:
//! counted by the allocator, over generated shapes.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::alloc::System;
use std::sync::Arc;

use bytes::Bytes;
use futures::executor::block_on;
use heatsink_control::{Control, Rules};
use heatsink_dynamo::{Operation, memory_estimate};
use heatsink_env::{Env, RealEnv};
use heatsink_gateway::{Limits, Service};
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use peakmem_alloc::{INSTRUMENTED_SYSTEM, PeakMemAlloc, PeakMemAllocTrait};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

#[global_allocator]
static ALLOCATOR: &PeakMemAlloc<System> = &INSTRUMENTED_SYSTEM;

/// A gateway before an embedded store, with two tables: `plain`, and `spread`, whose keys have
/// shards.
fn service() -> Service {
    let store = Arc::new(Embedded::memory().unwrap());
    let env: Arc<dyn Env> = Arc::new(RealEnv);
    let rules = "[[rule]]\ntable = \"spread\"\nstrategy = \"calculated\"\nshards = 2\n";
    let rules = Rules::read("heatsink.toml", rules).unwrap();
    let control =
        block_on(Control::start(Arc::clone(&store) as Arc<dyn Store>, Arc::clone(&env), rules)).unwrap();
    let service = Service::new(store, control, env, Limits::default(), "eu-west-1");
    for table in ["plain", "spread"] {
        let create = format!(
            r#"{{"TableName":"{table}","BillingMode":"PAY_PER_REQUEST",
                "KeySchema":[{{"AttributeName":"pk","KeyType":"HASH"}},{{"AttributeName":"sk","KeyType":"RANGE"}}],
                "AttributeDefinitions":[{{"AttributeName":"pk","AttributeType":"S"}},{{"AttributeName":"sk","AttributeType":"S"}}]}}"#
        );
        block_on(service.call(Operation::CreateTable, Bytes::from(create))).unwrap();
    }
    service
}

/// Lists and maps around a list of values.
const AROUND: [[&str; 2]; 2] = [[r#"{"L":["#, "]}"], [r#"{"M":{"a":"#, "}}"]];

/// Values, the number of which is what makes a body large.
const VALUES: [&str; 15] = [
    r#"{"M":{}}"#,
    r#"{"L":[]}"#,
    r#"{"NULL":true}"#,
    r#"{"BOOL":true}"#,
    r#"{"S":""}"#,
    r#"{"S":"text that is a little longer"}"#,
    r#"{"N":"1"}"#,
    r#"{"B":"AAAA"}"#,
    r#"{"M":{"a":{"N":"1"}}}"#,
    r#"{"M":{"a":{"N":"1"},"b":{"S":"x"},"c":{"NULL":true}}}"#,
    r#"{"L":[{"L":[{"L":[{"NULL":true}]}]}]}"#,
    r#"{"M":{"M":{"M":{"M":{"M":{"M":{"NULL":true}}}}}}}"#,
    r#"{"SS":["a","b","c","d","e","f","g","h"]}"#,
    r#"{"NS":["1","2","3","4","5","6","7","8"]}"#,
    r#"{"M":{"a":{"SS":["a","b"]}}}"#,
];

/// Where they stand: `LIST` is many of them, `MEMBERS` as many members that have one each, `SOME`
/// and `FEW` parts of a list, and `NAMES` as many names.
const BODIES: [(Operation, &str); 27] = [
    (Operation::PutItem, r#"{"TableName":"T","Item":{KEY,"a":{"L":[LIST]}}}"#),
    (Operation::PutItem, r#"{"TableName":"T","Item":{KEY,MEMBERS}}"#),
    (Operation::PutItem, r#"{"TableName":"T","Item":{KEY},"unknown":[LIST]}"#),
    (Operation::GetItem, r#"{"TableName":"T","Key":{KEY,MEMBERS}}"#),
    (Operation::GetItem, r#"{"TableName":"T","Key":{KEY},"AttributesToGet":[NAMES]}"#),
    (
        Operation::UpdateItem,
        r#"{"TableName":"T","Key":{KEY},"AttributeUpdates":{"a":{"Value":{"L":[LIST]}}}}"#,
    ),
    (Operation::UpdateItem, r#"{"TableName":"T","Key":{KEY},"AttributeUpdates":{UPDATES}}"#),
    (
        Operation::UpdateItem,
        r#"{"TableName":"T","Key":{KEY},"UpdateExpression":"SET a=:a","ExpressionAttributeValues":{":a":{"L":[LIST]}}}"#,
    ),
    (
        Operation::DeleteItem,
        r#"{"TableName":"T","Key":{KEY},"ConditionExpression":"a=:a","ExpressionAttributeValues":{":a":{"L":[LIST]}}}"#,
    ),
    (
        Operation::DeleteItem,
        r#"{"TableName":"T","Key":{KEY},"Expected":{"a":{"ComparisonOperator":"IN","AttributeValueList":[LIST]}}}"#,
    ),
    (Operation::DeleteItem, r#"{"TableName":"T","Key":{KEY},"Expected":{CONDITIONS}}"#),
    (
        Operation::Query,
        r#"{"TableName":"T",EQ,"QueryFilter":{"a":{"ComparisonOperator":"IN","AttributeValueList":[LIST]}}}"#,
    ),
    (Operation::Query, r#"{"TableName":"T",EQ,"QueryFilter":{CONDITIONS}}"#),
    (Operation::Query, r#"{"TableName":"T",EQ,"AttributesToGet":[NAMES]}"#),
    (
        Operation::Scan,
        r#"{"TableName":"T","ScanFilter":{"a":{"ComparisonOperator":"IN","AttributeValueList":[LIST]}}}"#,
    ),
    (
        Operation::Scan,
        r#"{"TableName":"T","FilterExpression":"a=:a","ExpressionAttributeValues":{":a":{"L":[LIST]}}}"#,
    ),
    (
        Operation::BatchWriteItem,
        r#"{"RequestItems":{"T":[{"PutRequest":{"Item":{KEY,"a":{"L":[SOME]}}}},{"PutRequest":{"Item":{"pk":{"S":"y"},"sk":{"S":"1"},"a":{"L":[SOME]}}}}]}}"#,
    ),
    (
        Operation::TransactWriteItems,
        r#"{"TransactItems":[{"Put":{"TableName":"T","Item":{KEY,"a":{"L":[SOME]}}}},{"Put":{"TableName":"T","Item":{"pk":{"S":"y"},"sk":{"S":"1"},"a":{"L":[SOME]}}}}]}"#,
    ),
    (
        Operation::PutItem,
        r#"{"TableName":"T","Item":{KEY},"ConditionExpression":"a=:a","ExpressionAttributeValues":{":a":{"L":[LIST]}}}"#,
    ),
    (
        Operation::UpdateItem,
        r#"{"TableName":"T","Key":{KEY},"UpdateExpression":"SET b=:b","ConditionExpression":"a=:a","ExpressionAttributeValues":{":a":{"L":[LIST]},":b":{"S":"x"}}}"#,
    ),
    (Operation::Query, r#"{"TableName":"T",EQ,"ExclusiveStartKey":{KEY,MEMBERS}}"#),
    (Operation::BatchWriteItem, r#"{"RequestItems":{"T":[{"PutRequest":{"Item":{KEY,"a":{"L":[LIST]}}}}]}}"#),
    (
        Operation::TransactWriteItems,
        r#"{"TransactItems":[{"Delete":{"TableName":"T","Key":{KEY},"ConditionExpression":"a=:a","ExpressionAttributeValues":{":a":{"L":[LIST]}}}}]}"#,
    ),
    (Operation::DeleteItem, r#"{"TableName":"T","Key":{KEY},"ExpressionAttributeNames":{RENAMED}}"#),
    (Operation::BatchGetItem, r#"{"RequestItems":{"T":{"Keys":[{KEY}],"AttributesToGet":[NAMES]}}}"#),
    (
        Operation::ExecuteStatement,
        r#"{"Statement":"SELECT * FROM \"T\" WHERE pk='x' AND a=?","Parameters":[{"L":[LIST]}]}"#,
    ),
    (Operation::ExecuteStatement, r#"{"Statement":"SELECT * FROM \"T\" WHERE pk='x'","Parameters":[LIST]}"#),
];

fn body(template: &str, table: &str, value: &str, count: usize) -> String {
    let each =
        |one: &dyn Fn(usize) -> String, count: usize| (0..count).map(one).collect::<Vec<_>>().join(",");
    let mut body = template
        .replace("KEY,", r#""pk":{"S":"x"},"sk":{"S":"1"},"#)
        .replace("KEY", r#""pk":{"S":"x"},"sk":{"S":"1"}"#)
        .replace(
            "EQ,",
            r#""KeyConditions":{"pk":{"ComparisonOperator":"EQ","AttributeValueList":[{"S":"x"}]}},"#,
        )
        .replace("\"T\"", &format!("\"{table}\""))
        .replace("\\\"T\\\"", &format!("\\\"{table}\\\""));
    let condition = |at| format!(r#""a{at}":{{"ComparisonOperator":"EQ","AttributeValueList":[{value}]}}"#);
    for (mark, one, count) in [
        ("LIST", &(|_| value.to_owned()) as &dyn Fn(usize) -> String, count),
        ("SOME", &|_| value.to_owned(), count / 2),
        ("MEMBERS", &|at| format!(r#""m{at}":{value}"#), count),
        ("UPDATES", &|at| format!(r#""m{at}":{{"Value":{value}}}"#), count),
        ("CONDITIONS", &condition, count),
        ("RENAMED", &|at| format!(r##""#{at:x}":"{at:x}""##), 4 * count),
        ("NAMES", &|at| format!(r#""{at:x}""#), 4 * count),
    ] {
        if body.contains(mark) {
            body = body.replace(mark, &each(one, count));
        }
    }
    body
}

/// The most that a request may take of what is estimated.
const MOST: f64 = 1.5;

#[test]
#[allow(clippy::cast_precision_loss, reason = "a ratio")]
fn no_shape_takes_much_more_memory_than_is_estimated() {
    let service = service();
    let shapes =
        (0..BODIES.len(), 0..VALUES.len(), any::<bool>(), 2_000..6_000_usize, 0..AROUND.len(), 0..24_usize);
    let mut runner = TestRunner::new(Config { cases: 64, failure_persistence: None, ..Config::default() });
    let held = runner.run(&shapes, |(body_at, value_at, spread, count, around, depth)| {
        let (operation, template) = BODIES[body_at];
        let table = if spread { "spread" } else { "plain" };
        // What an item of an earlier request takes is not this one's.
        for key in ["x", "y"] {
            let small =
                format!(r#"{{"TableName":"{table}","Item":{{"pk":{{"S":"{key}"}},"sk":{{"S":"1"}}}}}}"#);
            block_on(service.call(Operation::PutItem, Bytes::from(small))).unwrap();
        }
        // As many copies are made of what is nested; so that these take no longer, fewer values
        // are.
        let [before, after] = AROUND[around].map(|text| text.repeat(depth));
        let template = template
            .replace(r#"{"L":[LIST]}"#, &format!(r#"{before}{{"L":[LIST]}}{after}"#))
            .replace(r#"{"L":[SOME]}"#, &format!(r#"{before}{{"L":[SOME]}}{after}"#));
        let body = Bytes::from(body(&template, table, VALUES[value_at], count / (1 + depth / 4)));
        let estimate = memory_estimate(operation, &body);
        ALLOCATOR.reset_peak_memory();
        let answer = block_on(service.call(operation, body));
        let ratio = ALLOCATOR.get_peak_memory() as f64 / estimate as f64;
        prop_assert!(ratio <= MOST, "{ratio:.2} of {estimate} bytes: {answer:?}");
        Ok(())
    });
    held.unwrap();
}
