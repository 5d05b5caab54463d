//! Expressions that read the partition key, on point operations and in a Scan's filter.
#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

use crate::common::{answered, json, plan, run, sent};
use bytes::Bytes;
use heatsink_dynamo::expression::{Bindings, Condition, Kind, Update};
use heatsink_dynamo::{Code, Item, Operation, Value};

// Shard 1 of 10, from layout's golden vectors.
const KEY: &str = r#"{"pk":{"S":"game"},"sk":{"S":"0000123#player_7"}}"#;

fn write(members: &str) -> String {
    format!(r#"{{"TableName":"Tab","Key":{KEY},{members}}}"#)
}

/// Whether the condition that is sent holds for the stored item, or for none.
fn holds(body: &str, stored: Option<&str>) -> bool {
    let body = json(body.as_bytes());
    let raw = |name: &str| body.get(name).map(|value| value.to_string().into_bytes());
    let (names, values) = (raw("ExpressionAttributeNames"), raw("ExpressionAttributeValues"));
    let bindings = Bindings::read(names.as_deref(), values.as_deref()).unwrap();
    let text = body["ConditionExpression"].as_str().unwrap();
    let mut item = Item::new();
    if let Some(key) = stored {
        item.insert("pk".to_owned(), Value::S(key.to_owned()));
        item.insert("twin".to_owned(), Value::S("game".to_owned()));
    }
    bindings.check_unused(&[text]).unwrap();
    Condition::parse(Kind::Condition, text, &bindings).unwrap().holds(&item)
}

/// A cursor is of the segment in which its physical key lies: DynamoDB refuses it in any other, and
/// so it would the logical key.
#[test]
fn a_later_page_of_a_segment_is_asked_for_without_its_cursor() {
    let body = r#"{"TableName":"Tab","Segment":1,"TotalSegments":4,"Limit":5,"ExclusiveStartKey":{"pk":{"S":"a"},"sk":{"S":"b"}},
        "ScanFilter":{"pk":{"ComparisonOperator":"EQ","AttributeValueList":[{"S":"a"}]}}}"#;
    let mut sent = Vec::new();
    run(plan(Operation::Scan, body).unwrap(), |_, body| {
        sent.push(json(body));
        Ok(Bytes::from_static(br#"{"Items":[],"Count":0,"ScannedCount":0}"#))
    })
    .unwrap();
    assert_eq!(
        (sent.len(), &sent[0]["Segment"], &sent[0]["ExclusiveStartKey"]),
        (2, &1.into(), &serde_json::Value::Null)
    );
    assert!(sent[1]["ExclusiveStartKey"]["pk"]["S"].as_str().unwrap().starts_with('a'), "{}", sent[1]);
}

#[test]
fn conditions_mean_the_logical_key() {
    let values = r#""ExpressionAttributeValues":{":v":{"S":"game"}}"#;
    for text in [
        "pk = :v",
        "pk <> :v",
        "begins_with(pk, :v)",
        "contains(pk, :v)",
        "NOT pk = :v",
        "pk IN (:v)",
        "pk BETWEEN :v AND :v",
        "twin = pk AND pk = :v",
        "size(pk) < size(:v)",
        "attribute_exists(pk) OR twin = :v",
    ] {
        let body = write(&format!(r#""ConditionExpression":"{text}",{values}"#));
        let rewritten = sent(Operation::DeleteItem, &body);
        assert!(rewritten.contains("game#~1"));
        assert_eq!(holds(&rewritten, Some("game#~1")), holds(&body, Some("game")), "{text} on the item");
        assert_eq!(holds(&rewritten, None), holds(&body, None), "{text} on no item");
    }
}

#[test]
fn existence_alone_needs_no_rewrite() {
    let body =
        write(r##""ConditionExpression":"attribute_not_exists(#p)","ExpressionAttributeNames":{"#p":"pk"}"##);
    assert_eq!(sent(Operation::DeleteItem, &body), body.replace("game", "game#~1"));
}

#[test]
fn updates_copy_the_logical_key() {
    let body = write(
        r#""UpdateExpression":"SET a = pk, b = if_not_exists(pk, :d)","ExpressionAttributeValues":{":d":{"S":"d"}}"#,
    );
    let sent = json(sent(Operation::UpdateItem, &body).as_bytes());
    let raw = |name: &str| sent[name].to_string().into_bytes();
    let (names, values) = (raw("ExpressionAttributeNames"), raw("ExpressionAttributeValues"));
    let bindings = Bindings::read(Some(&names), Some(&values)).unwrap();
    let update = Update::parse(sent["UpdateExpression"].as_str().unwrap(), &bindings).unwrap();
    let item = Item::from([("pk".to_owned(), Value::S("game#~1".to_owned()))]);
    let after = update.apply(&item).unwrap();
    assert_eq!((&after["a"], &after["b"]), (&Value::S("game".to_owned()), &Value::S("game".to_owned())));
}

#[test]
fn only_the_expressions_that_read_the_key_change() {
    let body = write(
        r#""UpdateExpression":"SET a = :v","ConditionExpression":"pk = :v","ExpressionAttributeValues":{":v":{"S":"game"}}"#,
    );
    let sent = json(sent(Operation::UpdateItem, &body).as_bytes());
    assert_eq!(sent["UpdateExpression"], "SET a = :v");
    assert!(sent["ConditionExpression"].as_str().unwrap().starts_with("attribute_exists("));
    assert_eq!(sent["ExpressionAttributeValues"][":v"]["S"], "game");
}

#[test]
fn writing_the_key_is_refused_by_the_store() {
    let body = write(r#""UpdateExpression":"SET pk = :v","ExpressionAttributeValues":{":v":{"S":"x"}}"#);
    assert_eq!(sent(Operation::UpdateItem, &body), body);
    assert_eq!(answered(Operation::UpdateItem, &body, "{}").unwrap_err().code, Code::InternalServerError);
}

#[test]
fn wrong_expressions_are_refused_in_dynamodbs_words() {
    for (members, words) in [
        (r#""ConditionExpression":"pk = = :v","ExpressionAttributeValues":{":v":{"S":"x"}}"#, "Syntax error"),
        (r#""ConditionExpression":"pk = :w","ExpressionAttributeValues":{":v":{"S":"x"}}"#, "not defined"),
    ] {
        // The store is asked for its words with a key that nothing can be written to.
        let body = write(members);
        assert_eq!(sent(Operation::DeleteItem, &body), body.replace("game", ""));
        let error = answered(Operation::DeleteItem, &body, "{}").unwrap_err();
        assert!(error.message.unwrap().contains(words), "{members}");
    }
    let unused =
        r#""ConditionExpression":"pk = :v","ExpressionAttributeValues":{":v":{"S":"x"},":w":{"S":"x"}}"#;
    let sent = json(sent(Operation::DeleteItem, &write(unused)).as_bytes());
    assert!(sent["ExpressionAttributeValues"].get(":w").is_some(), "the store refuses it");
}

#[test]
fn an_expression_that_the_literal_makes_too_long_is_refused() {
    let terms = vec!["pk=:v"; 140].join(" OR ");
    let body = write(&format!(
        r#""ConditionExpression":"{terms}","ExpressionAttributeValues":{{":v":{{"S":"a"}}}}"#
    ));
    let error = plan(Operation::DeleteItem, &body).unwrap_err();
    assert!(error.message.unwrap().contains("longer than the 4096 bytes"));
}

#[test]
fn legacy_conditions_on_the_key_ask_what_the_logical_key_makes_of_them() {
    let absent = write(r#""Expected":{"pk":{"Exists":false},"a":{"Value":{"S":"pk"}}}"#);
    assert_eq!(sent(Operation::DeleteItem, &absent), absent.replace("game", "game#~1"));
    let eq =
        |value: &str| format!(r#"{{"ComparisonOperator":"EQ","AttributeValueList":[{{"S":"{value}"}}]}}"#);
    let ne = |value: &str| eq(value).replace("EQ", "NE");
    // Whether the condition holds for the item, and for no item.
    let cases = [
        (r#"{"Value":{"S":"game"}}"#.to_owned(), r#"{"ComparisonOperator":"NOT_NULL"}"#.to_owned()),
        (eq("game"), r#"{"ComparisonOperator":"NOT_NULL"}"#.to_owned()),
        (ne("game"), r#"{"ComparisonOperator":"NULL"}"#.to_owned()),
        (ne("game#~1"), ne("game#~1-")),
        (eq("game#~1"), eq("game#~1-")),
    ];
    for (given, asked) in cases {
        let body =
            json(sent(Operation::DeleteItem, &write(&format!(r#""Expected":{{"pk":{given}}}"#))).as_bytes());
        assert_eq!(body["Expected"]["pk"], json(asked.as_bytes()), "{given}");
        assert_eq!(body["Key"]["pk"]["S"], "game#~1");
    }
    let wrong = write(r#""Expected":{"pk":{"ComparisonOperator":"LIKE","AttributeValueList":[{"S":"g"}]}}"#);
    let body = json(sent(Operation::DeleteItem, &wrong).as_bytes());
    assert_eq!(body["Key"]["pk"]["S"], "", "nothing can be written with it");
}

/// The store sees what the logical key makes of a condition, so it cannot refuse what was wrong
/// with the condition.
#[test]
fn operands_that_a_legacy_comparison_does_not_take_are_refused() {
    for (condition, words) in [
        (r#"{"ComparisonOperator":"IN","AttributeValueList":[{"BOOL":true}]}"#, "IN is not valid for BOOL"),
        (r#"{"ComparisonOperator":"GE","AttributeValueList":[{"BOOL":false}]}"#, "GE is not valid for BOOL"),
        (r#"{"ComparisonOperator":"GE","Value":{"L":[]}}"#, "GE is not valid for L"),
        (r#"{"ComparisonOperator":"BEGINS_WITH","AttributeValueList":[{"N":"1"}]}"#, "is not valid for N"),
        (
            r#"{"ComparisonOperator":"BETWEEN","AttributeValueList":[{"NULL":true},{"NULL":true}]}"#,
            "BETWEEN is not valid for NULL",
        ),
        (
            r#"{"ComparisonOperator":"BETWEEN","AttributeValueList":[{"S":"b"},{"S":"a"}]}"#,
            "lower bound is greater",
        ),
        (r#"{"ComparisonOperator":"NULL","AttributeValueList":[{"S":"g"}]}"#, "number of argument(s)"),
    ] {
        let body = write(&format!(r#""Expected":{{"pk":{condition}}}"#));
        let sent = json(sent(Operation::DeleteItem, &body).as_bytes());
        assert_eq!(sent["Key"]["pk"]["S"], "", "nothing can be written with it: {condition}");
        let error = answered(Operation::DeleteItem, &body, "{}").unwrap_err();
        assert_eq!(error.code, Code::ValidationException);
        assert!(error.message.unwrap().contains(words), "{condition}");
    }
}

#[test]
fn a_legacy_scan_filter_on_the_key_is_evaluated_here() {
    let body = r#"{"TableName":"Tab","ScanFilter":{"pk":{"ComparisonOperator":"BEGINS_WITH","AttributeValueList":[{"S":"game"}]}}}"#;
    let mut bodies = Vec::new();
    let answer = run(plan(Operation::Scan, body).unwrap(), |_, body| {
        bodies.push(json(body));
        Ok(Bytes::from_static(PAGE.as_bytes()))
    });
    assert_eq!(bodies[0]["ScanFilter"], json(body.as_bytes())["ScanFilter"], "the store is asked first");
    assert!(
        bodies[1]["FilterExpression"].as_str().unwrap().contains(" OR attribute_exists"),
        "{}",
        bodies[1]
    );
    assert_eq!(json(&answer.unwrap())["Count"], 1);
}

const PAGE: &str = r#"{"Items":[{"pk":{"S":"game#~1"},"sk":{"S":"b"},"a":{"N":"1.0"},"c":{"M":{"d":{"S":"x"},"e":{"S":"y"}}}},{"pk":{"S":"other#~2"},"sk":{"S":"b"}}],"Count":2,"ScannedCount":2,"LastEvaluatedKey":{"sk":{"S":"b"},"pk":{"S":"other#~2"}},"ConsumedCapacity":{"TableName":"Tab","CapacityUnits":0.5}}"#;

fn scan(members: &str) -> String {
    format!(
        r#"{{"TableName":"Tab","FilterExpression":"begins_with(pk, :v)","ExpressionAttributeValues":{{":v":{{"S":"game"}}}}{members}}}"#
    )
}

#[test]
fn a_filter_on_the_key_is_evaluated_here() {
    let rewritten = json(sent(Operation::Scan, &scan("")).as_bytes());
    let text = rewritten["FilterExpression"].as_str().unwrap();
    assert!(text.starts_with("begins_with(pk, :v) OR attribute_exists(#"), "{text}");
    let answer = answered(Operation::Scan, &scan(""), PAGE).unwrap();
    let expected = r#"{"Items":[{"pk":{"S":"game"},"sk":{"S":"b"},"a":{"N":"1.0"},"c":{"M":{"d":{"S":"x"},"e":{"S":"y"}}}}],"Count":1,"ScannedCount":2,"LastEvaluatedKey":{"sk":{"S":"b"},"pk":{"S":"other"}},"ConsumedCapacity":{"TableName":"Tab","CapacityUnits":0.5}}"#;
    assert_eq!(answer, expected);
    // A store that held rows back would make the counts wrong.
    let held = PAGE.replace("\"ScannedCount\":2", "\"ScannedCount\":4");
    assert_eq!(answered(Operation::Scan, &scan(""), &held).unwrap_err().code, Code::InternalServerError);
}

#[test]
fn the_filter_gets_what_it_reads_and_the_client_what_it_asked_for() {
    let body = scan(r#","ProjectionExpression":"c.d, sk""#);
    let asked = json(sent(Operation::Scan, &body).as_bytes());
    let names: Vec<&str> = asked["ExpressionAttributeNames"]
        .as_object()
        .unwrap()
        .values()
        .map(|name| name.as_str().unwrap())
        .collect();
    assert_eq!((names.len(), ["c", "sk", "pk"].iter().all(|name| names.contains(name))), (3, true));
    let answer = json(answered(Operation::Scan, &body, PAGE).unwrap().as_bytes());
    assert_eq!(answer["Items"].to_string(), r#"[{"c":{"M":{"d":{"S":"x"}}},"sk":{"S":"b"}}]"#);
    let count = scan(r#","Select":"COUNT""#);
    assert!(json(sent(Operation::Scan, &count).as_bytes()).get("Select").is_none());
    let answer = json(answered(Operation::Scan, &count, PAGE).unwrap().as_bytes());
    assert_eq!(
        (answer.get("Items"), &answer["Count"], &answer["ScannedCount"]),
        (None, &1.into(), &2.into())
    );
}

#[test]
fn a_filter_on_other_attributes_goes_on_as_it_is() {
    let body = r#"{"TableName":"Tab","FilterExpression":"pkx = :v AND attribute_exists(pk)","ExpressionAttributeValues":{":v":{"S":"pk"}}}"#;
    assert_eq!(sent(Operation::Scan, body), body);
    assert!(
        answered(Operation::Scan, body, PAGE)
            .unwrap()
            .contains(r#"{"pk":{"S":"other"},"sk":{"S":"b"}}],"Count":2"#)
    );
}

#[test]
fn a_binary_key_is_compared_as_bytes() {
    let body =
        r#"{"TableName":"Bin","FilterExpression":"pk = :v","ExpressionAttributeValues":{":v":{"B":"AAE="}}}"#;
    let page = r#"{"Items":[{"pk":{"B":"AAEjfjg="},"sk":{"N":"0"}}],"Count":1,"ScannedCount":1}"#;
    let answer = answered(Operation::Scan, body, page).unwrap();
    assert_eq!(Bytes::from(answer), page.replace("AAEjfjg=", "AAE="));
}

#[test]
fn an_index_that_is_not_known_here_may_be_asked_for_all_that_it_holds() {
    let body = scan(r#","IndexName":"made-a-moment-ago","Select":"ALL_PROJECTED_ATTRIBUTES""#);
    let answer = json(answered(Operation::Scan, &body, PAGE).unwrap().as_bytes());
    assert_eq!((&answer["Count"], &answer["ScannedCount"]), (&1.into(), &2.into()), "{answer}");
}
