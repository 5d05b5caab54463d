//! First use: records an empty table, so that no gateway treats it as unsharded when the first item
//! arrives.
//!
//! The record is PENDING first. While it is, no gateway sends requests to the table. When every
//! gateway knows, and a second look finds the table still empty, the record becomes ACTIVE. A
//! gateway that finds a PENDING record without progress continues the work; every step can be
//! repeated.

use std::time::Duration;

use futures::future::join;
use heatsink_dynamo::{Error, Outcome, TableSchema};

use crate::describe::{Described, out_of_date};
use crate::inner::Inner;
use crate::name::{Holder, NameEntry};
use crate::record::{Record, State};
use heatsink_layout::TableLayouts;

/// How often a gateway checks whether another one has finished.
const LOOK: Duration = Duration::from_millis(50);

/// Records an empty table.
pub(crate) async fn begin(
    inner: &Inner,
    described: &Described,
    layouts: TableLayouts,
    entry: Option<&NameEntry>,
) -> Result<(), Error> {
    inner.changer.begin().await?;
    inner.registry.make_directory(&layouts).await?;
    let record = Record { state: State::Pending, ..inner.registry.first_record(described, layouts, false) };
    let record = inner.registry.create(entry, &record).await?;
    if record.state == State::Pending { go_on(inner, &record).await } else { Ok(()) }
}

/// Waits for another gateway to finish what it began, and continues it if it does not.
pub(crate) async fn help(inner: &Inner, record: Record) -> Result<(), Error> {
    if let State::Deleting { by } = &record.state {
        return stay(inner, &record, by).await;
    }
    let env = inner.registry.env();
    let settings = &inner.fence.settings;
    let patience = if settings.exclusive { Duration::ZERO } else { settings.bounds.poll * 2 };
    let begun = env.now();
    while env.now().since(begun) < patience {
        env.sleep(LOOK).await;
        if inner.registry.read(&record.id).await?.as_ref() != Some(&record) {
            return Ok(());
        }
    }
    inner.changer.may_go_on()?;
    go_on(inner, &record).await
}

/// Keeps a table that still exists and whose deleting gateway has gone.
async fn stay(inner: &Inner, record: &Record, by: &str) -> Result<(), Error> {
    if inner.goes_on(by, &record.name, record.version).await? {
        return Err(Error::unavailable(format!("Table {} is being deleted", record.name), Outcome::NotDone));
    }
    inner.changer.may_go_on()?;
    let active = Record { state: State::Active, version: record.version + 1, ..record.clone() };
    if inner.registry.replace(record, &active).await? {
        inner.publish(&record.name, active.version).await?;
    }
    Ok(())
}

/// Records a table that a gateway created, or was about to create, when it stopped.
pub(crate) async fn take_over(inner: &Inner, described: &Described, intent: NameEntry) -> Result<(), Error> {
    let Holder::Intent { layouts, by, former } = &intent.holder else { return Ok(()) };
    // Its creator may be about to bind the name, and the description may be of the table before it.
    if let Some(by) = by
        && inner.goes_on(by, &intent.name, intent.version).await?
    {
        inner.registry.env().sleep(LOOK).await;
        return match inner.registry.entry(&intent.name).await?.as_ref() == Some(&intent) {
            true => Err(Error::unavailable(
                format!("Table {} is being created by another gateway", intent.name),
                Outcome::NotDone,
            )),
            false => Ok(()),
        };
    }
    inner.changer.begin().await?;
    // It may have stopped before every gateway knew the intent, and some may still plan for the
    // former table.
    if by.is_some() {
        inner.announce(&intent.name, intent.version).await?;
    }
    let id = &described.schema.id;
    let next = if inner.registry.read(id).await?.is_some_and(|record| record.state != State::Gone) {
        // No other table was created.
        intent.held(Holder::Bound { id: id.clone() })
    } else {
        if let Some(former) = former
            && let Some(former) = inner.registry.read(former).await?
            && described.is_before(&former)
        {
            return Err(out_of_date(&intent.name));
        }
        match inner.registry.is_empty(&intent.name).await? {
            true if layouts.is_empty() => intent.held(Holder::Bound { id: id.clone() }),
            true => return begin(inner, described, layouts.clone(), Some(&intent)).await,
            // The items may have been meant for the former table.
            false => intent.given_back(),
        }
    };
    if inner.registry.enter(Some(&intent), &next).await? {
        inner.announce(&intent.name, next.version).await?;
    }
    Ok(())
}

async fn go_on(inner: &Inner, record: &Record) -> Result<(), Error> {
    inner.announce(&record.name, record.version).await?;
    let described = inner.registry.describe(&record.name);
    let (described, empty) = join(described, inner.registry.is_empty(&record.name)).await;
    let described = described?;
    if described.is_none_or(|described| described.schema.id != record.id) {
        return Err(Error::unavailable(
            format!("Table {} was deleted, or created again, while it was being recorded", record.name),
            Outcome::NotDone,
        ));
    }
    if has_counters(&record.layouts) && inner.registry.expires(&record.name).await? {
        drop_it(inner, record).await?;
        return Err(Error::validation(format!(
            "Table {} has time to live enabled, which deletes counters in parts, so the rules cannot hold for it. Turn it off, or take the \
             table out of the rules",
            record.name
        )));
    }
    if !empty? {
        return drop_it(inner, record).await;
    }
    // No request is planned while the record is PENDING, so there is nothing to publish.
    let active = Record { state: State::Active, version: record.version + 1, ..record.clone() };
    if inner.registry.replace(record, &active).await? {
        inner.untagged.add(&record.id);
    }
    Ok(())
}

/// Takes the name from a recorded table that does not exist any more, for an empty table without a
/// rule. First every gateway drops the former table: requests planned for it would be written to
/// this one. From then on its record, which stands, holds for no table of this name.
pub(crate) async fn take_name(inner: &Inner, schema: &TableSchema, entry: &NameEntry) -> Result<(), Error> {
    inner.changer.begin().await?;
    let by = Some(inner.fence.id().to_owned());
    let former = entry.id().map(str::to_owned);
    let intent = entry.held(Holder::Intent { layouts: TableLayouts::default(), by, former });
    let _begun = inner.in_progress.begin(intent.version);
    if !inner.registry.enter(Some(entry), &intent).await? {
        return Ok(());
    }
    inner.announce(&intent.name, intent.version).await?;
    let next = match inner.registry.is_empty(&intent.name).await? {
        true => intent.held(Holder::Bound { id: schema.id.clone() }),
        false => intent.given_back(),
    };
    inner.registry.enter(Some(&intent), &next).await?;
    Ok(())
}

/// Removes the record of a table that is not empty any more. If its name was that of a recorded
/// table, the name goes back to that table: the items may have been meant for it, so no gateway may
/// treat them as unsharded.
async fn drop_it(inner: &Inner, record: &Record) -> Result<(), Error> {
    let before = |one: &Record| one.name == record.name && one.id != record.id && one.state != State::Gone;
    let former = inner.registry.all().await?.into_iter().filter(before).max_by_key(|one| one.created);
    let entry = inner.registry.entry(&record.name).await?;
    let removed = match (former, entry) {
        (Some(former), Some(entry)) if entry.holder == (Holder::Bound { id: record.id.clone() }) => {
            // In one step: otherwise another gateway could find the table still empty, and record
            // it for good.
            let given_back = entry.held(Holder::Bound { id: former.id });
            inner.registry.remove_with_name(record, &entry, &given_back).await?
        }
        _ => inner.registry.remove(record).await?,
    };
    if removed {
        inner.publish(&record.name, record.version + 1).await?;
    }
    Ok(())
}

fn has_counters(layouts: &TableLayouts) -> bool {
    layouts.iter().any(|one| one.layout().counter_attributes().is_some())
}
