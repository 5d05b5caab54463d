//! Random calls. A case is a list of requests that does not depend on answers (paging is part of
//! running a step), so that it can be cut down to the few that matter.

use fastrand::Rng;
use heatsink_dynamo::Operation;
use heatsink_dynamo::partiql::tables_at;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value as Json, json};

use crate::schema::{Index, Table};
use crate::values::{self, Placeholders};
use crate::{legacy, partiql, tables, transact};

/// One request.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Step {
    pub operation: String,
    pub body: Json,
}

pub(crate) const ROOTS: &[&str] = &["v", "n", "t", "l", "m", "u", "b", "absent", "pk", "sk"];
const PLAIN_ROOTS: &[&str] = &["v", "n", "t", "l", "m", "u", "b", "absent"];

/// `count` steps over `tables`.
pub fn steps(rng: &mut Rng, tables: &[Table], count: usize) -> Vec<Step> {
    let mut steps: Vec<Step> = Vec::with_capacity(count);
    for _ in 0..count {
        // Clients retry.
        let next = match steps.last() {
            Some(last) if rng.u32(..20) == 0 => last.clone(),
            _ => step(rng, tables),
        };
        steps.push(next);
    }
    steps
}

/// Makes a case's items large and its partition keys few, so that collections do not fit into a
/// page of 1 MB.
pub fn swell(rng: &mut Rng, steps: &mut [Step]) {
    for step in steps {
        gather_keys(&mut step.body);
        if step.operation == "PutItem"
            && rng.bool()
            && let Some(Json::Object(item)) = step.body.get_mut("Item")
        {
            item.insert("v".to_owned(), json!({"S": "x".repeat(rng.usize(50_000..350_000))}));
        }
    }
}

fn gather_keys(value: &mut Json) {
    match value {
        Json::Object(members) => members.values_mut().for_each(gather_keys),
        Json::Array(elements) => elements.iter_mut().for_each(gather_keys),
        Json::String(text) if values::STRINGS.contains(&text.as_str()) => *text = "game".to_owned(),
        _ => {}
    }
}

fn step(rng: &mut Rng, tables: &[Table]) -> Step {
    // The first table has most of the indexes, and the last one the most complicated: they get most
    // of the calls.
    let table = match rng.u32(..10) {
        0..=3 => &tables[0],
        4..=5 => &tables[tables.len() - 1],
        _ => &tables[rng.usize(..tables.len())],
    };
    if rng.u32(..25) == 0 {
        return legacy::step(rng, table);
    }
    if rng.u32(..4) == 0 {
        let mut step = partiql::step(rng, tables, table);
        if rng.u32(..50) == 0
            && let Some(members) = step.body.as_object_mut()
        {
            names_another(rng, members);
        }
        return step;
    }
    let (operation, mut body) = match rng.u32(..100) {
        0..=22 => (Operation::PutItem, put(rng, table)),
        23..=32 => (Operation::UpdateItem, update(rng, table)),
        33..=38 => (Operation::DeleteItem, delete(rng, table)),
        39..=43 => (Operation::TransactWriteItems, transact::write(rng, tables)),
        44..=45 => (Operation::TransactGetItems, transact::get(rng, tables)),
        46..=50 => (Operation::GetItem, get(rng, table)),
        51..=54 => (Operation::BatchWriteItem, batch_write(rng, tables)),
        55..=58 => (Operation::BatchGetItem, batch_get(rng, tables)),
        59..=90 => (Operation::Query, query(rng, table)),
        91..=97 => (Operation::Scan, scan(rng, table)),
        98 => tables::step(rng, table, &tables[0]),
        _ => (Operation::GetRecords, json!({"TableName": table.name, "Limit": rng.u32(1..200)})),
    };
    if operation.touches_items() && operation != Operation::GetRecords && rng.u32(..8) == 0 {
        body["ReturnConsumedCapacity"] = json!(["NONE", "TOTAL", "INDEXES"][rng.usize(..3)]);
    }
    if operation != Operation::GetRecords && rng.u32(..50) == 0 {
        let action = &mut body;
        let action = match action.pointer_mut("/TransactItems/0").and_then(Json::as_object_mut) {
            Some(element) if rng.bool() => element.values_mut().next(),
            _ => Some(action),
        };
        if let Some(action) = action {
            spoil(rng, action);
        }
    }
    Step { operation: operation.name().to_owned(), body }
}

pub(crate) fn key(rng: &mut Rng, table: &Table) -> Map<String, Json> {
    let mut key = Map::new();
    key.insert("pk".to_owned(), values::key(rng, table.partition.1, true));
    if let Some((name, kind)) = table.sort {
        let sort = if table.name == "Times" { values::time(rng) } else { values::key(rng, kind, false) };
        key.insert(name.to_owned(), sort);
    }
    key
}

pub(crate) fn item(rng: &mut Rng, table: &Table) -> Json {
    let mut item = key(rng, table);
    for (name, kind) in [("t", "S"), ("n", "N"), ("b", "B")] {
        if rng.u32(..3) > 0 {
            item.insert(name.to_owned(), values::index_key(rng, kind));
        }
    }
    for name in ["v", "l", "m", "u"] {
        if rng.bool() {
            item.insert(name.to_owned(), values::any(rng, 2));
        }
    }
    Json::Object(item)
}

pub(crate) fn key_values(rng: &mut Rng, table: &Table) -> Vec<Json> {
    key(rng, table).into_iter().map(|(_, value)| value).collect()
}

fn write_options(
    rng: &mut Rng,
    body: &mut Json,
    placeholders: &mut Placeholders,
    table: &Table,
    returns: &[&str],
) {
    if rng.bool() {
        let keys = key_values(rng, table);
        body["ConditionExpression"] = json!(values::condition(rng, placeholders, ROOTS, &keys, 2));
        if rng.bool() {
            body["ReturnValuesOnConditionCheckFailure"] = json!("ALL_OLD");
        }
    }
    if rng.u32(..6) == 0 {
        body["ReturnItemCollectionMetrics"] = json!("SIZE");
    }
    if rng.bool() {
        body["ReturnValues"] = json!(returns[rng.usize(..returns.len())]);
    }
}

fn put(rng: &mut Rng, table: &Table) -> Json {
    let mut body = json!({"TableName": table.name, "Item": item(rng, table)});
    if rng.u32(..3) == 0 {
        let mut placeholders = Placeholders::default();
        write_options(rng, &mut body, &mut placeholders, table, &["NONE", "ALL_OLD"]);
        placeholders.into_body(&mut body);
    }
    body
}

fn update(rng: &mut Rng, table: &Table) -> Json {
    let mut body = json!({"TableName": table.name, "Key": key(rng, table)});
    let mut placeholders = Placeholders::default();
    if rng.u32(..10) > 0 {
        body["UpdateExpression"] = json!(values::update(rng, &mut placeholders, "pk"));
    }
    let returns = ["NONE", "ALL_OLD", "ALL_NEW", "UPDATED_OLD", "UPDATED_NEW"];
    write_options(rng, &mut body, &mut placeholders, table, &returns);
    placeholders.into_body(&mut body);
    body
}

fn delete(rng: &mut Rng, table: &Table) -> Json {
    let mut body = json!({"TableName": table.name, "Key": key(rng, table)});
    let mut placeholders = Placeholders::default();
    write_options(rng, &mut body, &mut placeholders, table, &["NONE", "ALL_OLD"]);
    placeholders.into_body(&mut body);
    body
}

fn get(rng: &mut Rng, table: &Table) -> Json {
    let mut body = json!({"TableName": table.name, "Key": key(rng, table), "ConsistentRead": rng.bool()});
    if rng.u32(..3) == 0 {
        let mut placeholders = Placeholders::default();
        body["ProjectionExpression"] = json!(values::projection(rng, &mut placeholders, ROOTS));
        placeholders.into_body(&mut body);
    }
    body
}

fn batch_write(rng: &mut Rng, tables: &[Table]) -> Json {
    let mut requests = Map::new();
    for table in tables.iter().filter(|_| true).take(rng.usize(1..=tables.len())) {
        let writes: Vec<Json> = (0..rng.usize(1..6))
            .map(|_| {
                if rng.u32(..4) == 0 {
                    json!({"DeleteRequest": {"Key": key(rng, table)}})
                } else {
                    json!({"PutRequest": {"Item": item(rng, table)}})
                }
            })
            .collect();
        requests.insert(table.name.to_owned(), Json::Array(writes));
    }
    let mut body = json!({ "RequestItems": requests });
    if rng.u32(..6) == 0 {
        body["ReturnItemCollectionMetrics"] = json!("SIZE");
    }
    body
}

fn batch_get(rng: &mut Rng, tables: &[Table]) -> Json {
    let mut requests = Map::new();
    let count = rng.usize(1..tables.len());
    for table in rng.choose_multiple(tables.iter(), count) {
        let keys: Vec<Json> = (0..rng.usize(1..10)).map(|_| Json::Object(key(rng, table))).collect();
        let mut request = json!({ "Keys": keys });
        if rng.u32(..4) == 0 {
            request["ConsistentRead"] = json!(rng.bool());
        }
        if rng.u32(..10) == 0 {
            request["AttributesToGet"] = json!(["v", ROOTS[rng.usize(1..ROOTS.len())]]);
        } else if rng.u32(..3) == 0 {
            let mut placeholders = Placeholders::default();
            request["ProjectionExpression"] = json!(values::projection(rng, &mut placeholders, ROOTS));
            placeholders.into_body(&mut request);
        }
        requests.insert(table.name.to_owned(), request);
    }
    json!({ "RequestItems": requests })
}

fn sort_condition(
    rng: &mut Rng,
    placeholders: &mut Placeholders,
    name: &str,
    kind: &str,
    partition: bool,
) -> String {
    let mut bounds = [values::key(rng, kind, partition), values::key(rng, kind, partition)];
    if name == "t" {
        bounds = [values::index_key(rng, "S"), values::index_key(rng, "S")];
    }
    let [low, high] = bounds;
    match rng.u32(..8) {
        0 => format!("{name} = {}", placeholders.value(rng, low)),
        1 => format!("{name} < {}", placeholders.value(rng, low)),
        2 => format!("{name} <= {}", placeholders.value(rng, low)),
        3 => format!("{name} > {}", placeholders.value(rng, low)),
        4 => format!("{name} >= {}", placeholders.value(rng, low)),
        5 if kind == "S" => {
            let prefix =
                ["0", "03", "t", "t1", "game", "a", "2026-0", "2026-06-3", "2026-06-29T0", "2026-07"]
                    [rng.usize(..10)];
            let prefix = json!({ "S": prefix });
            format!("begins_with({name}, {})", placeholders.value(rng, prefix))
        }
        _ => {
            let (low, high) = (placeholders.value(rng, low), placeholders.value(rng, high));
            format!("{name} BETWEEN {low} AND {high}")
        }
    }
}

/// A test of a key attribute for one value.
fn equal(rng: &mut Rng, placeholders: &mut Placeholders, (name, kind): (&str, &str)) -> String {
    let value = match name {
        "pk" => values::key(rng, kind, true),
        "sk" => values::key(rng, kind, false),
        _ => values::index_key(rng, kind),
    };
    let value = placeholders.value(rng, value);
    let name = if rng.bool() { placeholders.name(name) } else { name.to_owned() };
    format!("{name} = {value}")
}

fn query(rng: &mut Rng, table: &Table) -> Json {
    let index: Option<&Index> = if table.indexes.is_empty() || rng.bool() {
        None
    } else {
        Some(&table.indexes[rng.usize(..table.indexes.len())])
    };
    let late = tables::late_index();
    let index = if index.is_some() && rng.u32(..20) == 0 { Some(&late) } else { index };
    let (partition, sort) = match index {
        Some(index) => (index.partition, index.sort),
        None => (table.partition, table.sort),
    };
    let [more_partition, more_sort] = index.map(|index| index.more.clone()).unwrap_or_default();
    let mut body = json!({"TableName": table.name});
    if let Some(index) = index {
        body["IndexName"] = json!(index.name);
    }
    let mut placeholders = Placeholders::default();
    let equals: Vec<String> = std::iter::once(partition)
        .chain(more_partition.iter().copied())
        .map(|attribute| equal(rng, &mut placeholders, attribute))
        .collect();
    let mut equal_to = equals.join(" AND ");
    // Of several sort attributes the first few are tested, all but the last of them with `=`; or,
    // rarely, any.
    let sorts: Vec<_> = sort.into_iter().chain(more_sort.iter().copied()).collect();
    let mut tested = sort;
    if !more_sort.is_empty() {
        let last = rng.usize(..sorts.len());
        for attribute in &sorts[..last] {
            if rng.u32(..20) > 0 {
                equal_to = format!("{} AND {equal_to}", equal(rng, &mut placeholders, *attribute));
            }
        }
        tested = Some(sorts[last]);
    }
    let equal = equal_to;
    let condition = match tested.filter(|_| rng.u32(..5) > 1) {
        Some((name, kind)) => {
            let sorted = sort_condition(rng, &mut placeholders, name, kind, name == "pk");
            if rng.u32(..6) == 0 {
                format!("({sorted}) AND {equal}")
            } else {
                format!("{equal} AND {sorted}")
            }
        }
        None => equal,
    };
    body["KeyConditionExpression"] = json!(condition);
    if rng.bool() {
        body["ScanIndexForward"] = json!(rng.bool());
    }
    let more = |root: &&str| more_partition.iter().chain(&more_sort).any(|(name, _)| name == root);
    let roots: Vec<&str> = if rng.u32(..12) == 0 {
        ROOTS.to_vec()
    } else {
        let mut roots: Vec<&str> = PLAIN_ROOTS
            .iter()
            .copied()
            .filter(|root| *root != partition.0 && sort.is_none_or(|(name, _)| name != *root) && !more(root))
            .collect();
        roots.extend(["pk", "sk"].into_iter().filter(|root| {
            index.is_some()
                && partition.0 != *root
                && sort.is_none_or(|(name, _)| name != *root)
                && !more(root)
        }));
        roots
    };
    reading_options(rng, &mut body, placeholders, table, &roots);
    if rng.u32(..12) == 0 {
        start_key(rng, &mut body, table, index.is_none());
    }
    body
}

/// A cursor that no page gave: of the wrong shape; or, where `right`, a key of the collection that
/// is asked for or another, inside the condition or outside.
fn start_key(rng: &mut Rng, body: &mut Json, table: &Table, right: bool) {
    let mut start = key(rng, table);
    match rng.u32(..4) {
        0 => drop(start.insert("extra".to_owned(), json!({"S": "x"}))),
        1 => drop(start.remove("sk")),
        2 => drop(start.insert("pk".to_owned(), json!({"BOOL": true}))),
        _ if !right => return,
        // Mostly of the collection that is asked for: of another one every store refuses it.
        _ => {
            let asked = &body["ExpressionAttributeValues"][":v0"];
            if !asked.is_null() && !body.to_string().len().is_multiple_of(4) {
                start.insert(table.partition.0.to_owned(), asked.clone());
            }
        }
    }
    body["ExclusiveStartKey"] = Json::Object(start);
}

fn scan(rng: &mut Rng, table: &Table) -> Json {
    let mut body = json!({"TableName": table.name});
    if !table.indexes.is_empty() && rng.u32(..3) == 0 {
        body["IndexName"] = json!(table.indexes[rng.usize(..table.indexes.len())].name);
    }
    reading_options(rng, &mut body, Placeholders::default(), table, ROOTS);
    match rng.u32(..8) {
        // All segments are run.
        0 | 1 => body["TotalSegments"] = json!(rng.u32(1..6)),
        2 => start_key(rng, &mut body, table, false),
        _ => {}
    }
    body
}

fn reading_options(
    rng: &mut Rng,
    body: &mut Json,
    mut placeholders: Placeholders,
    table: &Table,
    roots: &[&str],
) {
    if rng.u32(..3) == 0 {
        let keys = key_values(rng, table);
        body["FilterExpression"] = json!(values::condition(rng, &mut placeholders, roots, &keys, 2));
    }
    match rng.u32(..6) {
        0 => body["ProjectionExpression"] = json!(values::projection(rng, &mut placeholders, ROOTS)),
        1 => body["Select"] = json!(["COUNT", "ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES"][rng.usize(..3)]),
        _ => {}
    }
    if rng.u32(..3) > 0 {
        body["Limit"] = json!(rng.u32(1..9));
    }
    if rng.u32(..4) == 0 {
        body["ConsistentRead"] = json!(rng.bool());
    }
    placeholders.into_body(body);
}

/// Makes a request that DynamoDB refuses, most of the time.
fn spoil(rng: &mut Rng, body: &mut Json) {
    let Some(members) = body.as_object_mut().filter(|members| !members.is_empty()) else { return };
    match rng.u32(..9) {
        0 => names_another(rng, members),
        1 => {
            let names: Vec<String> = members.keys().cloned().collect();
            members.remove(&names[rng.usize(..names.len())]);
        }
        2 => drop(members.insert("ExpressionAttributeValues".to_owned(), json!({":unused": {"S": "x"}}))),
        3 => {
            let (name, value) = [
                ("Limit", json!(0)),
                ("ReturnConsumedCapacity", json!("BOGUS")),
                ("AttributesToGet", json!([])),
            ][rng.usize(..3)]
            .clone();
            members.insert(name.to_owned(), value);
        }
        4 => drop(members.insert("IndexName".to_owned(), json!("no-such-index"))),
        5 => {
            for name in ["Key", "Item"] {
                if let Some(key) = members.get_mut(name) {
                    key["pk"] =
                        [json!({"S": ""}), json!({"N": "1"}), json!({"BOOL": true})][rng.usize(..3)].clone();
                }
            }
        }
        6 => {
            for name in ["Key", "Item"] {
                if let Some(Json::Object(key)) = members.get_mut(name) {
                    key.remove(if rng.bool() { "pk" } else { "sk" });
                }
            }
        }
        7 => {
            for name in ["KeyConditionExpression", "FilterExpression", "ConditionExpression"] {
                if let Some(Json::String(expression)) = members.get_mut(name) {
                    *expression = format!("(({expression}))");
                }
            }
        }
        _ => {
            for name in
                ["KeyConditionExpression", "FilterExpression", "ConditionExpression", "UpdateExpression"]
            {
                if let Some(Json::String(expression)) = members.get_mut(name) {
                    let ends = [
                        " AND",
                        " )",
                        " = :none",
                        " #none",
                        " AND v = v",
                        " AND v[99999999999] = n",
                        " AND v IN (n, v)",
                    ];
                    expression.push_str(ends[rng.usize(..ends.len())]);
                }
            }
        }
    }
}

/// Names a table that is not there, or that cannot be, in the place of one of the request's, beside
/// whatever else is wrong with it.
fn names_another(rng: &mut Rng, members: &mut Map<String, Json>) {
    let other = ["Missing", "bad!name"][rng.usize(..2)];
    if let Some(Json::Object(tables)) = members.get_mut("RequestItems") {
        if let Some(name) = tables.keys().next().cloned()
            && let Some(requests) = tables.remove(&name)
        {
            tables.insert(other.to_owned(), requests);
        }
    } else if let Some(Json::String(statement)) = members.get_mut("Statement") {
        if let Some((_, place)) = tables_at(statement).first().cloned() {
            statement.replace_range(place, &format!("\"{other}\""));
        }
    } else {
        members.insert("TableName".to_owned(), json!(other));
    }
}
