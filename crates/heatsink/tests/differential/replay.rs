//! A failing case as a file: rules and requests, to be run again as they are.

use serde::{Deserialize, Serialize};

use crate::counters;
use crate::generate::Step;
use crate::judge::Judge;
use crate::schema;
use crate::shrink::Case;

#[derive(Serialize, Deserialize)]
struct Kept {
    rules: String,
    large: bool,
    #[serde(default)]
    judge: Judge,
    steps: Vec<Step>,
}

/// Writes a case beside the build's other output; its path.
pub fn keep(case: &Case, seed: u64) -> String {
    let kept =
        Kept { rules: case.rules.clone(), large: case.large, judge: case.judge, steps: case.steps.clone() };
    let judge = match case.judge {
        Judge::Engine => "",
        Judge::DynamoDbLocal => "local-",
    };
    let path = format!("{}/differential-{judge}{seed}.json", env!("CARGO_TARGET_TMPDIR"));
    let text = serde_json::to_string_pretty(&kept).expect("requests are JSON");
    std::fs::write(&path, text).expect("the build folder can be written to");
    path
}

/// Runs a kept case.
pub fn run(path: &str, judge: Judge) {
    let text = std::fs::read_to_string(path).expect("the file is there");
    let kept: Kept = serde_json::from_str(&text).expect("the file is a kept case");
    assert!(
        kept.judge == judge,
        "the case is of another judge; replay it with {}",
        kept.judge.replays_with()
    );
    let mut tables = counters::tables(&kept.rules);
    tables.retain(|table| judge.has(table.name));
    let case = Case { rules: kept.rules, steps: kept.steps, tables, large: kept.large, judge: kept.judge };
    if let Some(mismatch) = case.run() {
        panic!("step {}: {}", mismatch.step, mismatch.what);
    }
}

/// So that what is kept is what is run.
#[test]
fn a_kept_case_is_read_back() {
    let step = Step { operation: "Scan".to_owned(), body: serde_json::json!({"TableName": "Strings"}) };
    let rules = crate::world::RULES[0].to_owned();
    let case =
        Case { rules, steps: vec![step], tables: schema::tables(), large: false, judge: Judge::Engine };
    let path = keep(&case, u64::MAX);
    run(&path, Judge::Engine);
    let broken = std::fs::read_to_string(&path).unwrap().replace("calculated", "nonsense");
    std::fs::write(&path, broken).unwrap();
    assert!(std::panic::catch_unwind(|| run(&path, Judge::Engine)).is_err());
}
