//! Counters: requests that add to a number, set it, read it and test it, and what the store holds
//! of it.

use std::collections::BTreeMap;

use fastrand::Rng;
use heatsink_dynamo::Number;
use serde_json::{Value as Json, json};

use crate::generate::Step;
use crate::schema::{self, Table};
use crate::widening;

/// The number that is counted.
pub const COUNTED: &str = "c";

/// Whether rules have counters.
pub fn has(rules: &str) -> bool {
    rules.contains("\"counter\"") || widening::has(rules)
}

/// The tables of a case: with counters, those indexes are left out that rules with counters refuse.
pub fn tables(rules: &str) -> Vec<Table> {
    let mut tables = schema::tables();
    if has(rules) {
        let refused = ["inverted", "pk-only"];
        tables.iter_mut().for_each(|table| table.indexes.retain(|index| !refused.contains(&index.name)));
    }
    tables
}

/// Makes much of a case be about the number. Streams show the rows of a counter, so nobody reads
/// them; and of a batch of statements those on counters alone are refused, so there is none.
pub fn count(rng: &mut Rng, steps: &mut Vec<Step>) {
    steps.retain(|step| {
        !["GetRecords", "ListStreams", "BatchExecuteStatement"].contains(&step.operation.as_str())
    });
    for step in steps {
        // The engine has none for transactions.
        if let Some(body) = step.body.as_object_mut() {
            body.remove("ReturnItemCollectionMetrics");
        }
        match step.operation.as_str() {
            "TransactWriteItems" | "TransactGetItems" => {
                for action in step.body["TransactItems"].as_array_mut().into_iter().flatten() {
                    for (name, action) in action.as_object_mut().into_iter().flatten() {
                        write(rng, name, action);
                    }
                }
            }
            "BatchWriteItem" => {
                let tables =
                    step.body["RequestItems"].as_object_mut().into_iter().flat_map(|all| all.values_mut());
                for entry in tables.filter_map(Json::as_array_mut).flatten() {
                    if let Some(put) = entry.get_mut("PutRequest") {
                        write(rng, "Put", put);
                    }
                }
            }
            "ExecuteStatement" => count_in(rng, &mut step.body),
            "ExecuteTransaction" => {
                let statements = step.body["TransactStatements"].as_array_mut().into_iter().flatten();
                statements.for_each(|statement| count_in(rng, statement));
            }
            "BatchGetItem" => {
                for table in
                    step.body["RequestItems"].as_object_mut().into_iter().flat_map(|all| all.values_mut())
                {
                    show(rng, table);
                }
            }
            operation => {
                let operation = operation.to_owned();
                write(rng, &operation, &mut step.body);
            }
        }
    }
}

/// Makes a statement put, show or test the number.
fn count_in(rng: &mut Rng, body: &mut Json) {
    if let Some(body) = body.as_object_mut()
        && rng.u32(..4) > 0
    {
        // What shows a part of the number is refused, and would be many writes.
        body.remove("ReturnValuesOnConditionCheckFailure");
    }
    let Some(text) = body["Statement"].as_str().filter(|_| rng.bool()) else { return };
    let changes = ["SET c = 12", "SET c = -7.5", "REMOVE c", "SET c = 1 SET v = 2", "SET c = c + 1"];
    let changes = changes[rng.usize(..changes.len())];
    if let (Some(rest), Some((before, condition))) =
        (text.strip_prefix("UPDATE "), text.split_once(" WHERE "))
    {
        let name = rest.split(' ').next().unwrap_or_default();
        let unused = if rng.bool() { " REMOVE unused" } else { "" };
        let gone = before.matches('?').count();
        let statement = format!("UPDATE {name} {changes}{unused} WHERE {condition}");
        if let Some(parameters) = body.get_mut("Parameters").and_then(Json::as_array_mut) {
            parameters.drain(..gone);
            if parameters.is_empty() {
                body.as_object_mut().and_then(|body| body.remove("Parameters"));
            }
        }
        body["Statement"] = json!(statement);
        return;
    }
    let counting = text.replacen("VALUE {", "VALUE {'c': 12, ", 1).replace("absent", "c");
    body["Statement"] =
        json!(match counting.strip_prefix("SELECT ").filter(|shown| !shown.starts_with('*')) {
            Some(shown) => format!("SELECT c, {shown}"),
            None => counting,
        });
}

/// Leaves one write of each BatchWriteItem. Each write of a batch is atomic, and the batch is not:
/// counters in it are written at moments of their own, and a test that gives each request one
/// moment cannot have more than one.
pub fn write_one(steps: &mut [Step]) {
    for step in steps.iter_mut().filter(|step| step.operation == "BatchWriteItem") {
        let Some(tables) = step.body["RequestItems"].as_object_mut() else { continue };
        let first = tables.keys().next().cloned();
        tables.retain(|name, _| Some(name) == first.as_ref());
        tables.values_mut().filter_map(Json::as_array_mut).for_each(|writes| writes.truncate(1));
    }
}

fn write(rng: &mut Rng, action: &str, body: &mut Json) {
    match action {
        "PutItem" | "Put" | "DeleteItem" | "Delete" | "UpdateItem" | "Update" | "ConditionCheck" => {
            // What shows a part of the number is refused, and would be most requests.
            if rng.u32(..4) > 0 {
                for name in ["ReturnValues", "ReturnValuesOnConditionCheckFailure"] {
                    if body.get(name).is_some() {
                        body[name] = json!("NONE");
                    }
                }
            }
            if let Some(item) = body.get_mut("Item").and_then(Json::as_object_mut)
                && rng.bool()
            {
                item.insert(COUNTED.to_owned(), number(rng));
            }
            if action.starts_with("Update") && body.get("UpdateExpression").is_some() {
                update(rng, body);
            }
        }
        "Get" => {
            // The engine adds key attributes to what a transaction projects; DynamoDB does not.
            if let Some(body) = body.as_object_mut() {
                body.remove("ProjectionExpression");
                body.remove("ExpressionAttributeNames");
            }
        }
        "GetItem" | "Query" | "Scan" => show(rng, body),
        _ => {}
    }
}

fn update(rng: &mut Rng, body: &mut Json) {
    let expression = match rng.u32(..10) {
        0..=4 => "ADD c :c".to_owned(),
        5 => "SET c = :c".to_owned(),
        6 => "REMOVE c".to_owned(),
        7 => "SET v = :c ADD c :c".to_owned(),
        8 => "SET c = c + :c".to_owned(),
        _ => return,
    };
    for member in ["ExpressionAttributeNames", "ExpressionAttributeValues", "ConditionExpression"] {
        if let Some(body) = body.as_object_mut() {
            body.remove(member);
        }
    }
    if expression.contains(":c") {
        body["ExpressionAttributeValues"] = json!({":c": number(rng)});
    }
    if rng.u32(..4) == 0 {
        body["ConditionExpression"] =
            json!(["attribute_exists(pk)", "attribute_not_exists(pk)", "c < c"][rng.usize(..3)]);
    }
    body["UpdateExpression"] = json!(expression);
}

fn show(rng: &mut Rng, body: &mut Json) {
    // The engine does not look into the table for what a local index lacks; DynamoDB does.
    let narrow = ["by-n", "by-b"].iter().any(|index| body["IndexName"] == *index);
    if let (true, Some(body)) = (narrow, body.as_object_mut()) {
        body.remove("Select");
    }
    if let Some(projection) = body["ProjectionExpression"].as_str()
        && !narrow
        && rng.bool()
    {
        body["ProjectionExpression"] = json!(format!("{projection}, c"));
    }
    if let Some(filter) = body["FilterExpression"].as_str()
        && rng.bool()
    {
        body["FilterExpression"] = json!(format!("{filter} OR c > :c"));
        body["ExpressionAttributeValues"][":c"] = number(rng);
    }
    if let Some(body) = body.as_object_mut() {
        body.retain(|_, value| !value.is_null());
    }
}

fn number(rng: &mut Rng) -> Json {
    let text = ["-7", "0", "1", "2.50", "1e2", "0.001", "12"][rng.usize(..7)];
    json!({ "N": text })
}

/// Sums the rows of items: of those with equal keys the first is row 0.
#[derive(Default)]
pub struct Rows(BTreeMap<String, (Option<Json>, Vec<String>)>);

impl Rows {
    /// Takes a row with its key made logical.
    pub fn take(&mut self, table: &Table, row: Json, part: bool) {
        let sort = table.sort.map(|(name, _)| row[name].to_string()).unwrap_or_default();
        let (row0, parts) = self.0.entry(format!("{} {sort}", row[table.partition.0])).or_default();
        if let (true, Some(number)) = (part, row[COUNTED]["N"].as_str()) {
            parts.push(number.to_owned());
        }
        if !part {
            *row0 = Some(row);
        }
    }

    /// The items; a row without its row 0 is an item of its own, which no other store has.
    pub fn items(self) -> Vec<Json> {
        let items = self.0.into_iter().map(|(key, (row0, parts))| {
            let Some(mut row0) = row0 else { return json!({ "rows without row 0": key }) };
            if !parts.is_empty() {
                let own = row0[COUNTED]["N"].as_str().map(str::to_owned);
                let numbers = parts.iter().chain(&own).map(|text| Number::parse(text).expect("a number"));
                let sum = numbers.fold(Number::ZERO, |sum, number| sum.plus(number).expect("small numbers"));
                row0[COUNTED] = json!({"N": sum.to_string()});
            }
            row0
        });
        items.collect()
    }
}
