//! The fold of a page: its items are base fragments of counters, and what their other fragments
//! hold is read beside and added.
//!
//! The step stands between the merge and the filter of every read of a collection: a filter tests
//! sums.

use std::collections::HashMap;
use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::expression::{Bindings, Fresh, Projection};
use heatsink_dynamo::json::{self, Malformed};
use heatsink_dynamo::{Error, KeyValue, Operation};
use heatsink_layout::Table;

use crate::answer::unreadable;
use crate::capacity::Capacity;
use crate::collection::keys::Key;
use crate::collection::page::Page;
use crate::collection::range::Condition;
use crate::collection::template::{Ask, Template};
use crate::fragments;
use crate::fragments::fold::fold;
use crate::identity::{self, Identity};
use crate::items::fetch::{Fetch, Parts};
use crate::refusal::unplaced;
use crate::request::{Request, quoted};
use crate::{Calls, PhysicalCall};

/// Which numbers of a page's items are summed, and how their fragments are read.
#[derive(Debug)]
pub(crate) struct Fold {
    table: Arc<Table>,
    /// The counter attributes that the page shows or tests.
    counters: Vec<String>,
    by: By,
}

/// How fragments are read.
#[derive(Debug)]
enum By {
    /// By key: items of any collections.
    Keys {
        /// The table's name as the client wrote it, raw.
        name: Vec<u8>,
        consistent: bool,
        report: Option<Vec<u8>>,
        /// The base fragments too: the page is of an index and may lack numbers that it should
        /// show.
        base_too: bool,
    },
    /// By the range of a page's sort keys, in every other shard: items of one collection.
    Range { template: Template, partitions: Vec<Key> },
}

/// What was read of counters, by item.
type Found = HashMap<Identity, Parts>;

impl Fold {
    /// Of items of any collections. `shown` says of a declared number whether the page shows or
    /// tests it; `None` if it does so with none.
    pub(crate) fn by_keys(
        table: &Arc<Table>,
        request: &Request<'_>,
        base_too: bool,
        shown: impl Fn(&str) -> bool,
    ) -> Option<Self> {
        let mut counters: Vec<String> =
            table.counter_attributes().filter(|name| shown(name)).cloned().collect();
        counters.sort_unstable();
        counters.dedup();
        let by = By::Keys {
            name: request.get("TableName").unwrap_or(b"null").to_vec(),
            consistent: request.get("ConsistentRead") == Some(b"true"),
            report: request.get("ReturnConsumedCapacity").map(<[u8]>::to_vec),
            // The page's base fragments may have been read before a fold, and the others after it.
            base_too: base_too || table.key_layouts().any_narrows(),
        };
        (!counters.is_empty()).then(|| Fold { table: Arc::clone(table), counters, by })
    }

    /// Of items of one collection, whose other fragments lie under the physical keys `partitions`
    /// and are asked for by `template`.
    pub(crate) fn by_range(
        table: &Arc<Table>,
        counters: Vec<String>,
        template: Template,
        partitions: Vec<Key>,
    ) -> Self {
        Fold { table: Arc::clone(table), counters, by: By::Range { template, partitions } }
    }

    /// The items with their sums, and what reading the fragments cost. The items have logical keys.
    ///
    /// # Errors
    /// The store's; as [`fold`].
    pub(crate) async fn whole(
        &self,
        items: Vec<Bytes>,
        calls: &mut dyn Calls,
    ) -> Result<(Vec<Bytes>, Option<Capacity>), Error> {
        if items.is_empty() {
            return Ok((items, None));
        }
        let (found, capacity) = match &self.by {
            By::Keys { base_too, .. } => {
                let mut fetch = self.fetch(&items, *base_too)?;
                fetch.read_all(calls).await?;
                let capacity = fetch.capacity.pop();
                let whole = |item| self.sum(item, |identity| fetch.parts(identity), *base_too);
                return Ok((items.into_iter().map(whole).collect::<Result<_, _>>()?, capacity));
            }
            By::Range { template, partitions } => self.read(&items, template, partitions, calls).await?,
        };
        let whole = |item| self.sum(item, |identity| found.get(identity), false);
        Ok((items.into_iter().map(whole).collect::<Result<_, _>>()?, capacity))
    }

    /// How a plan with it explains itself, which reads its page because of `page`.
    pub(crate) fn why(&self, page: &str) -> String {
        match &self.by {
            By::Keys { .. } => {
                format!(
                    "{page}; the numbers of counters are then completed from their other fragments, by BatchGetItem"
                )
            }
            By::Range { partitions, .. } => format!(
                "the key holds counters: shard 0 has the base fragment of every item and decides what the page holds; then the {} other shards are \
                 asked for the same range of sort keys, at half a unit or more each, and their parts are added",
                partitions.len()
            ),
        }
    }

    /// An item with its sums.
    fn sum<'f>(
        &self,
        item: Bytes,
        found: impl FnOnce(&Identity) -> Option<&'f Parts>,
        base_too: bool,
    ) -> Result<Bytes, Error> {
        let broken = |Malformed| unreadable(Operation::Query);
        let Some(parts) = found(&identity::logical(&self.table, &item).map_err(broken)?) else {
            return Ok(item);
        };
        let item = match parts.base().filter(|_| base_too) {
            None => item,
            Some(base) => {
                let mut own = Vec::new();
                for name in &self.counters {
                    own.push((name.as_str(), json::member(base, name).map_err(broken)?));
                }
                json::splice_members(&item, &own).map(Bytes::from).map_err(broken)?
            }
        };
        fold(&self.counters, &item, parts.others()).map_err(|error| self.named(error, &item))
    }

    /// The error of one item of a page says which.
    fn named(&self, mut error: Error, item: &[u8]) -> Error {
        let key = |name: &str| json::member(item, name).ok().flatten().map(String::from_utf8_lossy);
        let key: Vec<_> = self.table.key.names().filter_map(key).collect();
        let message = error.message.take().unwrap_or_default();
        error.message = Some(format!("The item {}: {message}", key.join(", ")));
        error
    }

    /// The read of those items' fragments by key.
    fn fetch(&self, items: &[Bytes], base_too: bool) -> Result<Fetch, Error> {
        let By::Keys { name, consistent, report, .. } = &self.by else {
            return Err(unreadable(Operation::BatchGetItem));
        };
        let mut keys = Vec::new();
        for item in items {
            let identity = identity::logical(&self.table, item);
            let identity = identity.map_err(|Malformed| unreadable(Operation::BatchGetItem))?;
            let layout = self.table.layout_of(identity.partition());
            if let Some(layout) = layout.filter(|layout| layout.counter_attributes().is_some()) {
                let placement = layout.placement(None).map_err(unplaced)?;
                let fragments = fragments::keys(&self.table, layout, &placement, item)?;
                keys.extend(fragments.into_iter().skip(usize::from(!base_too)));
            }
        }
        let bindings = Bindings::default();
        let mut fresh = Fresh::avoiding(&bindings);
        let mut projection = Projection::default();
        for name in self.table.key.names().chain(self.counters.iter().map(String::as_str)) {
            projection.add_root(name);
        }
        let mut options = vec![("ProjectionExpression", quoted(&projection.render(&mut fresh)))];
        if let (Some(names), _) = bindings.rewritten(&[], &fresh) {
            options.push(("ExpressionAttributeNames", names));
        }
        if *consistent {
            options.push(("ConsistentRead", b"true".to_vec()));
        }
        Ok(Fetch::new(&self.table, name.clone(), options, report.clone(), keys))
    }

    /// Reads those items' fragments by the range of their sort keys, until every shard has given
    /// all it has there.
    async fn read(
        &self,
        items: &[Bytes],
        template: &Template,
        partitions: &[Key],
        calls: &mut dyn Calls,
    ) -> Result<(Found, Option<Capacity>), Error> {
        let broken = |Malformed| unreadable(Operation::Query);
        let range = self.range(items).map_err(broken)?;
        let call = |shard: usize, start: Option<&[u8]>| {
            let partition = partitions.get(shard)?;
            let body = template.body(Ask {
                partition,
                others: &[],
                conditions: range.as_slice(),
                start,
                limit: None,
            });
            let call = PhysicalCall::only(Operation::Query, body);
            Some(PhysicalCall { id: shard, retry_throttled: true, ..call })
        };
        let (mut found, mut capacity) = (Found::new(), None::<Capacity>);
        let mut round: Vec<PhysicalCall> =
            (0..partitions.len()).filter_map(|shard| call(shard, None)).collect();
        while !round.is_empty() {
            let mut next = Vec::new();
            let mut take = |shard, answer: Result<Bytes, Error>| {
                let body = answer?;
                let page = Page::<0>::read(&body, []).map_err(broken)?;
                for item in &page.items {
                    let (identity, slot) = identity::stored(&self.table, item.raw).map_err(broken)?;
                    found.entry(identity).or_default().found.push((slot, body.slice_ref(item.raw)));
                }
                if let Some(more) = page.capacity() {
                    capacity.get_or_insert_default().add(&more);
                }
                next.extend(page.last.and_then(|last| call(shard, Some(last))));
                Ok(())
            };
            calls.round(round.into(), &mut take).await?;
            round = next;
        }
        Ok((found, capacity))
    }

    /// The sort keys from a page's first item to its last; `None` in a table without sort key.
    fn range(&self, items: &[Bytes]) -> Result<Option<Condition>, Malformed> {
        let (Some(sort), Some(first), Some(last)) = (&self.table.key.sort, items.first(), items.last())
        else {
            return Ok(None);
        };
        let key = |item: &Bytes| {
            let raw = json::member(item, &sort.name)?.ok_or(Malformed)?;
            KeyValue::read(raw, sort).map(KeyValue::into_owned).map_err(|_| Malformed)
        };
        let (first, last) = (key(first)?, key(last)?);
        Ok(Some(match first.cmp(&last) {
            std::cmp::Ordering::Equal => Condition::Eq(first),
            std::cmp::Ordering::Less => Condition::Between(first, last),
            std::cmp::Ordering::Greater => Condition::Between(last, first),
        }))
    }
}
