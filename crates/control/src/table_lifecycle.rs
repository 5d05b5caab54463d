//! Tables that are created and deleted through this gateway.
//!
//! Before a table is created, its name is reserved and every gateway knows it. From then on no
//! request that was planned for an earlier table of the name is in flight, and no gateway forwards
//! requests for the name. The record is written before the first request can be planned.

use heatsink_dynamo::{Code, Error, KeyType, Operation, Outcome, TableSchema};

use crate::claim::{self, Claim, ClaimError};
use crate::describe::Described;
use crate::in_progress::InProgressGuard;
use crate::inner::Inner;
use crate::key_record::{FEW_KEYS, KeyRecord};
use crate::name::{Holder, NameEntry};
use crate::record::{Record, State};
use crate::rules::DesiredLayout;
use crate::table_cache::not_found;
use heatsink_layout::TableLayouts;

/// A reserved name of a table about to be created.
#[derive(Debug)]
pub struct Intent {
    entry: NameEntry,
    layouts: TableLayouts,
    _begun: InProgressGuard,
}

/// Reserves the name of a table that a client wants to create. `None` if no gateway could mistake
/// the table for another one.
///
/// # Errors
/// Retryable, when layouts cannot change now.
pub(crate) async fn intend(inner: &Inner, schema: &TableSchema) -> Result<Option<Intent>, Error> {
    let layouts = match inner.rules.load().desired_layout(schema) {
        DesiredLayout::Sharded(layouts) => layouts,
        _ if inner.fence.sees_no_registry() => return Ok(None),
        _ => TableLayouts::default(),
    };
    let name = &schema.name;
    let before = inner.registry.entry(name).await?;
    if layouts.is_empty() && before.is_none() {
        return Ok(None);
    }
    if inner.registry.describe(name).await?.is_some() {
        // The store refuses it.
        return Ok(None);
    }
    let another =
        || Error::unavailable(format!("A table with the name {name} is being created"), Outcome::NotDone);
    if let Some(NameEntry { holder: Holder::Intent { by: Some(by), .. }, version, .. }) = &before
        && inner.goes_on(by, name, *version).await?
    {
        return Err(another());
    }
    inner.changer.begin().await?;
    inner.registry.make_directory(&layouts).await?;
    let holder = Holder::Intent {
        layouts: told(schema, &layouts),
        by: Some(inner.fence.id().to_owned()),
        former: before.as_ref().and_then(NameEntry::id).map(str::to_owned),
    };
    let entry = inner.registry.entry_after(before.as_ref(), name, holder);
    let begun = inner.in_progress.begin(entry.version);
    if !inner.registry.enter(before.as_ref(), &entry).await? {
        return Err(another());
    }
    inner.announce(name, entry.version).await?;
    Ok(Some(Intent { entry, layouts, _begun: begun }))
}

/// The layouts that a gateway gives the table which finds it where its creator has gone. Of numbers
/// none are told: an older build would record them in a form that says nothing of numbers. The first
/// request for the table records it.
fn told(schema: &TableSchema, layouts: &TableLayouts) -> TableLayouts {
    match schema.key.partition.key_type {
        KeyType::S | KeyType::B => layouts.clone(),
        KeyType::N => TableLayouts::default(),
    }
}

/// Follows the store's answer to the CreateTable.
pub(crate) async fn made(
    inner: &Inner,
    intent: Intent,
    made: Result<&Described, &Error>,
) -> Result<(), Error> {
    let Intent { entry, layouts, _begun } = intent;
    match made {
        Ok(described) if !layouts.is_empty() => {
            let record = inner.registry.first_record(described, layouts, false);
            // If another gateway took this one for dead, the name still belongs to this table: the
            // store has just said so.
            let mut entry = Some(entry);
            while let Some(held) = entry {
                match inner.registry.create(Some(&held), &record).await {
                    Ok(created) => {
                        if created == record {
                            // No request is planned for a reserved name, so there is nothing to
                            // publish.
                            inner.untagged.add(&record.id);
                        }
                        return Ok(());
                    }
                    Err(error) => {
                        entry = inner.registry.entry(&record.name).await?;
                        if entry.as_ref() == Some(&held) || error.outcome == Outcome::Unknown {
                            return Err(error);
                        }
                    }
                }
            }
        }
        // The table may exist: a gateway that finds it records it, and need not wait for this one.
        Err(error) if error.outcome == Outcome::Unknown => {
            let former = entry.id().map(str::to_owned);
            let layouts = match &entry.holder {
                Holder::Intent { layouts, .. } => layouts.clone(),
                Holder::Bound { .. } | Holder::Free => layouts,
            };
            let unknown = entry.held(Holder::Intent { layouts, by: None, former });
            inner.registry.enter(Some(&entry), &unknown).await?;
        }
        _ => {
            let next = match made {
                Ok(described) => entry.held(Holder::Bound { id: described.schema.id.clone() }),
                Err(_) => entry.given_back(),
            };
            if inner.registry.enter(Some(&entry), &next).await? {
                inner.publish(&entry.name, next.version).await?;
            }
        }
    }
    Ok(())
}

/// A recorded table that is about to be deleted.
#[derive(Debug)]
pub struct Deletion {
    before: Record,
    deleting: Record,
    _begun: InProgressGuard,
}

/// Makes every gateway stop sending to a table before it is deleted: requests that were planned for
/// it must not reach another table of its name. `None` for a table that is not recorded.
///
/// # Errors
/// Retryable, when layouts cannot change now.
pub(crate) async fn intend_deletion(inner: &Inner, name: &str) -> Result<Option<Deletion>, Error> {
    if inner.fence.sees_no_registry() {
        return Ok(None);
    }
    let Some(described) = inner.registry.describe(name).await? else { return Ok(None) };
    let Some(found) = inner.registry.read(&described.schema.id).await? else { return Ok(None) };
    let before = Record { state: State::Active, ..found.clone() };
    let deleting = match found.state {
        State::Active => {
            let by = inner.fence.id().to_owned();
            Record { state: State::Deleting { by }, version: found.version + 1, ..found }
        }
        // Another request deletes it, or did so in a gateway that has stopped: this request waits
        // as long.
        State::Deleting { .. } => found,
        // In a table that is made again under the name, who rewrites or moves items would go on.
        State::MigratingIndexKeys(_) | State::ChangingKeys(_) | State::Adopting(_) | State::Returning(_) => {
            return Err(Error::unavailable(
                format!(
                    "`heatsink adopt {name}` is moving items of table {name} or rewriting keys of its indexes. Delete the table when that has ended; if it was \
                     interrupted, run it again, or bring the table back with --back"
                ),
                Outcome::NotDone,
            ));
        }
        State::Pending | State::Gone => return Ok(None),
    };
    inner.changer.begin().await?;
    let begun = inner.in_progress.begin(deleting.version);
    if deleting.version != before.version && !inner.registry.replace(&before, &deleting).await? {
        return Err(changed_by_another(name));
    }
    let (deleting, moving) = shut_movers_out(inner, deleting).await?;
    let begun = if moving.is_empty() { begun } else { inner.in_progress.begin(deleting.version) };
    let before = Record { keys: deleting.keys, ..before };
    inner.announce(name, deleting.version).await?;
    for key in &moving {
        claim::end_of_key(&inner.registry, &deleting.id, key).await?;
    }
    if claim::is_held(&inner.registry, &deleting.id).await? {
        // A worker that is slow, or paused, would go on in a table that is made under the name
        // afterwards.
        end_workers(inner, &deleting).await?;
    }
    // DeleteTable takes only names. While this waited the table may have been deleted, and another
    // one created under its name.
    let described = inner.registry.describe(name).await?;
    if described.is_none_or(|described| described.schema.id != deleting.id) {
        return Err(not_found());
    }
    Ok(Some(Deletion { before, deleting, _begun: begun }))
}

fn changed_by_another(name: &str) -> Error {
    Error::unavailable(format!("Table {name} is being changed by another gateway"), Outcome::NotDone)
}

/// Writes the records of keys that move once more, as they are: no worker that read them before can
/// claim one of these keys any more. Returns the table's record and theirs.
async fn shut_movers_out(inner: &Inner, mut table: Record) -> Result<(Record, Vec<KeyRecord>), Error> {
    let mut shut = Vec::new();
    if table.keys == 0 {
        return Ok((table, shut));
    }
    let mut moving = inner.registry.key_records(&table.id).await?;
    moving.retain(|key| key.moves.is_some());
    for some in moving.chunks(FEW_KEYS) {
        let next = some.iter().map(|key| KeyRecord { version: key.version + 1, ..key.clone() });
        let next: Vec<KeyRecord> = next.collect();
        let keys: Vec<_> = some.iter().map(Some).zip(&next).collect();
        for written in inner.registry.replace_keys(&table, &keys).await? {
            let Some((record, key)) = written else { return Err(changed_by_another(&table.name)) };
            if record.version > table.version {
                table = record;
            }
            shut.push(key);
        }
    }
    Ok((table, shut))
}

/// Ends the claims of workers on a table: nothing that they have sent or will send lands.
async fn end_workers(inner: &Inner, record: &Record) -> Result<(), Error> {
    let ended = match Claim::take(&inner.registry, record, 1).await {
        Ok(claim) => claim.end().await,
        Err(error) => Err(error),
    };
    ended.map_err(|error| match error {
        ClaimError::Store(error) => error,
        ClaimError::TakenOver(message) => Error::unavailable(message, Outcome::NotDone),
    })
}

/// Follows the store's answer to a deletion. The record says GONE while descriptions may still show
/// the table.
pub(crate) async fn deleted(
    inner: &Inner,
    deletion: Deletion,
    done: Result<(), &Error>,
) -> Result<(), Error> {
    let Deletion { before, deleting, _begun } = deletion;
    let version = deleting.version + 1;
    match done {
        // The table may be gone, or be deleted later. A gateway that finds it treats it as one that
        // was not deleted.
        Err(error) if error.outcome == Outcome::Unknown => return Ok(()),
        Err(error) if error.code != Code::ResourceNotFoundException => {
            inner.registry.replace(&deleting, &Record { version, ..before }).await?;
        }
        // Or another request has deleted it.
        _ => {
            let gone = Record { state: State::Gone, version, ..before };
            if !inner.registry.replace(&deleting, &gone).await? {
                // Another gateway took this one for dead, and kept the table.
                return inner.announce(&deleting.name, version).await;
            }
        }
    }
    inner.publish(&deleting.name, version).await?;
    Ok(())
}

/// Whether a table operation needs the table's layouts to be known before it is sent.
pub(crate) fn needs_layouts(operation: Operation) -> bool {
    matches!(operation, Operation::UpdateTimeToLive | Operation::UpdateTable)
}
