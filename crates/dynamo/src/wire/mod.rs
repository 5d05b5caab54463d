//! DynamoDB's own checks of a request's body: what the service says before it looks at any table.
//!
//! One pass over the bytes, led by a table of shapes for each operation (`operations`, from the
//! public service model 2012-08-10; wording and order as observed on DynamoDB and on engines
//! verified against it), finds in this order:
//!
//! 1. a body that is no JSON: `SerializationException` without a message;
//! 2. a value of the wrong JSON type, the first in the body: `SerializationException`;
//! 3. an attribute value that holds no type, or more than one, or nests too deep:
//!    `ValidationException`;
//! 4. members that are missing, too short, too long, too many or not in their set: "N validation
//!    errors detected: …";
//! 5. values that are larger than any item.
//!
//! Not here: what needs the meaning of a request (expressions, numbers, sets, base64, unused
//! placeholders), which belongs to who carries it out; and the table operations' limits, which
//! differ from one table state to the next.

mod bounds;
mod constraint;
mod fault;
mod numbers;
mod operations;
mod placeholders;
mod problems;
mod scan;
mod shape;
mod trail;
mod value;
mod walk;

pub use walk::Members;

use crate::{Error, Operation};

/// Checks a request's body, and gives the members that it has: unknown ones, `null` and repeated
/// ones too.
///
/// # Errors
/// DynamoDB's own `SerializationException` or `ValidationException`.
pub fn read(operation: Operation, body: &[u8]) -> Result<Members<'_>, Error> {
    walk::read(operations::request(operation), body)
}

/// Checks a request's body.
///
/// # Errors
/// As [`read`].
pub fn check(operation: Operation, body: &[u8]) -> Result<(), Error> {
    read(operation, body).map(drop)
}

#[cfg(test)]
mod tests;
