//! IAM's names of what can be done: the operations that have rights of their own, what stands in
//! transactions, and what statements do.

use heatsink_dynamo::{Operation, RightTo};

pub(crate) const CONDITION_CHECK: &str = "ConditionCheckItem";
pub(crate) const SELECT: &str = "PartiQLSelect";
pub(crate) const INSERT: &str = "PartiQLInsert";
pub(crate) const UPDATE: &str = "PartiQLUpdate";
pub(crate) const DELETE: &str = "PartiQLDelete";

/// Every name that a right can be to.
pub(crate) fn all() -> impl Iterator<Item = &'static str> {
    let own =
        |operation: &&Operation| !matches!(operation.right_to(), RightTo::Actions | RightTo::Statements);
    let operations = Operation::ALL.iter().filter(own).map(|operation| operation.name());
    operations.chain([CONDITION_CHECK, SELECT, INSERT, UPDATE, DELETE])
}
