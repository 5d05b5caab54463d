//! Reads a table's whole stream through a store.

use heatsink_dynamo::{Error, Operation};
use heatsink_store::Store;
use serde_json::{Value as Json, json};

use crate::compare::{Answer, ask, order_sets};

/// Every record of the stream of `step`'s table, a page of its `Limit` at a time.
pub async fn records(store: &dyn Store, body: &Json) -> Answer {
    let mut pages = Vec::new();
    match read(store, body, &mut pages).await {
        Ok(()) => Answer { pages, ..Answer::default() },
        Err(error) => {
            let error = Some((error.code.name().to_owned(), error.message, Json::Null));
            Answer { pages, error, ..Answer::default() }
        }
    }
}

async fn read(store: &dyn Store, body: &Json, pages: &mut Vec<Json>) -> Result<(), Error> {
    let streams = ask(store, Operation::ListStreams, &json!({"TableName": body["TableName"]})).await?;
    for stream in streams["Streams"].as_array().into_iter().flatten() {
        let arn = &stream["StreamArn"];
        let described = ask(store, Operation::DescribeStream, &json!({ "StreamArn": arn })).await?;
        for shard in described["StreamDescription"]["Shards"].as_array().into_iter().flatten() {
            let from = json!({
                "StreamArn": arn, "ShardId": shard["ShardId"], "ShardIteratorType": "TRIM_HORIZON",
            });
            let mut iterator = ask(store, Operation::GetShardIterator, &from).await?["ShardIterator"].clone();
            loop {
                let request = json!({"ShardIterator": iterator, "Limit": body["Limit"]});
                let mut page = ask(store, Operation::GetRecords, &request).await?;
                iterator = page["NextShardIterator"].take();
                if page["Records"].as_array().is_none_or(Vec::is_empty) {
                    break;
                }
                page["Records"].as_array_mut().into_iter().flatten().for_each(comparable);
                pages.push(page);
            }
        }
    }
    Ok(())
}

/// Takes out what differs between any two streams. Of a binary key the engine counts the base64,
/// not the bytes.
fn comparable(record: &mut Json) {
    order_sets(record);
    let Some(members) = record.as_object_mut() else { return };
    members.remove("eventID");
    if let Some(change) = members.get_mut("dynamodb").and_then(Json::as_object_mut) {
        // The engine makes it of the time.
        change.remove("SequenceNumber");
        change.remove("ApproximateCreationDateTime");
        if change["Keys"]["pk"].get("B").is_some() {
            change.remove("SizeBytes");
        }
    }
}
