//! Which parameter an expression came in, how much of it is checked, and how large it may be.

use crate::Error;

/// The longest expression, in bytes (AWS, "Constraints").
pub const MAX_EXPRESSION: usize = 4096;
/// The most operators and functions in one expression (AWS, "Constraints").
pub const MAX_OPERATORS: usize = 300;
/// The most operands of `IN` (AWS, "Constraints").
pub const MAX_IN_OPERANDS: usize = 100;

/// Which parameter an expression came in: what errors call it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `ConditionExpression`
    Condition,
    /// `FilterExpression`
    Filter,
    /// `KeyConditionExpression`
    KeyCondition,
    /// `ProjectionExpression`
    Projection,
    /// `UpdateExpression`
    Update,
}

/// How much of what DynamoDB checks in an expression is checked here.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checks {
    /// All of it.
    All,
    /// Only that the meaning is clear. For whoever has the whole text checked elsewhere.
    Meaning,
}

impl Kind {
    /// The parameter's name.
    pub const fn parameter(self) -> &'static str {
        match self {
            Kind::Condition => "ConditionExpression",
            Kind::Filter => "FilterExpression",
            Kind::KeyCondition => "KeyConditionExpression",
            Kind::Projection => "ProjectionExpression",
            Kind::Update => "UpdateExpression",
        }
    }

    /// `ValidationException: Invalid FilterExpression: …`
    pub(crate) fn error(self, message: &str) -> Error {
        Error::validation(format!("Invalid {}: {message}", self.parameter()))
    }
}
