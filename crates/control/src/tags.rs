//! The tag by which a recorded table names its registry. Two registries would record two layouts
//! for one table, and neither would know of the other.
//!
//! A table is tagged after it is recorded. An empty or unrecorded table is not recorded where
//! another registry has tagged it. The tag is an additional safeguard, not the record: stores
//! without tags do without, and so does a table whose gateway was killed before it could set the
//! tag.
//!
//! Clients neither see nor set the tag: `route` leaves it out of lists, and [`refuse`] rejects
//! requests that would change it.
//!
//! Not here: what is recorded (`record`), when (`resolve`, `adopt`).

use std::collections::HashSet;
use std::sync::{Mutex, Once, PoisonError};

use heatsink_dynamo::{Code, Error, Operation, json as raw};
use heatsink_layout::REGISTRY_TAG as TAG;
use serde_json::{Value as Json, json};

use crate::describe::Described;
use crate::registry::Registry;

/// The registry that a table's tags name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Tagged {
    /// This registry.
    Ours,
    /// No registry.
    Not,
    /// Another registry records its layouts: its name.
    Other(String),
    /// The store has no tags, or does not show them to these credentials.
    Unreadable,
}

/// Reads which registry a table names. `arn` is the table's, as the store described it; `ours` is
/// the name of this registry.
///
/// # Errors
/// The store's, if it has tags and could not be reached.
pub(crate) async fn check(registry: &Registry, arn: Option<&str>, ours: &str) -> Result<Tagged, Error> {
    let Some(arn) = arn.filter(|_| registry.has_tags()) else {
        say_none("it has none, or gives tables no ARN");
        return Ok(Tagged::Unreadable);
    };
    let mut start = Json::Null;
    loop {
        let mut body = json!({ "ResourceArn": arn });
        if !start.is_null() {
            body["NextToken"] = start;
        }
        let mut page = match registry.call(Operation::ListTagsOfResource, body).await {
            Ok(page) => page,
            Err(error) if has_none(registry, &error) => return Ok(Tagged::Unreadable),
            // The tags of a new table may not be visible yet.
            Err(error) if error.code == Code::ResourceNotFoundException => return Ok(Tagged::Not),
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

/// Tags a table with its registry. `false` where the store has no tags or does not let these
/// credentials write them.
///
/// # Errors
/// The store's, if it has tags and could not be reached.
pub async fn claim(registry: &Registry, arn: Option<&str>, ours: &str) -> Result<bool, Error> {
    let Some(arn) = arn.filter(|_| registry.has_tags()) else { return Ok(false) };
    written(registry, registry.call_patiently(Operation::TagResource, tagging(arn, ours)).await)
}

/// [`claim`] for a table that requests wait for: tries once.
///
/// # Errors
/// As for [`claim`].
pub async fn claim_now(registry: &Registry, arn: Option<&str>) -> Result<bool, Error> {
    let Some(arn) = arn.filter(|_| registry.has_tags()) else { return Ok(false) };
    written(registry, registry.call(Operation::TagResource, tagging(arn, registry.name())).await)
}

fn tagging(arn: &str, ours: &str) -> Json {
    json!({ "ResourceArn": arn, "Tags": [{ "Key": TAG, "Value": ours }] })
}

/// Removes the tag of a table that is not recorded any more. `false` as for [`claim`].
///
/// # Errors
/// As for [`claim`].
pub async fn release(registry: &Registry, arn: Option<&str>) -> Result<bool, Error> {
    let Some(arn) = arn else { return Ok(false) };
    let body = json!({ "ResourceArn": arn, "TagKeys": [TAG] });
    written(registry, registry.call_patiently(Operation::UntagResource, body).await)
}

/// The error for a table whose tag names another registry.
pub(crate) fn refusal(table: &str, other: &str, ours: &str) -> String {
    format!(
        "Table {table} has the tag {TAG} = {other:?}: its layouts are recorded in the table {other}, and this registry is {ours}. Two registries for \
         one table would lose items. Use that registry (`registry = {other:?}` under [fence]); if it is gone for good, use its name all the same, and put the \
         table on record with `heatsink verify {table} --rebuild` (docs/how-to/recover.md)"
    )
}

/// Why a table is refused: its tag names another registry. `None` if it does not.
///
/// # Errors
/// As for [`check`].
pub async fn foreign(registry: &Registry, described: &Described) -> Result<Option<String>, Error> {
    Ok(match check(registry, described.arn.as_deref(), registry.name()).await? {
        Tagged::Other(other) => Some(refusal(&described.schema.name, &other, registry.name())),
        Tagged::Ours | Tagged::Not | Tagged::Unreadable => None,
    })
}

/// Refuses a client's request that would set or remove the tag.
///
/// # Errors
/// `ValidationException`, by name.
pub(crate) fn refuse(operation: Operation, request: &[u8]) -> Result<(), Error> {
    let list = match operation {
        Operation::CreateTable | Operation::TagResource => "Tags",
        Operation::UntagResource => "TagKeys",
        _ => return Ok(()),
    };
    let elements = raw::member(request, list).ok().flatten().and_then(|list| raw::elements(list).ok());
    let key = |element| match operation {
        Operation::UntagResource => Some(element),
        _ => raw::member(element, "Key").ok().flatten(),
    };
    let mut keys = elements.into_iter().flatten().filter_map(key);
    match keys.any(|key| raw::string(key).is_ok_and(|key| key == TAG)) {
        true => Err(Error::validation(format!("The tag key {TAG} is Heatsink's own"))),
        false => Ok(()),
    }
}

/// The tables that this gateway recorded and has yet to tag: a table that is being created cannot
/// be tagged.
#[derive(Debug, Default)]
pub(crate) struct Untagged {
    ids: Mutex<HashSet<String>>,
    /// The tables whose tags this process has looked at.
    seen: Mutex<HashSet<String>>,
}

impl Untagged {
    /// Schedules a table to be tagged at its next look-up.
    pub fn add(&self, id: &str) {
        self.ids.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_owned());
    }

    /// Tags a table that has been on record for longer, if this process has not looked for its tag
    /// yet: it may be of a build that did not tag it, or somebody took the tag off.
    ///
    /// # Errors
    /// The store's; then it is tried again.
    pub async fn tag_again(&self, registry: &Registry, name: &str, id: &str) -> Result<(), Error> {
        if self.seen.lock().unwrap_or_else(PoisonError::into_inner).contains(id) {
            return Ok(());
        }
        let described = registry.describe(name).await?.filter(|described| described.schema.id == id);
        let arn = described.as_ref().and_then(|described| described.arn.as_deref());
        if described.is_some() && check(registry, arn, registry.name()).await? == Tagged::Not {
            claim_now(registry, arn).await?;
        }
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).insert(id.to_owned());
        Ok(())
    }

    /// Tags a table that was looked up, if that is due. If the store fails, the next look-up tries
    /// again.
    ///
    /// Returns why the table is refused, if another registry has recorded it at the same time.
    pub async fn settle(&self, registry: &Registry, described: &Described) -> Option<String> {
        let (id, arn) = (&described.schema.id, described.arn.as_deref());
        let due = self.ids.lock().unwrap_or_else(PoisonError::into_inner).contains(id);
        if !due || !matches!(described.status.as_str(), "ACTIVE" | "") {
            return None;
        }
        let tagged = match foreign(registry, described).await {
            Ok(Some(problem)) => return Some(problem),
            Ok(None) => claim_now(registry, arn).await,
            Err(error) => Err(error),
        };
        match tagged {
            Ok(_) => {
                self.ids.lock().unwrap_or_else(PoisonError::into_inner).remove(id);
            }
            Err(error) => {
                tracing::debug!(table = described.schema.name, "not tagged with its registry yet: {error}");
            }
        }
        None
    }
}

fn written(registry: &Registry, answer: Result<Json, Error>) -> Result<bool, Error> {
    match answer {
        Ok(_) => Ok(true),
        Err(error) if has_none(registry, &error) => Ok(false),
        Err(error) => Err(error),
    }
}

/// Whether the store says that it has no tags, or none for these credentials. DynamoDB Local has
/// said so with the first two codes.
fn has_none(registry: &Registry, error: &Error) -> bool {
    match error.code {
        Code::UnknownOperationException => registry.without_tags(),
        Code::ValidationException | Code::AccessDeniedException => {}
        _ => return false,
    }
    say_none(&error.to_string());
    true
}

/// Logs once that this store has no tags.
fn say_none(why: &str) {
    static SAID: Once = Once::new();
    SAID.call_once(|| tracing::debug!("the tag {TAG} is neither written nor checked on this store: {why}"));
}
