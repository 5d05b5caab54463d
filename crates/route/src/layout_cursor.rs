//! Cursors of Scans and of Queries of indexes, and tokens of SELECTs that are such. Where they stand means something under one layout alone: after
//! another one the rest would miss items and show others twice. So they name the layout, in an attribute beside the keys.
//!
//! - A Scan goes on from a cursor of its own layout alone; layouts of single keys may have changed meanwhile (`scan::mark`).
//! - A Query of an index also goes on from another one where no other item has the cursor's index key (`ties`).
//! - A cursor without a name is from before the table was laid out, or a client made it of an item's key. It is taken where the table was
//!   empty when it was laid out, and no single key has moved since: then there was no other order. Queries of such a table's indexes name no layout.
//!
//! While the key of an index migrates, a Scan of the index goes through the table (`scan`), whose order is another: its cursors are the table's,
//! and neither do they go on after the adoption nor cursors of before in it.
//!
//! Not here: where a cursor's item lies (`cursor`, `key`); Queries of the table, whose order no layout changes.

mod refused;
mod ties;

use std::sync::LazyLock;

use bytes::Bytes;
use futures::future::BoxFuture;
use heatsink_dynamo::{Error, IndexSchema, Operation, json};
use heatsink_layout::{MIGRATING, Table};
use memchr::memmem::Finder;

pub(crate) use self::refused::{of_another_layout, of_no_layout};
use crate::answer::rewrite;
use crate::collection::keys::cursor_attributes;
use crate::plan::{Explanation, Plan, Planned};
use crate::request::Request;
use crate::{Answer, Calls, cursor};

/// How the name of an order begins that a Scan of an index has while the index's key migrates: that of the table.
const OF_THE_TABLE: &str = "table:";

/// The attribute.
pub(crate) const LAYOUT: &str = "heatsink:layout";

/// The plan of a Query of a recorded table: `then` makes it of the request as DynamoDB knows it.
///
/// # Errors
/// `ValidationException` for a cursor of another layout, where that is known before anything is read; those of `then`.
pub(crate) fn query(
    request: &Request<'_>,
    table: &Table,
    then: impl Fn(&Request<'_>) -> Result<Plan, Error>,
) -> Result<Plan, Error> {
    let Some(name) = request.string("IndexName")? else { return then(request) };
    let index = table.indexes.iter().find(|index| index.name == name);
    let order = index.map_or_else(|| table.scan_order(&[]), |index| table.query_order(index));
    let (found, body) = taken_off(request.body);
    let request = Request::read(&body)?;
    let plan = then(&request)?;
    let plan = match request.get("ExclusiveStartKey") {
        Some(start)
            if is_key(start, table, Some(&name))
                && (admit(found.as_deref(), order.as_deref(), table).is_err()
                    || found.is_none() && is_older(start, table, index)) =>
        {
            match index {
                Some(index) => ties::none_before(plan, start, index, &request, table, &then)?,
                None => return Err(of_another_layout(table)),
            }
        }
        _ => plan,
    };
    // Elsewhere a cursor without a name is taken, and applications find DynamoDB's own.
    let has_changed = table.is_adopted() || table.key_layouts().newest() > 0;
    Ok(match order.filter(|order| has_changed || order == MIGRATING) {
        Some(order) => plan.wrapped(|then| Named { then, order }),
        None => plan,
    })
}

/// The name of the order of a Scan of the table, or of that index.
pub(crate) fn order(table: &Table, index: Option<&str>) -> Option<String> {
    let index = index.and_then(|name| table.indexes.iter().find(|index| index.name == name));
    if index.is_some_and(|index| table.is_index_mixed(index)) {
        return Some(format!("{OF_THE_TABLE}{}", table.scan_order(&[]).unwrap_or_default()));
    }
    let names: Vec<&str> = index.into_iter().flat_map(|index| index.key.names()).collect();
    table.scan_order(&names)
}

/// Whether that is the order of a Scan of an index that goes through the table.
pub(crate) fn is_of_the_table(order: &str) -> bool {
    order.starts_with(OF_THE_TABLE)
}

/// Whether a position may be gone on from. `found` is the order that it names, `order` that of the Scan.
///
/// # Errors
/// `ValidationException`, by name.
pub(crate) fn admit(found: Option<&str>, order: Option<&str>, table: &Table) -> Result<(), Error> {
    match (found, order) {
        (None, Some(order)) if !table.is_adopted() && !is_of_the_table(order) && order != MIGRATING => Ok(()),
        (found, order) if found == order => Ok(()),
        _ => Err(of_another_layout(table)),
    }
}

/// Whether a Scan or Query goes on where one under a layout stopped.
pub(crate) fn names_layout(body: &Bytes) -> bool {
    // Every forwarded Query is searched: making the searcher costs more than one search.
    static NAME: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(LAYOUT));
    NAME.find(body).is_some() && cursor::without(body, LAYOUT).is_some()
}

/// The name in the body's cursor, and the body without it.
pub(crate) fn taken_off(body: &Bytes) -> (Option<String>, Bytes) {
    let Some((body, value)) = cursor::without(body, LAYOUT) else { return (None, body.clone()) };
    let name = json::member(value, "S").ok().flatten().and_then(|raw| json::string(raw).ok());
    (Some(name.unwrap_or_default().into_owned()), body)
}

/// Whether a cursor of that index without a name is of before a key moved.
fn is_older(start: &[u8], table: &Table, index: Option<&IndexSchema>) -> bool {
    let attributes = index.map(|index| cursor_attributes(table, Some(index)).len());
    table.key_layouts().newest() > 0 && json::members(start).map(|members| members.len()).ok() == attributes
}

/// Whether `start` has the shape of a cursor of the table, or of that index.
pub(crate) fn is_key(start: &[u8], table: &Table, index: Option<&str>) -> bool {
    let Ok(members) = json::members(start) else { return false };
    let index = index.and_then(|name| table.indexes.iter().find(|index| index.name == name));
    cursor::values(&members, &cursor_attributes(table, index)).is_some()
}

/// A Query whose cursor names its order.
struct Named {
    then: Box<dyn Planned>,
    order: String,
}

impl Planned for Named {
    fn run<'a>(self: Box<Self>, calls: &'a mut dyn Calls) -> BoxFuture<'a, Result<Answer, Error>> {
        let Named { then, order } = *self;
        Box::pin(async move {
            let answer = then.run(calls).await?;
            Ok(Answer { body: named(&answer.body, &order)?, ..answer })
        })
    }

    fn explain(&self) -> Explanation {
        self.then.explain()
    }
}

/// An answer whose cursor names its order.
fn named(answer: &Bytes, order: &str) -> Result<Bytes, Error> {
    rewrite(Operation::Query, answer, |splice| {
        if let Some(last) = json::member(answer, "LastEvaluatedKey")?.filter(|last| *last != b"null") {
            splice.insert(last, 1, format!(",\"{LAYOUT}\":{{\"S\":\"{order}\"}}"));
        }
        Ok(())
    })
}
