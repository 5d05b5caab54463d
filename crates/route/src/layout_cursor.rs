//! Cursors of Scans and of Queries of indexes, and tokens of SELECTs that are such. Where they
//! stand means something under one layout alone: after another one the rest would miss items and
//! show others twice. So they name the layout, in an attribute beside the keys.
//!
//! - A Scan goes on from a cursor of its own layout alone; layouts of single keys may have changed
//!   meanwhile (`scan::mark`).
//! - A Query of an index also goes on from another one where no other item has the cursor's index
//!   key (`ties`).
//! - A cursor without a name ([`Bare`]) comes from a client that keeps the key attributes alone, or
//!   made it of an item's key, or is from before the table had layouts. While nothing has changed
//!   since the table was empty, and once the table has rested, it means the layout in force. Else
//!   it is refused, but for a Query of an index where no other item has its index key. What the
//!   name says stands in the key itself meanwhile (`kept`).
//!
//! While the key of an index migrates, a Scan of the index goes through the table (`scan`), whose
//! order is another: its cursors are the table's, and neither do they go on after the adoption nor
//! cursors of before in it.
//!
//! Not here: where a cursor's item lies (`cursor`, `key`); Queries of the table, whose order no
//! layout changes.

mod kept;
pub(crate) mod mark;
mod refused;
mod ties;

use std::sync::{Arc, LazyLock};

use bytes::Bytes;
use futures::future::BoxFuture;
use heatsink_dynamo::{Error, Operation, json};
use heatsink_layout::{LayoutSource, MIGRATING, Table};
use memchr::memmem::Finder;

pub(crate) use self::kept::restored;
use self::mark::Mark;
pub(crate) use self::refused::{of_another_layout, of_no_layout};
use crate::answer::rewrite;
use crate::collection::keys::cursor_attributes;
use crate::cursor::{self, LAYOUT};
use crate::plan::{Explanation, Plan, Planned};
use crate::request::Request;
use crate::{Answer, Calls};

/// How the name of an order begins that a Scan of an index has while the index's key migrates: that
/// of the table.
const OF_THE_TABLE: &str = "table:";

/// The plan of a Query of a recorded table: `then` makes it of the request as DynamoDB knows it.
///
/// # Errors
/// `ValidationException` for a cursor of another layout, where that is known before anything is
/// read; those of `then`.
pub(crate) fn query(
    request: &Request<'_>,
    table: &Table,
    bare: Bare,
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
                && match &found {
                    Some(found) => admit(Some(found), order.as_deref(), table).is_err(),
                    None => bare == Bare::Unknown && is_bare_key(start, table, Some(&name)),
                } =>
        {
            match index {
                Some(index) => ties::none_before(plan, start, index, &request, table, &then)?,
                None => return Err(of_another_layout(table)),
            }
        }
        _ => plan,
    };
    // Elsewhere a cursor without a name is taken, and applications find DynamoDB's own.
    Ok(match order.filter(|_| may_have_changed(table, Some(&name))) {
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

/// What a position means that does not say under which layouts it was given out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Bare {
    /// The layouts in force: there were no others, or too long ago.
    InForce,
    /// One of two: the layouts have changed lately, or change.
    Unknown,
}

impl Bare {
    /// What it means in a request on a table, or on that index of it.
    pub(crate) fn of(table: &Table, index: Option<&str>, layouts: &dyn LayoutSource) -> Self {
        if table.key_layouts().any_changes() || may_have_changed(table, index) && !layouts.has_rested(table) {
            Bare::Unknown
        } else {
            Bare::InForce
        }
    }
}

/// Whether the items of a table, or of that index of it, may have been read in another order than
/// under the layouts in force.
fn may_have_changed(table: &Table, index: Option<&str>) -> bool {
    let index = index.and_then(|name| table.indexes.iter().find(|index| index.name == name));
    let is_laid_out = || {
        let names: Vec<&str> = index.into_iter().flat_map(|index| index.key.names()).collect();
        table.scan_order(&names).is_some()
    };
    table.key_layouts().any_has_moved()
        || table.is_adopted() && is_laid_out()
        || index.is_some_and(|index| table.is_index_mixed(index))
}

/// Whether a position may be gone on from. `found` is the order that it names, `order` that of the
/// Scan.
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

/// The plan, whose positions say in the key what they say beside it where one that does not say it
/// has no meaning, or soon has none: from the moment that a key is about to move.
pub(crate) fn kept(plan: Plan, operation: Operation, table: &Arc<Table>, bare: Bare) -> Plan {
    let always = bare == Bare::Unknown || table.key_layouts().any_moves();
    plan.wrapped(|then| Kept { then, operation, table: Arc::clone(table), always })
}

struct Kept {
    then: Box<dyn Planned>,
    operation: Operation,
    table: Arc<Table>,
    always: bool,
}

impl Planned for Kept {
    fn run<'a>(self: Box<Self>, calls: &'a mut dyn Calls) -> BoxFuture<'a, Result<Answer, Error>> {
        let Kept { then, operation, table, always } = *self;
        Box::pin(async move {
            let answer = then.run(calls).await?;
            Ok(Answer { body: kept::kept(&answer.body, &table, operation, always)?, ..answer })
        })
    }

    fn explain(&self) -> Explanation {
        self.then.explain()
    }
}

/// The position of a Scan or Query on a table that has no layouts, as far as this gateway knows.
pub(crate) enum Unlaid {
    /// One of the store's own.
    Own,
    /// One of before any key had moved, given out by a gateway that knew that one is to move: the
    /// body as the store knows it.
    Before(Bytes),
    /// One of other layouts.
    Other,
}

impl Unlaid {
    pub(crate) fn read(body: &Bytes) -> Self {
        // Every forwarded Query is searched: making the searcher costs more than one search.
        static NAME: LazyLock<Finder<'static>> = LazyLock::new(|| Finder::new(LAYOUT));
        if NAME.find(body).is_none() {
            return Unlaid::Own;
        }
        match kept::unmarked(body) {
            None => Unlaid::Own,
            Some((said, body)) if Mark::read(&said).is_of_before() => Unlaid::Before(body),
            Some(_) => Unlaid::Other,
        }
    }
}

/// The name in the body's cursor, and the body without it.
pub(crate) fn taken_off(body: &Bytes) -> (Option<String>, Bytes) {
    let Some((body, value)) = cursor::without(body, LAYOUT) else { return (None, body.clone()) };
    let name = json::member(value, "S").ok().flatten().and_then(|raw| json::string(raw).ok());
    (Some(name.unwrap_or_default().into_owned()), body)
}

/// Whether `start` has the shape of a cursor of the table, or of that index.
pub(crate) fn is_key(start: &[u8], table: &Table, index: Option<&str>) -> bool {
    let Ok(members) = json::members(start) else { return false };
    let index = index.and_then(|name| table.indexes.iter().find(|index| index.name == name));
    cursor::values(&members, &cursor_attributes(table, index)).is_some()
}

/// Whether `start` has nothing beside what such a cursor has.
pub(crate) fn is_bare_key(start: &[u8], table: &Table, index: Option<&str>) -> bool {
    let found = index.and_then(|name| table.indexes.iter().find(|index| index.name == name));
    let is_whole = |members: Vec<json::Member<'_>>| members.len() == cursor_attributes(table, found).len();
    is_key(start, table, index) && json::members(start).is_ok_and(is_whole)
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
