//! What the one client of a counter asks for: each thing that it does, in every kind of request
//! that there is for it.

use heatsink_dynamo::{Error, Operation as Wire, Outcome};
use serde_json::{Value as Json, json};

use crate::TABLE;
use crate::client::{PATIENCE, key, number as number_of};
use crate::widening::Does;
use crate::world::World;

/// In which kind of request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    Alone,
    /// In a batch; an update, which has no batches, alone.
    Batch,
    Transaction,
    /// In a collection: a read by a Query, a delete by a statement.
    Query,
    /// A read by a Scan.
    Scan,
}

impl How {
    pub const ALL: [How; 5] = [How::Alone, How::Batch, How::Transaction, How::Query, How::Scan];
}

impl Does {
    /// Asks for it. Returns the number of the item that a read has found.
    pub async fn ask(
        self,
        world: &World,
        gateway: usize,
        item: &str,
        how: How,
        number: i64,
    ) -> Result<Option<i64>, Error> {
        let (operation, request) = match self {
            Does::Get => read(item, how),
            _ => self.write(item, how, number),
        };
        let answer = world.ask(gateway, operation, &request, PATIENCE).await?;
        // What a batch leaves is not done.
        for left in ["UnprocessedItems", "UnprocessedKeys"] {
            if !answer[left][TABLE].is_null() {
                return Err(Error::unavailable("the batch was not carried out", Outcome::NotDone));
            }
        }
        let found = match operation {
            Wire::GetItem => answer["Item"].clone(),
            Wire::BatchGetItem => answer["Responses"][TABLE][0].clone(),
            Wire::TransactGetItems => answer["Responses"][0]["Item"].clone(),
            Wire::Query | Wire::Scan => {
                let mut rows = answer["Items"].as_array().cloned().unwrap_or_default();
                rows.retain(|row| row["sk"]["S"] == *item);
                if rows.len() > 1 {
                    world.book.fault(format!("one {} shows {item} {} times", operation.name(), rows.len()));
                }
                rows.pop().unwrap_or_default()
            }
            _ => Json::Null,
        };
        Ok((!found.is_null()).then(|| number_of(&found).unwrap_or_default()))
    }

    fn write(self, item: &str, how: How, number: i64) -> (Wire, Json) {
        let mut whole = key(item);
        whole["n"] = json!({ "N": number.to_string() });
        let (operation, action, rest) = match self {
            Does::Put => (Wire::PutItem, "Put", json!({ "Item": whole })),
            Does::Set | Does::Add => {
                let expression = if self == Does::Set { "SET n = :n" } else { "ADD n :n" };
                let values = json!({ ":n": whole["n"] });
                let update = json!({
                    "Key": key(item), "UpdateExpression": expression, "ExpressionAttributeValues": values,
                });
                (Wire::UpdateItem, "Update", update)
            }
            Does::Delete | Does::Get => (Wire::DeleteItem, "Delete", json!({ "Key": key(item) })),
        };
        let mut alone = rest.clone();
        alone["TableName"] = json!(TABLE);
        match (how, self) {
            (How::Transaction, _) => {
                (Wire::TransactWriteItems, json!({ "TransactItems": [{ action: alone }] }))
            }
            (How::Batch, Does::Put | Does::Delete) => {
                let write = json!({ format!("{action}Request"): rest });
                (Wire::BatchWriteItem, json!({ "RequestItems": { TABLE: [write] } }))
            }
            (How::Query, Does::Delete) => {
                let key = key(item);
                let statement = format!("DELETE FROM \"{TABLE}\" WHERE pk = ? AND sk = ?");
                let parameters = json!([key["pk"], key["sk"]]);
                (Wire::ExecuteStatement, json!({ "Statement": statement, "Parameters": parameters }))
            }
            _ => (operation, alone),
        }
    }
}

/// The request that reads an item.
fn read(item: &str, how: How) -> (Wire, Json) {
    let key = key(item);
    match how {
        How::Alone => (Wire::GetItem, json!({ "TableName": TABLE, "Key": key, "ConsistentRead": true })),
        How::Batch => {
            let of_table = json!({ "Keys": [key], "ConsistentRead": true });
            (Wire::BatchGetItem, json!({ "RequestItems": { TABLE: of_table } }))
        }
        How::Transaction => {
            let get = json!({ "Get": { "TableName": TABLE, "Key": key } });
            (Wire::TransactGetItems, json!({ "TransactItems": [get] }))
        }
        How::Query => {
            let values = json!({ ":k": key["pk"], ":s": key["sk"] });
            let request = json!({
                "TableName": TABLE, "KeyConditionExpression": "pk = :k AND sk = :s", "ConsistentRead": true,
                "ExpressionAttributeValues": values,
            });
            (Wire::Query, request)
        }
        How::Scan => (Wire::Scan, json!({ "TableName": TABLE, "ConsistentRead": true })),
    }
}
