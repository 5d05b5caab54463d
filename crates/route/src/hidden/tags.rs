//! A list of tags without the one by which a recorded table names its registry. A page can hold one
//! fewer than the store gives.
//!
//! Not here: that clients cannot set or remove it (`control`).

use bytes::Bytes;
use heatsink_dynamo::{Error, Operation};
use heatsink_layout::REGISTRY_TAG;
use serde_json::Value as Json;

use crate::answer::unreadable;
use crate::plan::{Plan, Single};

/// The plan of `ListTagsOfResource`.
pub(crate) fn list(body: &Bytes) -> Plan {
    let why = "Heatsink's own tag is left out of the answer";
    Single::new(Operation::ListTagsOfResource, body.clone(), Some(Box::new(without)), why).plan()
}

/// The answer without the tag; byte for byte the store's where it has none.
fn without(answer: Result<Bytes, Error>) -> Result<Bytes, Error> {
    let answer = answer?;
    let unreadable = |_| unreadable(Operation::ListTagsOfResource);
    let mut page: Json = serde_json::from_slice(&answer).map_err(unreadable)?;
    let Some(tags) = page.get_mut("Tags").and_then(Json::as_array_mut) else { return Ok(answer) };
    let all = tags.len();
    tags.retain(|tag| tag.get("Key").and_then(Json::as_str) != Some(REGISTRY_TAG));
    Ok(if tags.len() == all { answer } else { Bytes::from(page.to_string()) })
}
