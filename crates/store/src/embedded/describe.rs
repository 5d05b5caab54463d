//! Answers operations that the engine does not have but that tools call first: limits and endpoints
//! of the account, and features that no table here has.
//!
//! Each answer is DynamoDB's for an account or a table on which the feature was never enabled.
//! Requests that would enable a feature are refused as unknown. Terraform, the CDK and NoSQL
//! Workbench send these.

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
            | Operation::DescribeKinesisStreamingDestination
            | Operation::DescribeLimits
            | Operation::GetResourcePolicy
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
            return Err(Error::new(
                Code::Other("com.amazonaws.dynamodb.v20120810#PolicyNotFoundException".to_owned()),
                format!("Resource-based policy not found for the provided ResourceArn: {arn}"),
            ));
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
    let Some(named) = request[member].as_str().filter(|named| !named.is_empty()) else {
        let spelled = member.replacen(char::is_uppercase, &member[..1].to_ascii_lowercase(), 1);
        return Err(Error::validation(format!(
            "1 validation error detected: Value at '{spelled}' failed to satisfy constraint: Member must not be null"
        )));
    };
    let name = table_name(named);
    match engine.storage.table_exists(name) {
        Ok(true) => Ok(name.to_owned()),
        Ok(false) => Err(absent(name)),
        Err(why) => Err(Error::internal(format!("the tables could not be read: {why}"))),
    }
}

fn missing(name: &str) -> Error {
    Error::new(
        Code::ResourceNotFoundException,
        format!("Requested resource not found: Table: {name} not found"),
    )
}
