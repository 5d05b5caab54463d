//! Expressions that the engine would be slow at: it copies what a path names each time an
//! expression mentions it, searches binaries byte by byte and joins sets member by member, all of
//! it on the one thread that every request has to pass.
//!
//! What an expression costs at most is estimated before the engine sees it
//! ([`heatsink_dynamo::expression::Extent`]). Where that is too much, the expression is evaluated
//! here, on a thread of its own ([`Evaluator`]), and the engine gets a request that has the same
//! effect and is cheap: conditions whose outcome is known ([`write`]), updates that set literals
//! ([`write`]), pages without their filter ([`filter`]). What cannot be treated so is refused
//! ([`statement`], [`legacy`]), and so is what takes too much before it is evaluated ([`reading`]).
//!
//! Not here: the estimate and the evaluation (`dynamo`).

mod action;
pub(super) mod evaluator;
pub(super) mod filter;
pub(super) mod legacy;
pub(super) mod reading;
pub(super) mod statement;
pub(super) mod write;

use heatsink_dynamo::Error;
use heatsink_dynamo::expression::{Condition, Fresh};

/// The most work of the engine for one request's expressions: some 30 ms of its thread's time.
const BUDGET: usize = 3_000_000;
/// The longest expression without a known meaning that is passed to the engine, which refuses it as
/// well.
const SHORT: usize = 512;

/// The most bytes of values that expressions mention, each as often as it is mentioned: it is read
/// anew each time.
const MENTIONED: usize = 16 << 20;
const TOO_MUCH: &str = "expressions that mention large values so often";

/// The error for a request that DynamoDB allows and this store does not.
fn refused(what: &str) -> Error {
    Error::validation(format!(
        "The embedded store does not evaluate this request, because it would keep other clients waiting: {what} \
         (docs/reference/limits.md, Embedded store)"
    ))
}

/// A condition that mentions the same paths, costs next to nothing, and holds for every item or for
/// none.
fn decided(condition: &Condition, holds: bool, fresh: &mut Fresh) -> Option<String> {
    let paths = condition.paths();
    let first = *paths.first()?;
    let exists = Condition::Exists(first.clone());
    let missing = Condition::NotExists(first.clone());
    let decided =
        if holds { Condition::Or(vec![exists, missing]) } else { Condition::And(vec![exists, missing]) };
    Some(decided.render(fresh))
}
