//! PartiQL statements: parsed, and planned on sharded tables.

use bytes::Bytes;
use heatsink_dynamo::Operation;
use heatsink_dynamo::partiql::{parse, tables};
use heatsink_route::Router;
use serde_json::json;

use crate::layouts::Tables;

/// Any statement is refused or planned, and what parses names its table.
pub fn partiql(data: &[u8]) {
    let Ok(statement) = std::str::from_utf8(data) else { return };
    let named = tables(statement);
    if parse(statement).is_ok() {
        assert!(!named.is_empty(), "a statement without a table: {statement}");
    }
    let parameters = json!([{"S": "x"}, {"N": "1"}, {"S": "y"}]);
    let bodies = [
        (Operation::ExecuteStatement, json!({"Statement": statement, "Parameters": parameters, "Limit": 2})),
        (Operation::BatchExecuteStatement, json!({"Statements": [{"Statement": statement}]})),
        (Operation::ExecuteTransaction, json!({"TransactStatements": [{"Statement": statement}]})),
    ];
    for (operation, body) in bodies {
        if let Ok(plan) = Router::new().plan(operation, &Bytes::from(body.to_string()), &Tables::new()) {
            let _ = plan.explain();
        }
    }
}
