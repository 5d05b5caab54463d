//! Throttling errors, word for word (AWS, "Error handling", and the service model).

use heatsink_dynamo::{Code, Error};
use heatsink_physics::{Cause, ResourceId, Throttle};
use serde_json::{Value as Json, json};

/// The wording of the Developer Guide ("Local secondary indexes").
pub(super) const FULL: &str = "Collection size exceeded.";

const TABLE_PROVISIONED: &str = "The level of configured provisioned throughput for the table was exceeded. Consider increasing your provisioning level with the UpdateTable API.";
const INDEX_PROVISIONED: &str = "The level of configured provisioned throughput for one or more global secondary indexes of the table was exceeded. Consider increasing your provisioning level for the under-provisioned global secondary indexes with the UpdateTable API.";
const TABLE_ON_DEMAND: &str = "Throughput exceeds the current capacity of your table or index. DynamoDB is automatically scaling your table or index so please try again shortly. If exceptions persist, check if you have a hot key: https://docs.aws.amazon.com/amazondynamodb/latest/developerguide/bp-partition-key-design.html";
const INDEX_ON_DEMAND: &str = "Throughput exceeds the current capacity for one or more global secondary indexes. DynamoDB is automatically scaling your index so please try again shortly.";
const MAXIMUM: &str = "Throughput exceeds the maximum OnDemandThroughput configured on table or index";

/// The error for a request that was refused. The first throttle decides its type:
/// `ProvisionedThroughputExceededException` for a provisioned table or index, `ThrottlingException`
/// for one on demand (AWS, "Error handling", and the service model). `arn` names a table or index.
pub(super) fn error(throttles: &[Throttle], arn: impl Fn(ResourceId) -> Option<String>) -> Error {
    let mut reasons = Vec::new();
    for throttle in throttles {
        let reason = json!({ "reason": throttle.reason(), "resource": arn(throttle.on) });
        if !reasons.contains(&reason) {
            reasons.push(reason);
        }
    }
    match throttles.first() {
        Some(first) if first.provisioned => {
            Error::new(Code::ProvisionedThroughputExceededException, message(first))
                .with("ThrottlingReasons", reasons.into())
        }
        // SDKs read the lower-case member here and nothing else (AWS, "Error handling", and the
        // service model).
        first => Error::new(Code::ThrottlingException, first.map_or(TABLE_ON_DEMAND, message))
            .with("throttlingReasons", reasons.into()),
    }
}

/// The error for a transaction of which some of `count` items were refused. `owners` tells each
/// demand's item.
pub(super) fn cancelled(throttles: &[Throttle], owners: &[usize], count: usize) -> Error {
    let mut reasons = vec![json!({ "Code": "None" }); count];
    let mut codes = vec!["None"; count];
    // Backwards, so that the first throttle of an item is the one that stays.
    for throttle in throttles.iter().rev() {
        let Some(item) = owners.get(throttle.demand) else { continue };
        let code = code(throttle);
        if let (Some(reason), Some(shown)) = (reasons.get_mut(*item), codes.get_mut(*item)) {
            *reason = json!({ "Code": code, "Message": message(throttle) });
            *shown = code;
        }
    }
    Error::new(Code::TransactionCanceledException, summary(&codes))
        .with("CancellationReasons", reasons.into())
}

/// What a batch answers in the place of a statement that was refused.
pub(super) fn of_statement(throttles: &[Throttle], table: &str) -> Json {
    let error = throttles.first().map(|first| json!({ "Code": code(first), "Message": message(first) }));
    json!({ "Error": error, "TableName": table })
}

fn code(throttle: &Throttle) -> &'static str {
    if throttle.provisioned { "ProvisionedThroughputExceeded" } else { "ThrottlingError" }
}

/// The error for a transaction of `count` items of which the `nth` has no room in its item
/// collection.
pub(super) fn full(nth: usize, count: usize) -> Error {
    const CODE: &str = "ItemCollectionSizeLimitExceeded";
    let of = |item: usize| {
        if item == nth { json!({ "Code": CODE, "Message": FULL }) } else { json!({ "Code": "None" }) }
    };
    let codes: Vec<&str> = (0..count).map(|item| if item == nth { CODE } else { "None" }).collect();
    Error::new(Code::TransactionCanceledException, summary(&codes))
        .with("CancellationReasons", (0..count).map(of).collect())
}

fn summary(codes: &[&str]) -> String {
    let codes = codes.join(", ");
    format!("Transaction cancelled, please refer cancellation reasons for specific reasons [{codes}]")
}

fn message(throttle: &Throttle) -> &'static str {
    match (throttle.cause, throttle.provisioned, throttle.index) {
        (Cause::MaxOnDemand, _, _) => MAXIMUM,
        (_, true, false) => TABLE_PROVISIONED,
        (_, true, true) => INDEX_PROVISIONED,
        (_, false, false) => TABLE_ON_DEMAND,
        (_, false, true) => INDEX_ON_DEMAND,
    }
}
