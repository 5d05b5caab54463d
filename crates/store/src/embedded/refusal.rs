//! Converts the engine's errors to DynamoDB's.

use bytes::Bytes;
use dynoxide::DynoxideError;
use heatsink_dynamo::{Code, Error, Operation};

/// Messages of the engine's request readers begin with one of these where they already are
/// DynamoDB's; the second column says whether the reader's position (` at line 1 column 9`) belongs
/// to the message.
const MARKS: [(&str, bool, Kind); 5] = [
    ("SERIALIZATION_AS_READ:", true, Kind::Serialization),
    ("SERIALIZATION:", false, Kind::Serialization),
    ("VALIDATION_AS_READ:", true, Kind::Validation),
    ("VALIDATION_REQUEST:", false, Kind::OfTheRequest),
    ("VALIDATION:", false, Kind::Validation),
];

#[derive(Clone, Copy)]
enum Kind {
    Serialization,
    Validation,
    /// Counted ("1 validation error detected: …") by the three operations that write one item.
    OfTheRequest,
}

/// The error for a body that the engine could not parse as a request.
pub(super) fn unreadable(operation: Operation, why: &serde_json::Error) -> Error {
    let text = why.to_string();
    let bare = match text.rfind(" at line ") {
        Some(at) => &text[..at],
        None => &text,
    };
    for (mark, positioned, kind) in MARKS {
        if let Some(whole) = text.strip_prefix(mark) {
            let message = if positioned { whole } else { bare.strip_prefix(mark).unwrap_or_default() };
            return match kind {
                Kind::Serialization if message.is_empty() => Error::bare(Code::SerializationException),
                Kind::Serialization => Error::serialization(message),
                Kind::Validation => Error::validation(message),
                Kind::OfTheRequest => of_the_request(operation, message),
            };
        }
    }
    // The wire checks leave the reader only what they do not judge. Its other texts speak of Rust's
    // types: not for a client.
    if why.is_data() && bare.contains("AttributeValue") {
        Error::validation(
            "Supplied AttributeValue is empty, must contain exactly one of the supported datatypes",
        )
    } else if why.is_data() && bare.starts_with("invalid base64") {
        Error::serialization(bare)
    } else {
        Error::bare(Code::SerializationException)
    }
}

/// The error for a request that the engine refused or failed to execute.
pub(super) fn refused(operation: Operation, why: DynoxideError) -> Error {
    if let DynoxideError::EnvelopedValidation(message) = &why {
        return of_the_request(operation, message);
    }
    let mut error = Error::from_wire(why.status_code(), Bytes::from(why.to_json()));
    // Set again, members are written in order of their names; the engine's own text has them in the
    // order of a hash map.
    for (name, value) in std::mem::take(&mut error.members) {
        error = error.with(&name, value);
    }
    error
}

/// An error of an expression, as the operation tells it.
pub(super) fn enveloped(operation: Operation, error: Error) -> Error {
    match error.message.as_deref().filter(|_| operation.writes_one_item()) {
        Some(message) => of_the_request(operation, message),
        None => error,
    }
}

fn of_the_request(operation: Operation, message: &str) -> Error {
    match operation {
        Operation::PutItem | Operation::UpdateItem | Operation::DeleteItem => {
            Error::validation(format!("1 validation error detected: {message}"))
        }
        _ => Error::validation(message),
    }
}
