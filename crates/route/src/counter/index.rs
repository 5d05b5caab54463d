//! Query and Scan of an index of a table with counters. It holds row 0 of each alone, with a part of the numbers: what it shows is
//! completed from the other rows, which are in the table.
//!
//! Indexes that would hold the other rows too are refused when the rules are loaded; those made later, here.

use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use heatsink_dynamo::expression::{Bindings, Checks, Condition, Fresh, Kind};
use heatsink_dynamo::json::{self, Malformed};
use heatsink_dynamo::{Error, IndexSchema, Operation};
use heatsink_layout::Table;
use serde_json::Value as Json;

use super::complete::Complete;
use crate::answer::unreadable;
use crate::asked::asked_first;
use crate::capacity::add;
use crate::items::shown::{Shown, whole_attributes};
use crate::plan::{Explanation, Kind as PlanKind, Plan, Planned};
use crate::projection;
use crate::projection::project;
use crate::query::legacy::modernized;
use crate::request::{Changes, Request, set_members};
use crate::{Answer, Calls};

/// The plan of a Query or Scan of an index; `plan` makes one of a request without regard to counters.
///
/// # Errors
/// `ValidationException` for what an index cannot show of counters.
pub(crate) fn plan(
    operation: Operation,
    request: &Request<'_>,
    table: &Arc<Table>,
    index: &IndexSchema,
    plan: &dyn Fn(&Request<'_>) -> Result<Plan, Error>,
) -> Result<Plan, Error> {
    let filter = if operation == Operation::Query { "QueryFilter" } else { "ScanFilter" };
    match modernized(request, filter) {
        Ok(None) => {}
        Ok(Some(modern)) => {
            let then = self::plan(operation, &Request::read(&modern)?, table, index, plan)?;
            return Ok(asked_first(operation, request.body.clone(), then));
        }
        // What is not valid the store refuses.
        Err(_) => return plan(request),
    }
    let counted: Vec<&String> =
        table.layouts().iter().filter_map(|one| one.layout().counted()).flatten().collect();
    if index.key.names().all(|name| table.key.has(name) || counted.iter().any(|counted| *counted == name)) {
        return Err(refusal(format!(
            "the index {} holds every counter once for each shard, with a part of its numbers. Give it a key that only whole items have",
            index.name
        )));
    }
    if let Some(name) = counted.iter().find(|name| index.key.has(name)) {
        return Err(refusal(format!(
            "the index {} is sorted by parts of {name} and not by its sum",
            index.name
        )));
    }
    if let Some(text) = request.string("FilterExpression")?
        && let Ok(bindings) =
            Bindings::read(request.get("ExpressionAttributeNames"), request.get("ExpressionAttributeValues"))
        && let Ok(filter) = Condition::read(Kind::Filter, &text, &bindings, Checks::Meaning)
        && let Some(name) = counted.iter().find(|name| filter.mentions(name))
    {
        return Err(refusal(format!(
            "a filter on an index cannot read {name}, of which the index holds a part"
        )));
    }
    let select = request.string("Select")?;
    let (shown, doubtful) = match shown(request, table, Checks::All)? {
        Some(shown) => (shown, false),
        // What only the checks here find wrong the store may take: it decides.
        None => match shown(request, table, Checks::Meaning)? {
            Some(shown) => (shown, true),
            None => return plan(request),
        },
    };
    if select.as_deref() == Some("COUNT") {
        return plan(request);
    }
    let fetched = index.local && (shown.projection.is_some() || select.as_deref() == Some("ALL_ATTRIBUTES"));
    let holds = |name: &str| {
        let held = fetched || index.projects_all || index.included.iter().any(|included| included == name);
        let asked = |path: &heatsink_dynamo::expression::Path| path.root == name;
        held && shown.projection.as_ref().is_none_or(|projection| projection.paths.iter().any(asked))
    };
    let complete = Complete::new(
        table,
        request.get("TableName").unwrap_or(b"null"),
        request.get("ConsistentRead") == Some(b"true"),
        request.get("ReturnConsumedCapacity"),
        holds,
    );
    let Some(complete) = complete else { return plan(request) };
    let complete = if fetched { complete.with_row0() } else { complete };
    let changes: Changes = shown.asked.iter().map(|(name, value)| (*name, Some(value.clone()))).collect();
    let body = if changes.is_empty() { request.body.clone() } else { set_members(request.body, &changes)? };
    let plan = match plan(&Request::read(&body)?)? {
        Plan::Single(inner) | Plan::Scatter(inner) => {
            Plan::Scatter(Box::new(Completed { operation, inner, shown, complete }))
        }
        forward @ Plan::Forward { .. } => forward,
    };
    Ok(if doubtful { asked_first(operation, request.body.clone(), plan) } else { plan })
}

/// What a page shows; `None` for a request that is not valid.
fn shown(request: &Request<'_>, table: &Table, checks: Checks) -> Result<Option<Shown>, Error> {
    let names = ["KeyConditionExpression", "FilterExpression", "ProjectionExpression"];
    let mut texts = Vec::new();
    for name in names {
        texts.push(request.string(name)?);
    }
    let Ok(bindings) =
        Bindings::read(request.get("ExpressionAttributeNames"), request.get("ExpressionAttributeValues"))
    else {
        return Ok(None);
    };
    let Some(text) = texts.last().and_then(Option::as_deref) else {
        return Ok(Some(Shown { projection: None, asked: Vec::new() }));
    };
    let all: Vec<&str> = texts.iter().flatten().map(|text| &**text).collect();
    let Ok(projection) = projection::read(text, &bindings, checks, table) else { return Ok(None) };
    if checks == Checks::All && bindings.check_unused(&all).is_err() {
        return Ok(None);
    }
    let wanted = whole_attributes(&projection, table);
    let mut fresh = Fresh::avoiding(&bindings);
    let mut quoted = Vec::new();
    json::write_string(&mut quoted, &wanted.render(&mut fresh));
    let kept: Vec<&str> = texts.iter().take(2).flatten().map(|text| &**text).collect();
    let mut asked = vec![("ProjectionExpression", quoted)];
    if let (Some(names), _) = bindings.rewritten(&kept, &fresh) {
        asked.push(("ExpressionAttributeNames", names));
    }
    Ok(Some(Shown { projection: Some(projection), asked }))
}

fn refusal(why: String) -> Error {
    Error::gateway_rejection(format!(
        "Not supported on a table with counters, whose numbers are spread over rows: {why}. Nothing was read"
    ))
}

struct Completed {
    operation: Operation,
    inner: Box<dyn Planned>,
    shown: Shown,
    complete: Complete,
}

impl Planned for Completed {
    fn run<'a>(self: Box<Self>, calls: &'a mut dyn Calls) -> BoxFuture<'a, Result<Answer, Error>> {
        Box::pin(self.read(calls))
    }

    fn explain(&self) -> Explanation {
        let mut explanation = self.inner.explain();
        explanation.plan = PlanKind::Scatter;
        explanation.why +=
            "; the numbers of counters are then completed from their other rows, by BatchGetItem";
        explanation
    }
}

impl Completed {
    async fn read(self: Box<Self>, calls: &mut dyn Calls) -> Result<Answer, Error> {
        let Completed { operation, inner, shown, complete } = *self;
        let broken = |Malformed| unreadable(operation);
        let Answer { body: page, missing } = inner.run(calls).await?;
        let [items, capacity] = json::attributes_of(&page, ["Items", "ConsumedCapacity"]).map_err(broken)?;
        let items = json::elements(items.unwrap_or(b"[]")).map_err(broken)?;
        let items: Vec<Bytes> = items.into_iter().map(|item| page.slice_ref(item)).collect();
        let mut capacity: Option<Json> = capacity.and_then(|raw| serde_json::from_slice(raw).ok());
        let mut fetch = complete.fetch(&items)?;
        fetch.read_all(calls).await?;
        let mut list = vec![b'['];
        for (at, item) in items.iter().enumerate() {
            if at > 0 {
                list.push(b',');
            }
            let item = complete.whole(item, &fetch)?;
            match &shown.projection {
                None => list.extend_from_slice(&item),
                Some(projection) => project(projection, &item, &mut list).map_err(broken)?,
            }
        }
        list.push(b']');
        if let (Some(sum), Some(more)) = (&mut capacity, fetch.capacity.pop()) {
            add(sum, more);
        }
        let capacity = capacity.map(|capacity| capacity.to_string());
        let mut changes: Vec<(&str, Option<&[u8]>)> = vec![("Items", Some(&list))];
        if let Some(capacity) = &capacity {
            changes.push(("ConsumedCapacity", Some(capacity.as_bytes())));
        }
        let body = json::splice_members(&page, &changes).map(Bytes::from).map_err(broken)?;
        Ok(Answer { body, missing })
    }
}
