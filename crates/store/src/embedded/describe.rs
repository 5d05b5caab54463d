//! Answers operations that the engine does not have but that tools call first: limits and endpoints
//! of the account, and features that no table here has.
//!
//! Each answer is DynamoDB's for an account or a table on which the feature was never enabled.
//! Requests that would enable a feature are refused as unknown; those for S3, which is not here, with
//! what to do in place of them. Terraform, the CDK and NoSQL Workbench send these.

use heatsink_dynamo::{Code, Error, Operation};
use heatsink_physics::Quotas;
use serde_json::{Value as Json, json};

use super::engine::{Engine, table_name};

/// How long a client may remember the endpoint, in minutes.
const REMEMBERED: u32 = 1440;

/// Whether the operation is answered here.
pub(super) const fn answers(operation: Operation) -> bool {
    matches!(
        operation,
        Operation::DescribeContributorInsights
            | Operation::DescribeEndpoints
            | Operation::DescribeExport
            | Operation::DescribeImport
            | Operation::DescribeKinesisStreamingDestination
            | Operation::DescribeLimits
            | Operation::ExportTableToPointInTime
            | Operation::GetResourcePolicy
            | Operation::ImportTable
            | Operation::ListBackups
            | Operation::ListContributorInsights
            | Operation::ListExports
            | Operation::ListGlobalTables
            | Operation::ListImports
    )
}

/// The answer. `address`: host and port of the endpoint.
///
/// # Errors
/// `ValidationException` for a request that names no table, `ResourceNotFoundException` for one that
/// is not there, `PolicyNotFoundException` where a policy is asked for.
pub(super) fn answer(
    engine: &Engine,
    operation: Operation,
    request: &Json,
    address: &str,
) -> Result<Json, Error> {
    Ok(match operation {
        Operation::DescribeLimits => {
            // Quotas of an account: read and write units per second.
            let Quotas { table, account, .. } = Quotas::default();
            json!({
                "AccountMaxReadCapacityUnits": account, "AccountMaxWriteCapacityUnits": account,
                "TableMaxReadCapacityUnits": table, "TableMaxWriteCapacityUnits": table,
            })
        }
        Operation::DescribeEndpoints => {
            json!({"Endpoints": [{"Address": address, "CachePeriodInMinutes": REMEMBERED}]})
        }
        Operation::ListBackups => json!({"BackupSummaries": []}),
        Operation::ListContributorInsights => json!({"ContributorInsightsSummaries": []}),
        Operation::ListExports => json!({"ExportSummaries": []}),
        Operation::ListGlobalTables => json!({"GlobalTables": []}),
        Operation::ListImports => json!({"ImportSummaryList": []}),
        Operation::DescribeContributorInsights => {
            let mut answer = json!({
                "TableName": existing(engine, request, "TableName", missing)?,
                "ContributorInsightsStatus": "DISABLED",
            });
            if let Some(index) = request["IndexName"].as_str() {
                answer["IndexName"] = index.into();
            }
            answer
        }
        Operation::DescribeKinesisStreamingDestination => json!({
            "TableName": existing(engine, request, "TableName", missing)?,
            "KinesisDataStreamDestinations": [],
        }),
        Operation::GetResourcePolicy => {
            existing(engine, request, "ResourceArn", missing)?;
            let arn = request["ResourceArn"].as_str().unwrap_or_default();
            let told = format!("Resource-based policy not found for the provided ResourceArn: {arn}");
            return Err(of_dynamodb("PolicyNotFoundException", told));
        }
        Operation::DescribeExport => {
            let told = format!("Export not found: {}", named(request, "ExportArn")?);
            return Err(of_dynamodb("ExportNotFoundException", told));
        }
        Operation::DescribeImport => {
            let told = format!("Import not found: {}", named(request, "ImportArn")?);
            return Err(of_dynamodb("ImportNotFoundException", told));
        }
        Operation::ExportTableToPointInTime => {
            let told = "This store has no S3 to export to. Scan the table instead: it gives each item under the key that clients use";
            return Err(Error::new(Code::UnknownOperationException, told));
        }
        Operation::ImportTable => {
            let told = "This store has no S3 to import from. Create the table with CreateTable, and write its items with BatchWriteItem";
            return Err(Error::new(Code::UnknownOperationException, told));
        }
        _ => return Err(Error::bare(Code::UnknownOperationException)),
    })
}

/// The name of the table that a member names, by name or ARN.
///
/// # Errors
/// `ValidationException` where it names none, `absent` where the table is not there.
pub(super) fn existing(
    engine: &Engine,
    request: &Json,
    member: &str,
    absent: fn(&str) -> Error,
) -> Result<String, Error> {
    let name = table_name(named(request, member)?);
    match engine.storage.table_exists(name) {
        Ok(true) => Ok(name.to_owned()),
        Ok(false) => Err(absent(name)),
        Err(why) => Err(Error::internal(format!("the tables could not be read: {why}"))),
    }
}

/// What a member names.
///
/// # Errors
/// `ValidationException` where it names nothing.
fn named<'r>(request: &'r Json, member: &str) -> Result<&'r str, Error> {
    request[member].as_str().filter(|named| !named.is_empty()).ok_or_else(|| {
        let spelled = member.replacen(char::is_uppercase, &member[..1].to_ascii_lowercase(), 1);
        Error::validation(format!(
            "1 validation error detected: Value at '{spelled}' failed to satisfy constraint: Member must not be null"
        ))
    })
}

/// An error of that type, which no other operation has.
fn of_dynamodb(name: &str, told: String) -> Error {
    Error::new(Code::Other(format!("com.amazonaws.dynamodb.v20120810#{name}")), told)
}

fn missing(name: &str) -> Error {
    Error::new(
        Code::ResourceNotFoundException,
        format!("Requested resource not found: Table: {name} not found"),
    )
}
