//! Scan of a table with counters. Rows but row 0 are left out; row 0 is completed from them. Filter, projection and Limit are
//! applied here, to whole items.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use heatsink_dynamo::expression::{
    Bindings, Checks, Condition, Fresh, Kind as Parameter, MAX_EXPRESSION, Projection,
};
use heatsink_dynamo::json::{self, Malformed, Object};
use heatsink_dynamo::value::read_attributes;
use heatsink_dynamo::{Error, Operation};
use heatsink_layout::Table;
use serde_json::Value as Json;

use super::complete::Complete;
use crate::answer::{pass_refusal, strip_object, unreadable};
use crate::asked::asked_first;
use crate::capacity::add;
use crate::context::PlanContext;
use crate::items::fetch::Fetch;
use crate::items::identity;
use crate::key::{KeyText, locate};
use crate::plan::{CallExplanation, Explanation, Kind, Plan, Planned};
use crate::projection;
use crate::projection::project;
use crate::query::legacy::modernized;
use crate::refusal::Unplanned;
use crate::request::{Changes, Request, set_members};
use crate::splice::Splice;
use crate::{Answer, Calls, PhysicalCall};

/// The plan of a Scan of a table with counters, not of an index.
pub(crate) fn plan(
    request: &Request<'_>,
    table: &Arc<Table>,
    context: &PlanContext<'_>,
) -> Result<Plan, Error> {
    let refused = || Ok(pass_refusal(Operation::Scan, request.body));
    match modernized(request, "ScanFilter") {
        Ok(None) => {}
        Ok(Some(modern)) => {
            let then = plan(&Request::read(&modern)?, table, context)?;
            return Ok(asked_first(Operation::Scan, request.body.clone(), then));
        }
        Err(Unplanned::Invalid) => return refused(),
        Err(Unplanned::Refused(error)) => return Err(error),
    }
    match read(request, table, context, Checks::All) {
        Ok(plan) => Ok(plan),
        // What only the checks here find wrong the store may take: it decides.
        Err(Unplanned::Invalid) => match read(request, table, context, Checks::Meaning) {
            Ok(plan) => Ok(asked_first(Operation::Scan, request.body.clone(), plan)),
            Err(Unplanned::Invalid) => refused(),
            Err(Unplanned::Refused(error)) => Err(error),
        },
        Err(Unplanned::Refused(error)) => Err(error),
    }
}

fn read(
    request: &Request<'_>,
    table: &Arc<Table>,
    context: &PlanContext<'_>,
    checks: Checks,
) -> Result<Plan, Unplanned> {
    let invalid = |_: Error| Unplanned::Invalid;
    let text = |name| request.string(name).map_err(Unplanned::Refused);
    let bindings =
        Bindings::read(request.get("ExpressionAttributeNames"), request.get("ExpressionAttributeValues"))
            .map_err(invalid)?;
    let (filter_text, projection_text) = (text("FilterExpression")?, text("ProjectionExpression")?);
    let filter =
        filter_text.as_deref().map(|text| Condition::read(Parameter::Filter, text, &bindings, checks));
    let filter = filter.transpose().map_err(invalid)?;
    let projection = projection_text.as_deref().map(|text| projection::read(text, &bindings, checks, table));
    let projection = projection.transpose().map_err(invalid)?;
    let sent: Vec<&str> =
        [filter_text.as_deref(), projection_text.as_deref()].into_iter().flatten().collect();
    let empty = |raw: &[u8]| json::members(raw).is_ok_and(|members| members.is_empty());
    let bound = ["ExpressionAttributeNames", "ExpressionAttributeValues"].map(|name| request.get(name));
    if bound.into_iter().flatten().any(|raw| empty(raw) || sent.is_empty()) {
        return Err(Unplanned::Invalid);
    }
    if checks == Checks::All {
        bindings.check_unused(&sent).map_err(invalid)?;
    }
    let count = match text("Select")?.as_deref() {
        Some("COUNT") if projection.is_none() => true,
        Some("ALL_ATTRIBUTES") if projection.is_none() => false,
        Some("SPECIFIC_ATTRIBUTES") if projection.is_some() => false,
        None => false,
        Some(_) => return Err(Unplanned::Invalid),
    };
    let limit = match request.get("Limit") {
        None => None,
        Some(raw) => {
            let limit = std::str::from_utf8(raw).ok().and_then(|text| text.parse::<i32>().ok());
            let limit = limit.and_then(|limit| usize::try_from(limit).ok()).filter(|limit| *limit > 0);
            Some(limit.ok_or(Unplanned::Invalid)?)
        }
    };
    let mut body = Splice::new(request.body);
    if let Some(start) = request.get("ExclusiveStartKey") {
        let located = locate(table, context, start)?;
        located.partition.wrap(&located.affixes, &mut body);
    }
    let wanted = (count || projection.is_some()).then(|| {
        let mut wanted = Projection::default();
        let paths = projection.iter().flat_map(|projection| &projection.paths).map(|path| path.root.as_str());
        let read = filter.iter().flat_map(Condition::roots);
        for name in table.key.names().chain(paths).chain(read) {
            wanted.add_root(name);
        }
        wanted
    });
    let mut fresh = Fresh::avoiding(&bindings);
    let quoted = |text: &str| {
        let mut quoted = Vec::new();
        json::write_string(&mut quoted, text);
        Some(quoted)
    };
    let mut changes: Changes = Vec::new();
    if let Some(text) = filter_text.as_deref() {
        // The store checks the filter, but holds nothing back: row 0 alone does not know the sum. OR binds least.
        let always = format!("{text} OR attribute_exists({})", fresh.name(&table.key.partition.name));
        if always.len() > MAX_EXPRESSION {
            return Err(Unplanned::Refused(Error::gateway_rejection(format!(
                "Invalid FilterExpression: the table holds counters, which takes {} of the {MAX_EXPRESSION} bytes that an expression may have",
                always.len() - text.len()
            ))));
        }
        changes.push(("FilterExpression", quoted(&always)));
    }
    if let Some(wanted) = &wanted {
        changes.push(("ProjectionExpression", quoted(&wanted.render(&mut fresh))));
        changes.push(("Select", None));
    }
    let (names, values) = bindings.rewritten(filter_text.as_deref().as_slice(), &fresh);
    changes.push(("ExpressionAttributeNames", names));
    changes.push(("ExpressionAttributeValues", values));
    let body = set_members(&body.finish(request.body), &changes).map_err(Unplanned::Refused)?;
    let complete = Complete::new(
        table,
        request.get("TableName").unwrap_or(b"null"),
        request.get("ConsistentRead") == Some(b"true"),
        request.get("ReturnConsumedCapacity"),
        |name| wanted.as_ref().is_none_or(|wanted| wanted.covers(name)),
    );
    Ok(Plan::Scatter(Box::new(Scan {
        body,
        table: Arc::clone(table),
        filter,
        projection,
        count,
        limit,
        complete,
    })))
}

struct Scan {
    /// The first physical call, but for its limit.
    body: Bytes,
    table: Arc<Table>,
    filter: Option<Condition>,
    projection: Option<Projection>,
    count: bool,
    limit: Option<usize>,
    /// What completes row 0; `None` where no number is shown or tested.
    complete: Option<Complete>,
}

impl Planned for Scan {
    fn run<'a>(self: Box<Self>, calls: &'a mut dyn Calls) -> BoxFuture<'a, Result<Answer, Error>> {
        Box::pin(async move {
            let mut page = self.page(calls).await?;
            let mut fetch = None;
            if let Some(complete) = &self.complete {
                let fetch = fetch.insert(complete.fetch(&page.items)?);
                fetch.read_all(calls).await?;
                if let Some(capacity) = fetch.capacity.pop() {
                    add(page.capacity.get_or_insert(Json::Null), capacity);
                }
            }
            self.answer(&page, fetch.as_ref()).map(Answer::from)
        })
    }

    fn explain(&self) -> Explanation {
        let why = "the table holds counters: their rows but row 0 are left out, row 0 is completed from them by BatchGetItem, and filter, \
                   projection and Limit are applied here. Where only left out rows were read, the scan goes on";
        let calls = vec![CallExplanation::new(Operation::Scan, &self.body)];
        Explanation { plan: Kind::Scatter, why: why.to_owned(), calls }
    }
}

/// A page of it.
#[derive(Default)]
struct Page {
    /// Whole items as far as row 0 has them, keys logical.
    items: Vec<Bytes>,
    /// Whether more follows.
    more: bool,
    capacity: Option<Json>,
}

impl Scan {
    /// Reads on until there is something to show.
    async fn page(&self, calls: &mut dyn Calls) -> Result<Page, Error> {
        let mut page = Page::default();
        let (mut body, mut rounds) = (self.body.clone(), 0_u32);
        loop {
            // Where most rows are left out, more are asked for from round to round.
            let left = self.limit.map(|limit| limit - page.items.len().min(limit));
            let asked = left.map(|left| left.saturating_mul(1 << rounds.min(12)).min(100_000));
            if let Some(asked) = asked {
                body = set_members(&body, &vec![("Limit", Some(asked.to_string().into_bytes()))])?;
            }
            let call = PhysicalCall::only(Operation::Scan, body);
            let answer = calls.one(PhysicalCall { retry_throttled: rounds > 0, ..call }).await?;
            let next = self.take(&mut page, &answer, asked);
            match next.map_err(|Malformed| unreadable(Operation::Scan))? {
                Some(next) => body = next,
                None => return Ok(page),
            }
            rounds += 1;
        }
    }

    /// Takes the answer to a request for so many rows. Returns the next one, if the page needs it.
    fn take(&self, page: &mut Page, body: &Bytes, asked: Option<usize>) -> Result<Option<Bytes>, Malformed> {
        let [items, last, capacity] =
            json::attributes_of(body, ["Items", "LastEvaluatedKey", "ConsumedCapacity"])?;
        if let Some(capacity) = capacity.and_then(|raw| serde_json::from_slice(raw).ok()) {
            add(page.capacity.get_or_insert(Json::Null), capacity);
        }
        let partition = &self.table.key.partition;
        let items = json::elements(items.ok_or(Malformed)?)?;
        let read = items.len();
        for item in items {
            let key = json::member(item, &partition.name)?.ok_or(Malformed)?;
            let key = KeyText::read(key, partition.key_type).ok_or(Malformed)?;
            if !self.table.is_part(&key.bytes) {
                let item = body.slice_ref(item);
                let mut splice = Splice::new(&item);
                strip_object(&self.table, &item, &mut splice)?;
                page.items.push(splice.finish(&item));
            }
        }
        let last = last.filter(|last| *last != b"null");
        if let Some(limit) = self.limit
            && page.items.len() >= limit
        {
            page.more = last.is_some() || page.items.len() > limit;
            page.items.truncate(limit);
            return Ok(None);
        }
        let Some(last) = last else { return Ok(None) };
        // A page ends at its limit, or at 1 MB.
        let full = asked.is_none_or(|asked| read < asked);
        if full && !page.items.is_empty() {
            page.more = true;
            return Ok(None);
        }
        let next = json::splice_members(&self.body, &[("ExclusiveStartKey", Some(last))])?;
        Ok(Some(Bytes::from(next)))
    }

    fn answer(&self, page: &Page, fetch: Option<&Fetch>) -> Result<Bytes, Error> {
        let broken = |Malformed| unreadable(Operation::Scan);
        let (mut shown, mut kept) = (vec![b'['], 0_usize);
        for item in &page.items {
            let item = match (&self.complete, fetch) {
                (Some(complete), Some(fetch)) => complete.whole(item, fetch)?,
                _ => item.clone(),
            };
            if let Some(filter) = &self.filter
                && !filter.holds(&read_attributes(&item, &filter.roots()).map_err(|_| broken(Malformed))?)
            {
                continue;
            }
            kept += 1;
            if self.count {
                continue;
            }
            if kept > 1 {
                shown.push(b',');
            }
            match &self.projection {
                None => shown.extend_from_slice(&item),
                Some(projection) => project(projection, &item, &mut shown).map_err(broken)?,
            }
        }
        shown.push(b']');
        let mut answer = Object::new();
        if !self.count {
            answer.raw("Items", &shown);
        }
        answer.raw("Count", kept.to_string().as_bytes());
        answer.raw("ScannedCount", page.items.len().to_string().as_bytes());
        if let (true, Some(last)) = (page.more, page.items.last()) {
            answer.raw("LastEvaluatedKey", &identity::key(&self.table, last).map_err(broken)?);
        }
        if let Some(capacity) = &page.capacity {
            answer.raw("ConsumedCapacity", capacity.to_string().as_bytes());
        }
        Ok(Bytes::from(answer.finish()))
    }
}
