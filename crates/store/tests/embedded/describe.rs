//! What tools ask before they work.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test helper fails by panicking")]

use heatsink_dynamo::{Code, Operation};
use heatsink_store::embedded::Embedded;
use serde_json::json;

use crate::embedded::support::{call, refused, table};

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
async fn there_is_no_export_and_no_import_and_asking_for_one_says_what_to_do() {
    let store = Embedded::memory().unwrap();
    table(&store, "game").await;
    let arn = "arn:aws:dynamodb:us-east-1:000000000000:table/game";
    let bucket = json!({"S3Bucket": "b"});
    let export = json!({"TableArn": arn, "S3Bucket": "b"});
    let import = json!({"S3BucketSource": bucket, "InputFormat": "CSV", "TableCreationParameters": {"TableName": "other"}});
    for (operation, request, code, told) in [
        (Operation::ExportTableToPointInTime, export, "UnknownOperationException", "Scan the table instead"),
        (Operation::ImportTable, import, "UnknownOperationException", "BatchWriteItem"),
        (Operation::DescribeExport, json!({"ExportArn": arn}), "ExportNotFoundException", arn),
        (Operation::DescribeImport, json!({"ImportArn": arn}), "ImportNotFoundException", arn),
        (Operation::DescribeExport, json!({}), "ValidationException", "'exportArn'"),
        (Operation::DescribeImport, json!({}), "ValidationException", "'importArn'"),
    ] {
        let error = refused(&store, operation, request).await;
        assert_eq!(error.code.name(), code, "{operation:?}");
        assert!(
            !error.retryable() && error.message.as_ref().is_some_and(|message| message.contains(told)),
            "{error}"
        );
    }
    assert_eq!(call(&store, Operation::ListTables, json!({})).await, json!({"TableNames": ["game"]}));
}

/// What Terraform and the CDK send for a table with `point_in_time_recovery`.
#[tokio::test]
async fn continuous_backups_are_on_once_they_are_turned_on_and_for_that_table_alone() {
    let store = Embedded::memory().unwrap();
    table(&store, "game").await;
    table(&store, "other").await;
    let described = async |name: &str| {
        let answer = call(&store, Operation::DescribeContinuousBackups, json!({"TableName": name})).await;
        answer["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"].clone()
    };
    let set = |specification: serde_json::Value| json!({"TableName": "game", "PointInTimeRecoverySpecification": specification});
    let on = set(json!({"PointInTimeRecoveryEnabled": true, "RecoveryPeriodInDays": 7}));
    let answer = call(&store, Operation::UpdateContinuousBackups, on).await;
    let told = described("game").await;
    assert_eq!(answer["ContinuousBackupsDescription"]["PointInTimeRecoveryDescription"], told);
    assert_eq!(
        (&told["PointInTimeRecoveryStatus"], &told["RecoveryPeriodInDays"]),
        (&json!("ENABLED"), &json!(7))
    );
    assert!(told["EarliestRestorableDateTime"].as_i64() <= told["LatestRestorableDateTime"].as_i64());
    assert_eq!(described("other").await, json!({"PointInTimeRecoveryStatus": "DISABLED"}));
    call(&store, Operation::DeleteTable, json!({"TableName": "game"})).await;
    table(&store, "game").await;
    assert_eq!(described("game").await, json!({"PointInTimeRecoveryStatus": "DISABLED"}), "another table");
    for (wrong, at) in [
        (json!({"TableName": "game"}), "'pointInTimeRecoverySpecification'"),
        (set(json!({})), "'pointInTimeRecoverySpecification.pointInTimeRecoveryEnabled'"),
        (
            set(json!({"PointInTimeRecoveryEnabled": true, "RecoveryPeriodInDays": 36})),
            "'pointInTimeRecoverySpecification.recoveryPeriodInDays'",
        ),
    ] {
        let error = refused(&store, Operation::UpdateContinuousBackups, wrong).await;
        assert_eq!(error.code, Code::ValidationException);
        assert!(error.message.unwrap().contains(at));
    }
    let off = set(json!({"PointInTimeRecoveryEnabled": false}));
    call(&store, Operation::UpdateContinuousBackups, off).await;
    assert_eq!(described("game").await, json!({"PointInTimeRecoveryStatus": "DISABLED"}));
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
