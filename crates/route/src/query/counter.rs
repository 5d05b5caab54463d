//! A Query for a counter's key on the table: shard 0 holds row 0 of every item, so it alone decides what the page holds; the other
//! shards are then asked for the same range of sort keys, and what they hold is added.
//!
//! A gather of all shards would ask for as much: each may hold a row of every item.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use futures::future::BoxFuture;
use heatsink_dynamo::expression::{Bindings, Fresh};
use heatsink_dynamo::json::{self, Malformed};
use heatsink_dynamo::{Error, KeyValue, Operation};
use heatsink_layout::{Layout, Slot};

use super::answer::Logical;
use super::buckets::Source;
use super::lanes::{Lanes, physical};
use super::page::{Capacity, span};
use super::range::Condition;
use super::request::Query;
use super::scatter::{Collected, Scatter, Wanted};
use super::shape::{Gathering, attributes};
use super::template::{Ask, Expressions, Template};
use super::{Key, one_shard};
use crate::counter::fold::fold;
use crate::refusal::Unplanned;

use crate::items::identity::{self, Identity};
use crate::plan::{CallExplanation, Explanation, Kind, Plan, Planned};
use crate::{Answer, Calls, PhysicalCall, Router, answer};

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
    fn run<'a>(self: Box<Self>, calls: &'a mut dyn Calls) -> BoxFuture<'a, Result<Answer, Error>> {
        Box::pin(async move {
            let mut page = Scatter::new(Arc::clone(&self.wanted)).collect(calls).await?;
            let page = match page.rows.is_empty() {
                true => page,
                false => {
                    let parts = self.parts(calls, &mut page).await?;
                    self.folded(page, &parts)?
                }
            };
            self.wanted.gathering.shape.answer(&page, None).map(Answer::from)
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

/// The parts of items, as the other shards have them.
type Parts = HashMap<Identity, Vec<Bytes>>;

impl Summed {
    /// Reads what the other shards have of the items of a page.
    async fn parts(&self, calls: &mut dyn Calls, page: &mut Collected) -> Result<Parts, Error> {
        let range = self.range(page)?;
        let mut parts = Parts::new();
        let mut round: Vec<PhysicalCall> =
            (0..self.others.len()).filter_map(|shard| self.call(shard, range.as_ref(), None)).collect();
        while !round.is_empty() {
            let mut next = Vec::new();
            let mut take = |shard, answer: Result<Bytes, Error>| {
                let start = self.take(&mut parts, page, &answer?);
                let start = start.map_err(|Malformed| answer::unreadable(Operation::Query))?;
                next.extend(start.and_then(|start| self.call(shard, range.as_ref(), Some(&start))));
                Ok(())
            };
            calls.round(round.into(), &mut take).await?;
            round = next;
        }
        Ok(parts)
    }

    fn call(&self, shard: usize, range: Option<&Condition>, start: Option<&[u8]>) -> Option<PhysicalCall> {
        let partition = self.others.get(shard)?;
        let body = self.template.body(Ask { partition, condition: range, start, limit: None });
        let call = PhysicalCall::only(Operation::Query, body);
        Some(PhysicalCall { id: shard, retry_throttled: true, ..call })
    }

    /// Takes a shard's answer. Returns where the shard goes on, if it has more.
    fn take(
        &self,
        parts: &mut Parts,
        page: &mut Collected,
        body: &Bytes,
    ) -> Result<Option<Bytes>, Malformed> {
        let [items, last, capacity] =
            json::attributes_of(body, ["Items", "LastEvaluatedKey", "ConsumedCapacity"])?;
        for item in json::elements(items.ok_or(Malformed)?)? {
            let (identity, _) = identity::stored(&self.wanted.gathering.shape.table, item)?;
            parts.entry(identity).or_default().push(body.slice_ref(item));
        }
        let capacity: Option<Capacity> = capacity.and_then(|raw| serde_json::from_slice(raw).ok());
        if let Some(capacity) = &capacity {
            page.capacity.get_or_insert_default().add(capacity);
        }
        Ok(last.filter(|last| *last != b"null").map(|last| body.slice_ref(last)))
    }

    /// The sort keys from a page's first row to its last; `None` in a table without sort key.
    fn range(&self, page: &Collected) -> Result<Option<Condition>, Error> {
        let Some(sort) = &self.wanted.gathering.shape.table.key.sort else { return Ok(None) };
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

    fn folded(&self, mut page: Collected, parts: &Parts) -> Result<Collected, Error> {
        let table = &self.wanted.gathering.shape.table;
        let broken = |Malformed| answer::unreadable(Operation::Query);
        for row in &mut page.rows {
            let whole = page.pages.get(row.page).and_then(|page| page.get(row.item.clone()));
            let item = whole.ok_or_else(|| broken(Malformed))?;
            let (identity, _) = identity::stored(table, item).map_err(broken)?;
            let Some(parts) = parts.get(&identity) else { continue };
            let row0 = Bytes::copy_from_slice(item);
            let item = fold(&self.counted, &row0, parts.iter().map(|part| &**part))?;
            let partition = json::member(&item, &table.key.partition.name).map_err(broken)?;
            row.partition = partition.and_then(|partition| span(&item, partition)).unwrap_or_default();
            row.item = 0..item.len();
            row.page = page.pages.len();
            page.pages.push(item);
        }
        Ok(page)
    }
}
