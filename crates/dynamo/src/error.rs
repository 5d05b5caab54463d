//! Errors as DynamoDB gives them: type, code, status, whose fault, whether to retry, whether the
//! outcome is known.

use bytes::Bytes;
use serde_json::{Map, Value as Json, json};

/// Whose fault an error is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// The request is wrong, or asks for more than its limits allow; sent again unchanged it fails
    /// again, unless [`Error::retryable`].
    Client,
    /// Heatsink or the store behind it failed.
    Server,
}

/// Whether the request took effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// Nothing was changed.
    NotDone,
    /// It may or may not have been done: the answer was lost on the way.
    Unknown,
}

macro_rules! codes {
    ($($name:ident => $prefix:ident, $status:literal, $retryable:literal;)*) => {
        /// The error codes that Heatsink itself raises or acts on.
        #[derive(Clone, Debug, PartialEq, Eq)]
        #[allow(missing_docs, reason = "the names are AWS's own")]
        pub enum Code {
            $($name,)*
            /// A code not listed here, passed on from a store: its whole `__type`.
            Other(String),
        }

        impl Code {
            /// The code as SDKs match it: what stands after `#` in `__type`.
            pub fn name(&self) -> &str {
                match self {
                    $(Code::$name => stringify!($name),)*
                    Code::Other(full) => full.rsplit('#').next().unwrap_or(full),
                }
            }

            fn full(&self) -> String {
                match self {
                    $(Code::$name => format!("{}#{}", $prefix, stringify!($name)),)*
                    Code::Other(full) => full.clone(),
                }
            }

            fn status(&self) -> u16 {
                match self { $(Code::$name => $status,)* Code::Other(_) => 400 }
            }

            fn retryable(&self) -> bool {
                match self { $(Code::$name => $retryable,)* Code::Other(_) => false }
            }

            fn read(full: &str) -> Code {
                match full.rsplit('#').next().unwrap_or(full) {
                    $(stringify!($name) => Code::$name,)*
                    _ => Code::Other(full.to_owned()),
                }
            }
        }
    };
}

const DYNAMODB: &str = "com.amazonaws.dynamodb.v20120810";
const CORAL_VALIDATE: &str = "com.amazon.coral.validate";
const CORAL_SERVICE: &str = "com.amazon.coral.service";
const CORAL_AVAILABILITY: &str = "com.amazon.coral.availability";

codes! {
    AccessDeniedException => CORAL_SERVICE, 400, false;
    ConditionalCheckFailedException => DYNAMODB, 400, false;
    DuplicateItemException => DYNAMODB, 400, false;
    ExpiredIteratorException => DYNAMODB, 400, false;
    ExpiredTokenException => CORAL_SERVICE, 400, false;
    IdempotentParameterMismatchException => DYNAMODB, 400, false;
    IncompleteSignatureException => CORAL_SERVICE, 400, false;
    InternalServerError => DYNAMODB, 500, true;
    InvalidSignatureException => CORAL_SERVICE, 400, false;
    ItemCollectionSizeLimitExceededException => DYNAMODB, 400, false;
    LimitExceededException => DYNAMODB, 400, true;
    MissingAuthenticationTokenException => CORAL_SERVICE, 400, false;
    ProvisionedThroughputExceededException => DYNAMODB, 400, true;
    RequestEntityTooLarge => CORAL_SERVICE, 413, false;
    RequestLimitExceeded => DYNAMODB, 400, true;
    RequestTimeoutException => CORAL_SERVICE, 408, true;
    ResourceInUseException => DYNAMODB, 400, false;
    ResourceNotFoundException => DYNAMODB, 400, false;
    SerializationException => CORAL_SERVICE, 400, false;
    ServiceUnavailable => CORAL_AVAILABILITY, 503, true;
    ThrottlingException => CORAL_AVAILABILITY, 400, true;
    TransactionCanceledException => DYNAMODB, 400, false;
    TransactionConflictException => DYNAMODB, 400, true;
    TransactionInProgressException => DYNAMODB, 400, true;
    UnknownOperationException => CORAL_SERVICE, 400, false;
    UnrecognizedClientException => CORAL_SERVICE, 400, false;
    ValidationException => CORAL_VALIDATE, 400, false;
}

/// Who decided that a request fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Origin {
    /// DynamoDB: the store itself, or the checks that are made here as DynamoDB makes them.
    #[default]
    DynamoDb,
    /// Heatsink alone, because of how keys are laid out. DynamoDB would take the request.
    Gateway,
    /// Heatsink, for a moment: while a layout changes the request waits, and is planned again when
    /// that has gone on.
    Held,
    /// Heatsink, whose own request to the store was refused for its credentials.
    Denied,
}

/// A failed request: what the client is told, and what Heatsink knows about it.
///
/// An error that came from a store keeps the store's own bytes and passes on unchanged
/// ([`Error::body`]).
#[derive(Clone, Debug)]
pub struct Error {
    /// The code.
    pub code: Code,
    /// The message. DynamoDB sends some errors without one.
    pub message: Option<String>,
    /// HTTP status.
    pub status: u16,
    /// Further members of the body, by name: `Item`, `CancellationReasons`, `ThrottlingReasons`.
    pub members: Map<String, Json>,
    /// Whether the request took effect.
    pub outcome: Outcome,
    /// Who decided so. No client sees it.
    pub origin: Origin,
    /// The body as a store sent it, until a member is changed.
    raw: Option<Bytes>,
}

impl Error {
    /// An error raised here; nothing was changed.
    pub fn new(code: Code, message: impl Into<String>) -> Self {
        let status = code.status();
        Error {
            code,
            message: Some(message.into()),
            status,
            members: Map::new(),
            outcome: Outcome::NotDone,
            origin: Origin::DynamoDb,
            raw: None,
        }
    }

    /// An error without a message, as DynamoDB gives for bodies that are not JSON and for unknown
    /// operations.
    pub fn bare(code: Code) -> Self {
        Error { message: None, ..Error::new(code, "") }
    }

    /// `ValidationException`.
    pub fn validation(message: impl Into<String>) -> Self {
        Error::new(Code::ValidationException, message)
    }

    /// `ValidationException` for what Heatsink alone refuses, because of how keys are laid out.
    pub fn gateway_rejection(message: impl Into<String>) -> Self {
        Error { origin: Origin::Gateway, ..Error::validation(message) }
    }

    /// `SerializationException`.
    pub fn serialization(message: impl Into<String>) -> Self {
        Error::new(Code::SerializationException, message)
    }

    /// `InternalServerError`: Heatsink's own fault.
    pub fn internal(message: impl Into<String>) -> Self {
        Error::new(Code::InternalServerError, message)
    }

    /// The store could not be reached, or its answer was lost. `outcome` says whether it may have
    /// acted.
    pub fn unavailable(message: impl Into<String>, outcome: Outcome) -> Self {
        Error { outcome, ..Error::new(Code::ServiceUnavailable, message) }
    }

    /// `ServiceUnavailable` for a request that waits while a layout changes. A client gets it that
    /// has waited for too long.
    pub fn held(message: impl Into<String>) -> Self {
        Error { origin: Origin::Held, ..Error::unavailable(message, Outcome::NotDone) }
    }

    /// The same error with one more member in its body.
    pub fn with(mut self, name: &str, value: Json) -> Self {
        self.raw = None;
        self.members.insert(name.to_owned(), value);
        self
    }

    /// The error with another message.
    #[must_use]
    pub fn with_message(mut self, message: String) -> Self {
        self.raw = None;
        self.message = Some(message);
        self
    }

    /// Reads an error as it stands on the wire. A body that is no DynamoDB error becomes
    /// `InternalServerError` (status 500 and above) or keeps its status with the body's text as
    /// message.
    pub fn from_wire(status: u16, body: Bytes) -> Self {
        let outcome = if status >= 500 { Outcome::Unknown } else { Outcome::NotDone };
        let Ok(Json::Object(mut members)) = serde_json::from_slice::<Json>(&body) else {
            let text: String = String::from_utf8_lossy(&body).chars().take(200).collect();
            let message = format!(
                "The store answered with status {status} and a body that is not an error of DynamoDB: {text}"
            );
            let code = if status == 503 { Code::ServiceUnavailable } else { Code::InternalServerError };
            return Error { outcome, status: status.max(500), ..Error::new(code, message) };
        };
        let code = match members.remove("__type") {
            Some(Json::String(full)) => Code::read(&full),
            _ => Code::InternalServerError,
        };
        let message = match members.remove("message").or_else(|| members.remove("Message")) {
            Some(Json::String(text)) => Some(text),
            _ => None,
        };
        Error { code, message, status, members, outcome, origin: Origin::DynamoDb, raw: Some(body) }
    }

    /// The JSON body for the client.
    pub fn body(&self) -> Bytes {
        if let Some(raw) = &self.raw {
            return raw.clone();
        }
        let mut body = Map::new();
        body.insert("__type".to_owned(), json!(self.code.full()));
        if let Some(message) = &self.message {
            // DynamoDB writes "Message" for these two and "message" elsewhere; SDKs read both.
            let name = match self.code {
                Code::TransactionCanceledException | Code::SerializationException => "Message",
                _ => "message",
            };
            body.insert(name.to_owned(), json!(message));
        }
        body.extend(self.members.iter().map(|(name, value)| (name.clone(), value.clone())));
        Bytes::from(Json::Object(body).to_string())
    }

    /// Whether sending the same request again can help. SDKs decide this by the code alone, and so
    /// does this.
    pub fn retryable(&self) -> bool {
        self.code.retryable() || self.status >= 500
    }

    /// Whether the store refused the request because it takes no more for now. SDKs slow down where
    /// they see one of these codes.
    pub fn is_throttled(&self) -> bool {
        matches!(
            self.code,
            Code::ProvisionedThroughputExceededException
                | Code::ThrottlingException
                | Code::RequestLimitExceeded
        )
    }

    /// Whether the credentials of a request are refused: the client's own, or those with which
    /// Heatsink asks the store. They are missing, wrong, expired, or not allowed to do it (AWS,
    /// "Common Errors").
    pub fn is_denied(&self) -> bool {
        self.origin == Origin::Denied
            || matches!(
                self.code.name(),
                "AccessDeniedException"
                    | "ExpiredTokenException"
                    | "IncompleteSignatureException"
                    | "InvalidSignatureException"
                    | "MissingAuthenticationTokenException"
                    | "UnrecognizedClientException"
            )
    }

    /// Whose fault it is.
    pub fn fault(&self) -> Fault {
        if self.status >= 500 { Fault::Server } else { Fault::Client }
    }
}

impl std::fmt::Display for Error {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.message {
            Some(message) => write!(f, "{}: {message}", self.code.name()),
            None => f.write_str(self.code.name()),
        }
    }
}

impl std::error::Error for Error {}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stores_error_passes_on_byte_for_byte() {
        let wire = Bytes::from_static(
            br#"{"message":"The conditional request failed","Item":{"pk":{"S":"a"}},"__type":"com.amazonaws.dynamodb.v20120810#ConditionalCheckFailedException"}"#,
        );
        let error = Error::from_wire(400, wire.clone());
        assert_eq!(error.code, Code::ConditionalCheckFailedException);
        assert_eq!(error.body(), wire);
        assert!(!error.retryable());
    }

    #[test]
    fn a_lost_answer_is_an_unknown_outcome() {
        let error = Error::from_wire(502, Bytes::from_static(b"<html>bad gateway</html>"));
        assert_eq!((error.outcome, error.fault()), (Outcome::Unknown, Fault::Server));
        assert!(error.retryable());
    }

    #[test]
    fn a_changed_member_is_written_anew() {
        let wire =
            Bytes::from_static(br#"{"__type":"a#ConditionalCheckFailedException","message":"m","Item":{}}"#);
        let error = Error::from_wire(400, wire).with("Item", json!({"pk": {"S": "x"}}));
        let body: Json = serde_json::from_slice(&error.body()).unwrap();
        assert_eq!(body["Item"]["pk"]["S"], "x");
    }
}
