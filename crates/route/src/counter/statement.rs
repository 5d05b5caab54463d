//! PartiQL writes of a counter: which of them the base fragment can take alone, and what is refused.
//!
//! An INSERT can: it takes effect only where the counter is not there, and then no other fragment is. So can an UPDATE that leaves the declared numbers
//! alone. SELECTs of counters are read by Queries and Scans (`partiql::read`), which fold them.

use heatsink_dynamo::expression::Path;
use heatsink_dynamo::partiql::{Action, Condition, Statement};
use heatsink_dynamo::{Error, Value};

use super::effect::{no_number, refusal};

/// Whether a statement that names one counter is the base fragment's alone. `shows_old`: an item is asked for where its condition fails.
///
/// # Errors
/// `ValidationException` for every other statement, by name.
pub(crate) fn of_base(
    statement: &Statement,
    parameters: &[Value],
    attributes: &[String],
    shows_old: bool,
) -> Result<(), Error> {
    let refused = |why: String| Err(refusal(&why));
    let counts = |path: &Path| attributes.contains(&path.root);
    if let Action::Select { .. } = statement.action {
        return refused(
            "a SELECT beside other statements would read its fragments at several moments. Use ExecuteStatement, BatchGetItem or TransactGetItems"
                .to_owned(),
        );
    }
    let tests = statement.condition.iter().flat_map(Condition::tests);
    if let Some(read) = tests.flat_map(|test| test.paths()).find(|path| counts(path)) {
        return refused(format!("a condition cannot read {}: no one row knows the sum", read.root));
    }
    if shows_old || statement.returns_item {
        return refused(
            "the item that is asked for would show a part of the numbers. Read it with GetItem".to_owned(),
        );
    }
    match &statement.action {
        Action::Select { .. } | Action::Exists => Ok(()),
        Action::Insert { item } => {
            for (name, term) in item.iter().filter(|(name, _)| attributes.contains(name)) {
                if let Some(value) = term.value(parameters).filter(|value| !matches!(value, Value::N(_))) {
                    return refused(no_number(name, &value));
                }
            }
            Ok(())
        }
        Action::Update { written, read } => match read.iter().find(|path| counts(path)) {
            Some(path) => refused(format!(
                "SET cannot read {}: no one row knows the sum. Use UpdateItem with ADD {} :n",
                path.root, path.root
            )),
            None => match written.iter().find(|(path, _)| counts(path)) {
                Some((path, _)) => refused(format!(
                    "a statement that sets or removes {} concerns all its fragments. Use UpdateItem",
                    path.root
                )),
                None => Ok(()),
            },
        },
        Action::Delete => {
            refused("a statement that deletes it concerns all its fragments. Use DeleteItem".to_owned())
        }
    }
}
