//! Requests on tables that are not there, where rules are: refused in the words of the store, and
//! never sent on.
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use futures::executor::block_on;
use futures::future::BoxFuture;
use heatsink::Gateway;
use heatsink_control::Rules;
use heatsink_dynamo::{Code, Error, Operation};
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
use serde_json::{Value as Json, json};

const RULES: &str = "[[rule]]\ntable = \"*\"\nstrategy = \"calculated\"\nshards = 4\n";

/// Notes what is written to a table of clients.
struct Watched {
    store: Embedded,
    written: Mutex<Vec<Operation>>,
}

impl Store for Watched {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        let text = String::from_utf8_lossy(&body);
        if operation.touches_items() && !operation.only_reads() && !text.contains("heatsink.") {
            self.written.lock().unwrap().push(operation);
        }
        self.store.call(operation, body)
    }
}

fn service() -> (Arc<Watched>, Gateway) {
    let store = Arc::new(Watched { store: Embedded::memory().unwrap(), written: Mutex::default() });
    let rules = Rules::read("rules", RULES).unwrap();
    (store.clone(), block_on(Gateway::builder(store).rules(rules).start()).unwrap())
}

fn call(service: &Gateway, operation: Operation, body: Json) -> Result<Json, Error> {
    let answer = block_on(service.call(operation, Bytes::from(body.to_string())))?;
    Ok(serde_json::from_slice(&answer).unwrap())
}

fn table() -> Json {
    json!({
        "TableName": "There", "BillingMode": "PAY_PER_REQUEST",
        "AttributeDefinitions": [{ "AttributeName": "pk", "AttributeType": "S" }, { "AttributeName": "sk", "AttributeType": "S" }],
        "KeySchema": [{ "AttributeName": "pk", "KeyType": "HASH" }, { "AttributeName": "sk", "KeyType": "RANGE" }],
    })
}

#[test]
fn a_statement_on_an_absent_table_fails_alone() {
    let (_, service) = service();
    call(&service, Operation::CreateTable, table()).unwrap();
    let item = json!({ "pk": { "S": "a" }, "sk": { "S": "b" } });
    call(&service, Operation::PutItem, json!({ "TableName": "There", "Item": item })).unwrap();
    let there = json!({ "Statement": "SELECT * FROM There WHERE pk = 'a' AND sk = 'b'" });
    let absent = json!({ "Statement": "INSERT INTO Absent VALUE {'pk': 'a', 'sk': 'b'}" });
    for (statements, failing) in [
        (json!([absent, there, absent]), [true, false, true].as_slice()),
        (json!([there, absent]), &[false, true]),
        (json!([absent]), &[true]),
        (json!([there]), &[false]),
    ] {
        let body = json!({ "Statements": statements, "ReturnConsumedCapacity": "NONE" });
        let answer = call(&service, Operation::BatchExecuteStatement, body).unwrap();
        let responses = answer["Responses"].as_array().unwrap();
        let failed: Vec<bool> =
            responses.iter().map(|one| one["Error"]["Code"] == "ResourceNotFound").collect();
        assert_eq!(failed, failing, "{answer}");
        assert!(
            responses.iter().all(|one| one["Error"]["Code"] == "ResourceNotFound" || one["Item"] == item)
        );
    }
}

/// Of a transaction, too: what is wrong with the request is told first, then an item that is named
/// twice before the table is. Neither its other tables nor its token take part.
#[test]
fn transactions_on_an_absent_table_are_refused_in_the_stores_words_and_have_no_effect() {
    let (store, service) = service();
    let plain = Embedded::memory().unwrap();
    block_on(plain.call(Operation::CreateTable, Bytes::from(table().to_string()))).unwrap();
    call(&service, Operation::CreateTable, table()).unwrap();
    let item = json!({ "pk": { "S": "a" }, "sk": { "S": "b" } });
    let there = json!({ "Put": { "TableName": "There", "Item": item } });
    let absent = json!({ "Delete": { "TableName": "Absent", "Key": item } });
    let mut unused = there.clone();
    unused["Put"]["ConditionExpression"] = json!("attribute_exists(pk)");
    unused["Put"]["ExpressionAttributeValues"] = json!({ ":unused": { "S": "x" } });
    let mut broken = absent.clone();
    broken["Delete"]["ConditionExpression"] = json!("a = ");
    let two = json!({ "Put": there["Put"], "Delete": absent["Delete"] });
    for actions in [
        json!([there, absent]),
        json!([absent, unused]),
        json!([broken, there]),
        json!([there, there, absent]),
        json!([absent, there, there]),
        json!([two]),
    ] {
        let body = json!({ "TransactItems": actions, "ClientRequestToken": "token" });
        let unsharded = block_on(plain.call(Operation::TransactWriteItems, Bytes::from(body.to_string())));
        let unsharded = unsharded.unwrap_err();
        let refused = call(&service, Operation::TransactWriteItems, body).unwrap_err();
        assert_eq!((&refused.code, &refused.message), (&unsharded.code, &unsharded.message), "{actions}");
    }
    assert!(store.written.lock().unwrap().is_empty());
    let mut create = table();
    create["TableName"] = json!("Absent");
    call(&service, Operation::CreateTable, create).unwrap();
    let body = json!({ "TransactItems": [there, absent], "ClientRequestToken": "token" });
    call(&service, Operation::TransactWriteItems, body).unwrap();
}

#[test]
fn writes_to_an_absent_table_are_refused_in_the_stores_words_and_not_sent_on() {
    let (store, service) = service();
    let plain = Embedded::memory().unwrap();
    let item = json!({ "pk": { "S": "a" }, "sk": { "S": "b" } });
    for (operation, body) in [
        (Operation::PutItem, json!({ "TableName": "Absent", "Item": item })),
        (Operation::PutItem, json!({ "TableName": "Absent", "Item": item, "ConditionExpression": "a = " })),
        (Operation::DeleteItem, json!({ "TableName": "Absent", "Key": item })),
        (
            Operation::UpdateItem,
            json!({ "TableName": "Absent", "Key": item, "UpdateExpression": "SET #x = :x" }),
        ),
        (
            Operation::BatchWriteItem,
            json!({ "RequestItems": { "Absent": [{ "PutRequest": { "Item": item } }] } }),
        ),
        (
            Operation::Query,
            json!({ "TableName": "Absent", "KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": { ":p": { "S": "a" } } }),
        ),
        (Operation::PutItem, json!({ "TableName": "ab", "Item": item })),
        (
            Operation::UpdateTable,
            json!({ "TableName": "Absent", "GlobalSecondaryIndexUpdates": [{ "Delete": { "IndexName": "late" } }] }),
        ),
        (
            Operation::UpdateTimeToLive,
            json!({ "TableName": "Absent", "TimeToLiveSpecification": { "AttributeName": "t", "Enabled": true } }),
        ),
    ] {
        let unsharded = block_on(plain.call(operation, Bytes::from(body.to_string()))).unwrap_err();
        let refused = call(&service, operation, body).unwrap_err();
        assert_eq!((&refused.code, &refused.message), (&unsharded.code, &unsharded.message), "{operation:?}");
        if refused.code == Code::ResourceNotFoundException {
            assert_eq!(refused.outcome, heatsink_dynamo::Outcome::NotDone);
        }
    }
    let written = store.written.lock().unwrap();
    assert!(
        written.iter().all(|operation| *operation == Operation::PutItem) && written.len() <= 1,
        "only under an impossible name: {written:?}"
    );
}

/// Of a batch and of statements, too; and names that no table can have are refused for what they
/// are.
#[test]
fn what_is_wrong_with_a_request_is_told_before_its_missing_table() {
    let (store, service) = service();
    let plain = Embedded::memory().unwrap();
    block_on(plain.call(Operation::CreateTable, Bytes::from(table().to_string()))).unwrap();
    call(&service, Operation::CreateTable, table()).unwrap();
    let key = json!({ "pk": { "S": "a" }, "sk": { "S": "b" } });
    let put = |item: &Json| json!([{ "PutRequest": { "Item": item } }]);
    let one = put(&key);
    let select = r#"SELECT pk FROM "Absent" WHERE pk = ? AND val < ?"#;
    let action = |name: &str| json!({ "TransactItems": [{ "Put": { "TableName": name, "Item": key } }] });
    for (operation, body) in [
        (Operation::BatchWriteItem, json!({ "RequestItems": { "bad!name": one } })),
        (Operation::BatchWriteItem, json!({ "RequestItems": { "ab": one } })),
        (Operation::BatchWriteItem, json!({ "RequestItems": { "There": one, "Absent": one } })),
        (
            Operation::BatchWriteItem,
            json!({ "RequestItems": { "Absent": one }, "ReturnConsumedCapacity": "BOGUS" }),
        ),
        (Operation::BatchWriteItem, json!({ "RequestItems": { "There": one, "Absent": [one[0], one[0]] } })),
        (Operation::BatchGetItem, json!({ "RequestItems": { "bad!name": { "Keys": [key] } } })),
        (Operation::ExecuteStatement, json!({ "Statement": "SELECT * FROM \"\" WHERE pk = 'p'" })),
        (
            Operation::ExecuteStatement,
            json!({ "Statement": select, "Parameters": [{ "S": "x" }, { "BOOL": true }] }),
        ),
        (Operation::ExecuteStatement, json!({ "Statement": "UPDATE \"Absent\" SET a = 1 WHERE pk = ?" })),
        (
            Operation::ExecuteStatement,
            json!({ "Statement": "DELETE FROM \"Absent\" WHERE pk = 'a'", "ReturnConsumedCapacity": "BOGUS" }),
        ),
        (
            Operation::ExecuteStatement,
            json!({ "Statement": "INSERT INTO \"Absent\" VALUE {'pk': 'a', 'sk': 'b'}" }),
        ),
        (
            Operation::ExecuteTransaction,
            json!({ "TransactStatements": [{ "Statement": "UPDATE \"Absent\" SET" }] }),
        ),
        (Operation::TransactWriteItems, action("bad!name")),
        (
            Operation::Query,
            json!({ "TableName": "Absent", "KeyConditionExpression": "pk = :p", "FilterExpression": "a = :u", "ExpressionAttributeValues": { ":p": { "S": "a" } } }),
        ),
    ] {
        let unsharded = block_on(plain.call(operation, Bytes::from(body.to_string()))).unwrap_err();
        let refused = call(&service, operation, body.clone()).unwrap_err();
        assert_eq!((&refused.code, &refused.message), (&unsharded.code, &unsharded.message), "{body}");
    }
    for statement in [
        "SELECT * FROM Absent WHERE pk = ? AND val < ",
        "UPDATE Absent SET",
        "INSERT INTO Absent VALUE {'pk': 'a', 'sk': 'b'}",
    ] {
        let body = json!({ "Statements": [{ "Statement": statement }] });
        let unsharded = block_on(plain.call(Operation::BatchExecuteStatement, Bytes::from(body.to_string())));
        let sharded = call(&service, Operation::BatchExecuteStatement, body.clone());
        let told = |answer: Result<Json, Error>| answer.map_err(|error| (error.code, error.message));
        let unsharded = unsharded.map(|answer| serde_json::from_slice(&answer).unwrap());
        assert_eq!(told(sharded), told(unsharded), "{body}");
    }
    let found =
        block_on(store.store.call(Operation::Scan, Bytes::from_static(br#"{"TableName":"There"}"#))).unwrap();
    assert!(String::from_utf8_lossy(&found).contains(r#""Count":0"#), "nothing was written");
}
