//! Cursors that no page gave, and answers that no store gave. Parts are separated by zero bytes:
//! the first is the cursor (its first byte chooses the request), the others are what the store
//! answers.

use bytes::Bytes;
use heatsink_dynamo::{Error, Operation};
use heatsink_route::Router;
use heatsink_testkit::{Step, Stepped};

use crate::layouts::Tables;

const REQUESTS: [(Operation, &str); 8] = [
    (
        Operation::Query,
        r##""TableName":"S","KeyConditionExpression":"pk = :p","Limit":3,"ReturnConsumedCapacity":"INDEXES""##,
    ),
    (
        Operation::Query,
        r##""TableName":"S","IndexName":"local","KeyConditionExpression":"pk = :p","ScanIndexForward":false"##,
    ),
    (
        Operation::Query,
        r##""TableName":"S","IndexName":"shared","KeyConditionExpression":"pk = :p AND t > :p","Limit":3"##,
    ),
    (
        Operation::Query,
        r##""TableName":"S","IndexName":"other","KeyConditionExpression":"t = :p","Limit":3"##,
    ),
    (
        Operation::Query,
        r##""TableName":"S","IndexName":"inverted","KeyConditionExpression":"sk = :p","Limit":3"##,
    ),
    (Operation::Scan, r##""TableName":"S","FilterExpression":"pk > :p","Limit":3"##),
    (Operation::Scan, r##""TableName":"S","IndexName":"other","FilterExpression":"a = :p""##),
    (
        Operation::Query,
        r##""TableName":"S","KeyConditionExpression":"pk = :p","FilterExpression":"a = :p","Select":"COUNT""##,
    ),
];

/// How many answers a request may take before the target gives up on it.
const MOST_CALLS: usize = 64;

/// Any cursor is refused or planned; any answer of a store becomes an error or an answer.
pub fn cursors(data: &[u8]) {
    let mut parts = data.split(|byte| *byte == 0);
    let Some((choice, cursor)) = parts.next().and_then(<[u8]>::split_first) else { return };
    let (operation, members) = REQUESTS[usize::from(*choice) % REQUESTS.len()];
    let mut body = format!(r#"{{{members},"ExpressionAttributeValues":{{":p":{{"S":"x"}}}}"#).into_bytes();
    if !cursor.is_empty() {
        body.extend_from_slice(br#","ExclusiveStartKey":"#);
        body.extend_from_slice(cursor);
    }
    body.push(b'}');
    let Ok(plan) = Router::new().plan(operation, &Bytes::from(body), &Tables::new()) else { return };
    let _ = plan.explain();
    let mut running = Stepped::new(plan);
    let mut answered = 0;
    loop {
        match running.step() {
            Step::Done(_) => return,
            Step::Call(calls) => {
                for call in calls {
                    answered += 1;
                    let answer = parts.next().map(Bytes::copy_from_slice);
                    running.answer(call.id, answer.ok_or_else(|| Error::internal("no more answers")));
                }
            }
        }
        if answered > MOST_CALLS {
            return;
        }
    }
}
