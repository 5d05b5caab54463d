//! A Query of a table's key that moves: the new layout is read, then the old one, then the new one again, and the three pages become one.
//!
//! Each page is that of an ordinary Query under one of the layouts, without filter and projection: those apply to what is merged. What an old slot
//! holds counts only where neither read of the new layout has that item: such an item has moved, or is older than the one there.
//!
//! Above the [high water](heatsink_layout::Moving::high_water) the old slots hold nothing: a page that ends above it is that of the new layout alone.
//!
//! Sort keys are unique under one key, so the merge has one order, and a cursor means the same under both layouts. What each of the pages holds up to
//! its end can be more together than a page takes: the merge is cut at 1 MB.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use heatsink_dynamo::expression::Checks;
use heatsink_dynamo::json::{self, Malformed};
use heatsink_dynamo::size::scan_item;
use heatsink_dynamo::{AttributeDefinition, Error, KeyValue, Operation};
use heatsink_layout::Table;

use crate::capacity::{Capacity, Report};
use crate::collection::keys::Key;
use crate::collection::page::{MOST_BYTES, Page};
use crate::collection::range::Range;
use crate::collection::selection::{Selection, Shown};
use crate::context::{PlanContext, Side};
use crate::cursor;
use crate::legacy::modernized;
use crate::plan::{Explanation, Plan, Planned};
use crate::preflight;
use crate::query;
use crate::query::request::Query;
use crate::refusal::Unplanned;
use crate::request::{Changes, Request, quoted, set_members};
use crate::shared::Shared;
use crate::{Answer, Calls};

/// The plan of a Query whose key moves. `stable`: the plan under the old layout alone, which refuses what is not valid; that of an index is
/// the right one (`query::locally_sorted`).
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
    let strict = Query::read(expressed, table, Checks::All).is_ok();
    let Ok(query) = Query::read(expressed, table, Checks::Meaning) else { return Ok(stable) };
    if query.index.is_some() {
        // It reads both layouts, and knows each row's copy.
        return Ok(stable);
    }
    let Some(sort) = table.key.sort.clone() else { return Ok(stable) };
    let partition = query.partition.canonical_bytes();
    let high_water = context.moving(table, &partition).and_then(|moving| moving.high_water.clone());
    if high_water.as_ref().is_some_and(|high_water| begins_above(&query, high_water)) {
        return query::plan(shared, request, table, &context.side(Side::To));
    }
    let body = everything(&query)?;
    let whole = Request::read(&body)?;
    let under = |side| query::plan(shared, &whole, table, &context.side(side));
    let expressions = &query.expressions;
    let shown = match &expressions.projection {
        _ if expressions.count => Shown::Count,
        None => Shown::Whole,
        Some((_, projection)) => Shown::Projected(projection.clone()),
    };
    let filter = expressions.filter.as_ref().map(|(_, filter)| filter.clone());
    let both = Both {
        reads: [under(Side::To)?, under(Side::From)?, under(Side::To)?],
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

/// The Query for whole items, consistent. The filter is shown to the store, which checks it, and holds nothing back.
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
    /// The new layout, the old one, the new one.
    reads: [Plan; 3],
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

/// One of the three pages, or what they become: its items by sort key, and where more may follow.
struct Part {
    items: Vec<(Key, Bytes)>,
    /// The raw cursor, and its sort key.
    more: Option<(Key, Bytes)>,
}

impl Planned for Both {
    fn run<'a>(self: Box<Self>, calls: &'a mut dyn Calls) -> BoxFuture<'a, Result<Answer, Error>> {
        Box::pin(async move {
            let Both { reads, .. } = *self;
            let merged = Merged {
                sort: &self.sort,
                descending: self.descending,
                high_water: self.high_water.as_ref(),
            };
            let mut capacity: Option<Capacity> = None;
            let mut parts = Vec::with_capacity(reads.len());
            for read in reads {
                let body = read.run(calls).await?.body;
                let part = merged.read(&body, &mut capacity).map_err(unreadable)?;
                let alone = parts.is_empty() && merged.ends_above_high_water(&part);
                parts.push(part);
                if alone {
                    break;
                }
            }
            let Part { mut items, more } = merged.merge(parts);
            let room = self.limit.unwrap_or(usize::MAX).min(fitting(&items).map_err(unreadable)?);
            let cut = items.len() >= room;
            items.truncate(room);
            let mut listing = self.selection.list();
            for (_, item) in &items {
                listing.add(item).map_err(unreadable)?;
            }
            let last = match items.last() {
                Some((key, _)) if self.end.as_ref() == Some(key) => None,
                Some((_, item)) if cut => Some(cursor::of_item(&self.cursor, item).map_err(unreadable)?),
                _ => more.map(|(_, cursor)| cursor),
            };
            let answer = listing.answer(last.as_deref(), capacity.as_ref(), self.report);
            Ok(Answer::from(Bytes::from(answer)))
        })
    }

    fn explain(&self) -> Explanation {
        let [first, old, again] = self.reads.each_ref().map(Plan::explain);
        let why = format!(
            "the key is being moved to other shards: its new shards are read, then the old ones, then the new ones again, consistently; what is \
             in the new ones counts: {}",
            first.why
        );
        let calls = [first.calls, old.calls, again.calls].concat();
        Explanation { plan: first.plan, why, calls }
    }
}

/// How pages are merged.
struct Merged<'a> {
    sort: &'a AttributeDefinition,
    descending: bool,
    high_water: Option<&'a Key>,
}

impl Merged<'_> {
    fn read(&self, body: &Bytes, capacity: &mut Option<Capacity>) -> Result<Part, Malformed> {
        let page = Page::read(body, [&self.sort.name])?;
        if let Some(cost) = page.capacity() {
            capacity.get_or_insert_default().add(&cost);
        }
        let key =
            |raw: &[u8]| KeyValue::read(raw, self.sort).map(KeyValue::into_owned).map_err(|_| Malformed);
        let item = |item: &json::Picked<'_, 1>| {
            let [sort] = item.members;
            Ok::<_, Malformed>((key(sort.ok_or(Malformed)?)?, body.slice_ref(item.raw)))
        };
        let items = page.items.iter().map(item).collect::<Result<_, _>>()?;
        let more = match page.last {
            None => None,
            Some(last) => {
                let sort = json::member(last, &self.sort.name)?.ok_or(Malformed)?;
                Some((key(sort)?, body.slice_ref(last)))
            }
        };
        Ok(Part { items, more })
    }

    /// Whether the old slots hold nothing as far as this page reaches.
    fn ends_above_high_water(&self, page: &Part) -> bool {
        let above = |(end, _): &(Key, Bytes)| self.high_water.is_some_and(|high_water| end > high_water);
        self.descending && page.more.as_ref().is_some_and(above)
    }

    fn order(&self, a: &Key, b: &Key) -> Ordering {
        let order = a.cmp(b);
        if self.descending { order.reverse() } else { order }
    }

    /// The items up to which all three pages reach, in order, and where more may follow. One page is that of the new layout alone.
    fn merge(&self, parts: Vec<Part>) -> Part {
        let ends = parts.iter().filter_map(|part| part.more.clone());
        let more = ends.min_by(|(a, _), (b, _)| self.order(a, b));
        let within =
            |key: &Key| more.as_ref().is_none_or(|(end, _)| self.order(key, end) != Ordering::Greater);
        let mut parts = parts.into_iter().map(|part| part.items);
        let before = parts.next().unwrap_or_default();
        let (Some(old), Some(now)) = (parts.next(), parts.next()) else {
            return Part { items: before, more };
        };
        let moved: HashSet<Vec<u8>> =
            before.iter().chain(&now).map(|(key, _)| key.canonical_bytes().into_owned()).collect();
        let mut items = now;
        items.extend(old.into_iter().filter(|(key, _)| !moved.contains(&*key.canonical_bytes())));
        items.retain(|(key, _)| within(key));
        items.sort_by(|(a, _), (b, _)| self.order(a, b));
        Part { items, more }
    }
}

/// How many items a page takes in that order by their bytes: one at least, and all if they fit.
fn fitting(items: &[(Key, Bytes)]) -> Result<usize, Malformed> {
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
