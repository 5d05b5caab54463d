//! Conditions in the old form: an operator that does not take its operands is refused, whichever
//! operator it is.

use heatsink_dynamo::{Code, Operation};
use heatsink_store::embedded::Embedded;
use serde_json::json;

use crate::embedded::support::{refused, table};

#[tokio::test]
async fn an_operator_is_refused_operands_that_it_does_not_take() {
    let store = Embedded::memory().unwrap();
    table(&store, "game").await;
    let nothing = json!({ "NULL": true });
    for (operator, operands) in [
        ("BETWEEN", json!([nothing, nothing])),
        ("BETWEEN", json!([{ "S": "b" }, { "S": "a" }])),
        ("GE", json!([{ "BOOL": true }])),
        ("IN", json!([{ "L": [] }])),
        ("EQ", json!([])),
    ] {
        let condition = json!({ "ComparisonOperator": operator, "AttributeValueList": operands });
        let delete = json!({
            "TableName": "game", "Key": { "pk": { "S": "a" }, "sk": { "S": "b" } }, "Expected": { "x": condition },
        });
        let error = refused(&store, Operation::DeleteItem, delete).await;
        assert_eq!(error.code, Code::ValidationException, "{operator} {operands}: {error}");
    }
}
