//! Calls that act on tables, not on items: what they answer must show no trace of sharding, and
//! what they change must hold for the items.

use fastrand::Rng;
use heatsink_dynamo::Operation;
use serde_json::{Value as Json, json};

use crate::schema::{Index, Table};

/// An index of the first table that comes and goes.
pub const LATE: &str = "late";

/// A request, and its operation.
pub fn step(rng: &mut Rng, table: &Table, first: &Table) -> (Operation, Json) {
    let named = json!({"TableName": table.name});
    // The engine's own ARNs.
    let resource = format!("arn:aws:dynamodb:us-east-1:000000000000:table/{}", table.name);
    match rng.u32(..14) {
        0..=1 => (Operation::DescribeTable, named),
        2 if rng.bool() => (Operation::ListTables, json!({"Limit": rng.u32(1..6)})),
        2 => (Operation::ListTables, json!({"ExclusiveStartTableName": table.name, "Limit": rng.u32(1..6)})),
        3..=5 => (Operation::UpdateTable, late(rng, first)),
        6 => {
            let specification = json!({"AttributeName": "n", "Enabled": rng.bool()});
            let body = json!({"TableName": table.name, "TimeToLiveSpecification": specification});
            (Operation::UpdateTimeToLive, body)
        }
        7 => (Operation::DescribeTimeToLive, named),
        8 => {
            let team = if rng.bool() { "a" } else { "b" };
            let tags = json!([{"Key": "team", "Value": team}]);
            (Operation::TagResource, json!({"ResourceArn": resource, "Tags": tags}))
        }
        9 => (Operation::UntagResource, json!({"ResourceArn": resource, "TagKeys": ["team"]})),
        10 => (Operation::ListTagsOfResource, json!({"ResourceArn": resource})),
        11 => (Operation::DescribeLimits, json!({})),
        12 => (Operation::DescribeEndpoints, json!({})),
        _ => (Operation::ListStreams, named),
    }
}

/// Makes the late index, or takes it away.
fn late(rng: &mut Rng, table: &Table) -> Json {
    let change = if rng.bool() {
        json!({"Create": {
            "IndexName": LATE,
            "KeySchema": [
                {"AttributeName": "t", "KeyType": "HASH"}, {"AttributeName": "pk", "KeyType": "RANGE"},
            ],
            "Projection": {"ProjectionType": "ALL"},
        }})
    } else {
        json!({"Delete": {"IndexName": LATE}})
    };
    let definitions = table.create()["AttributeDefinitions"].clone();
    json!({
        "TableName": table.name,
        "AttributeDefinitions": definitions,
        "GlobalSecondaryIndexUpdates": [change],
    })
}

/// The late index, for queries; it may not be there.
pub fn late_index() -> Index {
    Index {
        name: LATE,
        partition: ("t", "S"),
        sort: Some(("pk", "S")),
        more: [vec![], vec![]],
        local: false,
        projection: json!({"ProjectionType": "ALL"}),
    }
}
