//! A Query of a table's key that moves: runs [`RangeRead`] over pages, one range for each request.
//!
//! Each page is that of an ordinary Query under one of the layouts, without filter and projection:
//! those apply to what is merged.
//!
//! Sort keys are unique under one key, so the merge has one order, and a cursor means the same
//! under both layouts. What each of the pages holds up to its end can be more together than a page
//! takes: the merge is cut at 1 MB.

use std::cmp::Ordering;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use heatsink_dynamo::json::{self, Malformed};
use heatsink_dynamo::size::scan_item;
use heatsink_dynamo::{AttributeDefinition, Error, KeyValue, Operation};
use heatsink_layout::Table;
use heatsink_reshard::{Page as Rows, RangeRead, Rules, Side};

use crate::capacity::{Capacity, Report};
use crate::collection::keys::Key;
use crate::collection::page::{MOST_BYTES, Page};
use crate::collection::range::Range;
use crate::collection::selection::{Selection, Shown};
use crate::context::PlanContext;
use crate::cursor;
use crate::legacy::modernized;
use crate::plan::{Explanation, Plan, Planned};
use crate::preflight;
use crate::query;
use crate::query::request::Query;
use crate::refusal::{Unplanned, strict_then_lenient};
use crate::request::{Changes, Request, quoted, set_members};
use crate::shared::Shared;
use crate::{Answer, Calls};

/// The plan of a Query whose key moves. `stable`: the plan under the old layout alone, which
/// refuses what is not valid; that of an index is the right one (`query::locally_sorted`).
///
/// # Errors
/// As [`query::plan`].
pub(crate) fn plan(
    shared: &Shared,
    request: &Request<'_>,
    table: &Arc<Table>,
    context: &PlanContext<'_>,
    stable: Plan,
) -> Result<Plan, Error> {
    let modern = match modernized(request, "QueryFilter") {
        Ok(modern) => modern,
        Err(Unplanned::Refused(error)) => return Err(error),
        Err(Unplanned::Invalid | Unplanned::Worded(_)) => return Ok(stable),
    };
    let modern = modern.as_ref().map(Request::read).transpose()?;
    let expressed = modern.as_ref().unwrap_or(request);
    let read = |checks| Query::read(expressed, table, checks);
    let Ok((query, strict)) = strict_then_lenient(Unplanned::is_for_the_store, read) else {
        return Ok(stable);
    };
    if query.index.is_some() {
        // It reads both layouts, and knows each row's copy.
        return Ok(stable);
    }
    let Some(sort) = table.key.sort.clone() else { return Ok(stable) };
    let partition = query.partition.canonical_bytes();
    let high_water = context.moving(table, &partition).and_then(|moving| moving.high_water.clone());
    if high_water.as_ref().is_some_and(|high_water| begins_above(&query, high_water)) {
        return query::plan(shared, request, table, &context.side(Side::New));
    }
    let body = everything(&query)?;
    let whole = Request::read(&body)?;
    let under = |side| Ok::<_, Error>((side, query::plan(shared, &whole, table, &context.side(side))?));
    let expressions = &query.expressions;
    let shown = match &expressions.projection {
        _ if expressions.count => Shown::Count,
        None => Shown::Whole,
        Some((_, projection)) => Shown::Projected(projection.clone()),
    };
    let filter = expressions.filter.as_ref().map(|(_, filter)| filter.clone());
    let both = Both {
        pages: [under(Side::New)?, under(Side::Old)?, under(Side::New)?],
        selection: Selection { filter, seen: None, shown },
        cursor: query.cursor_attributes().into_iter().map(|attribute| attribute.name.clone()).collect(),
        end: query.end().cloned(),
        limit: query.limit,
        descending: query.descending,
        high_water,
        report: query.report,
        sort,
    };
    let plan = Plan::Scatter(Box::new(both));
    let in_legacy_words = modern.is_some() && request.get("QueryFilter").is_some();
    Ok(if strict && !in_legacy_words {
        plan
    } else {
        preflight::as_it_came(Operation::Query, request.body.clone(), plan)
    })
}

/// Whether all that it can show has a sort key above this one.
fn begins_above(query: &Query<'_>, key: &Key) -> bool {
    let sort = query.sort().first();
    let cursor = query.cursor().ok().flatten().filter(|_| !query.descending);
    let after = cursor.as_ref().zip(sort).and_then(|(cursor, sort)| query.value_of(cursor, &sort.name));
    after.is_some_and(|after| after >= key) || Range::of(query.conditions.first()).begins_above(key)
}

/// The Query for whole items, consistent. The filter is shown to the store, which checks it, and
/// holds nothing back.
fn everything(query: &Query<'_>) -> Result<Bytes, Error> {
    let text = query.request.string("KeyConditionExpression")?.unwrap_or_default();
    let mut fresh = query.fresh();
    let filter = query.expressions.unfiltering(query.schema, None, &mut fresh);
    let mut texts = vec![&*text];
    texts.extend(filter.as_deref());
    let (names, values) = query.expressions.bindings.rewritten(&texts, &fresh);
    let mut changes: Changes = vec![
        ("ConsistentRead", Some(b"true".to_vec())),
        ("ReturnConsumedCapacity", Some(quoted("INDEXES"))),
        ("ExpressionAttributeNames", names),
        ("ExpressionAttributeValues", values),
        ("FilterExpression", filter.as_deref().map(quoted)),
    ];
    changes.extend(["ProjectionExpression", "Select"].map(|name| (name, None)));
    set_members(query.request.body, &changes)
}

struct Both {
    /// Plans of the page under one of the layouts: as many as a range may need of each.
    pages: [(Side, Plan); 3],
    selection: Selection,
    /// The attributes of a cursor.
    cursor: Vec<String>,
    /// Behind which there is nothing, and no cursor.
    end: Option<Key>,
    limit: Option<usize>,
    descending: bool,
    /// Above this sort key the old slots hold nothing.
    high_water: Option<Key>,
    report: Report,
    sort: AttributeDefinition,
}

/// A place in the order of the Query.
#[derive(Clone, PartialEq, Eq)]
struct At {
    key: Key,
    descending: bool,
}

impl Ord for At {
    fn cmp(&self, other: &Self) -> Ordering {
        let order = self.key.cmp(&other.key);
        if self.descending { order.reverse() } else { order }
    }
}

impl PartialOrd for At {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Planned for Both {
    fn run<'a>(self: Box<Self>, calls: &'a mut dyn Calls) -> BoxFuture<'a, Result<Answer, Error>> {
        Box::pin(async move {
            let Both { pages, .. } = *self;
            let mut pages = pages.into_iter();
            let old_from = self.high_water.filter(|_| self.descending);
            let at = |key| At { key, descending: self.descending };
            let mut read = RangeRead::new(None, Rules::ALL).with_old_from(old_from.map(at));
            let mut taken =
                Taken { sort: &self.sort, descending: self.descending, capacity: None, cursors: Vec::new() };
            let range = loop {
                let side = read.call().side;
                let (_, page) = pages.find(|(of, _)| *of == side).ok_or_else(|| unreadable(Malformed))?;
                let body = page.run(calls).await?.body;
                if let Some(range) = read.answered(taken.page(&body).map_err(unreadable)?) {
                    break range;
                }
            };
            let Rows { rows: mut items, end } = range;
            let room = self.limit.unwrap_or(usize::MAX).min(fitting(&items).map_err(unreadable)?);
            let cut = items.len() >= room;
            items.truncate(room);
            let mut listing = self.selection.list();
            for (_, item) in &items {
                listing.add(item).map_err(unreadable)?;
            }
            let last = match items.last() {
                Some((at, _)) if self.end.as_ref() == Some(&at.key) => None,
                Some((_, item)) if cut => Some(cursor::of_item(&self.cursor, item).map_err(unreadable)?),
                _ => end.and_then(|end| taken.cursor(&end)),
            };
            let answer = listing.answer(last.as_deref(), taken.capacity.as_ref(), self.report);
            Ok(Answer::from(Bytes::from(answer)))
        })
    }

    fn explain(&self) -> Explanation {
        let [first, old, again] = self.pages.each_ref().map(|(_, page)| page.explain());
        let why = format!(
            "the key is being moved to other shards: its new shards are read, then the old ones, then the new ones again, consistently; what is \
             in the new ones counts: {}",
            first.why
        );
        let calls = [first.calls, old.calls, again.calls].concat();
        Explanation { plan: first.plan, why, calls }
    }
}

/// What was read of the pages beside their rows.
struct Taken<'a> {
    sort: &'a AttributeDefinition,
    descending: bool,
    capacity: Option<Capacity>,
    /// Where pages end, each with its raw cursor.
    cursors: Vec<(At, Bytes)>,
}

impl Taken<'_> {
    fn page(&mut self, body: &Bytes) -> Result<Rows<At, Bytes>, Malformed> {
        let page = Page::read(body, [&self.sort.name])?;
        if let Some(cost) = page.capacity() {
            self.capacity.get_or_insert_default().add(&cost);
        }
        let at = |raw: &[u8]| {
            let key = KeyValue::read(raw, self.sort).map(KeyValue::into_owned).map_err(|_| Malformed)?;
            Ok::<_, Malformed>(At { key, descending: self.descending })
        };
        let row = |item: &json::Picked<'_, 1>| {
            let [sort] = item.members;
            Ok::<_, Malformed>((at(sort.ok_or(Malformed)?)?, body.slice_ref(item.raw)))
        };
        let rows = page.items.iter().map(row).collect::<Result<_, _>>()?;
        let mut end = None;
        if let Some(last) = page.last {
            let place = at(json::member(last, &self.sort.name)?.ok_or(Malformed)?)?;
            self.cursors.push((place.clone(), body.slice_ref(last)));
            end = Some(place);
        }
        Ok(Rows { rows, end })
    }

    /// The raw cursor of a page that ends there.
    fn cursor(&self, end: &At) -> Option<Bytes> {
        self.cursors.iter().find(|(at, _)| at == end).map(|(_, cursor)| cursor.clone())
    }
}

/// How many items a page takes in that order by their bytes: one at least, and all if they fit.
fn fitting(items: &[(At, Bytes)]) -> Result<usize, Malformed> {
    let mut bytes = 0;
    for (at, (_, item)) in items.iter().enumerate() {
        bytes += scan_item(item, [])?.bytes;
        if bytes > MOST_BYTES && at > 0 {
            return Ok(at);
        }
    }
    Ok(usize::MAX)
}

fn unreadable(_: Malformed) -> Error {
    crate::answer::unreadable(Operation::Query)
}
