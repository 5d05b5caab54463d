//! What tools ask before they work.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test helper fails by panicking")]

use heatsink_dynamo::{Code, Operation};
use heatsink_store::embedded::Embedded;
use serde_json::json;

use crate::support::{call, refused, table};

#[tokio::test]
async fn tools_learn_that_nothing_was_turned_on() {
    let store = Embedded::memory().unwrap().served_at("127.0.0.1:9500");
    table(&store, "game").await;
    assert_eq!(
        call(&store, Operation::DescribeLimits, json!({})).await,
        json!({
            "AccountMaxReadCapacityUnits": 80_000, "AccountMaxWriteCapacityUnits": 80_000,
            "TableMaxReadCapacityUnits": 40_000, "TableMaxWriteCapacityUnits": 40_000,
        })
    );
    assert_eq!(
        call(&store, Operation::DescribeEndpoints, json!({})).await,
        json!({"Endpoints": [{"Address": "127.0.0.1:9500", "CachePeriodInMinutes": 1440}]})
    );
    let arn = call(&store, Operation::DescribeTable, json!({"TableName": "game"})).await["Table"]["TableArn"]
        .clone();
    for named in [json!("game"), arn.clone()] {
        let backups = call(&store, Operation::DescribeContinuousBackups, json!({"TableName": named})).await;
        assert_eq!(
            backups["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"]["PointInTimeRecoveryStatus"],
            "DISABLED"
        );
        assert_eq!(
            call(&store, Operation::DescribeContributorInsights, json!({"TableName": named})).await,
            json!({"TableName": "game", "ContributorInsightsStatus": "DISABLED"})
        );
        assert_eq!(
            call(&store, Operation::DescribeKinesisStreamingDestination, json!({"TableName": named})).await,
            json!({"TableName": "game", "KinesisDataStreamDestinations": []})
        );
    }
    let error = refused(&store, Operation::GetResourcePolicy, json!({"ResourceArn": arn})).await;
    assert_eq!(error.code.name(), "PolicyNotFoundException");
    for (operation, list) in [
        (Operation::ListBackups, "BackupSummaries"),
        (Operation::ListContributorInsights, "ContributorInsightsSummaries"),
        (Operation::ListExports, "ExportSummaries"),
        (Operation::ListGlobalTables, "GlobalTables"),
        (Operation::ListImports, "ImportSummaryList"),
    ] {
        assert_eq!(call(&store, operation, json!({})).await, json!({list: []}));
    }
}

#[tokio::test]
async fn a_table_that_is_not_there_is_refused() {
    let store = Embedded::memory().unwrap();
    let none = json!({"TableName": "nothing"});
    let error = refused(&store, Operation::DescribeContinuousBackups, none.clone()).await;
    assert_eq!(
        (error.code.name(), error.message.as_deref()),
        ("TableNotFoundException", Some("Table not found: nothing"))
    );
    for operation in [Operation::DescribeContributorInsights, Operation::DescribeKinesisStreamingDestination]
    {
        let error = refused(&store, operation, none.clone()).await;
        assert_eq!(error.code, Code::ResourceNotFoundException);
        assert_eq!(refused(&store, operation, json!({})).await.code, Code::ValidationException);
    }
}
