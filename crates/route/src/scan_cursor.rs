//! Cursors of Scans, and tokens of SELECTs that are Scans. Such a position means something under one layout alone: after another one the Scan
//! would miss items and show others twice. So it names the layout, in an attribute beside the keys, and one of another layout is refused.
//!
//! A position without a name is from before the table was laid out, or a client made it of an item's key. It is taken where the table was
//! empty when it was laid out: then there was no other order.
//!
//! Not here: where a cursor's item lies (`cursor`, `key`); Queries, whose order no layout changes.

use std::borrow::Cow;

use bytes::Bytes;
use futures::future::BoxFuture;
use heatsink_dynamo::{AttributeDefinition, Error, KeyValue, Operation, json};
use heatsink_layout::Table;

use crate::answer::rewrite;
use crate::plan::{Explanation, Plan, Planned};
use crate::request::Request;
use crate::{Answer, Calls, partiql};

/// The attribute.
const LAYOUT: &str = "heatsink:layout";

/// The plan of a Scan of a recorded table: `then` makes it of the request as DynamoDB knows it.
///
/// # Errors
/// `ValidationException` for a cursor of another layout; those of `then`.
pub(crate) fn plan(
    request: &Request<'_>,
    table: &Table,
    then: impl FnOnce(&Request<'_>) -> Result<Plan, Error>,
) -> Result<Plan, Error> {
    let index = request.string("IndexName")?;
    let order = order(table, index.as_deref());
    let plan = match request.get("ExclusiveStartKey") {
        None => then(request)?,
        Some(start) => match taken_off(request.body, start) {
            Some((name, body)) => {
                admit(Some(&name), order.as_deref(), table)?;
                then(&Request::read(&body)?)?
            }
            None => {
                // What is no cursor of the table is the store's to refuse.
                if is_key(start, table, index.as_deref()) {
                    admit(None, order.as_deref(), table)?;
                }
                then(request)?
            }
        },
    };
    Ok(match order {
        Some(order) => plan.wrapped(|then| Named { then, order }),
        None => plan,
    })
}

/// The name of the order of a Scan of the table, or of that index.
pub(crate) fn order(table: &Table, index: Option<&str>) -> Option<String> {
    let index = index.and_then(|name| table.indexes.iter().find(|index| index.name == name));
    let names: Vec<&str> = index.into_iter().flat_map(|index| index.key.names()).collect();
    table.scan_order(&names)
}

/// Whether a position may be gone on from. `found` is the order that it names, `order` that of the Scan.
///
/// # Errors
/// `ValidationException`, by name.
pub(crate) fn admit(found: Option<&str>, order: Option<&str>, table: &Table) -> Result<(), Error> {
    match (found, order) {
        (None, Some(_)) if !table.is_adopted() => Ok(()),
        (found, order) if found == order => Ok(()),
        _ => Err(of_another_layout(table)),
    }
}

/// Refuses a request on a table without a layout that goes on where one under a layout stopped.
///
/// # Errors
/// `ValidationException`, by name.
pub(crate) fn refuse_of_before(
    operation: Operation,
    body: &[u8],
    tables: &[Cow<'_, str>],
) -> Result<(), Error> {
    let member = |name| json::member(body, name).ok().flatten();
    let of_a_layout = match operation {
        Operation::Scan => member("ExclusiveStartKey")
            .is_some_and(|start| json::member(start, LAYOUT).is_ok_and(|name| name.is_some())),
        Operation::ExecuteStatement => member("NextToken")
            .and_then(|raw| json::string(raw).ok())
            .is_some_and(|token| partiql::is_own(&token)),
        _ => false,
    };
    if of_a_layout { Err(Error::validation(refusal(&tables.join(", ")))) } else { Ok(()) }
}

/// The refusal of a position that is not of the layout in force.
pub(crate) fn of_another_layout(table: &Table) -> Error {
    Error::gateway_rejection(refusal(&table.name))
}

fn refusal(table: &str) -> String {
    format!(
        "The position that the request goes on from is of another layout of table {table} than the one in force: items have moved since, and the \
         rest of the Scan would miss some of them and show others twice. Begin the Scan, or the statement, again. A position that was made of an \
         item's key, rather than handed back as it came, is refused for the same reason. Nothing was read"
    )
}

/// A body without the name in its cursor, and that name.
fn taken_off(body: &Bytes, start: &[u8]) -> Option<(String, Bytes)> {
    let value = json::member(start, LAYOUT).ok()??;
    let name = json::member(value, "S").ok().flatten().and_then(|raw| json::string(raw).ok());
    let start = json::splice_members(start, &[(LAYOUT, None)]).ok()?;
    let body = json::splice_members(body, &[("ExclusiveStartKey", Some(&start))]).ok()?;
    Some((name.unwrap_or_default().into_owned(), Bytes::from(body)))
}

/// Whether `start` has the shape of a cursor of the table, or of that index.
fn is_key(start: &[u8], table: &Table, index: Option<&str>) -> bool {
    let Ok(members) = json::members(start) else { return false };
    let has = |attribute: &AttributeDefinition| {
        let found = members.iter().find(|(name, _)| *name == attribute.name);
        found.is_some_and(|(_, value)| KeyValue::read(value, attribute).is_ok())
    };
    let index = index.and_then(|name| table.indexes.iter().find(|index| index.name == name));
    let keys = [Some(&table.key), index.map(|index| &index.key)];
    keys.into_iter().flatten().all(|key| std::iter::once(&key.partition).chain(&key.sort).all(has))
}

/// A Scan whose cursor names its order.
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
    rewrite(Operation::Scan, answer, |splice| {
        if let Some(last) = json::member(answer, "LastEvaluatedKey")?.filter(|last| *last != b"null") {
            splice.insert(last, 1, format!(",\"{LAYOUT}\":{{\"S\":\"{order}\"}}"));
        }
        Ok(())
    })
}
