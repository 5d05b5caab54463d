//! The SDK at one gateway, and what a failed call may have done. Each request is sent once: every
//! outcome is the gateway's own.

use std::error::Error;
use std::time::Duration;

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::http::HttpResponse;
use aws_sdk_dynamodb::config::retry::RetryConfig;
use aws_sdk_dynamodb::config::timeout::TimeoutConfig;
use aws_sdk_dynamodb::config::{BehaviorVersion, Credentials, Region};
use aws_sdk_dynamodb::error::{DisplayErrorContext, ProvideErrorMetadata, SdkError};
use aws_sdk_dynamodb::types::ConsumedCapacity;

/// The SDK at an endpoint on this machine, which waits so long for an answer.
#[allow(clippy::expect_used, reason = "without TLS nothing of this can be")]
pub fn connect(endpoint: &str, patience: Duration) -> Client {
    let timeouts =
        TimeoutConfig::builder().operation_timeout(patience).connect_timeout(Duration::from_secs(5)).build();
    let config = aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .http_client(heatsink_store::upstream::sdk_http_client(
            &heatsink_store::upstream::Network::plain().expect("TLS is in this build"),
        ))
        .endpoint_url(endpoint)
        .region(Region::new("us-east-1"))
        .credentials_provider(Credentials::new("local", "local", None, None, "clients"))
        .retry_config(RetryConfig::disabled())
        .timeout_config(timeouts)
        .build();
    Client::from_conf(config)
}

/// What a failed call has done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Failure {
    /// Nothing: a condition on an item did not hold.
    Condition,
    /// Nothing: the partition has no capacity left.
    Throttled,
    /// Nothing: refused otherwise, or nobody listened.
    Refused,
    /// Nothing now: its token is known, so it was done earlier.
    TokenKnown,
    /// Perhaps all of it, now or later.
    Unknown,
}

/// A failed call.
#[derive(Debug)]
pub struct Failed {
    /// What it has done.
    pub how: Failure,
    /// Its error's name, to be counted by.
    pub name: String,
    /// All that is known.
    pub text: String,
}

impl Failed {
    /// Reads an error of the SDK.
    pub fn of<E: ProvideErrorMetadata + Error + Send + Sync + 'static>(
        error: &SdkError<E, HttpResponse>,
    ) -> Self {
        let text = DisplayErrorContext(error).to_string();
        let SdkError::ServiceError(told) = error else {
            let refused = text.contains("Connection refused");
            let how = if refused { Failure::Refused } else { Failure::Unknown };
            let name = match error {
                _ if refused => "nobody listened",
                SdkError::TimeoutError(_) => "the client gave up",
                _ => "connection lost",
            };
            return Failed { how, name: name.to_owned(), text };
        };
        let (status, code) = (told.raw().status().as_u16(), told.err().code().unwrap_or_default());
        let message = told.err().message().unwrap_or_default();
        // The reasons of a cancelled transaction stand in its message.
        let cancelled = |reason: &str| code == "TransactionCanceledException" && message.contains(reason);
        let how = match code {
            _ if status >= 500 => Failure::Unknown,
            "ConditionalCheckFailedException" => Failure::Condition,
            _ if cancelled("ConditionalCheckFailed") => Failure::Condition,
            "ProvisionedThroughputExceededException" | "ThrottlingException" => Failure::Throttled,
            _ if cancelled("Throttling") || cancelled("ProvisionedThroughputExceeded") => Failure::Throttled,
            "IdempotentParameterMismatchException" => Failure::TokenKnown,
            _ => Failure::Refused,
        };
        let name = if status >= 500 {
            format!("{status} {code} “{}”", message.split_whitespace().take(9).collect::<Vec<_>>().join(" "))
        } else {
            code.to_owned()
        };
        Failed { how, name, text: format!("{status} {code}: {message}") }
    }
}

/// The write units of a table and its local indexes, which lie on the table's partitions.
pub fn units<'a>(consumed: impl IntoIterator<Item = &'a ConsumedCapacity>) -> f64 {
    let of = |one: &ConsumedCapacity| {
        let local = one.local_secondary_indexes().into_iter().flat_map(|each| each.values());
        one.table().into_iter().chain(local).filter_map(|part| part.capacity_units()).sum::<f64>()
    };
    consumed.into_iter().map(of).sum()
}
