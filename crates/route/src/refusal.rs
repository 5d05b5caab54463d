//! What Heatsink itself refuses because of how keys are laid out: said with the rules, so that whoever reads it knows what to change.

use heatsink_dynamo::Error;
use heatsink_layout::LayoutSource;
use serde_json::Value as Json;

/// Marks such an error until its rules are named. No client sees it.
const OWN: &str = "refused by Heatsink";

/// A refusal of Heatsink's own; DynamoDB's are not made here.
pub(crate) fn own(why: impl Into<String>) -> Error {
    Error::validation(why).with(OWN, Json::Bool(true))
}

/// The error as clients are told it: a refusal of Heatsink's own names the rules of the request's tables.
#[must_use]
pub fn name_rules<S: AsRef<str>>(mut error: Error, tables: &[S], layouts: &dyn LayoutSource) -> Error {
    if error.members.remove(OWN).is_none() {
        return error;
    }
    let sharded = tables.iter().filter_map(|name| layouts.table(name.as_ref()));
    let rules: Vec<String> = sharded.map(|table| format!("{}: {}", table.name, table.layouts())).collect();
    if !rules.is_empty() {
        let why = error.message.unwrap_or_default();
        error.message = Some(format!("{why} (the rules in force for table {})", rules.join("; for table ")));
    }
    error
}
