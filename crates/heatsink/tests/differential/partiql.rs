//! Random PartiQL: all statements, on tables and indexes, values as literals and as parameters,
//! pages through NextToken.
//!
//! A SELECT ends with a comment that says what of its answer must be equal: `pages` (page by page,
//! in order), `rows` (all rows in order), `sets` (all rows).

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fastrand::Rng;
use heatsink_dynamo::Operation;
use serde_json::{Value as Json, json};

use crate::generate::{Step, item, key};
use crate::schema::{Index, Table};
use crate::values;

const ROOTS: &[&str] = &["v", "n", "t", "l", "m", "u", "b", "absent", "sk"];

/// A PartiQL request.
pub fn step(rng: &mut Rng, tables: &[Table], table: &Table) -> Step {
    let (operation, body) = match rng.u32(..20) {
        0 | 1 => (Operation::BatchExecuteStatement, batch(rng, tables)),
        2 | 3 => (Operation::ExecuteTransaction, transaction(rng, tables)),
        _ => (Operation::ExecuteStatement, single(rng, table)),
    };
    Step { operation: operation.name().to_owned(), body }
}

/// A statement under way; parameters in the order of the text.
#[derive(Default)]
struct Writing {
    parameters: Vec<Json>,
}

impl Writing {
    /// A value, written out where it can be.
    fn value(&mut self, rng: &mut Rng, value: Json) -> String {
        if rng.bool()
            && let Some(literal) = literal(&value)
        {
            return literal;
        }
        self.parameters.push(value);
        "?".to_owned()
    }

    fn body(self, text: String) -> Json {
        let mut body = json!({ "Statement": text });
        if !self.parameters.is_empty() {
            body["Parameters"] = Json::Array(self.parameters);
        }
        body
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn literal(value: &Json) -> Option<String> {
    let (kind, inner) = value.as_object()?.iter().next()?;
    Some(match (kind.as_str(), inner) {
        ("S", Json::String(text)) => quoted(text),
        ("N", Json::String(number)) => number.clone(),
        ("BOOL", inner) => inner.to_string(),
        ("NULL", _) => "NULL".to_owned(),
        ("SS", Json::Array(members)) => {
            let members: Vec<String> = members.iter().filter_map(Json::as_str).map(quoted).collect();
            format!("<<{}>>", members.join(", "))
        }
        ("L", Json::Array(elements)) => {
            let elements: Option<Vec<String>> = elements.iter().map(literal).collect();
            format!("[{}]", elements?.join(", "))
        }
        ("M", Json::Object(members)) => {
            let members: Option<Vec<String>> =
                members.iter().map(|(name, value)| Some(format!("'{name}': {}", literal(value)?))).collect();
            format!("{{{}}}", members?.join(", "))
        }
        _ => return None,
    })
}

fn single(rng: &mut Rng, table: &Table) -> Json {
    let mut body = if rng.u32(..5) < 3 { select(rng, table) } else { write(rng, table) };
    capacity(rng, &mut body);
    body
}

fn batch(rng: &mut Rng, tables: &[Table]) -> Json {
    let mut statements = several(rng, tables);
    for statement in &mut statements {
        if rng.u32(..8) == 0 {
            statement["ConsistentRead"] = json!(rng.bool());
        }
    }
    // What sharded tables refuse of a batch by design leaves the rest of it done, so that the two
    // stores would part: no statement is for a number that is written like a shard.
    let statements = json!(statements).to_string().replace(values::LIKE_A_SHARD, "2.5");
    let statements: Json = serde_json::from_str(&statements).expect("it was written here");
    let mut body = json!({ "Statements": statements });
    capacity(rng, &mut body);
    body
}

fn capacity(rng: &mut Rng, body: &mut Json) {
    if rng.u32(..8) == 0 {
        body["ReturnConsumedCapacity"] = json!(["NONE", "TOTAL", "INDEXES"][rng.usize(..3)]);
    }
}

fn transaction(rng: &mut Rng, tables: &[Table]) -> Json {
    let mut body = json!({ "TransactStatements": several(rng, tables) });
    if rng.u32(..10) == 0 {
        body["ClientRequestToken"] = json!(format!("token-{}", rng.u32(..3)));
    }
    capacity(rng, &mut body);
    body
}

fn several(rng: &mut Rng, tables: &[Table]) -> Vec<Json> {
    let reads = rng.bool();
    (0..rng.usize(1..5))
        .map(|_| {
            let table = &tables[if rng.bool() { 0 } else { rng.usize(..tables.len()) }];
            if !reads {
                return write(rng, table);
            }
            let mut writing = Writing::default();
            let shown = projection(rng);
            let mut condition = key_condition(rng, &mut writing, table);
            if rng.u32(..20) == 0 {
                condition = format!("{condition} AND {}", test(rng, &mut writing, "v"));
            }
            writing.body(format!("SELECT {shown} FROM \"{}\" WHERE {condition}", table.name))
        })
        .collect()
}

fn projection(rng: &mut Rng) -> String {
    if rng.u32(..3) > 0 {
        return "*".to_owned();
    }
    let paths = ["pk", "sk", "v", "n", "m.k", "l[0]", "\"t\"", "u"];
    let paths: Vec<&str> = (0..rng.usize(1..4)).map(|_| paths[rng.usize(..paths.len())]).collect();
    paths.join(", ")
}

/// Equalities for the whole primary key, now and then for a part of it.
fn key_condition(rng: &mut Rng, writing: &mut Writing, table: &Table) -> String {
    let partial = rng.u32(..40) == 0;
    let mut parts = Vec::new();
    for (name, value) in key(rng, table) {
        if partial && name == "sk" {
            continue;
        }
        let value = writing.value(rng, value);
        parts.push(match rng.u32(..12) {
            0 => format!("{value} = {name}"),
            1 => format!("\"{name}\" IN [{value}]"),
            _ => format!("{name} = {value}"),
        });
    }
    parts.join(" AND ")
}

fn write(rng: &mut Rng, table: &Table) -> Json {
    let mut writing = Writing::default();
    let name = table.name;
    let text = match rng.u32(..5) {
        0 | 1 => {
            let item = item(rng, table);
            let mut members = Vec::new();
            for (name, value) in item.as_object().into_iter().flatten() {
                members.push(format!("'{name}': {}", writing.value(rng, value.clone())));
            }
            let end = if rng.u32(..4) == 0 { " IF NOT EXISTS" } else { "" };
            format!("INSERT INTO \"{name}\" VALUE {{{}}}{end}", members.join(", "))
        }
        2 | 3 => {
            let changes = changes(rng, &mut writing);
            let condition = write_condition(rng, &mut writing, table);
            let returning = ["", "", "ALL OLD", "ALL NEW", "MODIFIED OLD", "MODIFIED NEW"][rng.usize(..6)];
            format!("UPDATE \"{name}\" {changes} WHERE {condition}{}", clause(returning))
        }
        _ => {
            let condition = write_condition(rng, &mut writing, table);
            let returning = ["", "", "ALL OLD", "ALL OLD", "ALL NEW"][rng.usize(..5)];
            format!("DELETE FROM \"{name}\" WHERE {condition}{}", clause(returning))
        }
    };
    let inserts = text.starts_with("INSERT");
    let mut body = writing.body(text);
    if !inserts && rng.u32(..3) == 0 {
        body["ReturnValuesOnConditionCheckFailure"] = json!("ALL_OLD");
    }
    body
}

fn clause(returning: &str) -> String {
    if returning.is_empty() { String::new() } else { format!(" RETURNING {returning} *") }
}

fn write_condition(rng: &mut Rng, writing: &mut Writing, table: &Table) -> String {
    let mut text = key_condition(rng, writing, table);
    if rng.u32(..3) == 0 {
        text = format!("{text} AND {}", condition(rng, writing, ROOTS, 1));
    }
    if rng.u32(..8) == 0 {
        let value = values::key(rng, table.partition.1, true);
        let value = writing.value(rng, value);
        let test = ["pk <>", "NOT pk =", "pk >", "v = 5 OR pk ="][rng.usize(..4)];
        text = format!("{text} AND ({test} {value})");
    }
    text
}

fn changes(rng: &mut Rng, writing: &mut Writing) -> String {
    let mut targets = vec!["v", "n", "t", "l", "m", "u"];
    rng.shuffle(&mut targets);
    let mut clauses = Vec::new();
    for target in targets.into_iter().take(rng.usize(1..3)) {
        clauses.push(match (target, rng.u32(..5)) {
            (target, 0) => format!("REMOVE {target}"),
            ("n" | "v", 1) => {
                let number = json!({"N": rng.i32(-2..5).to_string()});
                let number = writing.value(rng, number);
                format!("SET {target} = {target} {} {number}", if rng.bool() { "+" } else { "-" })
            }
            ("l", 1 | 2) => "SET l = list_append(l, ['x'])".to_owned(),
            ("u", 1 | 2) => {
                format!("SET u = {}(u, <<'t1'>>)", if rng.bool() { "set_add" } else { "set_delete" })
            }
            ("m", 1 | 2) => {
                let value = values::any(rng, 0);
                format!("SET m.k = {}", writing.value(rng, value))
            }
            ("t", _) => {
                let value = values::index_key(rng, "S");
                format!("SET t = {}", writing.value(rng, value))
            }
            ("n", _) => {
                let value = values::index_key(rng, "N");
                format!("SET n = {}", writing.value(rng, value))
            }
            (target, _) => {
                let value = values::any(rng, 1);
                format!("SET {target} = {}", writing.value(rng, value))
            }
        });
    }
    clauses.join(" ")
}

fn condition(rng: &mut Rng, writing: &mut Writing, roots: &[&str], depth: u32) -> String {
    if depth > 0 && rng.u32(..3) == 0 {
        let left = condition(rng, writing, roots, depth - 1);
        let right = condition(rng, writing, roots, depth - 1);
        return match rng.u32(..4) {
            0 => format!("({left} AND {right})"),
            1 => format!("({left} OR {right})"),
            2 => format!("NOT ({left} OR {right})"),
            _ => format!("(NOT {left} AND NOT ({right}))"),
        };
    }
    let root = roots[rng.usize(..roots.len())];
    test(rng, writing, root)
}

fn test(rng: &mut Rng, writing: &mut Writing, root: &str) -> String {
    let path = match rng.u32(..8) {
        0 => format!("{root}.k"),
        1 => format!("{root}[0]"),
        2 => format!("\"{root}\""),
        _ => root.to_owned(),
    };
    let small = |rng: &mut Rng| values::any(rng, 0);
    match rng.u32(..12) {
        0..=3 => {
            let comparator = ["=", "<>", "!=", "<", "<=", ">", ">="][rng.usize(..7)];
            let value = small(rng);
            format!("{path} {comparator} {}", writing.value(rng, value))
        }
        4 => {
            let low = rng.u32(..3);
            let low_value = writing.value(rng, json!({"N": low.to_string()}));
            let high = low + rng.u32(..8);
            let high = writing.value(rng, json!({"N": high.to_string()}));
            format!("{path} {}BETWEEN {low_value} AND {high}", if rng.u32(..4) == 0 { "NOT " } else { "" })
        }
        5 => {
            let (first, second) = (small(rng), small(rng));
            let first = writing.value(rng, first);
            let second = writing.value(rng, second);
            format!("{path} IN [{first}, {second}]")
        }
        6 => format!("attribute_{}exists({path})", if rng.bool() { "" } else { "not_" }),
        7 => format!("attribute_type({path}, '{}')", ["S", "N", "B", "L", "M", "SS"][rng.usize(..6)]),
        8 => format!("begins_with({path}, '{}')", ["t", "a", "0"][rng.usize(..3)]),
        9 => format!("contains({path}, '{}')", ["t", "a", "t1", "0"][rng.usize(..4)]),
        10 => {
            let kind = ["MISSING", "NULL", "STRING", "NUMERIC", "LIST", "STRUCT"][rng.usize(..6)];
            format!("{path} IS {}{kind}", if rng.bool() { "NOT " } else { "" })
        }
        _ => format!("size({path}) {} {}", ["=", "<", ">"][rng.usize(..3)], rng.u32(..5)),
    }
}

fn select(rng: &mut Rng, table: &Table) -> Json {
    let index = if table.indexes.is_empty() || rng.u32(..5) > 1 {
        None
    } else {
        Some(&table.indexes[rng.usize(..table.indexes.len())])
    };
    let mut writing = Writing::default();
    let shown = projection(rng);
    let target = match index {
        None => format!("\"{}\"", table.name),
        Some(index) => format!("\"{}\".\"{}\"", table.name, index.name),
    };
    let (condition, mut same) = read_condition(rng, &mut writing, table, index);
    let (partition, sort) = keys(table, index);
    let mut order = String::new();
    if rng.u32(..4) == 0 && same != "sets" || rng.u32(..40) == 0 {
        let direction = ["", " ASC", " DESC"];
        order = match (sort, rng.u32(..3)) {
            (Some((sort, _)), 0 | 1) => {
                format!(" ORDER BY {}, {sort}{}", partition.0, direction[rng.usize(..3)])
            }
            _ => format!(" ORDER BY {}{}", partition.0, direction[rng.usize(..3)]),
        };
        if same == "lists" {
            same = "rows";
        }
    } else if same == "lists" {
        same = "sets";
    }
    // Rows with equal index keys have no order.
    if index.is_some() {
        same = "sets";
    }
    let condition = if condition.is_empty() { condition } else { format!(" WHERE {condition}") };
    let mut body = writing.body(format!("SELECT {shown} FROM {target}{condition}{order} -- {same}"));
    if rng.u32(..3) == 0 {
        body["Limit"] = json!(rng.u32(1..6));
    }
    if rng.u32(..4) == 0 && index.is_none_or(|index| index.local) {
        body["ConsistentRead"] = json!(rng.bool());
    }
    if rng.u32(..60) == 0 {
        let token =
            ["garbage", "bm90IGpzb24=", &STANDARD.encode(r#"{"of":1,"part":0}"#)][rng.usize(..2)].to_owned();
        body["NextToken"] = json!(token);
    }
    body
}

type Key = (&'static str, &'static str);

fn keys(table: &Table, index: Option<&Index>) -> (Key, Option<Key>) {
    index.map_or((table.partition, table.sort), |index| (index.partition, index.sort))
}

/// A `WHERE` clause, and what of the answer it makes certain.
fn read_condition(
    rng: &mut Rng,
    writing: &mut Writing,
    table: &Table,
    index: Option<&Index>,
) -> (String, &'static str) {
    let (partition, sort) = keys(table, index);
    let key_of = |rng: &mut Rng, (name, kind): Key| match (name, index) {
        ("pk", _) => values::key(rng, kind, true),
        ("sk", _) => values::key(rng, kind, false),
        _ => values::index_key(rng, kind),
    };
    let filter = |rng: &mut Rng, writing: &mut Writing, text: String| {
        if rng.u32(..3) > 0 {
            return text;
        }
        let roots: &[&str] = if rng.u32(..3) == 0 { &["pk", "sk"] } else { ROOTS };
        let more = condition(rng, writing, roots, 1);
        if text.is_empty() { more } else { format!("{text} AND {more}") }
    };
    match rng.u32(..20) {
        0..=2 => (filter(rng, writing, String::new()), "sets"),
        3 => {
            let value = key_of(rng, partition);
            let value = writing.value(rng, value);
            let test = ["<>", ">", "<="][rng.usize(..3)];
            (filter(rng, writing, format!("{} {test} {value}", partition.0)), "sets")
        }
        4..=6 => {
            let list: Vec<String> = (0..rng.usize(1..4))
                .map(|_| {
                    let value = key_of(rng, partition);
                    writing.value(rng, value)
                })
                .collect();
            let text = if rng.u32(..3) == 0 {
                let parts: Vec<String> =
                    list.iter().map(|value| format!("{} = {value}", partition.0)).collect();
                format!("({})", parts.join(" OR "))
            } else {
                format!("{} IN [{}]", partition.0, list.join(", "))
            };
            (filter(rng, writing, text), "lists")
        }
        form => {
            let value = key_of(rng, partition);
            let mut text = format!("{} = {}", partition.0, writing.value(rng, value));
            if let (Some(sort), 10..) = (sort, form) {
                let low = key_of(rng, sort);
                let name = sort.0;
                text = match form {
                    10 | 11 => format!("{text} AND {name} = {}", writing.value(rng, low)),
                    12 if sort.1 == "S" => format!("{text} AND begins_with({name}, '0{}')", rng.u32(..6)),
                    12..=14 => {
                        let high = key_of(rng, sort);
                        let low = writing.value(rng, low);
                        let high = writing.value(rng, high);
                        format!("{text} AND {name} BETWEEN {low} AND {high}")
                    }
                    _ => {
                        let comparator = ["<", "<=", ">", ">="][rng.usize(..4)];
                        format!("{text} AND {name} {comparator} {}", writing.value(rng, low))
                    }
                };
            }
            // What reads the sort key again may end pages elsewhere.
            let filtered = filter(rng, writing, text.clone());
            let same = if filtered == text { "pages" } else { "rows" };
            (filtered, same)
        }
    }
}
