//! The table of all simulations, the rules for it, and how it comes and goes.

use std::time::Duration;

use heatsink_dynamo::{Code, Operation as Wire};
use heatsink_history::{Operation, Value};
use serde_json::{Value as Json, json};

use crate::client::{EXPIRES, EXPIRING, PATIENCE, number};
use crate::world::World;
use crate::{INDEX, TABLE};

/// The table's own keys over four shards.
pub const OWN: &str = "[[rule]]\ntable = \"Board\"\nstrategy = \"calculated\"\nshards = 4\n";
/// The index's keys over three.
pub const BY_STATUS: &str =
    "[[rule]]\ntable = \"Board\"\nindex = \"by-status\"\nstrategy = \"calculated\"\nshards = 3\n";
/// The table's own keys in a bucket for each day.
pub const DAYS: &str = "[[rule]]\ntable = \"Board\"\nstrategy = \"bucket\"\nbucket = \"day\"\n";
/// The number `n` of every item in four shards.
pub const VOTES: &str =
    "[[rule]]\ntable = \"Board\"\nstrategy = \"counter\"\nattributes = [\"n\"]\nshards = 4\n";

impl World {
    /// Asks a gateway to turn time to live on, or off. Whether it was done is not waited for.
    pub async fn expire(&self, gateway: usize, enabled: bool) {
        if let Err(error) = self.ask(gateway, Wire::UpdateTimeToLive, &expiry(enabled), PATIENCE).await {
            self.log.line(format!("  time to live is not changed by gateway {gateway}: {error}"));
        }
    }

    /// Turns time to live on, bypassing Heatsink.
    pub async fn expire_past(&self) {
        self.past(Wire::UpdateTimeToLive, &expiry(true)).await.expect("the table is there");
    }

    /// Whether the store deletes items by time to live.
    pub async fn expires(&self) -> bool {
        let told = self.past(Wire::DescribeTimeToLive, &of_table()).await.expect("the table is there");
        told["TimeToLiveDescription"]["TimeToLiveStatus"] == "ENABLED"
    }

    /// The store deletes what has expired: of each row that has, `chosen` says whether now. Whether
    /// that was the item is not known, so it is written down as a call without an answer.
    pub async fn delete_expired(&self, mut chosen: impl FnMut() -> bool) {
        let scan = json!({ "TableName": TABLE, "ConsistentRead": true });
        let page = self.past(Wire::Scan, &scan).await.expect("the table is there");
        for row in page["Items"].as_array().into_iter().flatten() {
            if row.get(EXPIRES).is_none() || !chosen() {
                continue;
            }
            let invoked = self.book.moment();
            let delete = json!({
                "TableName": TABLE, "Key": { "pk": row["pk"], "sk": row["sk"] }, "ReturnValues": "ALL_OLD",
                "ConditionExpression": "attribute_exists(#e)", "ExpressionAttributeNames": { "#e": EXPIRES },
            });
            // It was moved, or written anew.
            let Ok(answer) = self.past(Wire::DeleteItem, &delete).await else { continue };
            self.log.line(format!("the store deletes {}", answer["Attributes"]));
            let (item, number) = (row["sk"]["S"].as_str(), number(&answer["Attributes"]));
            let (Some(item), Some(number)) = (item, number) else { continue };
            self.book.call(item, invoked, Operation::Expire(Value { number, label: EXPIRING }), None);
        }
    }

    /// Turns time to live off, bypassing Heatsink.
    pub async fn keep_all(&self) {
        self.past(Wire::UpdateTimeToLive, &expiry(false)).await.expect("it is on");
    }

    /// Makes the table bypassing Heatsink, if it is not there.
    pub async fn create_past(&self) {
        if let Err(error) = self.past(Wire::CreateTable, &create()).await {
            assert_eq!(error.code, Code::ResourceInUseException, "{error}");
        }
    }

    /// Drops the table bypassing Heatsink, if it is there.
    pub async fn drop_past(&self) {
        if let Err(error) = self.past(Wire::DeleteTable, &of_table()).await {
            assert_eq!(error.code, Code::ResourceNotFoundException, "{error}");
        }
    }

    /// Has a gateway make the table, or drop it, and tries again until that is so.
    pub async fn change_table(&self, gateway: usize, operation: Wire) {
        let (body, so) = match operation {
            Wire::CreateTable => (create(), Code::ResourceInUseException),
            _ => (of_table(), Code::ResourceNotFoundException),
        };
        for _ in 0..500 {
            match self.ask(gateway, operation, &body, PATIENCE).await {
                Ok(_) => return,
                Err(error) if error.code == so => return,
                Err(_) => self.clock.sleep(Duration::from_secs(1)).await,
            }
        }
        self.book.fault_within_bounds(format!("{} does not succeed", operation.name()));
    }
}

/// The request that turns time to live on, or off.
pub fn expiry(enabled: bool) -> Json {
    let specification = json!({ "Enabled": enabled, "AttributeName": EXPIRES });
    json!({ "TableName": TABLE, "TimeToLiveSpecification": specification })
}

fn of_table() -> Json {
    json!({ "TableName": TABLE })
}

/// The request that makes the table. Its index has no sort key: nothing but the shard tells where a
/// page of it ends.
pub fn create() -> Json {
    let attribute = |name: &str| json!({ "AttributeName": name, "AttributeType": "S" });
    let key = |name: &str, kind: &str| json!({ "AttributeName": name, "KeyType": kind });
    json!({
        "TableName": TABLE, "BillingMode": "PAY_PER_REQUEST",
        "KeySchema": [key("pk", "HASH"), key("sk", "RANGE")],
        "AttributeDefinitions": [attribute("pk"), attribute("sk"), attribute("status")],
        "GlobalSecondaryIndexes": [{
            "IndexName": INDEX, "KeySchema": [key("status", "HASH")], "Projection": { "ProjectionType": "ALL" },
        }],
    })
}
