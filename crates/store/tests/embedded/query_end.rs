//! The inclusive end of a Query of a table: no cursor is given there, and none taken, as by
//! DynamoDB Local.
//!
//! | | a full page that ends on the last included key | `ExclusiveStartKey` there; inside; outside |
//! |---|---|---|
//! | `<=` and `BETWEEN` upwards, `>=` and `BETWEEN` downwards, on the table | no cursor | refused; taken; refused |
//! | other operators and directions, on the table | a cursor | taken; taken; refused |
//! | anything on an index | a cursor | taken; taken; refused |
//! | a table without sort key | no cursor | taken; –; refused |

use heatsink_dynamo::{Code, Operation};
use heatsink_store::embedded::Embedded;
use serde_json::{Value as Json, json};

use crate::embedded::support::{call, refused, table};

/// A condition in both forms, with its operands; its inclusive end upwards and downwards; how many
/// of `a` to `h` it holds.
type Condition = (&'static str, &'static str, &'static [&'static str], [Option<&'static str>; 2], usize);

const CONDITIONS: [Condition; 9] = [
    ("sk = :a", "EQ", &["d"], [None, None], 1),
    ("sk < :a", "LT", &["d"], [None, None], 3),
    ("sk <= :a", "LE", &["d"], [Some("d"), None], 4),
    ("sk > :a", "GT", &["d"], [None, None], 4),
    ("sk >= :a", "GE", &["d"], [None, Some("d")], 5),
    ("sk BETWEEN :a AND :b", "BETWEEN", &["c", "e"], [Some("e"), Some("c")], 3),
    ("sk BETWEEN :a AND :b", "BETWEEN", &["c", "c"], [Some("c"), Some("c")], 1),
    ("sk BETWEEN :a AND :b", "BETWEEN", &["bb", "ee"], [None, None], 3),
    ("begins_with(sk, :a)", "BEGINS_WITH", &["d"], [None, None], 1),
];

fn query(condition: &str, operator: &str, operands: &[&str], forward: bool, legacy: bool) -> Json {
    let operands: Vec<Json> = operands.iter().map(|operand| json!({ "S": operand })).collect();
    let mut body = json!({"TableName": "game", "ScanIndexForward": forward});
    if legacy {
        body["KeyConditions"] = json!({
            "pk": {"ComparisonOperator": "EQ", "AttributeValueList": [{"S": "p"}]},
            "sk": {"ComparisonOperator": operator, "AttributeValueList": operands},
        });
        return body;
    }
    // The order of the two does not matter.
    body["KeyConditionExpression"] =
        json!(if forward { format!("#p = :p AND {condition}") } else { format!("{condition} AND #p = :p") });
    body["ExpressionAttributeNames"] = json!({"#p": "pk"});
    body["ExpressionAttributeValues"] = json!({":p": {"S": "p"}, ":a": operands[0]});
    if let Some(high) = operands.get(1) {
        body["ExpressionAttributeValues"][":b"] = high.clone();
    }
    body
}

#[tokio::test]
async fn no_cursor_is_given_behind_the_one_item_of_a_key_without_sort_key() {
    let store = Embedded::memory().unwrap();
    let create = json!({
        "TableName": "votes", "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}],
        "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
    });
    call(&store, Operation::CreateTable, create).await;
    call(&store, Operation::PutItem, json!({"TableName": "votes", "Item": {"pk": {"S": "p"}}})).await;
    for forward in [true, false] {
        let mut body = json!({"TableName": "votes", "ScanIndexForward": forward, "Limit": 1,
            "KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": {":p": {"S": "p"}}});
        let page = call(&store, Operation::Query, body.clone()).await;
        assert_eq!((&page["Count"], &page["LastEvaluatedKey"]), (&json!(1), &Json::Null));
        body["ExclusiveStartKey"] = json!({"pk": {"S": "p"}});
        assert_eq!(call(&store, Operation::Query, body).await["Count"], 0, "one is taken");
    }
    let scan = call(&store, Operation::Scan, json!({"TableName": "votes", "Limit": 1})).await;
    assert!(!scan["LastEvaluatedKey"].is_null(), "a Scan goes on to other keys");
}

#[tokio::test]
async fn no_cursor_is_given_or_taken_on_the_end_that_a_condition_includes() {
    let store = Embedded::memory().unwrap();
    table(&store, "game").await;
    for sort in "abcdefgh".chars() {
        let item = json!({"pk": {"S": "p"}, "sk": {"S": sort.to_string()}});
        call(&store, Operation::PutItem, json!({"TableName": "game", "Item": item})).await;
    }
    for (condition, operator, operands, [up, down], held) in CONDITIONS {
        for (forward, end) in [(true, up), (false, down)] {
            for legacy in [false, true] {
                let mut body = query(condition, operator, operands, forward, legacy);
                body["Limit"] = json!(held);
                let page = call(&store, Operation::Query, body.clone()).await;
                assert_eq!(page["Count"], held, "{body}");
                assert_eq!(page["LastEvaluatedKey"].is_null(), end.is_some(), "{body}: {page}");
                let Some(end) = end else { continue };
                body["ExclusiveStartKey"] = json!({"pk": {"S": "p"}, "sk": {"S": end}});
                let error = refused(&store, Operation::Query, body).await;
                assert_eq!(error.code, Code::ValidationException);
                assert_eq!(
                    error.message.as_deref(),
                    Some("The provided starting key does not match the range key predicate")
                );
            }
        }
    }
}
