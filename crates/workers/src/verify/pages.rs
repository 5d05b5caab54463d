//! Reads the items of a table, or of one logical key, page by page, strongly consistent, and no
//! faster than a given rate.

use std::collections::VecDeque;
use std::time::Duration;

use heatsink_control::registry::Registry;
use heatsink_dynamo::{Error, Operation};
use heatsink_env::MonotonicInstant;
use heatsink_layout::{Bucket, DIRECTORY, Layout, Slot, directory_key};
use serde_json::{Map, Value as Json, json};

use crate::items::item::{Attributes, ItemContext, value};

/// The largest page where a rate is given. A page holds a quarter of a second's items, so that the
/// load is even.
const LARGEST_PAGE: u64 = 1_000;
const PAGES_A_SECOND: u64 = 4;

/// A read in progress.
pub(crate) struct Pages<'a> {
    registry: &'a Registry,
    table: &'a str,
    partition: &'a str,
    /// The body that all pages share.
    body: Json,
    operation: Operation,
    /// The physical keys that are left, the current one first; empty for a Scan.
    keys: VecDeque<Json>,
    /// The start of the next page; `None` at the end of the current key.
    start: Option<Json>,
    rate: Option<u64>,
    /// The earliest time of the next page.
    due: MonotonicInstant,
}

impl<'a> Pages<'a> {
    /// The items of the table, or those of a logical key: in each of its slots, with the buckets
    /// that the directory lists.
    pub async fn of(
        registry: &'a Registry,
        context: &'a ItemContext,
        key: Option<&[u8]>,
        rate: Option<u64>,
    ) -> Result<Self, Error> {
        let physical = match key {
            Some(logical) => Some(physical_keys(registry, context, logical).await?),
            None => None,
        };
        Ok(Pages::reading(registry, context, physical, rate))
    }

    /// The items under these physical keys; of the whole table without any.
    pub fn reading(
        registry: &'a Registry,
        context: &'a ItemContext,
        physical: Option<Vec<Vec<u8>>>,
        rate: Option<u64>,
    ) -> Self {
        let table = &context.table;
        let key = physical.as_ref();
        let key_type = table.key.partition.key_type;
        let keys: VecDeque<Json> =
            physical.iter().flatten().map(|physical| value(physical, key_type)).collect();
        let mut body = json!({ "TableName": table.name, "ConsistentRead": true });
        let mut names = projected(context);
        if key.is_some() {
            body["KeyConditionExpression"] = json!("#p = :p");
            names.get_or_insert_default().insert("#p".to_owned(), json!(table.key.partition.name));
        }
        if let Some(names) = names {
            // With `#p` alone, all attributes are read.
            let listed: Vec<&String> =
                names.keys().filter(|name| key.is_none() || names.len() > 1 || *name != "#p").collect();
            if !listed.is_empty() {
                body["ProjectionExpression"] =
                    json!(listed.iter().map(|name| name.as_str()).collect::<Vec<_>>().join(", "));
            }
            body["ExpressionAttributeNames"] = Json::Object(names);
        }
        if let Some(rate) = rate {
            body["Limit"] = json!((rate / PAGES_A_SECOND).clamp(1, LARGEST_PAGE));
        }
        Pages {
            registry,
            table: &table.name,
            partition: &table.key.partition.name,
            body,
            operation: if key.is_some() { Operation::Query } else { Operation::Scan },
            start: (key.is_none() || !keys.is_empty()).then_some(Json::Null),
            keys,
            rate,
            due: registry.env().now(),
        }
    }

    /// The next page, which may be empty; `None` after the last. Items that are not moved appear
    /// exactly once.
    pub async fn next(&mut self) -> Result<Option<Vec<Attributes>>, Error> {
        let Some(start) = self.start.take() else { return Ok(None) };
        self.wait_until_due().await;
        let mut body = self.body.clone();
        if let Some(key) = self.keys.front() {
            body["ExpressionAttributeValues"] = json!({ ":p": key });
        }
        if !start.is_null() {
            body["ExclusiveStartKey"] = start;
        }
        let mut page = self.registry.call_patiently(self.operation, body).await?;
        let next = page["LastEvaluatedKey"].take();
        if !next.is_null() {
            self.start = Some(next);
        } else if self.keys.pop_front().is_some() && !self.keys.is_empty() {
            self.start = Some(Json::Null);
        }
        let Json::Array(items) = page["Items"].take() else {
            return Err(Error::internal(format!("The store's answer for table {} has no Items", self.table)));
        };
        if let Some(rate) = self.rate {
            let read = u64::try_from(items.len()).unwrap_or(0);
            self.due = self.due + Duration::from_micros(read.saturating_mul(1_000_000) / rate.max(1));
        }
        let items = items.into_iter().map(|item| match item {
            Json::Object(item) if item.contains_key(self.partition) => Ok(item),
            _ => Err(Error::internal("The store sent an item without the table's key")),
        });
        items.collect::<Result<Vec<_>, _>>().map(Some)
    }

    /// Waits for the rate limit. Time lost to a slow store is not made up by a burst.
    async fn wait_until_due(&mut self) {
        let env = self.registry.env();
        let early = self.due.since(env.now());
        if self.rate.is_some() && !early.is_zero() {
            env.sleep(early).await;
        }
        self.due = self.due.max(env.now());
    }
}

/// The attributes that decide the location of an item, as names of an expression; `None` if all
/// attributes matter.
fn projected(context: &ItemContext) -> Option<Map<String, Json>> {
    let table = &context.table;
    if table.has_counters() {
        return None;
    }
    let mut names: Vec<&str> = table.key.names().collect();
    names.extend(table.index_keys().iter().map(|key| key.attribute().name.as_str()));
    let mut listed = Map::new();
    for name in names {
        if !listed.values().any(|known| known == name) {
            let placeholder = if name == table.key.partition.name {
                "#p".to_owned()
            } else {
                format!("#a{}", listed.len())
            };
            listed.insert(placeholder, json!(name));
        }
    }
    Some(listed)
}

/// The physical keys of a logical key, and the logical key itself, under which a write that
/// bypassed Heatsink may have stored an item.
async fn physical_keys(
    registry: &Registry,
    context: &ItemContext,
    logical: &[u8],
) -> Result<Vec<Vec<u8>>, Error> {
    let table = &context.table;
    let whole = Layout::none();
    let layout = table.layout_of(logical).map_or(&whole, |layout| layout);
    let mut buckets = vec![None];
    if let Some(time) = layout.time() {
        let rows = listed_buckets(registry, context, logical).await?;
        let read = |text: &String| Bucket::read(text.as_bytes(), time.granularity, time.granularity.format());
        buckets.extend(rows.iter().map(read).filter(Option::is_some));
    }
    let mut keys: Vec<Vec<u8>> = Vec::new();
    // The logical key itself, unless it is the physical key of another logical key.
    if table.logical(logical) == logical {
        keys.push(logical.to_vec());
    }
    for bucket in buckets {
        // Also those that other buckets have: what lies there by mistake is found.
        for shard in layout.slot_numbers() {
            if let Ok(key) = table.physical(logical, layout, Slot { bucket, shard })
                && !keys.contains(&key)
            {
                keys.push(key);
            }
        }
    }
    Ok(keys)
}

/// The buckets of a logical key that the directory lists, as text.
async fn listed_buckets(
    registry: &Registry,
    context: &ItemContext,
    logical: &[u8],
) -> Result<Vec<String>, Error> {
    let mut body = json!({
        "TableName": DIRECTORY, "ConsistentRead": true, "KeyConditionExpression": "pk = :p",
        "ExpressionAttributeValues": { ":p": { "S": directory_key(&context.table, logical) } },
    });
    let mut found = Vec::new();
    loop {
        let mut page = registry.call_patiently(Operation::Query, body.clone()).await?;
        let rows = page["Items"].as_array().into_iter().flatten();
        found.extend(rows.filter_map(|row| row["sk"]["S"].as_str()).map(str::to_owned));
        let next = page["LastEvaluatedKey"].take();
        if next.is_null() {
            return Ok(found);
        }
        body["ExclusiveStartKey"] = next;
    }
}
