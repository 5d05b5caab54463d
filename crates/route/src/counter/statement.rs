//! PartiQL writes of a counter: which fragments they concern, and what is refused.
//!
//! An INSERT concerns the base fragment alone: it takes effect only where the counter is not there,
//! and then no other fragment is. So does an UPDATE that leaves the declared numbers alone. A
//! DELETE, and an UPDATE that sets or removes all of them, is one transaction of the statement and
//! of a DELETE of each other fragment. SELECTs of counters are read by Queries and Scans
//! (`partiql::read`), which fold them.

use bytes::Bytes;
use heatsink_dynamo::expression::Path;
use heatsink_dynamo::json::{self, Malformed, Object};
use heatsink_dynamo::partiql::{Action, Condition, Put, Returned, Statement, Term};
use heatsink_dynamo::{Error, Value};

use crate::fragments::effect::{no_number, refusal};

/// The fragments that a statement concerns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Concerned {
    /// The base fragment alone.
    Base,
    /// The base fragment takes the statement, and the others are deleted.
    All,
}

/// Which fragments a statement concerns that names one counter. `shows_old`: an item is asked for
/// where its condition fails.
///
/// # Errors
/// `ValidationException` for a statement that no fragment can carry out, by name.
pub(crate) fn concerned(
    statement: &Statement,
    parameters: &[Value],
    attributes: &[String],
    shows_old: bool,
) -> Result<Concerned, Error> {
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
    let concerned = match &statement.action {
        Action::Update { written, read } => update(written, read, parameters, attributes)?,
        Action::Delete => Concerned::All,
        Action::Select { .. } | Action::Exists | Action::Insert { .. } => Concerned::Base,
    };
    let shows = match concerned {
        Concerned::Base => statement.returned == Returned::Item,
        Concerned::All => statement.returned != Returned::Nothing,
    };
    if shows_old || shows {
        return refused(
            "the item that is asked for would show a part of the numbers. Read it with GetItem".to_owned(),
        );
    }
    if let Action::Insert { item } = &statement.action {
        for (name, term) in item.iter().filter(|(name, _)| attributes.contains(name)) {
            is_number(name, term, parameters)?;
        }
    }
    Ok(concerned)
}

fn update(
    written: &[(Path, Put)],
    read: &[Path],
    parameters: &[Value],
    attributes: &[String],
) -> Result<Concerned, Error> {
    let refused = |why: String| Err(refusal(&why));
    if let Some(Path { root, .. }) = read.iter().find(|path| attributes.contains(&path.root)) {
        return refused(format!(
            "SET cannot read {root}: no one row knows the sum. Use UpdateItem with ADD {root} :n"
        ));
    }
    let counted = || written.iter().filter(|(path, _)| attributes.contains(&path.root));
    for (path, put) in counted() {
        let name = &path.root;
        match put {
            _ if !path.rest.is_empty() => {
                return refused(format!("{path} lies in {name}, which is a number and holds nothing"));
            }
            Put::Value(term) => is_number(name, term, parameters)?,
            Put::Made => {
                return refused(format!(
                    "SET {name} takes a number given in the request, since it is removed from all other fragments"
                ));
            }
            Put::Nothing => {}
        }
    }
    let stays = |name: &&String| !counted().any(|(path, _)| path.is_root(name));
    match (counted().next(), attributes.iter().find(stays)) {
        (None, _) => Ok(Concerned::Base),
        (Some(_), None) => Ok(Concerned::All),
        (Some((path, _)), Some(stays)) => refused(format!(
            "a statement that sets or removes {path} and leaves {stays} concerns all its fragments. Use UpdateItem: {path} would have to be removed from \
             fragments that may not exist, and a PartiQL UPDATE fails where the item does not exist"
        )),
    }
}

fn is_number(name: &str, term: &Term, parameters: &[Value]) -> Result<(), Error> {
    match term.value(parameters) {
        None | Some(Value::N(_)) => Ok(()),
        Some(value) => Err(refusal(&no_number(name, &value))),
    }
}

/// The statement that deletes the fragment with a raw physical key; `table` is the table's name as
/// it stands in the client's statement.
///
/// # Errors
/// [`Malformed`] for what is no key.
pub(crate) fn deletion(table: &str, key: &Bytes) -> Result<Vec<u8>, Malformed> {
    let (mut tests, mut values) = (Vec::new(), Vec::new());
    for (name, value) in json::members(key)? {
        tests.push(format!("\"{}\" = ?", name.replace('"', "\"\"")));
        values.push(value);
    }
    let mut element = Object::new();
    element.string("Statement", &format!("DELETE FROM {table} WHERE {}", tests.join(" AND ")));
    element.raw("Parameters", &[b"[", values.join(&b","[..]).as_slice(), b"]"].concat());
    Ok(element.finish())
}
