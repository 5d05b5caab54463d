//! The texts of DynamoDB's errors about types and nesting.

use super::scan::{Malformed, Scan};

/// Why a walk stopped.
pub(super) enum Stop {
    /// The body is not JSON.
    Malformed,
    /// A value has the wrong JSON type; the message, if DynamoDB gives one.
    Type(Option<String>),
}

impl From<Malformed> for Stop {
    fn from(_: Malformed) -> Self {
        Stop::Malformed
    }
}

pub(super) const STRUCTURE: &str = "Start of structure or map found where not expected";
pub(super) const FIELD: &str = "Unexpected field type";
pub(super) const ELEMENT: &str = "Unexpected value type in payload";
pub(super) const TOKEN: &str = "Unexpected token received from parser";
/// What DynamoDB's reader says of a wrong value where a list or map within a list or map belongs.
pub(super) const GENERIC: &str = "class sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl cannot be cast to class java.lang.Class (sun.reflect.generics.reflectiveObjects.ParameterizedTypeImpl and java.lang.Class are in module java.base of loader 'bootstrap')";
/// What DynamoDB says of a value that nests deeper than it takes.
pub(super) const TOO_DEEP: &str = "Nesting Levels have exceeded supported limits: Attributes in the item have nested levels beyond supported limit";

/// Where a value stands decides how a wrong type is worded.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum At {
    Member,
    Element,
}

/// Stops at a scalar that stands where something else belongs.
pub(super) fn scalar<T>(at: At) -> Result<T, Stop> {
    stop(if at == At::Element { ELEMENT } else { FIELD })
}

pub(super) fn stop<T>(message: impl Into<String>) -> Result<T, Stop> {
    Err(Stop::Type(Some(message.into())))
}

/// A service model's structure as a Java class.
pub(super) fn class(name: &str) -> String {
    format!("com.amazonaws.dynamodb.v20120810.{name}")
}

/// Stops at a scalar or collection that stands where a `target` (`String`, `Long`, `Boolean`)
/// belongs.
pub(super) fn cannot<T>(scan: &mut Scan<'_>, target: &str) -> Result<T, Stop> {
    let kind = match scan.peek()? {
        b'"' => "STRING_VALUE",
        b't' => "TRUE_VALUE",
        b'f' => "FALSE_VALUE",
        b'{' => return stop(STRUCTURE),
        b'[' => return stop(format!("Unrecognized collection type class java.lang.{target}")),
        _ => {
            let decimal = scan.number()?.iter().any(|byte| matches!(byte, b'.' | b'e' | b'E'));
            if decimal { "DECIMAL_VALUE" } else { "NUMBER_VALUE" }
        }
    };
    stop(format!("{kind} cannot be converted to {target}"))
}
