//! BatchGetItem with keys whose items are rows under several physical keys, or may lie under any of several: each becomes all of them, in
//! as many physical batches as that takes. An item of which a key was left unread is unread as a whole.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use heatsink_dynamo::expression::Checks;
use heatsink_dynamo::json::{self, Malformed, Object};
use heatsink_dynamo::{Error, Operation};
use heatsink_layout::{Layout, Table};
use serde_json::Value as Json;

use super::fetch::{MOST_KEYS, Parts};
use super::get::Shown;
use super::keys::{self, Identity};
use super::whole;
use crate::answer::{pass_refusal, unreadable};
use crate::capacity::{add, single_capacity};
use crate::context::PlanContext;
use crate::key::{layout_of, locate};
use crate::plan::{CallExplanation, Explanation, Kind, Plan, Planned};
use crate::refusal::Unplanned;
use crate::request::{Request, malformed};
use crate::tables::table_name;
use crate::{Answer, Calls, PhysicalCall, asked};

/// The plan of a BatchGetItem in which a key is such an item's; `None` if none is.
pub(crate) fn get(request: &Request<'_>, context: &PlanContext<'_>) -> Result<Option<Plan>, Error> {
    let operation = Operation::BatchGetItem;
    let Some(items) = request.get("RequestItems") else { return Ok(None) };
    let named = json::members(items).map_err(|Malformed| malformed())?;
    let has_rows = |name: &str| {
        context.table(table_name(name)).is_some_and(|table| table.has_counters() || table.has_drawn())
    };
    if !named.iter().any(|(name, _)| has_rows(name)) {
        return Ok(None);
    }
    let (mut tables, mut several, mut valid) = (Vec::new(), false, true);
    for (name, raw) in &named {
        let body = request.body.slice_ref(raw);
        let part = Request::read(&body)?;
        let named = part.get("Keys").map_or(Ok(Vec::new()), json::elements);
        let named = named.map_err(|Malformed| malformed())?;
        let table = context.table(table_name(name));
        let mut asked = Asked {
            name: name.clone().into_owned(),
            table,
            shown: None,
            raw: body.clone(),
            items: Vec::new(),
        };
        let mut met = HashSet::new();
        for key in named {
            let Some(table) = &asked.table else {
                asked.items.push(Item {
                    logical: body.slice_ref(key),
                    layout: None,
                    keys: vec![body.slice_ref(key)],
                });
                continue;
            };
            let located = match locate(table, context, key) {
                Ok(located) => located,
                Err(Unplanned::Invalid) => return Ok(Some(pass_refusal(operation, request.body))),
                Err(Unplanned::Refused(error)) => return Err(error),
            };
            let identity = keys::logical(table, key);
            if !keys::is_key(table, key) {
                return Ok(Some(pass_refusal(operation, request.body)));
            }
            // Whether the same key may come twice, as 10 and as 1E1, the store says; its rows are read once.
            let twice = identity.is_ok_and(|identity| !met.insert(identity));
            valid &= !twice;
            let layout = layout_of(table, context, key);
            let keys = match &layout {
                _ if twice => Vec::new(),
                Some(layout) => keys::keys(table, layout, key)?,
                None => {
                    let raw = body.slice_ref(key);
                    let mut splice = crate::splice::Splice::new(&raw);
                    located.partition.wrap(&located.affixes, &mut splice);
                    vec![splice.finish(&raw)]
                }
            };
            several |= layout.is_some();
            asked.items.push(Item { logical: body.slice_ref(key), layout, keys });
        }
        if let Some(table) = &asked.table {
            let shown = Shown::read(&part, table, Checks::All).or_else(|_| {
                valid = false;
                Shown::read(&part, table, Checks::Meaning)
            });
            let Ok(shown) = shown else { return Ok(Some(pass_refusal(operation, request.body))) };
            // Nothing of the numbers is shown: row 0 is enough.
            for item in &mut asked.items {
                if item
                    .layout
                    .as_ref()
                    .and_then(|layout| layout.counted())
                    .is_some_and(|counted| !shown.counts(counted))
                {
                    item.keys.truncate(1);
                }
            }
            asked.shown = Some(shown);
        }
        tables.push(asked);
    }
    if !several {
        return Ok(None);
    }
    let mentions = |member: &str| {
        let has = |table: &Asked| json::member(&table.raw, member).is_ok_and(|found| found.is_some());
        tables.iter().any(has)
    };
    if mentions("AttributesToGet")
        && (mentions("ProjectionExpression") || mentions("ExpressionAttributeNames"))
    {
        return Ok(Some(pass_refusal(operation, request.body)));
    }
    if tables.iter().map(|table| table.items.len()).sum::<usize>() > MOST_KEYS {
        return Ok(Some(pass_refusal(operation, request.body)));
    }
    let report = request.get("ReturnConsumedCapacity").map(<[u8]>::to_vec);
    let plan = Plan::Scatter(Box::new(Batch { tables, report }));
    Ok(Some(if valid {
        plan
    } else {
        asked::first(operation, request.body.clone(), plan, "whether the request is valid, the store says")
    }))
}

/// One item that is asked for.
struct Item {
    /// Its logical key, raw.
    logical: Bytes,
    /// Its layout, if it has several.
    layout: Option<Arc<Layout>>,
    /// The physical keys of its rows.
    keys: Vec<Bytes>,
}

/// One table's part of the request.
struct Asked {
    name: String,
    table: Option<Arc<Table>>,
    shown: Option<Shown>,
    /// As the client sent it.
    raw: Bytes,
    items: Vec<Item>,
}

struct Batch {
    tables: Vec<Asked>,
    report: Option<Vec<u8>>,
}

impl Asked {
    /// The request for some physical keys.
    fn of(&self, keys: &[&Bytes]) -> Result<Vec<u8>, Malformed> {
        let mut list = b"[".to_vec();
        for (at, key) in keys.iter().enumerate() {
            if at > 0 {
                list.push(b',');
            }
            list.extend_from_slice(key);
        }
        list.push(b']');
        let mut changes: Vec<(&str, Option<&[u8]>)> = vec![("Keys", Some(&list))];
        if let Some(shown) = &self.shown {
            for name in ["AttributesToGet", "ProjectionExpression", "ExpressionAttributeNames"] {
                let new = shown.asked.iter().find(|(asked, _)| *asked == name);
                changes.push((name, new.map(|(_, value)| &**value)));
            }
        }
        json::splice_members(&self.raw, &changes)
    }
}

impl Batch {
    /// The physical batches.
    fn calls(&self) -> Result<Vec<PhysicalCall>, Malformed> {
        let mut all: Vec<(usize, &Bytes)> = Vec::new();
        for (at, table) in self.tables.iter().enumerate() {
            all.extend(table.items.iter().flat_map(|item| &item.keys).map(|key| (at, key)));
        }
        let mut calls = Vec::new();
        for chunk in all.chunks(MOST_KEYS) {
            let mut requested = Object::new();
            for (at, table) in self.tables.iter().enumerate() {
                let keys: Vec<&Bytes> =
                    chunk.iter().filter(|(of, _)| *of == at).map(|(_, key)| *key).collect();
                if !keys.is_empty() {
                    requested.raw(&table.name, &table.of(&keys)?);
                }
            }
            let mut body = Object::new();
            body.raw("RequestItems", &requested.finish());
            if let Some(report) = &self.report {
                body.raw("ReturnConsumedCapacity", report);
            }
            let call = PhysicalCall::only(Operation::BatchGetItem, Bytes::from(body.finish()));
            calls.push(PhysicalCall { id: calls.len(), retry_throttled: true, ..call });
        }
        Ok(calls)
    }
}

impl Planned for Batch {
    fn run<'a>(self: Box<Self>, calls: &'a mut dyn Calls) -> BoxFuture<'a, Result<Answer, Error>> {
        Box::pin(async move {
            let round = self.calls().map_err(|Malformed| malformed())?;
            let mut read = Read::default();
            let unreadable = |Malformed| unreadable(Operation::BatchGetItem);
            calls
                .round(round.into(), &mut |_, answer| self.take(&mut read, &answer?).map_err(unreadable))
                .await?;
            self.answer(&read).map(Answer::from)
        })
    }

    fn explain(&self) -> Explanation {
        let calls = self.calls().unwrap_or_default();
        let calls = calls.iter().map(|call| CallExplanation::new(call.operation, &call.body)).collect();
        let why = "the batch names counters, each of which is the sum of its rows, or items whose shard was drawn: all of their physical keys are \
             read, at most 100 in one physical batch";
        Explanation { plan: Kind::Scatter, why: why.to_owned(), calls }
    }
}

/// What was read of such a batch. Rows are told apart by their table, then by their item.
#[derive(Default)]
struct Read {
    found: HashMap<(String, Identity), Parts>,
    /// What came from tables that are not sharded.
    whole: HashMap<String, Vec<Bytes>>,
    /// Physical keys that were left unread, as read.
    left: HashSet<(String, Identity)>,
    capacity: Vec<Json>,
}

impl Batch {
    fn take(&self, read: &mut Read, body: &Bytes) -> Result<(), Malformed> {
        let [responses, unprocessed, capacity] =
            json::attributes_of(body, ["Responses", "UnprocessedKeys", "ConsumedCapacity"])?;
        for (name, items) in json::members(responses.unwrap_or(b"{}"))? {
            let table = self.table(&name).ok_or(Malformed)?;
            for item in json::elements(items)? {
                let item = body.slice_ref(item);
                let Some(table) = &table else {
                    read.whole.entry(name.clone().into_owned()).or_default().push(item);
                    continue;
                };
                let (identity, slot) = keys::stored(table, &item)?;
                let parts = read.found.entry((name.clone().into_owned(), identity)).or_default();
                parts.rows.push((slot, item));
            }
        }
        for (name, left) in json::members(unprocessed.filter(|raw| *raw != b"null").unwrap_or(b"{}"))? {
            let table = self.table(&name).ok_or(Malformed)?;
            for key in json::elements(json::member(left, "Keys")?.ok_or(Malformed)?)? {
                let identity = match &table {
                    Some(table) => keys::stored(table, key)?.0,
                    None => keys::opaque(key),
                };
                read.left.insert((name.clone().into_owned(), identity));
            }
        }
        if let Some(Json::Array(consumed)) = capacity.and_then(|raw| serde_json::from_slice(raw).ok()) {
            for one in consumed {
                match read.capacity.iter_mut().find(|sum| sum["TableName"] == one["TableName"]) {
                    Some(sum) => add(sum, one),
                    None => read.capacity.push(one),
                }
            }
        }
        Ok(())
    }

    /// The table of that name, as it was asked for; inside, whether it is sharded.
    fn table(&self, name: &str) -> Option<Option<Arc<Table>>> {
        let of = |asked: &&Asked| asked.name == name || table_name(&asked.name) == table_name(name);
        self.tables.iter().find(of).map(|asked| asked.table.clone())
    }

    fn answer(&self, read: &Read) -> Result<Bytes, Error> {
        let broken = |Malformed| unreadable(Operation::BatchGetItem);
        let (mut responses, mut unprocessed) = (Object::new(), Object::new());
        for asked in &self.tables {
            let (mut items, mut left) = (Vec::new(), Vec::new());
            for item in &asked.items {
                let identity = match &asked.table {
                    Some(table) => keys::logical(table, &item.logical).map_err(broken)?,
                    None => keys::opaque(&item.logical),
                };
                let id = (asked.name.clone(), identity);
                if read.left.contains(&id) {
                    left.push(&item.logical);
                    continue;
                }
                let (Some(table), Some(shown)) = (&asked.table, &asked.shown) else { continue };
                let Some(parts) = read.found.get(&id) else { continue };
                let Some(whole) = whole(table, item.layout.as_deref(), parts)? else { continue };
                items.push(shown.of(table, &whole).map_err(broken)?);
            }
            items.extend(read.whole.get(&asked.name).into_iter().flatten().map(|item| item.to_vec()));
            let list = responses.name(&asked.name);
            list.push(b'[');
            list.extend_from_slice(&items.join(&b','));
            list.push(b']');
            if !left.is_empty() {
                // As the client asked, but for the keys.
                let mut keys = b"[".to_vec();
                let raw: Vec<&[u8]> = left.iter().map(|key| &***key).collect();
                keys.extend_from_slice(&raw.join(&b','));
                keys.push(b']');
                let again = json::splice_members(&asked.raw, &[("Keys", Some(&keys))]).map_err(broken)?;
                unprocessed.raw(&asked.name, &again);
            }
        }
        let mut answer = Object::new();
        answer.raw("Responses", &responses.finish()).raw("UnprocessedKeys", &unprocessed.finish());
        if !read.capacity.is_empty() {
            let capacity: Vec<Json> = read.capacity.iter().cloned().map(single_capacity).collect();
            answer.raw("ConsumedCapacity", Json::Array(capacity).to_string().as_bytes());
        }
        Ok(Bytes::from(answer.finish()))
    }
}
