//! Transactions: one item refused cancels all.

use super::*;

fn put(pk: &str) -> Json {
    json!({ "Put": { "TableName": "games", "Item": item(pk, "new") } })
}

#[test]
fn a_hot_item_cancels_the_transaction() {
    for (bench, code, message) in [
        (Bench::on_demand(), "ThrottlingError", TABLE_ON_DEMAND),
        (Bench::provisioned(12_000, 4_000), "ProvisionedThroughputExceeded", TABLE_PROVISIONED),
    ] {
        bench.exhaust("hot");
        let cold = (0..).map(|nth| format!("cold-{nth}")).find(|pk| bench.put(pk, "a").is_ok()).unwrap();
        let before = bench.charged(0);
        let request = json!({ "TransactItems": [put(&cold), put("hot")] });
        let error = bench.call(Operation::TransactWriteItems, request).unwrap_err();
        assert_eq!(
            body(&error),
            json!({
                "__type": "com.amazonaws.dynamodb.v20120810#TransactionCanceledException",
                "Message": format!(
                    "Transaction cancelled, please refer cancellation reasons for specific reasons [None, {code}]"
                ),
                "CancellationReasons": [{ "Code": "None" }, { "Code": code, "Message": message }],
            })
        );
        let found = bench
            .call(Operation::GetItem, json!({ "TableName": "games", "Key": item(&cold, "new") }))
            .unwrap();
        assert_eq!(
            (found, before.1),
            (json!({}), bench.charged(0).1),
            "nothing was written, nothing was paid"
        );
        let reads =
            json!({ "TransactItems": [{ "Get": { "TableName": "games", "Key": item("hot", "0") } }] });
        assert!(bench.call(Operation::TransactGetItems, reads).is_ok(), "reads are metered apart");
    }
}

#[test]
fn two_units_per_kilobyte() {
    let bench = Bench::on_demand();
    let update = json!({ "Update": {
        "TableName": "games", "Key": item("b", "b"), "UpdateExpression": "SET n = :n", "ExpressionAttributeValues": {":n": {"N": "1"}},
    } });
    let check = json!({ "ConditionCheck": {
        "TableName": "games", "Key": item("c", "c"), "ConditionExpression": "attribute_not_exists(pk)",
    } });
    let request = json!({ "TransactItems": [put("a"), update, check] });
    assert_eq!(bench.call(Operation::TransactWriteItems, request).unwrap(), json!({}));
    assert_eq!(bench.charged(0), (0.0, 6.0));
    // Cancelled by a condition, it is paid for all the same.
    let fails = json!({ "ConditionCheck": {
        "TableName": "games", "Key": item("c", "c"), "ConditionExpression": "attribute_exists(pk)",
    } });
    let error =
        bench.call(Operation::TransactWriteItems, json!({ "TransactItems": [put("a"), fails] })).unwrap_err();
    assert_eq!(body(&error)["CancellationReasons"][1]["Code"], "ConditionalCheckFailed");
    assert_eq!(bench.charged(0), (0.0, 10.0));
    let get = json!({ "TransactItems": [{ "Get": { "TableName": "games", "Key": item("a", "new") } }] });
    assert!(bench.call(Operation::TransactGetItems, get).unwrap()["Responses"][0].get("Item").is_some());
    assert_eq!(bench.charged(0), (2.0, 10.0));
}
