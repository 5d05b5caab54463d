//! Shards that cannot be read.

use bytes::Bytes;
use futures::executor::block_on;
use heatsink_dynamo::{Code, Operation};
use serde_json::{Value as Json, json};

use super::{Watched, call, create_through, gateway, put, query, rules, sorts};

#[test]
fn a_shard_that_cannot_be_read_fails_the_query_unless_the_rule_says_otherwise() {
    let calculated = "strategy = \"calculated\"\nshards = 4";
    for (fields, partial) in
        [(calculated.to_owned(), false), (format!("{calculated}\non_shard_error = \"partial\""), true)]
    {
        let store = Watched::new();
        let service = gateway(&store, rules(&fields));
        create_through(&service);
        for number in 0..40 {
            put(&service, "game", json!({ "S": format!("{number:02}") }), "x");
        }
        *store.refused.lock().unwrap() = Some("\"game#~2\"");
        let body = Bytes::from(query("game", json!({})).to_string());
        let answer = block_on(service.call_marked(Operation::Query, body.clone()));
        if partial {
            let answer = answer.unwrap();
            assert_eq!(answer.missing, ["2"]);
            let answer: Json = serde_json::from_slice(&answer.body).unwrap();
            assert!((20..40).contains(&sorts(&answer).len()), "{}", sorts(&answer).len());
        } else {
            assert_eq!(answer.unwrap_err().code, Code::InternalServerError);
        }
        // Without any shard there is no answer; and what is wrong with a request is no shard's
        // affair.
        *store.refused.lock().unwrap() = Some("\"game");
        assert!(block_on(service.call(Operation::Query, body)).is_err());
        *store.refused.lock().unwrap() = None;
        let wrong = query("game", json!({ "FilterExpression": "nonsense(" }));
        assert_eq!(call(&service, Operation::Query, wrong).unwrap_err().code, Code::ValidationException);
    }
}

/// An index of a table with counters is read by the plan of a plain Query, and completed from the
/// table.
#[test]
fn an_answer_that_is_completed_says_what_it_goes_without() {
    let store = Watched::new();
    let partial = "keys = \"game\"\nstrategy = \"calculated\"\nshards = 4\non_shard_error = \"partial\"";
    let counters = "[[rule]]\ntable = \"Tab\"\nkeys = \"votes\"\nstrategy = \"counter\"\nattributes = [\"n\"]\nshards = 2";
    let service = gateway(&store, rules(&format!("{partial}\n{counters}")));
    let body = json!({
        "TableName": "Tab", "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [
            { "AttributeName": "pk", "AttributeType": "S" }, { "AttributeName": "sk", "AttributeType": "S" },
            { "AttributeName": "v", "AttributeType": "S" },
        ],
        "KeySchema": [{ "AttributeName": "pk", "KeyType": "HASH" }, { "AttributeName": "sk", "KeyType": "RANGE" }],
        "LocalSecondaryIndexes": [{
            "IndexName": "by-v", "Projection": { "ProjectionType": "ALL" },
            "KeySchema": [{ "AttributeName": "pk", "KeyType": "HASH" }, { "AttributeName": "v", "KeyType": "RANGE" }],
        }],
    });
    call(&service, Operation::CreateTable, body).unwrap();
    for number in 0..20 {
        put(&service, "game", json!({ "S": format!("{number:02}") }), "x");
    }
    *store.refused.lock().unwrap() = Some("\"game#~2\"");
    let body = Bytes::from(query("game", json!({ "IndexName": "by-v" })).to_string());
    let answer = block_on(service.call_marked(Operation::Query, body)).unwrap();
    assert_eq!(answer.missing, ["2"]);
    let answer: Json = serde_json::from_slice(&answer.body).unwrap();
    assert!((8..20).contains(&sorts(&answer).len()), "{answer}");
}
