//! Reads back everything that the clients wrote, as a client of a gateway sees it, and counts it
//! against the account.
//!
//! Not here: what has to be there (`account`).

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use heatsink_dynamo::Operation;
use heatsink_env::Env;
use serde_json::{Value as Json, json};

use super::subject::{Act, INDEX, Subject, TOPIC};
use super::traffic::Offer;
use crate::demo::account::{Count, Holds};
use crate::demo::fleet::Fleet;
use crate::demo::workload::TABLE;
use crate::exit::Exit;

/// Between two pages that are refused: the partitions may still be in debt.
const PAUSE: Duration = Duration::from_millis(200);
/// Pages are asked for so many times.
const TRIES: u32 = 300;

/// A place of an item: its table key and sort key.
type Place = (String, String);

/// Counts all keys: by a Scan of the table, and values of the index by a Query of it, too.
pub async fn count(env: &Arc<dyn Env>, fleet: &Fleet, offer: &Offer) -> Result<Vec<Count>, Exit> {
    let scan = json!({ "TableName": TABLE, "ProjectionExpression": "pk, sk, n" });
    let whole = read(env, fleet, Operation::Scan, scan).await?;
    let mut counts = Vec::new();
    for (nth, subject) in offer.subjects().iter().enumerate() {
        let mut count = offer.account().count(nth, subject.is_old(), &found(subject, &whole));
        if subject.act == Act::Value {
            let query = json!({
                "TableName": TABLE, "IndexName": INDEX, "KeyConditionExpression": format!("{TOPIC} = :value"),
                "ExpressionAttributeValues": { ":value": { "S": subject.name } },
            });
            let listed = read(env, fleet, Operation::Query, query).await?;
            // The index has keys alone, so the table's items say what they hold.
            let missing = (0..subject.items).filter(|item| {
                let place = subject.place(*item);
                whole.contains_key(&place) != listed.contains_key(&place)
            });
            count.lost += missing.count() as u64;
        }
        counts.push(count);
    }
    Ok(counts)
}

/// What a key's items hold, of all that was found.
fn found(subject: &Subject, whole: &HashMap<Place, Option<u32>>) -> HashMap<usize, Holds> {
    let holds = |number: Option<u32>| match (subject.act, number) {
        (Act::Add, number) => Holds::Sum(number.unwrap_or(0)),
        (_, Some(number)) => Holds::Write(number),
        (_, None) => Holds::Nothing,
    };
    let of = |item: usize| whole.get(&subject.place(item)).map(|number| (item, holds(*number)));
    (0..subject.items).filter_map(of).collect()
}

/// All items of a read, by their place; twice the same place is a fault.
async fn read(
    env: &Arc<dyn Env>,
    fleet: &Fleet,
    operation: Operation,
    mut body: Json,
) -> Result<HashMap<Place, Option<u32>>, Exit> {
    let mut found = HashMap::new();
    loop {
        let mut page = page(env, fleet, operation, &body).await?;
        for item in page["Items"].as_array().into_iter().flatten() {
            let text = |name: &str| item[name]["S"].as_str().unwrap_or_default().to_owned();
            let number = item["n"]["N"].as_str().and_then(|number| number.parse().ok());
            let place = (text("pk"), text("sk"));
            if found.insert(place, number).is_some() {
                return Err(Exit::failed("an item was read twice"));
            }
        }
        body["ExclusiveStartKey"] = page["LastEvaluatedKey"].take();
        if body["ExclusiveStartKey"].is_null() {
            return Ok(found);
        }
    }
}

async fn page(env: &Arc<dyn Env>, fleet: &Fleet, operation: Operation, body: &Json) -> Result<Json, Exit> {
    for _ in 1..TRIES {
        match fleet.try_call(operation, body).await {
            Err(error) if error.is_throttled() => env.sleep(PAUSE).await,
            answer => return answer.map_err(|error| crate::demo::server::failed(&error)),
        }
    }
    fleet.call(operation, body).await
}
