//! The simulation itself is tested: what is done to the store behind the clients' backs is found at
//! the end.

use heatsink_dynamo::Operation as Wire;
use serde_json::{Value as Json, json};

use crate::TABLE;
use crate::scene::{items, played, put_all, seconds, start};
use crate::table::OWN;

/// Plays puts that are all acknowledged, and then one request that bypasses Heatsink. Returns what
/// is found.
fn found(requests: impl Fn(&Json) -> Vec<(Wire, Json)> + 'static) -> String {
    let (wrong, acknowledged) = played(1, &[OWN, OWN], items(4), |world, items| async move {
        start(&world).await;
        world.change_table(0, Wire::CreateTable).await;
        put_all(&world, &items, &[0, 1], seconds(1.0), 1).await;
        let rows = world.past(Wire::Scan, &json!({ "TableName": TABLE })).await.unwrap();
        let spread = |row: &&Json| row["pk"]["S"].as_str().unwrap().contains("#~");
        let row = rows["Items"].as_array().unwrap().iter().find(spread).expect("four items are spread");
        for (operation, body) in requests(row) {
            world.past(operation, &body).await.unwrap();
        }
    });
    assert_eq!(acknowledged, 4);
    wrong.join("\n")
}

fn delete(row: &Json) -> (Wire, Json) {
    (Wire::DeleteItem, json!({ "TableName": TABLE, "Key": { "pk": row["pk"], "sk": row["sk"] } }))
}

fn put(row: &Json, attribute: &str, value: &str) -> (Wire, Json) {
    let mut item = row.clone();
    item[attribute]["S"] = json!(value);
    (Wire::PutItem, json!({ "TableName": TABLE, "Item": item }))
}

#[test]
fn without_a_fault_nothing_is_found() {
    assert_eq!(found(|_| Vec::new()), "");
}

#[test]
fn a_row_that_is_lost_is_found() {
    let found = found(|row| vec![delete(row)]);
    assert!(found.contains("is not linearizable") && found.contains("saw nothing"), "{found}");
}

#[test]
fn a_row_that_lies_where_no_reader_looks_is_found() {
    let found = found(|row| vec![delete(row), put(row, "pk", "game#~77")]);
    assert!(found.contains("is not linearizable") && found.contains("the store holds"), "{found}");
}

#[test]
fn a_row_that_lies_in_two_shards_is_found() {
    let found = found(|row| vec![put(row, "pk", "game")]);
    assert!(found.contains("twice"), "{found}");
}

#[test]
fn a_physical_value_that_a_client_is_shown_is_found() {
    let found = found(|row| vec![put(row, "status", "open#~1")]);
    assert!(found.contains("a client is shown"), "{found}");
}
