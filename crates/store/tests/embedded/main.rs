//! The embedded store through its one door: what goes in comes out, in order, and bad input harms
//! nobody.

mod describe;
mod expiry;
mod expressions;
mod files;
mod legacy_conditions;
mod model;
mod query_end;
mod region;
mod stall;
mod support;
mod tokens;
mod wire_oracle;

use self::support::{call, item, refused, table};
use heatsink_dynamo::{Code, Operation};
use heatsink_store::embedded::Embedded;
use serde_json::json;

#[tokio::test]
async fn an_item_reads_back_with_its_attributes_in_order() {
    let store = Embedded::memory().unwrap();
    table(&store, "game").await;
    let nested = json!({"M": {"z": {"N": "1"}, "a": {"L": [{"M": {"y": {"NULL": true}, "b": {"BOOL": false}}}]}, "k": {"S": "é\"\\"}}});
    let written = json!({"sk": {"S": "b"}, "pk": {"S": "a"}, "zz": nested, "m": {"B": "AAEC"}, "c": {"SS": ["x", "y"]}});
    call(&store, Operation::PutItem, json!({"TableName": "game", "Item": written})).await;
    let body = json!({"TableName": "game", "Key": {"pk": {"S": "a"}, "sk": {"S": "b"}}}).to_string();
    let mut texts = Vec::new();
    for _ in 0..20 {
        texts.push(
            heatsink_store::Store::call(&store, Operation::GetItem, body.clone().into()).await.unwrap(),
        );
    }
    let found: serde_json::Value = serde_json::from_slice(&texts[0]).unwrap();
    assert_eq!(found["Item"], written);
    // serde_json keeps a map in order of its names: the same text means that the store's text is in
    // order too.
    assert!(texts.iter().all(|text| *text == found.to_string()), "{texts:?}");
}

#[tokio::test]
async fn every_kind_of_request_reaches_the_engine() {
    let store = Embedded::memory().unwrap();
    table(&store, "game").await;
    let writes: Vec<_> = (0..5).map(|n| json!({"PutRequest": {"Item": item("a", n)}})).collect();
    let found = call(&store, Operation::BatchWriteItem, json!({"RequestItems": {"game": writes}})).await;
    assert_eq!(found["UnprocessedItems"], json!({}));
    let key = |n: u32| json!({"pk": {"S": "a"}, "sk": {"S": format!("{n:04}")}});
    let query = json!({"TableName": "game", "KeyConditionExpression": "pk = :a", "ExpressionAttributeValues": {":a": {"S": "a"}}, "ScanIndexForward": false});
    let found = call(&store, Operation::Query, query).await;
    let order: Vec<_> =
        found["Items"].as_array().unwrap().iter().map(|item| item["sk"]["S"].as_str().unwrap()).collect();
    assert_eq!(order, ["0004", "0003", "0002", "0001", "0000"]);
    assert_eq!(
        call(&store, Operation::Scan, json!({"TableName": "game", "Select": "COUNT"})).await["Count"],
        5
    );
    let update = json!({"TableName": "game", "Key": key(1), "UpdateExpression": "ADD score :one", "ExpressionAttributeValues": {":one": {"N": "1"}}, "ReturnValues": "UPDATED_NEW"});
    assert_eq!(call(&store, Operation::UpdateItem, update).await["Attributes"], json!({"score": {"N": "2"}}));
    let deleted = call(
        &store,
        Operation::DeleteItem,
        json!({"TableName": "game", "Key": key(4), "ReturnValues": "ALL_OLD"}),
    )
    .await;
    assert_eq!(deleted["Attributes"], item("a", 4));
    let found =
        call(&store, Operation::BatchGetItem, json!({"RequestItems": {"game": {"Keys": [key(0), key(4)]}}}))
            .await;
    assert_eq!(found["Responses"]["game"], json!([item("a", 0)]));
    let transact = json!({"TransactItems": [{"Put": {"TableName": "game", "Item": item("b", 0)}}, {"Delete": {"TableName": "game", "Key": key(0)}}]});
    call(&store, Operation::TransactWriteItems, transact).await;
    let found = call(&store, Operation::TransactGetItems, json!({"TransactItems": [{"Get": {"TableName": "game", "Key": key(0)}}, {"Get": {"TableName": "game", "Key": key(3)}}]})).await;
    assert_eq!(found["Responses"], json!([{}, {"Item": item("a", 3)}]));
    let found =
        call(&store, Operation::ExecuteStatement, json!({"Statement": "SELECT sk FROM game WHERE pk = 'b'"}))
            .await;
    assert_eq!(found["Items"], json!([{"sk": {"S": "0000"}}]));
    assert_eq!(call(&store, Operation::ListTables, json!({})).await["TableNames"], json!(["game"]));
    assert_eq!(
        call(&store, Operation::DescribeTable, json!({"TableName": "game"})).await["Table"]["TableStatus"],
        "ACTIVE"
    );
    call(&store, Operation::DeleteTable, json!({"TableName": "game"})).await;
    let error = refused(&store, Operation::GetItem, json!({"TableName": "game", "Key": key(0)})).await;
    assert_eq!((error.code, error.status), (Code::ResourceNotFoundException, 400));
}

#[tokio::test]
async fn refusals_are_those_of_dynamodb() {
    let store = Embedded::memory().unwrap();
    table(&store, "game").await;
    call(&store, Operation::PutItem, json!({"TableName": "game", "Item": item("a", 1)})).await;
    let again = json!({"TableName": "game", "Item": item("a", 1), "ConditionExpression": "attribute_not_exists(pk)", "ReturnValuesOnConditionCheckFailure": "ALL_OLD"});
    let error = refused(&store, Operation::PutItem, again.clone()).await;
    assert_eq!(error.code, Code::ConditionalCheckFailedException);
    assert_eq!(error.message.as_deref(), Some("The conditional request failed"));
    assert_eq!(error.members["Item"], item("a", 1));

    let transact =
        json!({"TransactItems": [{"Put": again}, {"Put": {"TableName": "game", "Item": item("b", 1)}}]});
    let error = refused(&store, Operation::TransactWriteItems, transact).await;
    assert_eq!(error.code, Code::TransactionCanceledException);
    let body: serde_json::Value = serde_json::from_slice(&error.body()).unwrap();
    assert_eq!(body["__type"], "com.amazonaws.dynamodb.v20120810#TransactionCanceledException");
    assert!(body["Message"].as_str().unwrap().contains("[ConditionalCheckFailed, None]"), "{body}");
    assert_eq!(body["CancellationReasons"][0]["Item"], item("a", 1));

    // Only the three writes of one item count their errors.
    let number = json!({"pk": {"S": "a"}, "sk": {"S": "b"}, "n": {"N": "x"}});
    let error = refused(&store, Operation::PutItem, json!({"TableName": "game", "Item": number})).await;
    assert_eq!(
        error.message.as_deref(),
        Some("1 validation error detected: The parameter cannot be converted to a numeric value: x")
    );
    let error = refused(
        &store,
        Operation::BatchWriteItem,
        json!({"RequestItems": {"game": [{"PutRequest": {"Item": number}}]}}),
    )
    .await;
    assert_eq!(error.message.as_deref(), Some("The parameter cannot be converted to a numeric value: x"));

    for operation in [Operation::DeleteBackup, Operation::CreateBackup, Operation::RestoreTableToPointInTime]
    {
        let error = refused(&store, operation, json!({})).await;
        assert_eq!((error.code, error.message), (Code::UnknownOperationException, None));
    }
}

#[tokio::test]
async fn deep_nesting_is_refused_and_the_store_lives_on() {
    let store = Embedded::memory().unwrap();
    table(&store, "game").await;
    let levels = 10_000;
    let value = format!("{}{{\"S\":\"x\"}}{}", "{\"L\":[".repeat(levels), "]}".repeat(levels));
    let body = format!(
        "{{\"TableName\":\"game\",\"Item\":{{\"pk\":{{\"S\":\"a\"}},\"sk\":{{\"S\":\"b\"}},\"deep\":{value}}}}}"
    );
    for body in [
        body,
        "[".repeat(levels),
        "{\"a\":".repeat(levels),
        format!("{{\"TableName\":{}{}}}", "[".repeat(levels), "]".repeat(levels)),
    ] {
        let error = heatsink_store::Store::call(&store, Operation::PutItem, body.into()).await.unwrap_err();
        assert_eq!(error.code, Code::SerializationException, "{error}");
    }
    for open in ["(", "NOT ", "NOT (", "size(", "a["] {
        let put = json!({"TableName": "game", "Item": item("a", 1), "ConditionExpression": format!("{}pk = pk{}", open.repeat(levels), ")".repeat(levels))});
        assert_eq!(refused(&store, Operation::PutItem, put).await.code, Code::ValidationException);
        let short = json!({"TableName": "game", "Item": item("a", 1), "ConditionExpression": open.repeat(4000 / open.len())});
        assert_eq!(refused(&store, Operation::PutItem, short).await.code, Code::ValidationException);
    }
    for open in ["(", "[", "{'a':", "NOT "] {
        let select = json!({"Statement": format!("SELECT * FROM game WHERE {}", open.repeat(levels))});
        assert_eq!(
            refused(&store, Operation::ExecuteStatement, select).await.code,
            Code::ValidationException
        );
    }
    call(&store, Operation::PutItem, json!({"TableName": "game", "Item": item("a", 1)})).await;
}

#[tokio::test]
async fn a_file_keeps_its_tables() {
    let folder = support::folder();
    let path = folder.path().join("data.db");
    let store = Embedded::file(&path).unwrap();
    table(&store, "game").await;
    for n in 0..100 {
        call(&store, Operation::PutItem, json!({"TableName": "game", "Item": item("a", n)})).await;
    }
    drop(store);
    let beside: Vec<_> =
        std::fs::read_dir(folder.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(beside, ["data.db"], "a clean close leaves no log behind");
    let store = Embedded::file(&path).unwrap();
    assert_eq!(
        call(&store, Operation::Scan, json!({"TableName": "game", "Select": "COUNT"})).await["Count"],
        100
    );
}

#[tokio::test]
async fn a_file_that_is_no_database_is_named() {
    let folder = support::folder();
    let path = folder.path().join("notes.txt");
    std::fs::write(&path, "this is not a database, but it is longer than the header of one: ".repeat(20))
        .unwrap();
    let error = Embedded::file(&path).err().unwrap();
    assert!(error.message.unwrap().contains("notes.txt"));
    assert!(Embedded::file(folder.path().join("missing").join("data.db")).is_err());
}
