//! Reads of an index, or of the whole table, where counters are among the items: which numbers the
//! page has to be completed with.
//!
//! An index holds the base fragment of each counter alone, with a part of the numbers. Indexes that
//! would hold the other fragments too are refused when the rules are loaded; those made later,
//! here.

use std::sync::Arc;

use heatsink_dynamo::{Error, IndexSchema};
use heatsink_layout::Table;

use super::pages::Fold;
use crate::collection::selection::{Expressions, projects};
use crate::request::Request;

/// The fold of a Query or Scan of an index of a table with counters; `None` where the page shows no
/// number of theirs.
///
/// # Errors
/// `ValidationException` for what an index cannot show of counters.
pub(crate) fn of_index(
    request: &Request<'_>,
    expressions: &Expressions<'_>,
    table: &Arc<Table>,
    index: &IndexSchema,
) -> Result<Option<Fold>, Error> {
    let counters: Vec<&String> = table.counter_attributes().collect();
    if index.key.names().all(|name| table.key.has(name) || counters.iter().any(|counter| *counter == name)) {
        return Err(refusal(format!(
            "the index {} holds every counter once for each shard, with a part of its numbers. Give it a key that only whole items have",
            index.name
        )));
    }
    if let Some(name) = counters.iter().find(|name| index.key.has(name)) {
        return Err(refusal(format!(
            "the index {} is sorted by parts of {name} and not by its sum",
            index.name
        )));
    }
    if let Some((_, filter)) = &expressions.filter
        && let Some(name) = counters.iter().find(|name| filter.mentions(name))
    {
        return Err(refusal(format!(
            "a filter on an index cannot read {name}, of which the index holds a part"
        )));
    }
    if expressions.count {
        return Ok(None);
    }
    let projection = expressions.projection.as_ref().map(|(_, projection)| projection);
    let everything = request.string("Select")?.as_deref() == Some("ALL_ATTRIBUTES");
    let from_table = index.local && (projection.is_some() || everything);
    let shown = |name: &str| {
        let asked = |paths: &[heatsink_dynamo::expression::Path]| paths.iter().any(|path| path.root == name);
        (from_table || projects(index, name)) && projection.is_none_or(|projection| asked(&projection.paths))
    };
    Ok(Fold::by_keys(table, request, from_table, shown))
}

/// The fold of a Scan of a table with counters; `None` where no number of theirs is shown or
/// tested.
pub(crate) fn of_table(
    request: &Request<'_>,
    expressions: &Expressions<'_>,
    table: &Arc<Table>,
) -> Option<Fold> {
    let wanted = expressions.wanted(table, None);
    Fold::by_keys(table, request, false, |name| wanted.as_ref().is_none_or(|wanted| wanted.covers(name)))
}

fn refusal(why: String) -> Error {
    Error::gateway_rejection(format!(
        "Not supported on a table with counters, whose numbers are spread over fragments: {why}. Nothing was read"
    ))
}
