//! Signs that a registry is lost: deleted, made again empty, or another one than this process was
//! given. Its absence alone never says that nothing is sharded.
//!
//! A table that has neither a record nor an entry of its name shows that it was on record once by
//! these; one whose name has an entry by records of its keys, and by the last.
//!
//! 1. what this process remembers of it ([`Memory`](crate::Memory)), by the store's id of it;
//! 2. its tag, on stores that have tags;
//! 3. a record of it in another registry of the store;
//! 4. its first items, where they lie under keys that are written like shards, just where Heatsink
//!    would put them, and it cannot be chance.
//!
//! A client's own keys that look like shards are no sign by themselves. What cannot be asked now
//! says nothing, and is asked again later.
//!
//! Not here: reading all items (`adopt`), what becomes of requests (`resolve`, `control`).

use futures::FutureExt;
use futures::future::BoxFuture;
use heatsink_dynamo::{AttributeDefinition, Code, Error, KeyValue, Operation, TableSchema};
use heatsink_layout::DIRECTORY;
use heatsink_layout::codec::split_shard_of;
use serde_json::{Value as Json, json};

use crate::describe::Described;
use crate::registry::Registry;
use crate::reshard_intent::key_text;
use crate::shard_traces::ShardTraces;
use crate::tags::{self, Tagged};

/// The number of items that are read.
const LOOKED_AT: u32 = 100;

/// A sign that a table was on record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sign {
    /// It is remembered: in which registry it was, and where that is remembered.
    Remembered(String, String),
    /// Its tag names this registry.
    Tagged,
    /// Its tag names another registry.
    TaggedOther(String),
    /// Another registry has its record.
    RecordedIn(String),
    /// Single keys of it have records, which go before that of their table.
    KeysOnRecord,
    /// Its items lie like those of shards: of this key, so many of them, under that many shards.
    Lies(String, u64, u16),
}

impl Sign {
    /// Whether it names another registry than this one.
    pub(crate) fn is_of_another(&self, registry: &str) -> bool {
        match self {
            Sign::TaggedOther(_) | Sign::RecordedIn(_) => true,
            Sign::Remembered(by, _) => by != registry,
            Sign::Tagged | Sign::KeysOnRecord | Sign::Lies(..) => false,
        }
    }

    /// Why requests for the table are refused, and the way back.
    pub fn refusal(&self, table: &str, registry: &str) -> String {
        let ours = |why: String| {
            format!(
                "Table {table} {why}, and the registry {registry} has no record of it: it was deleted, or is not the right one. Items may lie under other keys \
                 than clients name, so requests for the table are refused. {}",
                way_back(table, registry)
            )
        };
        match self {
            Sign::Remembered(by, place) if by == registry => {
                ours(format!("was on record as sharded when a Heatsink here last looked ({place})"))
            }
            Sign::Tagged => ours(format!("has the tag heatsink.registry = {registry:?}")),
            Sign::KeysOnRecord => ours("has keys on record that were given shards".to_owned()),
            Sign::Lies(key, items, shards) => ours(format!(
                "holds {items} items of the key {key:?} and of keys that are written like its shards, just where {shards} shards put them"
            )),
            Sign::TaggedOther(other) => tags::refusal(table, other, registry),
            Sign::RecordedIn(other) | Sign::Remembered(other, _) => format!(
                "The layouts of table {table} are recorded in the registry {other}, and this process was given the registry {registry}: requests for the table \
                 are refused. Name the other one: `registry = {other:?}` under [fence]"
            ),
        }
    }
}

fn way_back(table: &str, registry: &str) -> String {
    format!(
        "The way back: restore {registry} from a backup; without one, `heatsink verify {table} --rebuild` reads the layouts off the items. If the items of no \
         table lie in shards any more, say `required = false` under [fence] (docs/how-to/recover.md)"
    )
}

impl Registry {
    /// Creates the registry's table where there is none, and none is missed.
    ///
    /// # Errors
    /// `ValidationException` with the way back where one is missed; the store's.
    pub(crate) fn make_own(&self) -> BoxFuture<'_, Result<(), Error>> {
        async move {
            self.absent(())?;
            match of_store(self).await? {
                Some(problem) => Err(Error::validation(problem)),
                None => self.make(self.name()).await,
            }
        }
        .boxed()
    }
}

/// Why no registry may be made where there is none, and nothing may start without one. `None` where
/// nothing says that there was one.
///
/// # Errors
/// The store's.
pub async fn of_store(registry: &Registry) -> Result<Option<String>, Error> {
    let expectation = registry.expectation();
    match expectation.required {
        Some(false) => return Ok(None),
        Some(true) => {
            return Ok(Some(format!(
                "The registry {0} is not in the store, or is empty, and `required = true` under [fence] says that it has to be there: without it nothing is \
                 served, and no other one is made. Restore {0} from a backup; for the first start of a new store leave `required` out (docs/how-to/recover.md)",
                registry.name()
            )));
        }
        None => {}
    }
    let Some(memory) = &expectation.memory else { return Ok(None) };
    for table in memory.tables() {
        let described = match registry.describe(&table.name).await {
            Ok(described) => described,
            // It is asked again when a request names the table.
            Err(error) if !error.retryable() => continue,
            Err(error) => return Err(error),
        };
        if described.is_some_and(|described| described.schema.id == table.id) {
            let sign = Sign::Remembered(table.registry, memory.place());
            return Ok(Some(sign.refusal(&table.name, registry.name())));
        }
    }
    Ok(None)
}

/// Why nothing may start on a store, as far as that follows from its registry. `there`: the
/// registry's table is. An empty one is none: it was made in the place of one that was deleted.
///
/// # Errors
/// The store's.
pub(crate) async fn missed(registry: &Registry, there: bool) -> Result<Option<String>, Error> {
    if there && (registry.head().await?.is_some() || !registry.all().await?.is_empty()) {
        return Ok(None);
    }
    of_store(registry).await
}

/// Whether the registry can be deleted though the store can protect it. One that is made here is
/// protected.
///
/// # Errors
/// The store's.
pub async fn is_unprotected(registry: &Registry) -> Result<bool, Error> {
    let body = json!({ "TableName": registry.name() });
    let answer = registry.call(Operation::DescribeTable, body).await?;
    Ok(answer["Table"]["DeletionProtectionEnabled"] == false)
}

/// Says that the registry is not protected from deletion.
pub(crate) async fn warn_if_unprotected(registry: &Registry) {
    let name = registry.name();
    if matches!(is_unprotected(registry).await, Ok(true)) {
        tracing::warn!(
            "the registry {name} is not protected from deletion, and without it the items of sharded tables are not found: `aws dynamodb update-table \
             --table-name {name} --deletion-protection-enabled` (docs/how-to/recover.md)"
        );
    }
}

/// The sign that a table without a record was on record; `None` where there is none. A table that
/// shows none is not looked at again.
pub async fn of_table(registry: &Registry, described: &Described) -> Option<Sign> {
    let schema = &described.schema;
    if registry.is_unsharded(&schema.id) {
        return None;
    }
    let (sign, mut all_asked) = look_for_written(registry, described).await;
    if sign.is_some() || registry.expectation().required == Some(false) || registry.is_unsharded(&schema.id) {
        return sign;
    }
    let lies = look_at_items(registry, described, &mut all_asked).await;
    if lies.is_none() && all_asked {
        registry.note_unsharded(&schema.id, &schema.name);
    }
    lies
}

/// The sign that the record alone is lost of a table whose name has an entry in the registry: also
/// of one that was brought back, which may still have its tag and be remembered.
pub(crate) async fn of_named(registry: &Registry, described: &Described) -> Option<Sign> {
    let (schema, expectation) = (&described.schema, registry.expectation());
    if expectation.required == Some(false) || registry.is_unsharded(&schema.id) {
        return None;
    }
    let mut all_asked = true;
    match registry.has_key_records(&schema.id).await {
        Ok(true) => return Some(Sign::KeysOnRecord),
        Ok(false) => {}
        Err(error) => {
            all_asked = false;
            tracing::debug!(table = schema.name, "records of its keys could not be read: {error}");
        }
    }
    let lies = match expectation.alone {
        true => None,
        false => look_at_items(registry, described, &mut all_asked).await,
    };
    if lies.is_none() && all_asked {
        registry.note_unsharded(&schema.id, &schema.name);
    }
    lies
}

async fn look_at_items(registry: &Registry, described: &Described, all_asked: &mut bool) -> Option<Sign> {
    let schema = &described.schema;
    match traces(registry, described).await {
        Ok(traces) => traces.sure().map(|(key, found)| {
            let key = key_text(key, schema.key.partition.key_type);
            Sign::Lies(key, found.items, found.least())
        }),
        Err(error) => {
            *all_asked &= !error.retryable();
            tracing::debug!(
                table = schema.name,
                "its items could not be read, so they say nothing yet: {error}"
            );
            None
        }
    }
}

/// The sign that a Heatsink has written which had the table on record. Its items are not read.
pub async fn written(registry: &Registry, described: &Described) -> Option<Sign> {
    look_for_written(registry, described).await.0
}

/// That sign, and whether everything could be asked.
async fn look_for_written(registry: &Registry, described: &Described) -> (Option<Sign>, bool) {
    let schema = &described.schema;
    let expectation = registry.expectation();
    if expectation.required == Some(false) {
        return (None, true);
    }
    if let Some(memory) = &expectation.memory
        && let Some(table) =
            memory.tables().into_iter().find(|table| table.id == schema.id && table.name == schema.name)
    {
        return (Some(Sign::Remembered(table.registry, memory.place())), true);
    }
    let mut all_asked = true;
    match tags::check(registry, described.arn.as_deref(), registry.name()).await {
        Ok(Tagged::Ours) => return (Some(Sign::Tagged), true),
        Ok(Tagged::Other(other)) => return (Some(Sign::TaggedOther(other)), true),
        Ok(Tagged::Not) if expectation.alone => {
            registry.note_unsharded(&schema.id, &schema.name);
            return (None, true);
        }
        Ok(Tagged::Not | Tagged::Unreadable) => {}
        Err(error) => {
            all_asked = false;
            tracing::debug!(
                table = schema.name,
                "its tags could not be read, so they say nothing yet: {error}"
            );
        }
    }
    for other in others(registry).await {
        if matches!(registry.another(&other).read(&schema.id).await, Ok(Some(_))) {
            return (Some(Sign::RecordedIn(other)), true);
        }
    }
    (None, all_asked)
}

/// Why a command must not take a table without a record for one that was never sharded; `None`
/// where it may.
///
/// # Errors
/// The store's.
pub async fn refusal(registry: &Registry, described: &Described) -> Result<Option<String>, Error> {
    refusal_by(registry, described, of_table(registry, described)).await
}

/// The same for a caller that reads the items itself.
///
/// # Errors
/// The store's.
pub async fn refusal_if_written(registry: &Registry, described: &Described) -> Result<Option<String>, Error> {
    refusal_by(registry, described, written(registry, described)).await
}

async fn refusal_by(
    registry: &Registry,
    described: &Described,
    sign: impl Future<Output = Option<Sign>>,
) -> Result<Option<String>, Error> {
    let name = &described.schema.name;
    // Where the registry has an entry for the name, it knows the table.
    let sign = match registry.entry(name).await? {
        Some(_) => of_named(registry, described).await,
        None => sign.await,
    };
    Ok(sign.map(|sign| sign.refusal(name, registry.name())))
}

/// What the first items say of a key that is written like a shard, in a table without a record.
///
/// # Errors
/// The store's.
pub async fn traces_of_key(
    registry: &Registry,
    described: &Described,
    key: &[u8],
) -> Result<ShardTraces, Error> {
    let schema = &described.schema;
    let mut found = Vec::new();
    let base = split_shard_of(key, schema.key.partition.key_type).map_or(key, |(base, _)| base);
    for physical in [key, base] {
        let value = json!({ schema.key.partition.key_type.name(): key_text(physical, schema.key.partition.key_type) });
        let body = json!({
            "TableName": schema.name, "Limit": LOOKED_AT, "KeyConditionExpression": "#p = :p",
            "ExpressionAttributeNames": { "#p": schema.key.partition.name }, "ExpressionAttributeValues": { ":p": value },
        });
        let page = registry.call_patiently(Operation::Query, body).await?;
        found.extend(keys(schema, &page));
    }
    let mut traces = ShardTraces::default();
    traces.see_all(&found);
    Ok(traces)
}

/// Whether a table's name is one that a registry may have.
pub(crate) fn is_like_one(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    name.contains("registry") || name.contains("heatsink")
}

/// The tables of the store that may be registries by their names.
async fn others(registry: &Registry) -> Vec<String> {
    if let Some(known) = registry.others() {
        return known;
    }
    let answer = match registry.call(Operation::ListTables, json!({ "Limit": 100 })).await {
        Ok(answer) => answer,
        Err(error) if error.retryable() => return Vec::new(),
        Err(_) => json!({}),
    };
    let names = answer["TableNames"].as_array().into_iter().flatten().filter_map(|name| name.as_str());
    let found =
        names.filter(|name| is_like_one(name)).filter(|name| ![registry.name(), DIRECTORY].contains(name));
    let found: Vec<String> = found.map(str::to_owned).collect();
    registry.note_others(&found);
    found
}

/// What the first items say. An error of a request that this process may not send says nothing.
pub(crate) async fn traces(registry: &Registry, described: &Described) -> Result<ShardTraces, Error> {
    let mut traces = ShardTraces::default();
    let schema = &described.schema;
    let (partition, Some(sort)) = (&schema.key.partition, &schema.key.sort) else { return Ok(traces) };
    let body = json!({
        "TableName": schema.name, "Limit": LOOKED_AT, "ProjectionExpression": "#p, #s",
        "ExpressionAttributeNames": { "#p": partition.name, "#s": sort.name },
    });
    let page = match registry.call(Operation::Scan, body).await {
        Ok(page) => page,
        Err(error) if error.code == Code::AccessDeniedException => return Ok(traces),
        Err(error) => return Err(error),
    };
    traces.see_all(&keys(schema, &page));
    Ok(traces)
}

/// The keys of a page of items.
fn keys(schema: &TableSchema, page: &Json) -> Vec<(KeyValue<'static>, KeyValue<'static>)> {
    let Some(sort) = &schema.key.sort else { return Vec::new() };
    let items = page["Items"].as_array().into_iter().flatten();
    let key = |item: &Json, attribute: &AttributeDefinition| {
        let value = item.get(&attribute.name)?.to_string();
        KeyValue::read(value.as_bytes(), attribute).ok().map(KeyValue::into_owned)
    };
    items.filter_map(|item| key(item, &schema.key.partition).zip(key(item, sort))).collect()
}
