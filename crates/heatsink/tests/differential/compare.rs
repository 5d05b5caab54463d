//! Runs one step against both stores and says where their answers differ.
//!
//! What may differ, and only that: the order of a Scan and of BatchGetItem's answers (DynamoDB
//! promises none), the order of rows with equal index sort keys (nor there), the order of a set's
//! members, sizes in DescribeTable, consumed capacity (the honest sum over shards), and which of
//! several mistakes is told (`mistakes`).

use std::collections::BTreeSet;

use bytes::Bytes;
use futures::executor::block_on;
use heatsink_dynamo::{Error, Number, Operation};
use heatsink_store::Store;
use serde_json::{Value as Json, json};

use crate::generate::Step;
use crate::judge::Judge;
use crate::mistakes::{Comparison, compared};
use crate::shrink::Case;
use crate::world::turns;
use crate::{counters, outside, recorded, schema, streams, tables, together, widening};

/// More pages than any collection here has rows.
const MAX_PAGES: usize = 400;

/// What one store answered: every page, or the error that ended it.
#[derive(Debug, Default, PartialEq)]
pub struct Answer {
    pub pages: Vec<Json>,
    /// `ConsumedCapacity` of each page.
    pub capacities: Vec<Json>,
    pub error: Option<(String, Option<String>, Json)>,
}

/// The answer to one request.
pub(crate) async fn ask(store: &dyn Store, operation: Operation, body: &Json) -> Result<Json, Error> {
    let answer = store.call(operation, Bytes::from(body.to_string())).await?;
    serde_json::from_slice(&answer)
        .map_err(|error| Error::internal(format!("the answer is not JSON: {error}")))
}

/// Runs a step, following pages to the end; a parallel Scan in all its segments.
pub fn run(store: &dyn Store, step: &Step) -> Answer {
    block_on(run_beside_others(store, step))
}

/// [`run`] as a task.
pub async fn run_beside_others(store: &dyn Store, step: &Step) -> Answer {
    let Some(operation) = Operation::by_name(&step.operation) else {
        let error = Some((format!("no operation {}", step.operation), None, Json::Null));
        return Answer { error, ..Answer::default() };
    };
    if operation == Operation::GetRecords {
        return streams::records(store, &step.body).await;
    }
    let mut whole = Answer::default();
    let segments = step.body.get("TotalSegments").and_then(Json::as_u64);
    for segment in 0..segments.unwrap_or(1) {
        let mut body = step.body.clone();
        if segments.is_some() {
            body["Segment"] = json!(segment);
        }
        let part = pages(store, operation, body).await;
        whole.pages.extend(part.pages);
        whole.capacities.extend(part.capacities);
        if part.error.is_some() {
            whole.error = part.error;
            break;
        }
    }
    whole
}

async fn pages(store: &dyn Store, operation: Operation, mut body: Json) -> Answer {
    let mut all = Answer::default();
    let strips = strips(&body);
    loop {
        match ask(store, operation, &body).await {
            Err(error) => {
                let mut item = Json::Object(error.members.clone());
                order_sets(&mut item);
                spell_keys(&mut item);
                all.error = Some((error.code.name().to_owned(), error.message, item));
                return all;
            }
            Ok(mut answer) => {
                order_sets(&mut answer);
                spell_keys(&mut answer);
                if let Some(answer) = answer.as_object_mut() {
                    let mut capacity = answer.remove("ConsumedCapacity").unwrap_or_default();
                    // One for each table, in no order.
                    if let Some(tables) = capacity.as_array_mut() {
                        tables.sort_by_key(|table| table["TableName"].to_string());
                    }
                    all.capacities.push(capacity);
                }
                let (cursor, start) = match operation {
                    // A token means nothing to anyone else.
                    Operation::ExecuteStatement => {
                        ("NextToken", answer.as_object_mut().and_then(|answer| answer.remove("NextToken")))
                    }
                    _ => {
                        let last = answer.get("LastEvaluatedKey").cloned();
                        ("ExclusiveStartKey", if strips { last.map(stripped) } else { last })
                    }
                };
                all.pages.push(answer);
                match start {
                    Some(start) if all.pages.len() < MAX_PAGES => body[cursor] = start,
                    _ => return all,
                }
            }
        }
    }
}

/// Spells partition keys that are numbers as DynamoDB does, whose answers have one spelling of each.
/// The embedded store repeats what the request says.
fn spell_keys(answer: &mut Json) {
    match answer {
        Json::Object(members) => {
            if let Some(Json::String(text)) = members.get_mut("pk").and_then(|pk| pk.get_mut("N"))
                && let Ok(number) = Number::parse(text)
            {
                *text = number.to_string();
            }
            members.values_mut().for_each(spell_keys);
        }
        Json::Array(elements) => elements.iter_mut().for_each(spell_keys),
        _ => {}
    }
}

/// Half of the requests are those of a client that keeps of a position what are key attributes to
/// it.
fn strips(body: &Json) -> bool {
    body.to_string().bytes().map(u64::from).sum::<u64>().is_multiple_of(2)
}

/// A position of which the key attributes alone are kept.
pub(crate) fn stripped(mut position: Json) -> Json {
    if let Some(members) = position.as_object_mut() {
        members.retain(|name, _| !name.starts_with("heatsink:"));
    }
    position
}

/// The first difference that matters between the unsharded and the sharded answer.
pub fn difference(case: &Case, step: &Step, plain: &Answer, sharded: &Answer) -> Option<String> {
    if widening::has(&case.rules) && is_to_begin_again(step, sharded) {
        return None;
    }
    if plain.error != sharded.error {
        match compared(case.judge, step, plain, sharded) {
            Comparison::Comparable => {
                return Some(format!("errors differ: {:?} / {:?}", plain.error, sharded.error));
            }
            Comparison::OtherWords => return differs("rows", &json!(rows(plain)), &json!(rows(sharded))),
            Comparison::EitherMistake => {}
        }
    }
    if let Some(what) = capacity(case, step, plain, sharded) {
        return Some(what);
    }
    match step.operation.as_str() {
        "Scan" if together::has(&case.rules) => as_sets(plain, sharded),
        "Scan" => unordered(case, plain, sharded),
        "ExecuteStatement" => statement(case, step, plain, sharded),
        "Query" if step.body.get("IndexName").is_some() => index_query(case, step, plain, sharded),
        // A gathered page ends where 1 MB is likely reached, rather earlier: shards are not read
        // again to fill it.
        "Query" if case.large => differs("rows in order", &json!(rows(plain)), &json!(rows(sharded)))
            .or_else(|| unordered(case, plain, sharded)),
        // An item whose index key changes its form is a change that shows.
        "GetRecords" if turns(&case.rules).is_some() => None,
        "BatchGetItem" => differs("answers", &batch(plain), &batch(sharded)),
        "DescribeTable" | "UpdateTable" | "ListStreams" => {
            let rows = counters::has(&case.rules);
            differs("answers", &description(plain, rows), &description(sharded, rows))
        }
        _ => differs("pages", &json!(plain.pages), &json!(sharded.pages)),
    }
}

/// Whether a SELECT that goes on from a token of the store has to begin again, since a gateway that
/// takes it knows of a key that has begun to change, and nobody but the store knows where its token
/// stands.
fn is_to_begin_again(step: &Step, sharded: &Answer) -> bool {
    let refused = |(_, message, _): &(String, Option<String>, Json)| {
        message
            .as_ref()
            .is_some_and(|message| message.contains("Begin the Scan, the Query, or the statement again"))
    };
    step.operation == "ExecuteStatement"
        && !sharded.pages.is_empty()
        && sharded.error.as_ref().is_some_and(refused)
}

/// A SELECT says in its last comment what of its answer must be equal (`partiql`).
fn statement(case: &Case, step: &Step, plain: &Answer, sharded: &Answer) -> Option<String> {
    let text = step.body["Statement"].as_str().unwrap_or_default();
    if text.ends_with("-- sets") && together::has(&case.rules) {
        as_sets(plain, sharded)
    } else if text.ends_with("-- sets") {
        unordered(case, plain, sharded)
    } else if text.ends_with("-- rows")
        || (case.large || recorded::moves(&case.rules)) && text.ends_with("-- pages")
    {
        differs("rows in order", &json!(rows(plain)), &json!(rows(sharded)))
    } else {
        differs("pages", &json!(plain.pages), &json!(sharded.pages))
    }
}

/// Whether an answer is one of the refusals that sharded tables give by design
/// (docs/reference/compatibility.md).
pub fn refused_by_design(step: &Step, answer: &Answer) -> Option<&'static str> {
    const REFUSALS: [&str; 14] = [
        "for attributes that it does not hold, with a condition on pk, is not supported on sharded tables",
        "is not supported on a sharded table: the stored value of ",
        "The table's rule takes the bucket from the time in the sort key, and this sort key holds none",
        "Not supported on a counter, whose numbers are spread over fragments",
        "Not supported on a table with counters",
        "ExecuteTransaction does not read keys whose shard other writers assign",
        "Not supported on a key whose shard other writers assign (hash = \"random\"): Expected",
        "would be read as another logical key's: the rule's template cannot tell the two apart",
        "is being spread or brought back by `heatsink adopt`",
        "is the physical key of a shard of the key",
        "and a number cannot be escaped",
        "is not carried out on it meanwhile",
        "gets other shards, and writes to it wait for a moment",
        // The embedded engine's own bound (docs/reference/limits.md): a filter that names each form
        // of a value is longer than the client's.
        "a filter this large together with an index and a projection",
    ];
    let (_, message, members) = answer.error.as_ref()?;
    // The reasons of a cancelled transaction say which of its actions it was.
    let reasons = members["CancellationReasons"].as_array().into_iter().flatten();
    let reasons = reasons.filter_map(|reason| reason["Message"].as_str());
    let texts: Vec<&str> = message.as_deref().into_iter().chain(reasons).collect();
    // A number has no room for what the position says.
    let bare = "is of another layout of table NumericKey than";
    let is_bare = step.body.get("TotalSegments").is_some() || strips(&step.body);
    let says = |refusal: &str| texts.iter().any(|text| text.contains(refusal));
    if is_bare && says(bare) {
        return Some(bare);
    }
    REFUSALS.into_iter().find(|refusal| says(refusal))
}

/// Every figure that DynamoDB gives, and no other. What a Query over shards consumes is the honest
/// sum over them; all else consumes what it would unsharded, suffixes being too short to matter to
/// small items.
fn capacity(case: &Case, step: &Step, plain: &Answer, sharded: &Answer) -> Option<String> {
    let members = |answer: &Answer| -> Json { answer.capacities.iter().map(without_units).collect() };
    // A SELECT that is read by a Query or a Scan costs, and reports, what they do.
    let selects = step.body["Statement"].as_str().is_some_and(|text| text.starts_with("SELECT"));
    // Of counters it is the honest sum over the rows, not all of which are in an index.
    if case.large
        || selects
        || counters::has(&case.rules)
        || outside::has(&case.rules)
        || recorded::moves(&case.rules)
        // A write that changes the form of an index key writes twice to the index, where it would
        // not have written at all.
        || turns(&case.rules).is_some()
        // Which items lie in a segment follows from the physical key; in the engine it does not.
        || case.judge == Judge::DynamoDbLocal && step.body.get("TotalSegments").is_some()
        // It tells what a DeleteItem of no item used though nobody asked. The gateway cuts out what
        // the client did not ask for, so the two differ by which requests are drawn.
        || case.judge == Judge::DynamoDbLocal && !asks_capacity(step)
        || plain.pages.len() != sharded.pages.len()
    {
        return None;
    }
    differs("members of ConsumedCapacity", &members(plain), &members(sharded)).or_else(|| {
        // What the engine charges for a statement that fails depends on how its key is written.
        let exact = !["Query", "BatchExecuteStatement"].contains(&step.operation.as_str());
        if exact { differs("capacities", &json!(plain.capacities), &json!(sharded.capacities)) } else { None }
    })
}

fn asks_capacity(step: &Step) -> bool {
    step.body["ReturnConsumedCapacity"].as_str().is_some_and(|wanted| wanted != "NONE")
}

fn without_units(capacity: &Json) -> Json {
    match capacity {
        Json::Object(members) => {
            members.iter().map(|(name, value)| (name.clone(), without_units(value))).collect()
        }
        Json::Array(elements) => elements.iter().map(without_units).collect(),
        Json::Number(_) => json!("units"),
        other => other.clone(),
    }
}

fn differs(what: &str, plain: &Json, sharded: &Json) -> Option<String> {
    (plain != sharded).then(|| format!("{what} differ:\n  unsharded {plain}\n  sharded   {sharded}"))
}

pub(crate) fn rows(answer: &Answer) -> Vec<&Json> {
    answer.pages.iter().filter_map(|page| page["Items"].as_array()).flatten().collect()
}

fn sorted(rows: Vec<&Json>) -> Json {
    let mut texts: Vec<String> = rows.into_iter().map(Json::to_string).collect();
    texts.sort_unstable();
    json!(texts)
}

fn total(answer: &Answer, member: &str) -> u64 {
    answer.pages.iter().filter_map(|page| page[member].as_u64()).sum()
}

fn unordered(case: &Case, plain: &Answer, sharded: &Answer) -> Option<String> {
    differs("rows", &sorted(rows(plain)), &sorted(rows(sharded))).or_else(|| {
        // Where a page ends at 1 MB, the engine counts the item that did not fit as scanned; and
        // ends are elsewhere.
        let counts: &[&str] = if case.large { &["Count"] } else { &["Count", "ScannedCount"] };
        counts
            .iter()
            .find_map(|member| differs(member, &json!(total(plain, member)), &json!(total(sharded, member))))
    })
}

/// A Scan whose pages come from gateways that are a step apart may show an item twice, if its key
/// begins or ends its move with that step (docs/explain/reshard.md). `across` counts them.
fn as_sets(plain: &Answer, sharded: &Answer) -> Option<String> {
    let set = |answer: &Answer| {
        let texts: BTreeSet<String> = rows(answer).into_iter().map(Json::to_string).collect();
        json!(texts)
    };
    differs("sets of rows", &set(plain), &set(sharded))
}

fn index_query(case: &Case, step: &Step, plain: &Answer, sharded: &Answer) -> Option<String> {
    let scanned =
        |answer: &Answer| -> Json { answer.pages.iter().map(|page| page["ScannedCount"].clone()).collect() };
    let late = tables::late_index();
    let sorts: Vec<_> = case
        .tables
        .iter()
        .find(|table| step.body["TableName"] == table.name)
        .and_then(|table| table.indexes.iter().find(|index| step.body["IndexName"] == index.name))
        .or_else(|| (step.body["IndexName"] == tables::LATE).then_some(&late))
        .into_iter()
        .flat_map(schema::Index::sorts)
        .collect();
    let order = |answer: &Answer| -> Json {
        let position = |row: &Json| sorts.iter().map(|(name, _)| row[*name].clone()).collect::<Json>();
        rows(answer).into_iter().map(position).collect()
    };
    unordered(case, plain, sharded)
        // While keys move a page lacks the old copies among its rows, and none is read in their
        // place.
        .or_else(|| {
            let sizes_differ = case.large || recorded::moves(&case.rules);
            if sizes_differ { None } else { differs("page sizes", &scanned(plain), &scanned(sharded)) }
        })
        .or_else(|| differs("orders", &order(plain), &order(sharded)))
}

fn batch(answer: &Answer) -> Json {
    let mut pages = json!(answer.pages);
    for page in pages.as_array_mut().into_iter().flatten() {
        for rows in page["Responses"].as_object_mut().into_iter().flat_map(|tables| tables.values_mut()) {
            let ordered = sorted(rows.as_array().into_iter().flatten().collect());
            *rows = ordered;
        }
    }
    pages
}

/// `rows`: the table counts rows and not items.
fn description(answer: &Answer, rows: bool) -> Json {
    let mut pages = json!(answer.pages);
    for page in pages.as_array_mut().into_iter().flatten() {
        if let (true, Some(table)) = (
            rows,
            ["Table", "TableDescription"]
                .iter()
                .find(|name| page.get(**name).is_some())
                .copied()
                .and_then(|name| page.get_mut(name))
                .and_then(Json::as_object_mut),
        ) {
            table.remove("ItemCount");
        }
        scrub(page);
    }
    pages
}

/// Takes out what differs between any two tables: ids, times, and sizes (the suffix counts).
fn scrub(value: &mut Json) {
    match value {
        Json::Object(members) => {
            for name in [
                "TableId",
                "CreationDateTime",
                "TableSizeBytes",
                "IndexSizeBytes",
                "LastUpdateToPayPerRequestDateTime",
                "LatestStreamArn",
                "LatestStreamLabel",
                "StreamArn",
                "StreamLabel",
            ] {
                members.remove(name);
            }
            members.values_mut().for_each(scrub);
        }
        Json::Array(elements) => elements.iter_mut().for_each(scrub),
        _ => {}
    }
}

/// Sets have no order.
pub(crate) fn order_sets(value: &mut Json) {
    match value {
        Json::Object(members) => {
            for (name, member) in members {
                if let ("SS" | "NS" | "BS", Json::Array(elements)) = (name.as_str(), &mut *member) {
                    elements.sort_by_key(Json::to_string);
                } else {
                    order_sets(member);
                }
            }
        }
        Json::Array(elements) => elements.iter_mut().for_each(order_sets),
        _ => {}
    }
}
