//! The region in ARNs.

use super::*;

#[tokio::test]
async fn arns_name_the_region_that_the_store_is_told() {
    let store = Embedded::memory().unwrap().in_region("eu-west-3");
    let call = |operation, body| call(&store, operation, body);
    let made = call(
        Operation::CreateTable,
        json!({
            "TableName": "game", "BillingMode": "PAY_PER_REQUEST", "KeySchema": [{"AttributeName": "pk", "KeyType": "HASH"}],
            "AttributeDefinitions": [{"AttributeName": "pk", "AttributeType": "S"}, {"AttributeName": "v", "AttributeType": "S"}],
            "GlobalSecondaryIndexes": [{
                "IndexName": "by-v", "KeySchema": [{"AttributeName": "v", "KeyType": "HASH"}], "Projection": {"ProjectionType": "ALL"},
            }],
            "StreamSpecification": { "StreamEnabled": true, "StreamViewType": "NEW_IMAGE" },
        }),
    )
    .await;
    let table = "arn:aws:dynamodb:eu-west-3:000000000000:table/game";
    assert_eq!(made["TableDescription"]["TableArn"], table);
    let told = call(Operation::DescribeTable, json!({ "TableName": "game" })).await["Table"].take();
    assert_eq!(told["GlobalSecondaryIndexes"][0]["IndexArn"], format!("{table}/index/by-v"));
    let stream = told["LatestStreamArn"].as_str().unwrap();
    assert!(stream.starts_with(&format!("{table}/stream/")), "{stream}");
    // An item that holds the engine's own is given back as it is.
    let item = json!({ "pk": { "S": "arn:aws:dynamodb:dynoxide:000000000000:table/game" } });
    call(Operation::PutItem, json!({ "TableName": "game", "Item": item })).await;
    let key = json!({ "TableName": "game", "Key": item });
    assert_eq!(call(Operation::GetItem, key).await["Item"], item);
    let described = call(Operation::DescribeStream, json!({ "StreamArn": stream })).await;
    let shard = &described["StreamDescription"]["Shards"][0]["ShardId"];
    let from = json!({ "StreamArn": stream, "ShardId": shard, "ShardIteratorType": "TRIM_HORIZON" });
    let iterator = call(Operation::GetShardIterator, from).await["ShardIterator"].take();
    let record = call(Operation::GetRecords, json!({ "ShardIterator": iterator })).await["Records"][0].take();
    assert_eq!((&record["awsRegion"], &record["dynamodb"]["NewImage"]), (&json!("eu-west-3"), &item));
}

#[tokio::test]
async fn without_one_it_is_us_east_1() {
    let store = Embedded::memory().unwrap();
    table(&store, "game").await;
    let told = call(&store, Operation::DescribeTable, json!({ "TableName": "game" })).await;
    assert_eq!(told["Table"]["TableArn"], "arn:aws:dynamodb:us-east-1:000000000000:table/game");
}
