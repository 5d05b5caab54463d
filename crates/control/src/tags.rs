//! The tag by which a recorded table names its registry. Two registries would record two layouts for one table, and neither would know.
//!
//! A table is tagged when it is recorded, and the tag is checked before its record is trusted. It is a second opinion, not the
//! record: stores without tags go without it.
//!
//! Not here: what is recorded (`record`), when (`resolve`, `adopt`).

use std::sync::Once;

use heatsink_dynamo::{Code, Error, Operation};
use serde_json::{Value as Json, json};

use crate::registry::Registry;

/// The tag's key. Its value is the name of the registry's table.
pub(crate) const TAG: &str = "heatsink.registry";

/// What the tags of a table say.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tagged {
    /// The table names this registry.
    Ours,
    /// The table names no registry.
    Not,
    /// Another registry records its layouts: the name of that one.
    Other(String),
    /// The store has no tags, or does not show them to these credentials.
    Unreadable,
}

/// Reads which registry a table names. `arn` is the table's, as the store described it; `ours` is the name of this registry.
///
/// # Errors
/// The store's, where it has tags and could not be asked.
pub(crate) async fn check(registry: &Registry, arn: Option<&str>, ours: &str) -> Result<Tagged, Error> {
    let Some(arn) = arn else {
        say_none("it gives tables no ARN");
        return Ok(Tagged::Unreadable);
    };
    let mut start = Json::Null;
    loop {
        let mut body = json!({ "ResourceArn": arn });
        if !start.is_null() {
            body["NextToken"] = start;
        }
        let mut page = match registry.call_patiently(Operation::ListTagsOfResource, body).await {
            Ok(page) => page,
            Err(error) if has_none(&error) => {
                say_none(&error.to_string());
                return Ok(Tagged::Unreadable);
            }
            Err(error) => return Err(error),
        };
        let tags = page["Tags"].as_array().into_iter().flatten();
        if let Some(tag) = tags.into_iter().find(|tag| tag["Key"] == TAG) {
            let named = tag["Value"].as_str().unwrap_or_default();
            return Ok(if named == ours { Tagged::Ours } else { Tagged::Other(named.to_owned()) });
        }
        start = page["NextToken"].take();
        if start.is_null() {
            return Ok(Tagged::Not);
        }
    }
}

/// Tags a table with its registry. `false` where the store has no tags or does not let these credentials write them.
///
/// # Errors
/// The store's, where it has tags and could not be asked.
pub(crate) async fn claim(registry: &Registry, arn: Option<&str>, ours: &str) -> Result<bool, Error> {
    let Some(arn) = arn else {
        say_none("it gives tables no ARN");
        return Ok(false);
    };
    let body = json!({ "ResourceArn": arn, "Tags": [{ "Key": TAG, "Value": ours }] });
    written(registry.call_patiently(Operation::TagResource, body).await)
}

/// Takes the tag off a table that is not recorded any more. `false` as for [`claim`].
///
/// # Errors
/// As for [`claim`].
pub(crate) async fn release(registry: &Registry, arn: Option<&str>) -> Result<bool, Error> {
    let Some(arn) = arn else { return Ok(false) };
    let body = json!({ "ResourceArn": arn, "TagKeys": [TAG] });
    written(registry.call_patiently(Operation::UntagResource, body).await)
}

/// Why a table is refused whose tag names another registry.
pub(crate) fn refusal(table: &str, other: &str, ours: &str) -> String {
    format!(
        "Table {table} has the tag {TAG} = {other:?}: its layouts are recorded in the table {other}, and this registry is {ours}. Two registries for \
         one table would lose items. Use that registry; or, if it is gone for good, take the tag off the table"
    )
}

fn written(answer: Result<Json, Error>) -> Result<bool, Error> {
    match answer {
        Ok(_) => Ok(true),
        Err(error) if has_none(&error) => {
            say_none(&error.to_string());
            Ok(false)
        }
        Err(error) => Err(error),
    }
}

/// Whether the store says that it has no tags, or none for these credentials. DynamoDB Local has said so with the first two codes.
fn has_none(error: &Error) -> bool {
    matches!(
        error.code,
        Code::UnknownOperationException | Code::ValidationException | Code::AccessDeniedException
    )
}

/// Says once that tables are not tagged here.
fn say_none(why: &str) {
    static SAID: Once = Once::new();
    SAID.call_once(|| tracing::debug!("the tag {TAG} is neither written nor checked on this store: {why}"));
}
