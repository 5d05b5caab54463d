//! The first number of a request that is none, where the operation decides what DynamoDB says of
//! it.
//!
//! Everywhere else numbers are judged by who reads them. Sources: the tests of
//! `dynamodb-conformance` on numbers by operation (AWS, four regions, 2026-10-09) and on parameters
//! of PartiQL (eu-west-2, October 2026).

use crate::Number;

const UNDERFLOW: &str =
    "Number underflow. Attempting to store a number with magnitude smaller than supported range";

/// What was met.
#[derive(Default)]
pub(super) struct Numbers {
    /// The first number of a BatchWriteItem that is none: its message, if it is another than what
    /// is said elsewhere.
    batched: Option<Option<String>>,
    /// The first parameter of a statement that is none, if it comes before one that nests too deep.
    parameter: Option<String>,
    deep: bool,
}

impl Numbers {
    /// Takes a number of a BatchWriteItem.
    pub(super) fn batched(&mut self, text: &str) {
        if self.batched.is_none()
            && let Err(error) = Number::parse(text)
        {
            self.batched = Some(if text.is_empty() { error.message } else { older(text) });
        }
    }

    /// What DynamoDB says of the first number of a BatchWriteItem, where that is not what the store
    /// says.
    pub(super) fn refused(self) -> Option<String> {
        self.batched.flatten()
    }

    /// Takes a number of a parameter, so many levels of JSON deep.
    pub(super) fn parameter(&mut self, text: &str, depth: usize) {
        // A value nests 32 deep, and each level is two of JSON.
        self.deep |= depth > 2 * 33;
        if !self.deep
            && self.parameter.is_none()
            && let Err(error) = Number::parse(text)
        {
            self.parameter = error.message;
        }
    }

    /// Takes note of a parameter that nests so many levels of JSON deep.
    pub(super) fn nests(&mut self, depth: usize) {
        self.deep |= depth > 2 * 33;
    }

    /// What is said of the parameter that comes before one that nests too deep.
    pub(super) fn before_the_deep(&mut self) -> Option<String> {
        self.parameter.take()
    }
}

/// How DynamoDB's older reader judges a number: as Java's `BigDecimal`, whose scale and precision
/// are 32-bit. `None` where that makes no difference to what is said.
fn older(text: &str) -> Option<String> {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let (coefficient, exponent) = unsigned.split_once(['e', 'E'])?;
    let (whole, fraction) = coefficient.split_once('.').unwrap_or((coefficient, ""));
    let digits = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
    let plain = exponent.strip_prefix(['+', '-']).unwrap_or(exponent);
    if !digits(whole)
        || !digits(fraction)
        || coefficient.len() < 2 && whole.is_empty()
        || plain.is_empty()
        || !digits(plain)
    {
        return None;
    }
    let unreadable = || Some(format!("The parameter cannot be converted to a numeric value: {text}"));
    let Ok(exponent) = exponent.parse::<i32>() else { return unreadable() };
    let scale = i64::try_from(fraction.len()).unwrap_or(i64::MAX) - i64::from(exponent);
    if i32::try_from(scale).is_err() {
        return unreadable();
    }
    let precision = whole.len() + fraction.len() - zeros(whole, fraction);
    let wraps = i64::try_from(precision.max(1)).unwrap_or(i64::MAX) - scale >= i64::from(i32::MAX);
    wraps.then(|| UNDERFLOW.to_owned())
}

/// The leading zeros of a coefficient.
fn zeros(whole: &str, fraction: &str) -> usize {
    whole.bytes().chain(fraction.bytes()).take_while(|byte| *byte == b'0').count()
}
