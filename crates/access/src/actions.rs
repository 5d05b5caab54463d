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

/// Whether it is about the account and no table: it tells nothing of tables, or, as a list, only of
/// those that one may see.
pub(crate) fn is_of_account(action: &str) -> bool {
    Operation::by_name(action).is_some_and(|operation| operation.right_to() == RightTo::Account)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_of_the_account_tells_nothing_of_tables() {
        // Who may use some table may do these. A new one fails here until somebody has decided.
        let of_account: Vec<&str> = all().filter(|action| is_of_account(action)).collect();
        assert_eq!(of_account, ["DescribeEndpoints", "DescribeLimits", "ListTables"]);
    }
}
