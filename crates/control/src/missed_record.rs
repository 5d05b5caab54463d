//! Whether any table of a store was on record and has no record: asked of each table before a store
//! is said to hold nothing that is sharded.
//!
//! Not here: the signs (`lost_registry`).

use std::time::Duration;

use heatsink_dynamo::Error;
use heatsink_layout::DIRECTORY;

use crate::describe::Described;
use crate::lost_registry::{self, Sign};
use crate::registry::Registry;
use crate::tags;

/// How often a table is asked that does not answer, and the first pause before that.
const ATTEMPTS: u32 = 6;
const AGAIN: Duration = Duration::from_millis(200);

/// Why a store whose registry is missing, or says nothing, may hold items in shards all the same;
/// `None` where no table shows a sign. Reads the tag and the first items of each table without a
/// record.
///
/// # Errors
/// The store's; retryable where a table could not be asked.
pub async fn of_any_table(registry: &Registry) -> Result<Option<String>, Error> {
    // Beside a registry that is there, tables of another one are that one's affair.
    let there = registry.exists().await?;
    for described in without_record(registry).await? {
        let sign = sign_of(registry, &described).await?;
        if let Some(sign) = sign.filter(|sign| !there || !sign.is_of_another(registry.name())) {
            return Ok(Some(sign.refusal(&described.schema.name, registry.name())));
        }
    }
    Ok(None)
}

/// The tables of the store, in the order of names, that have no record in this registry.
///
/// # Errors
/// The store's.
pub(crate) async fn without_record(registry: &Registry) -> Result<Vec<Described>, Error> {
    let recorded: Vec<String> = registry.all().await?.into_iter().map(|record| record.id).collect();
    let mut names: Vec<String> = registry.tables().await?.into_iter().collect();
    names.sort_unstable();
    names.retain(|name| ![registry.name(), DIRECTORY].contains(&&**name));
    let mut found = Vec::new();
    for name in names {
        let described = registry.describe(&name).await?;
        found.extend(described.filter(|described| !recorded.contains(&described.schema.id)));
    }
    Ok(found)
}

/// The sign that a table without a record shows, where everything could be asked.
///
/// # Errors
/// The store's; retryable where it could not.
pub(crate) async fn sign_of(registry: &Registry, described: &Described) -> Result<Option<Sign>, Error> {
    let (name, id) = (&described.schema.name, &described.schema.id);
    // Who took its record off left the entry of its name.
    let left = registry.entry(name).await?.is_some_and(|entry| entry.id() == Some(id));
    for attempt in 1..=ATTEMPTS {
        let sign = match left {
            true => lost_registry::of_named(registry, described).await,
            false => lost_registry::of_table(registry, described).await,
        };
        let unsaid = registry.expectation().required == Some(false) || registry.is_unsharded(id);
        if sign.is_some() || unsaid {
            return Ok(sign);
        }
        registry.env().sleep(AGAIN * attempt).await;
    }
    // What kept it from being asked the store says itself.
    tags::check(registry, described.arn.as_deref(), registry.name()).await?;
    lost_registry::traces(registry, described).await?;
    Ok(lost_registry::of_table(registry, described).await)
}
