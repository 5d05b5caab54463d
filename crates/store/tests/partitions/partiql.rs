//! PartiQL asks of partitions, and pays them, what the operations on items do that it equals.

use super::*;

const HOT: &str = "hot";

fn insert(pk: &str, sk: &str) -> Json {
    json!({ "Statement": format!("INSERT INTO games VALUE {{'pk': '{pk}', 'sk': '{sk}'}}") })
}

impl Bench {
    fn run(&self, request: Json) -> Result<Json, Error> {
        self.call(Operation::ExecuteStatement, request)
    }

    fn select(&self, clause: &str) -> Result<Json, Error> {
        self.run(json!({ "Statement": format!("SELECT * FROM games WHERE {clause}") }))
    }
}

#[test]
fn a_hot_key_by_statements_alone_is_refused_as_by_put_item() {
    let (puts, statements) = (Bench::on_demand(), Bench::on_demand());
    let put = puts.exhaust(HOT);
    let inserted =
        (0..10_000).take_while(|nth| statements.run(insert(HOT, &nth.to_string())).is_ok()).count();
    assert_eq!(inserted as u64, put);
    let (as_put, error) = (puts.put(HOT, "x").unwrap_err(), statements.run(insert(HOT, "x")).unwrap_err());
    assert_eq!(body(&error), body(&as_put));
    assert_eq!(body(&error)["throttlingReasons"][0]["reason"], "TableWriteKeyRangeThroughputExceeded");
    for text in [
        "UPDATE games SET v = 1 WHERE pk = 'hot' AND sk = '0'",
        "DELETE FROM games WHERE sk = '0' AND pk = 'hot'",
    ] {
        let error = statements.run(json!({ "Statement": text })).unwrap_err();
        assert_eq!(error.code.name(), "ThrottlingException", "{text}");
    }
    // With the key as a parameter, too.
    let text = "UPDATE games SET v = ? WHERE pk = ? AND sk = ?";
    let given = json!({ "Statement": text, "Parameters": [{ "N": "1" }, { "S": HOT }, { "S": "0" }] });
    assert_eq!(statements.run(given).unwrap_err().code.name(), "ThrottlingException");
    // Others of the table are not meant.
    let cold = (0..).map(|nth| format!("cold-{nth}")).find(|pk| statements.run(insert(pk, "a")).is_ok());
    assert!(cold.is_some());
}

#[test]
fn a_statement_costs_what_its_operation_does() {
    let bench = Bench::on_demand();
    let cost = |request: Json| {
        let before = bench.charged(0);
        let _ = bench.run(request);
        let after = bench.charged(0);
        (after.0 - before.0, after.1 - before.1)
    };
    let said = |text: &str| json!({ "Statement": text });
    assert_eq!(cost(insert("a", "1")), (0.0, 1.0));
    // One that is there already fails, as a condition does.
    assert_eq!(cost(insert("a", "1")), (0.0, 1.0));
    assert_eq!(cost(said("UPDATE games SET v = 1 REMOVE w WHERE pk = 'a' AND sk = '1'")), (0.0, 1.0));
    assert_eq!(cost(said("UPDATE games SET v = v + 1 WHERE pk = 'a' AND sk = '1'")), (0.0, 1.0));
    assert_eq!(cost(said("UPDATE games SET v = 1 WHERE pk = 'a' AND sk = '1' AND v = 9")), (0.0, 1.0));
    assert_eq!(cost(said("SELECT * FROM games WHERE pk = 'a' AND sk = '1'")), (0.5, 0.0));
    assert_eq!(cost(said("SELECT * FROM games WHERE pk = 'a'")), (0.5, 0.0));
    let mut strong = said("SELECT * FROM games WHERE pk = 'a'");
    strong["ConsistentRead"] = json!(true);
    assert_eq!(cost(strong), (1.0, 0.0));
    assert!(cost(said("SELECT * FROM games")).0 > 0.0);
    assert_eq!(cost(said("DELETE FROM games WHERE pk = 'a' AND sk = '1'")), (0.0, 1.0));
    assert_eq!(cost(said("this is no statement")), (0.0, 0.0));
}

#[test]
fn reads_of_a_hot_key_are_refused_whatever_names_it() {
    let bench = Bench::on_demand();
    bench.put(HOT, "0").unwrap();
    let read = "pk = 'hot' AND sk = '0'";
    let read_once = |nth: &u64| bench.select(read).is_ok() || *nth == 0;
    assert!((0..100_000).take_while(read_once).count() < 100_000);
    for clause in [read, "pk = 'hot'", "'hot' = pk AND sk > '0'", "pk IN ['hot']", "pk = 'hot' OR pk = 'hot'"]
    {
        assert_eq!(bench.select(clause).unwrap_err().code.name(), "ThrottlingException", "{clause}");
    }
}

#[test]
fn of_a_batch_the_throttled_statements_say_so_and_the_others_are_done() {
    let bench = Bench::on_demand();
    bench.exhaust(HOT);
    let cold = (0..).map(|nth| format!("cold-{nth}")).find(|pk| bench.put(pk, "a").is_ok()).unwrap();
    let batch = |statements: &[Json]| {
        bench.call(Operation::BatchExecuteStatement, json!({ "Statements": statements }))
    };
    let answer =
        batch(&[insert(HOT, "x"), insert(&cold, "b"), insert(HOT, "y"), insert(&cold, "a")]).unwrap();
    let responses = answer["Responses"].as_array().unwrap();
    assert_eq!(responses.len(), 4);
    for throttled in [&responses[0], &responses[2]] {
        let error = json!({ "Code": "ThrottlingError", "Message": TABLE_ON_DEMAND });
        assert_eq!(throttled, &json!({ "Error": error, "TableName": "games" }));
    }
    assert_eq!(responses[1], json!({ "TableName": "games" }));
    assert_eq!(responses[3]["Error"]["Code"], "DuplicateItem");
    let found = |pk: &str, sk: &str| {
        let key = json!({ "TableName": "games", "Key": item(pk, sk) });
        bench.inner_get(key)
    };
    assert!(found(&cold, "b") && !found(HOT, "x") && !found(HOT, "y"));
    // Nothing is left to do.
    let answer = batch(&[insert(HOT, "x")]).unwrap();
    assert_eq!(answer["Responses"][0]["Error"]["Code"], "ThrottlingError");
}

impl Bench {
    fn inner_get(&self, key: Json) -> bool {
        let answer = block_on(self.inner.call(Operation::GetItem, Bytes::from(key.to_string()))).unwrap();
        serde_json::from_slice::<Json>(&answer).unwrap().get("Item").is_some()
    }
}

#[test]
fn a_transaction_of_statements_pays_twice_and_is_cancelled_whole() {
    let bench = Bench::on_demand();
    let run = |statements: &[Json]| {
        bench.call(Operation::ExecuteTransaction, json!({ "TransactStatements": statements }))
    };
    let before = bench.charged(0);
    run(&[insert("a", "1"), insert("b", "1")]).unwrap();
    let written = bench.charged(0);
    assert_eq!(written.1 - before.1, 4.0);
    run(&[json!({ "Statement": "SELECT * FROM games WHERE pk = 'a' AND sk = '1'" })]).unwrap();
    assert_eq!(bench.charged(0).0 - written.0, 2.0);
    bench.exhaust(HOT);
    let cold = (0..).map(|nth| format!("cold-{nth}")).find(|pk| bench.put(pk, "a").is_ok()).unwrap();
    let error = run(&[insert(&cold, "b"), insert(HOT, "x")]).unwrap_err();
    assert_eq!(error.code.name(), "TransactionCanceledException");
    let codes: Vec<Json> = body(&error)["CancellationReasons"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| one["Code"].clone())
        .collect();
    assert_eq!(codes, [json!("None"), json!("ThrottlingError")]);
    assert!(!bench.inner_get(json!({ "TableName": "games", "Key": item(&cold, "b") })));
}

#[test]
fn an_update_pays_the_indexes_that_it_changes() {
    let index = json!([{
        "IndexName": "by-g", "KeySchema": [{ "AttributeName": "g", "KeyType": "HASH" }], "Projection": { "ProjectionType": "KEYS_ONLY" },
    }]);
    let attributes: Vec<Json> =
        ["pk", "sk", "g"].iter().map(|name| json!({ "AttributeName": name, "AttributeType": "S" })).collect();
    let bench = Bench::with_table(json!({
        "BillingMode": "PAY_PER_REQUEST", "GlobalSecondaryIndexes": index, "AttributeDefinitions": attributes,
    }));
    let cost = |text: &str| {
        let before = bench.charged(1).1;
        bench.run(json!({ "Statement": text })).unwrap();
        bench.charged(1).1 - before
    };
    assert_eq!(cost("INSERT INTO games VALUE {'pk': 'a', 'sk': '1', 'g': 'x', 'v': 1}"), 1.0);
    assert_eq!(cost("UPDATE games SET v = 2 WHERE pk = 'a' AND sk = '1'"), 0.0);
    assert_eq!(cost("UPDATE games SET g = 'y' WHERE pk = 'a' AND sk = '1'"), 2.0);
    assert_eq!(cost("UPDATE games REMOVE g WHERE pk = 'a' AND sk = '1'"), 1.0);
    assert_eq!(cost("DELETE FROM games WHERE pk = 'a' AND sk = '1'"), 0.0);
}
