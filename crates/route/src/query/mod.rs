//! Query on a sharded table: which plan it gets.
//!
//! - One shard can hold what is asked: one physical Query.
//! - The table, or an index whose partition key is the table's: all shards are asked and merged
//!   (`scatter`).
//! - A global index whose partition key is spread by a rule: all its values are asked and merged.
//! - A global index on another attribute: one physical Query, whose keys are translated; unless the
//!   table's partition key is in its sort key, or its partition key is on its way from whole to
//!   spread (`locally_sorted`).
//! - An index with several partition key attributes: as the one of them that is stored with shard
//!   suffixes demands. The others have one value each, which every physical Query names. If several
//!   are stored with suffixes: `locally_sorted`.
//! - What is not valid goes to the store as it came: a read is harmless, and the refusal is in the
//!   store's words.
//!
//! Beneath: `request` (reading), `shard_streams` (cursors), `page` (physical answers), `merge`,
//! `shape` and `answer` (the client's answer); and what all reads share (`collection`).

mod answer;
mod buckets;
mod counter;
mod explain;
mod forms;
mod index;
mod locally_sorted;
pub mod merge;
mod page;
mod ranges;
pub(crate) mod request;
mod scatter;
mod shape;
pub(crate) mod shard_streams;
mod source;
mod strong;

use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::expression::Checks;
use heatsink_dynamo::{Error, Operation, json};
use heatsink_layout::{Consistency, IndexKey, Layout, Reads, Slot, Table};

use self::answer::Logical;
use self::buckets::Buckets;
use self::explain::Gather;
use self::locally_sorted::LocallySorted;
use self::ranges::Ranges;
use self::request::Query;
use self::scatter::wanted::Wanted;
use self::shape::Gathering;
use self::shard_streams::{ShardStream, streams};
use self::source::Source;
use crate::answer::{logical_page, rewrite};
use crate::collection::keys::{Key, explained, physical, slot_of, stable, with_sort};
use crate::collection::range::Condition;
use crate::collection::template::{Ask, Expressions, Template};
use crate::context::PlanContext;
use crate::cursor;
use crate::key::place;
use crate::legacy::modernized;
use crate::plan::{Finish, Plan, Single};
use crate::preflight;
use crate::preflight::{pass_refusal, unplanned};
use crate::refusal::{Unplanned, strict_then_lenient};
use crate::request::Request;
use crate::shared::Shared;
use crate::splice::Splice;

/// The plan of a Query of a recorded table.
///
/// # Errors
/// `ValidationException` for a key that its suffix makes too long; `SerializationException` for a
/// repeated member.
pub(crate) fn plan(
    shared: &Shared,
    request: &Request<'_>,
    schema: &Arc<Table>,
    context: &PlanContext<'_>,
) -> Result<Plan, Error> {
    if schema.has_externally_assigned() {
        let (body, shard) = cursor::without_shard(request.body, schema);
        return untagged(shared, &Request::read(&body)?, schema, &context.with_cursor(shard));
    }
    untagged(shared, request, schema, context)
}

fn untagged(
    shared: &Shared,
    request: &Request<'_>,
    schema: &Arc<Table>,
    context: &PlanContext<'_>,
) -> Result<Plan, Error> {
    let modern = match modernized(request, "QueryFilter") {
        Ok(modern) => modern,
        Err(why) => return unplanned(Operation::Query, request.body, why),
    };
    let modern = modern.as_ref().map(Request::read).transpose()?;
    let expressed = modern.as_ref().unwrap_or(request);
    let read = |checks| read(shared, expressed, schema, context, checks);
    let as_sent = || {
        let sent = request.body.clone();
        match Query::read(expressed, schema, Checks::Meaning) {
            Ok(query) if matches!(query.starts_at_end(), Ok(true)) => {
                json::splice_members(&sent, &[("ExclusiveStartKey", None)]).map_or(sent, Bytes::from)
            }
            _ => sent,
        }
    };
    let in_legacy_words = modern.is_some() && request.get("QueryFilter").is_some();
    match strict_then_lenient(Unplanned::is_for_the_store, read) {
        // What a legacy filter may hold is the store's to say.
        Ok((plan, true)) if !in_legacy_words => Ok(plan),
        Ok((plan, _)) => Ok(preflight::as_it_came(Operation::Query, as_sent(), plan)),
        // Of expressions the client knows nothing that it did not send.
        Err(Unplanned::Worded(error)) if modern.is_some() && names_expression(&error) => {
            Ok(pass_refusal(Operation::Query, &as_sent()))
        }
        Err(why) => unplanned(Operation::Query, &as_sent(), why),
    }
}

/// Whether an error is about a parameter that takes the place of legacy ones.
fn names_expression(error: &Error) -> bool {
    error.message.as_deref().is_some_and(|message| message.contains("Expression"))
}

fn read(
    shared: &Shared,
    request: &Request<'_>,
    schema: &Arc<Table>,
    context: &PlanContext<'_>,
    checks: Checks,
) -> Result<Plan, Unplanned> {
    let mut query = Query::read(request, schema, checks)?;
    let query = &mut query;
    let keys = schema.key_layouts();
    let moves = query.index.is_some() && keys.any_apart(keys.newest());
    let partition = &schema.key.partition.name;
    if let (true, Some(index)) = (schema.has_counters(), query.index) {
        let fold = crate::counter::of_index(request, &query.expressions, schema, index);
        query.fold = fold.map_err(Unplanned::Refused)?.map(Arc::new);
    }
    if let Some(sort) = query.sort().iter().find(|sort| schema.index_key(&sort.name).is_some()) {
        // Of an index that was made after the rule: rules are refused for such tables.
        return Err(Unplanned::Refused(Error::gateway_rejection(format!(
            "The index is sorted by {0}, whose stored values have shard suffixes since a rule spreads them as the partition key of another \
             index: its order is not that of {0}. Give the index an attribute of its own",
            sort.name
        ))));
    }
    let fixed = query.fixed.iter().map(|(attribute, value)| (*attribute, value));
    for (attribute, value) in std::iter::once((query.spread, &query.partition)).chain(fixed) {
        if let Some(key) = schema.index_key(&attribute.name) {
            key.refuse_shard(&value.canonical_bytes())?;
        }
    }
    let spread_by_several = query.fixed.iter().any(|(attribute, _)| schema.is_suffixed(&attribute.name));
    if query.spread.name != *partition || spread_by_several {
        let sorted_by_partition =
            !schema.keys_are_whole() && query.sort().iter().any(|sort| sort.name == *partition);
        return match schema.index_key(&query.spread.name) {
            key if moves
                || sorted_by_partition
                || spread_by_several
                || key.is_some_and(IndexKey::is_mixed) =>
            {
                let gathering = Gathering::new(query, Logical::Decoded);
                let locally_sorted = LocallySorted::new(query, gathering, context)?;
                Ok(Plan::Scatter(Box::new(Gather::LocallySorted(Box::new(locally_sorted)))))
            }
            Some(key) => {
                let streams = Source::Streams(index::streams(query, key, context)?);
                Ok(gathered(shared, query, Logical::Decoded, streams, false, false))
            }
            None => other_index(shared, query, context),
        };
    }
    let filters_index_key = query.expressions.filter.as_ref().is_some_and(|(_, filter)| {
        schema.index_keys().iter().any(|key| filter.mentions(&key.attribute().name))
    });
    if moves && context.moves(schema, &query.partition.canonical_bytes()) {
        if query.index.is_some_and(|index| index.local) {
            query.consistently();
        }
        let gathering = Gathering::new(query, Logical::Decoded);
        let locally_sorted = LocallySorted::new(query, gathering, context)?;
        return Ok(Plan::Scatter(Box::new(Gather::LocallySorted(Box::new(locally_sorted)))));
    }
    let layout = stable(context, schema, &query.partition);
    // After a move, too: a replica that lags may still show an old copy.
    let recorded = schema.key_layouts().get(&query.partition.canonical_bytes()).is_some();
    query.homes = recorded.then(|| Arc::clone(&layout));
    if query.starts_at_end()? && !layout.is_externally_assigned() {
        return Ok(behind_the_end(shared, query, &layout, context));
    }
    let counts = layout.counter_attributes().is_some();
    if counts && query.index.is_none() {
        query.fold = counter::fold(query, &layout)?.map(Arc::new);
    }
    let only = match (query.conditions.first(), query.index) {
        // Shard 0 holds the base fragments, and an index holds no others.
        _ if counts => Some(Slot::default()),
        _ if layout.shards <= 1 && layout.time().is_none() => Some(Slot::shard(layout.slot_number(0))),
        (Some(Condition::Eq(sort)), None) if layout.follows_from_key() => {
            Some(slot_of(context, schema, &layout, &query.partition, Some(sort))?)
        }
        _ => Ranges::only(query, &layout),
    };
    if let (Some(slot), false) = (only, filters_index_key || query.fold.is_some()) {
        return one_shard(query, &layout, slot);
    }
    query.assigned = layout.is_externally_assigned();
    query.home = home(query, &layout, context)?;
    let logical = if schema.index_keys().is_empty() {
        let mut logical = Vec::new();
        query.partition.write(&mut logical);
        Logical::Fixed(logical)
    } else {
        Logical::Decoded
    };
    let reads = reads(context, schema, &query.partition);
    // A global index is behind its table anyway, and has no consistent reads.
    let strong =
        !counts && reads.consistency == Consistency::Strong && query.index.is_none_or(|index| index.local);
    if strong {
        query.consistently();
    }
    let source = match (layout.time(), layout.split_points()) {
        (None, Some(points)) if query.index.is_none() => {
            // Each asks for what lies in it alone.
            query.homes = None;
            query.in_ranges = query.limit.is_some();
            Source::Ranges(Ranges::new(query, &layout, points)?)
        }
        (None, _) => {
            let mut streams = streams(query, &layout)?;
            streams.retain(|stream| only.is_none_or(|only| stream.slot == only));
            Source::Streams(streams)
        }
        (Some(time), _) => {
            Source::Buckets(Box::new(Buckets::new(shared, query, &layout, time, context.now())?))
        }
    };
    // Without the base fragments of a page there is no page.
    Ok(gathered(shared, query, logical, source, strong, reads.partial && !counts))
}

fn gathered(
    shared: &Shared,
    query: &Query<'_>,
    logical: Logical,
    streams: Source,
    strong: bool,
    partial: bool,
) -> Plan {
    let wanted = Arc::new(Wanted {
        gathering: Gathering::new(query, logical),
        source: streams,
        passed: query.passed(),
        partial,
        limit: query.limit,
        descending: query.descending,
        sizes: Arc::clone(&shared.sizes),
        learned_as: query.learned_as(),
    });
    Plan::Scatter(Box::new(Gather::Shards { wanted, strong }))
}

/// A Query of the table that starts on the inclusive end of its condition, where DynamoDB takes no
/// cursor: an empty page. Heatsink once gave such cursors out. The store is asked, for what is
/// certain to be dropped, to see the rest of the request.
fn behind_the_end(shared: &Shared, query: &Query<'_>, layout: &Layout, context: &PlanContext<'_>) -> Plan {
    let end = query.end();
    let slot = slot_of(context, query.schema, layout, &query.partition, end).unwrap_or_default();
    let partition = physical(query.schema, layout, &query.partition, slot);
    let mut stream = ShardStream::new(slot, partition.unwrap_or_else(|_| query.partition.clone()), &[]);
    end.into_iter().for_each(|end| stream.behind_end(end));
    gathered(shared, query, Logical::Decoded, Source::Streams(vec![stream]), false, false)
}

/// How reads of a logical key are gathered.
fn reads(context: &PlanContext<'_>, schema: &Table, partition: &Key) -> Reads {
    context.reads(schema, &partition.canonical_bytes())
}

/// Where the item of a cursor lies, if it matters: on an index, and on the table where the cursor
/// says it.
fn home(query: &Query<'_>, layout: &Layout, context: &PlanContext<'_>) -> Result<Option<Slot>, Unplanned> {
    let Some(cursor) = query.cursor()? else { return Ok(None) };
    let (partition, _) = cursor.first().ok_or(Unplanned::Invalid)?;
    if *partition != query.partition || query.index.is_none() && !layout.is_externally_assigned() {
        return Ok(None);
    }
    let sort = query.schema.key.sort.as_ref().and_then(|_| cursor.get(1)).map(|(sort, _)| sort);
    Ok(match query.index {
        None => with_sort(sort, |sort| context.found(query.schema, &partition.canonical_bytes(), sort)),
        Some(_) => Some(slot_of(context, query.schema, layout, partition, sort)?),
    })
}

/// One physical Query with the partition key rewritten.
fn one_shard(query: &Query<'_>, layout: &Layout, slot: Slot) -> Result<Plan, Unplanned> {
    let partition = physical(query.schema, layout, &query.partition, slot)?;
    let shard = slot.shard;
    let why = format!("all that can match lies in {slot}: one physical request, the partition key rewritten");
    if partition == query.partition {
        let why = "all that can match lies in shard 0, whose physical key is the logical one".to_owned();
        // Where keys move, one of the items may be marked.
        let changes = !query.schema.index_keys().is_empty() || query.schema.key_layouts().any_changes();
        let finish = changes.then(|| logical(Arc::clone(query.schema)));
        return Ok(Single {
            shard: Some(shard),
            ..Single::new(Operation::Query, query.request.body.clone(), finish, why)
        }
        .plan());
    }
    let start = match query.cursor()? {
        Some(cursor) if cursor.first().is_some_and(|(cursor, _)| *cursor == query.partition) => {
            Some(shard_streams::start(&shard_streams::attributes(query, &cursor), &partition))
        }
        Some(_) => return Err(Unplanned::Invalid),
        None => None,
    };
    let own = ["Select", "Limit", "ReturnConsumedCapacity"];
    let mut members = query.kept.clone();
    for name in own {
        if let (Some(value), false) = (query.request.get(name), members.iter().any(|(kept, _)| *kept == name))
        {
            members.push((name, value));
        }
    }
    let text = |text: Option<&str>| text.map(str::to_owned);
    let expressions = Expressions {
        members,
        filter: text(query.expressions.filter.as_ref().map(|(text, _)| &**text)),
        projection: text(query.expressions.projection.as_ref().map(|(text, _)| &**text)),
        attributes: None,
    };
    let template = Template::new(query.queried(), &expressions, &query.expressions.bindings, query.fresh());
    let conditions = &query.conditions;
    let body = template.body(Ask {
        partition: &partition,
        others: &[],
        conditions,
        start: start.as_deref(),
        limit: None,
    });
    let single = Single::new(Operation::Query, body, Some(logical(Arc::clone(query.schema))), why);
    Ok(Single { shard: Some(shard), key: Some(explained(&partition)), ..single }.plan())
}

/// A global index on another attribute: its collections lie as they would without shards.
fn other_index(shared: &Shared, query: &Query<'_>, context: &PlanContext<'_>) -> Result<Plan, Unplanned> {
    let mut body = Splice::new(query.request.body);
    let mut start = None;
    if let (Some(_), Some(raw)) = (query.cursor()?, query.start) {
        let mut key = Splice::new(raw);
        place(query.schema, context, raw, &mut key)?;
        let key = key.finish(&query.request.body.slice_ref(raw));
        body.replace(raw, key.to_vec());
        start = Some(key);
    }
    let mut hidden = query.schema.stored_otherwise();
    let filter = query.expressions.filter.as_ref();
    if query.fold.is_some() || filter.is_some_and(|(_, filter)| hidden.any(|name| filter.mentions(name))) {
        let stream = ShardStream::new(Slot::default(), query.partition.clone(), &query.conditions);
        let stream = ShardStream { start, ..stream };
        return Ok(gathered(shared, query, Logical::Decoded, Source::Streams(vec![stream]), false, false));
    }
    let why = "the index is not sharded: one physical request, keys in cursor and items translated";
    let body = body.finish(query.request.body);
    Ok(Single::new(Operation::Query, body, Some(logical(Arc::clone(query.schema))), why).plan())
}

/// Makes the keys of an answer logical.
fn logical(table: Arc<Table>) -> Finish {
    Box::new(move |answer| {
        let body = answer?;
        rewrite(Operation::Query, &body, |splice| logical_page(&table, &body, splice))
    })
}
