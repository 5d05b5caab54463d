//! Values that are larger than an item. Limits and words as DynamoDB Local has them (November
//! 2026).

use super::{validation, verdict};
use crate::{Code, Operation};

const TOO_LARGE: &str = "Item size has exceeded the maximum allowed size";
/// What a value of two bytes in a list, the smallest but for empty strings, has to occur so often
/// for.
const MOST: usize = 400 * 1024 / 2;

fn list(element: &str, count: usize) -> String {
    format!(r#"{{"L":[{}]}}"#, vec![element; count].join(","))
}

#[test]
fn an_item_holds_four_hundred_kilobytes_wherever_it_stands() {
    let item = |value: &str| format!(r#"{{"pk":{{"S":"x"}},"a":{value}}}"#);
    // Two bytes of names, one of the key's text, one of `a`, three of the list: as many elements as
    // still fit.
    let (fits, too_many) = (list(r#"{"NULL":true}"#, MOST - 4), list(r#"{"NULL":true}"#, MOST));
    for (operation, body) in [
        (Operation::PutItem, r#"{"TableName":"game","Item":ITEM}"#),
        (Operation::GetItem, r#"{"TableName":"game","Key":ITEM}"#),
        (Operation::BatchWriteItem, r#"{"RequestItems":{"game":[{"PutRequest":{"Item":ITEM}}]}}"#),
        (Operation::BatchWriteItem, r#"{"RequestItems":{"game":[{"DeleteRequest":{"Key":ITEM}}]}}"#),
        (Operation::BatchGetItem, r#"{"RequestItems":{"game":{"Keys":[{},ITEM]}}}"#),
        (Operation::TransactWriteItems, r#"{"TransactItems":[{"Put":{"TableName":"game","Item":ITEM}}]}"#),
        (Operation::Query, r#"{"TableName":"game","ExclusiveStartKey":ITEM}"#),
    ] {
        assert_eq!(verdict(operation, &body.replace("ITEM", &item(&fits))), None, "{operation:?}");
        validation(operation, &body.replace("ITEM", &item(&too_many)), TOO_LARGE);
    }
    let put = |value: &str| format!(r#"{{"TableName":"game","Item":{}}}"#, item(value));
    // What counts is what is said, not how it is written.
    let text = |letter: &str, count: usize| format!(r#"{{"S":"{}"}}"#, letter.repeat(count));
    assert_eq!(verdict(Operation::PutItem, &put(&text("\\u0041", 400_000))), None);
    validation(Operation::PutItem, &put(&text("x", 409_600)), TOO_LARGE);
    // A value that is none hides nothing.
    let odd = list(r#"{"M":{}},{"S":"x","N":null}"#, 2 * MOST);
    validation(Operation::PutItem, &put(&odd), TOO_LARGE);
    // Other members' faults come first.
    let body = put(&too_many).replace(r#""game""#, r#""g""#);
    let (code, message) = verdict(Operation::PutItem, &body).unwrap();
    assert!(code == Code::ValidationException && message.contains("'tableName'"), "{message}");
}

#[test]
fn values_beside_items_hold_no_more_objects_than_an_item() {
    let maps = list(r#"{"M":{}}"#, 2 * MOST);
    let few = list(r#"{"M":{}}"#, MOST - 10);
    let update = |values: &str| format!(r#"{{"TableName":"game","Key":{{}},"AttributeUpdates":{values}}}"#);
    validation(Operation::UpdateItem, &update(&format!(r#"{{"a":{{"Value":{maps}}}}}"#)), TOO_LARGE);
    assert_eq!(verdict(Operation::UpdateItem, &update(&format!(r#"{{"a":{{"Value":{few}}}}}"#))), None);
    // Of a set that is taken out, as long as it may be.
    let set = format!(r#"{{"a":{{"Value":{{"SS":["{}"]}},"Action":"DELETE"}}}}"#, "x".repeat(1_000_000));
    assert_eq!(verdict(Operation::UpdateItem, &update(&set)), None);
    let expected =
        format!(r#"{{"TableName":"game","Key":{{}},"Expected":{{"a":{{"AttributeValueList":[{maps}]}}}}}}"#);
    validation(Operation::DeleteItem, &expected, TOO_LARGE);
    let named = "ExpressionAttributeValues contains invalid value: Item size has exceeded the maximum allowed size for key :b";
    let values = format!(r#"{{":a":{few},":b":{maps}}}"#);
    let condition = format!(r#"{{"TableName":"game","Key":{{}},"ExpressionAttributeValues":{values}}}"#);
    validation(Operation::DeleteItem, &condition, named);
    let action =
        r#"{"TransactItems":[{"Delete":{"TableName":"game","Key":{},"ExpressionAttributeValues":VALUES}}]}"#;
    validation(Operation::TransactWriteItems, &action.replace("VALUES", &values), named);
}
