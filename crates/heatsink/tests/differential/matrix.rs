//! The matrix of docs/reference/compatibility-tests.md, held against the tests that it names: what
//! it says is covered by the differential test must be among the requests that are generated, and
//! every other test that it names must be there.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use fastrand::Rng;
use serde_json::Value as Json;

use crate::{generate, schema};

/// Steps enough for the rarest parameter to come up many times.
const STEPS: usize = 30_000;

/// docs/reference/compatibility-tests.md, and where it lies.
pub fn docs() -> (PathBuf, String) {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/reference/compatibility-tests.md");
    let text = std::fs::read_to_string(&page).unwrap();
    (page, text)
}

/// Every operation that is generated, with the path of every parameter: `Query Limit`,
/// `TransactWriteItems Put.Item`.
fn generated() -> BTreeSet<String> {
    let tables = schema::tables();
    let steps = generate::steps(&mut Rng::with_seed(1), &tables, STEPS);
    let mut found = BTreeSet::new();
    for step in &steps {
        found.insert(step.operation.clone());
        let Some(members) = step.body.as_object() else { continue };
        for (name, value) in members {
            found.insert(format!("{} {name}", step.operation));
            let parts: Vec<&Json> = match (name.as_str(), value) {
                ("TransactItems" | "Statements" | "TransactStatements", Json::Array(parts)) => {
                    parts.iter().collect()
                }
                ("RequestItems", Json::Object(tables)) => tables.values().collect(),
                ("GlobalSecondaryIndexUpdates", Json::Array(parts)) => parts.iter().collect(),
                _ => continue,
            };
            for part in parts {
                parameters(&step.operation, part, &mut found);
            }
        }
    }
    found
}

/// The parameters of an action of a transaction, a statement, or one table's part of a batch.
fn parameters(operation: &str, part: &Json, found: &mut BTreeSet<String>) {
    match part {
        Json::Array(writes) => writes.iter().for_each(|write| parameters(operation, write, found)),
        Json::Object(members) => {
            for (name, value) in members {
                found.insert(format!("{operation} {name}"));
                let action = ["Get", "Put", "Update", "Delete", "ConditionCheck"].contains(&name.as_str());
                if let (true, Json::Object(inner)) = (action, value) {
                    found.extend(inner.keys().map(|inner| format!("{operation} {name}.{inner}")));
                }
            }
        }
        _ => {}
    }
}

/// The rows of the matrix: operation, parameters, and the tests that back them.
fn rows(text: &str) -> Vec<(String, Vec<String>, String)> {
    let matrix = text.split("<!-- matrix -->").nth(1).expect("the page has a matrix");
    let cells = |line: &str| -> Vec<String> {
        line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect()
    };
    let rows = matrix.lines().filter(|line| line.starts_with("| ") && line.contains('`')).map(cells);
    rows.map(|cells| {
        let [operation, parameters, tests] = cells.try_into().expect("three columns");
        let names = parameters.split(',').map(|name| name.trim().trim_matches('`').to_owned()).collect();
        (operation.trim_matches('`').to_owned(), names, tests)
    })
    .collect()
}

/// The tests that a cell names and that are not there: `[name](path)` says that the file holds a
/// test of that name.
pub fn unbacked(page: &Path, what: &str, cell: &str) -> Vec<String> {
    let mut missing = Vec::new();
    for link in cell.split('[').skip(1) {
        let (name, rest) = link.split_once("](").expect("a link");
        let path = page.with_file_name(rest.split(')').next().unwrap());
        let held = std::fs::read_to_string(&path).unwrap_or_default();
        if !held.contains(name.trim_matches('`')) {
            missing.push(format!("{what}: no {name} in {}", path.display()));
        }
    }
    missing
}

#[test]
fn the_matrix_is_backed_by_tests() {
    let (page, text) = docs();
    let generated = generated();
    let mut missing = Vec::new();
    let mut cells = 0;
    for (operation, parameters, tests) in rows(&text) {
        for parameter in &parameters {
            cells += 1;
            let cell = format!("{operation} {parameter}").trim_end().to_owned();
            if tests.starts_with("differential") && !generated.contains(&cell) {
                missing.push(format!("{cell}: never generated"));
            }
        }
        missing.extend(unbacked(&page, &operation, &tests));
    }
    assert!(missing.is_empty(), "{}", missing.join("\n"));
    assert!(cells > 120, "only {cells} cells");
}
