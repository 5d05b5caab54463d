//! A Query for a counter's key on the table: shard 0 holds row 0 of every item, so it alone decides what the page holds; the other
//! shards are then asked for the same range of sort keys, and what they hold is added.
//!
//! A gather of all shards would ask for as much: each may hold a row of every item.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::expression::{Bindings, Fresh};
use heatsink_dynamo::json::{self, Malformed};
use heatsink_dynamo::{Error, KeyValue, Operation};
use heatsink_layout::{Layout, Slot};

use super::answer::Logical;
use super::buckets::Source;
use super::lanes::{Lanes, physical};
use super::page::{Capacity, span};
use super::range::Condition;
use super::request::{Query, Unplanned};
use super::scatter::{Collected, Progress, Scatter, Wanted};
use super::shape::{Gathering, attributes};
use super::template::{Ask, Expressions, Template};
use super::{Key, one_shard};
use crate::counter::fold::fold;

use crate::plan::{CallExplanation, Explanation, Kind, Plan, Planned};
use crate::rows::keys::{self, Identity};
use crate::{Execution, Outlook, PhysicalCall, Router, Step, answer};

/// The plan of a Query for the key of a counter, on the table.
pub(super) fn plan(router: &Router, query: &Query<'_>, layout: &Arc<Layout>) -> Result<Plan, Unplanned> {
    let asked = attributes(query);
    let counted: Vec<String> = layout.counted().unwrap_or_default().to_vec();
    let shown = |name: &String| asked.as_ref().is_none_or(|asked| asked.contains(name));
    let counted: Vec<String> = counted.into_iter().filter(shown).collect();
    if counted.is_empty() || layout.shards <= 1 {
        return one_shard(query, layout, Slot::default());
    }
    let mut others = Vec::new();
    for shard in 1..layout.shards {
        others.push(physical(query.schema, layout, &query.partition, Slot::shard(shard))?);
    }
    let lane = Lanes::new(query, layout)?.lane(Slot::default()).ok_or(Unplanned::Invalid)?;
    let mut logical = Vec::new();
    query.partition.write(&mut logical);
    let key = query.key();
    let mut members = vec![("ReturnConsumedCapacity", &b"\"INDEXES\""[..])];
    members.extend(query.kept.iter().filter(|(name, _)| ["TableName", "ConsistentRead"].contains(name)));
    let mut wanted: Vec<String> = key.names().map(str::to_owned).collect();
    wanted.extend(counted.iter().cloned());
    let expressions = Expressions { members, filter: None, projection: None, attributes: Some(wanted) };
    let bindings = Bindings::default();
    let fresh = Fresh::avoiding(&bindings);
    let template = Template::new(&key.partition, key.sort.as_ref(), &expressions, &bindings, fresh);
    Ok(Plan::Scatter(Box::new(Summed {
        wanted: Arc::new(Wanted {
            gathering: Gathering::new(query, Logical::Fixed(logical)),
            source: Source::Lanes(vec![lane]),
            limit: query.limit,
            descending: query.descending,
            sizes: Arc::clone(&router.sizes),
            learned_as: query.learned_as(),
            partial: false,
            passed: None,
        }),
        others,
        template,
        counted,
    })))
}

/// Such a Query.
struct Summed {
    wanted: Arc<Wanted>,
    /// The physical keys of the shards but the first.
    others: Vec<Key>,
    template: Template,
    /// The numbers that are summed.
    counted: Vec<String>,
}

impl Planned for Summed {
    fn execute(self: Box<Self>) -> Box<dyn Execution> {
        let scatter = Scatter::new(Arc::clone(&self.wanted));
        Box::new(Summing {
            plan: *self,
            scatter,
            page: None,
            range: None,
            open: Vec::new(),
            parts: HashMap::new(),
            failed: None,
        })
    }

    fn explain(&self) -> Explanation {
        let scatter = Scatter::new(Arc::clone(&self.wanted));
        let mut calls = Vec::new();
        for (lane, share) in scatter.shares(None) {
            if let Some((lane, call)) = scatter.call(lane, share) {
                let mut call = CallExplanation::new(Operation::Query, &call.body);
                call.shard = Some(lane.slot.shard);
                calls.push(call);
            }
        }
        let why = format!(
            "the key holds counters: shard 0 has row 0 of every item and decides what the page holds; then the {} other shards are \
             asked for the same range of sort keys, at half a unit or more each, and their parts are added",
            self.others.len()
        );
        Explanation { plan: Kind::Scatter, why, calls }
    }
}

/// Such a Query under way.
struct Summing {
    plan: Summed,
    scatter: Scatter,
    /// What shard 0 gave.
    page: Option<Collected>,
    /// The sort keys of that.
    range: Option<Condition>,
    /// The shards that have to be asked, and where each goes on.
    open: Vec<(usize, Option<Bytes>)>,
    parts: HashMap<Identity, Vec<Bytes>>,
    failed: Option<Error>,
}

impl Summing {
    fn next(&mut self) -> Result<Step, Error> {
        if let Some(error) = self.failed.take() {
            return Err(error);
        }
        if self.page.is_none() {
            match self.scatter.advance()? {
                Progress::Calls(calls) => return Ok(Step::Call(calls)),
                Progress::Collected(page) => {
                    if !page.rows.is_empty() {
                        self.range = self.range(&page)?;
                        self.open = (0..self.plan.others.len()).map(|at| (at, None)).collect();
                    }
                    self.page = Some(page);
                }
            }
        }
        if !self.open.is_empty() {
            let open = std::mem::take(&mut self.open);
            let calls = open.into_iter().filter_map(|(at, start)| self.call(at, start.as_deref()));
            return Ok(Step::Call(calls.collect()));
        }
        let page = self.page.take().unwrap_or_default();
        let page = self.folded(page)?;
        Ok(Step::Done(self.plan.wanted.gathering.shape.answer(&page, None)))
    }

    fn call(&self, at: usize, start: Option<&[u8]>) -> Option<PhysicalCall> {
        let partition = self.plan.others.get(at)?;
        let ask = Ask { partition, condition: self.range.as_ref(), start, limit: None };
        let body = self.plan.template.body(ask);
        Some(PhysicalCall { id: at, operation: Operation::Query, body, retry_throttled: true })
    }

    /// The sort keys from a page's first row to its last; `None` in a table without sort key.
    fn range(&self, page: &Collected) -> Result<Option<Condition>, Error> {
        let Some(sort) = &self.plan.wanted.gathering.shape.table.key.sort else { return Ok(None) };
        let key = |row| {
            let raw = page.item(row).and_then(|item| json::member(item, &sort.name).ok()?);
            let key = raw.and_then(|raw| KeyValue::read(raw, sort).ok()).map(KeyValue::into_owned);
            key.ok_or_else(|| answer::unreadable(Operation::Query))
        };
        let (first, last) = (key(0)?, key(page.rows.len().saturating_sub(1))?);
        Ok(Some(match first.cmp(&last) {
            std::cmp::Ordering::Equal => Condition::Eq(first),
            std::cmp::Ordering::Less => Condition::Between(first, last),
            std::cmp::Ordering::Greater => Condition::Between(last, first),
        }))
    }

    fn folded(&self, mut page: Collected) -> Result<Collected, Error> {
        let table = &self.plan.wanted.gathering.shape.table;
        let broken = |Malformed| answer::unreadable(Operation::Query);
        for row in &mut page.rows {
            let whole = page.pages.get(row.page).and_then(|page| page.get(row.item.clone()));
            let item = whole.ok_or_else(|| broken(Malformed))?;
            let (identity, _) = keys::stored(table, item).map_err(broken)?;
            let Some(parts) = self.parts.get(&identity) else { continue };
            let row0 = Bytes::copy_from_slice(item);
            let item = fold(&self.plan.counted, &row0, parts.iter().map(|part| &**part))?;
            let partition = json::member(&item, &table.key.partition.name).map_err(broken)?;
            row.partition = partition.and_then(|partition| span(&item, partition)).unwrap_or_default();
            row.item = 0..item.len();
            row.page = page.pages.len();
            page.pages.push(item);
        }
        Ok(page)
    }

    fn take(&mut self, at: usize, body: &Bytes) -> Result<(), Malformed> {
        let [items, last, capacity] =
            json::attributes_of(body, ["Items", "LastEvaluatedKey", "ConsumedCapacity"])?;
        for item in json::elements(items.ok_or(Malformed)?)? {
            let (identity, _) = keys::stored(&self.plan.wanted.gathering.shape.table, item)?;
            self.parts.entry(identity).or_default().push(body.slice_ref(item));
        }
        if let Some(last) = last.filter(|last| *last != b"null") {
            self.open.push((at, Some(body.slice_ref(last))));
        }
        let capacity: Option<Capacity> = capacity.and_then(|raw| serde_json::from_slice(raw).ok());
        if let (Some(page), Some(capacity)) = (&mut self.page, &capacity) {
            page.capacity.get_or_insert_default().add(capacity);
        }
        Ok(())
    }
}

impl Execution for Summing {
    fn step(&mut self) -> Step {
        self.next().unwrap_or_else(|error| Step::Done(Err(error)))
    }

    fn answer(&mut self, id: usize, answer: Result<Bytes, Error>) {
        if self.page.is_none() {
            return self.scatter.answer(id, answer);
        }
        let taken = answer
            .and_then(|body| self.take(id, &body).map_err(|Malformed| answer::unreadable(Operation::Query)));
        if let Err(error) = taken {
            self.failed.get_or_insert(error);
        }
    }

    fn outlook(&self) -> Outlook {
        if self.page.is_none() { self.scatter.outlook() } else { Outlook::default() }
    }
}
