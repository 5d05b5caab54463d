//! What a cancel takes back though nobody asks for it on record: its intent is lost, or a command of
//! an older build that carried it out itself was killed.

use heatsink_control::KeyRecord;
use heatsink_control::reshard_intent::{Request, ReshardIntent, Subject, WantedLayout, key_text};
use heatsink_dynamo::KeyType;
use heatsink_layout::ValueLayout;
use heatsink_workers::DEFAULT_RATE;

use super::args::Steered;
use super::intents::user;
use super::keys::means;
use super::opened::Opened;
use super::told::unread;
use super::too_late;
use crate::exit::Exit;

/// The intent for a key that moves though none is on record: `id` is that of the table, for a cancel
/// alone.
///
/// # Errors
/// There is none, or it is too late: what is on record instead.
pub(super) async fn intent(
    opened: &Opened,
    (id, table): (Option<&str>, &str),
    one: &Steered,
    key: &str,
) -> Result<ReshardIntent, Exit> {
    let found = match (id, &one.index) {
        (None, _) => None,
        (Some(id), None) => of_key(opened, (id, table), one, key).await?,
        (Some(id), Some(index)) => of_value(opened, (id, table), one, key, index).await?,
    };
    found.ok_or_else(|| {
        let of = match &one.index {
            None => format!("the key {key:?}"),
            Some(index) => format!("the value {key:?} of the index {index}"),
        };
        Exit::usage(format!("no reshard of {of} of table {table} is asked for"))
    })
}

async fn of_key(
    opened: &Opened,
    (id, table): (&str, &str),
    one: &Steered,
    key: &str,
) -> Result<Option<ReshardIntent>, Exit> {
    let Some(of_table) = opened.registry.read(id).await.map_err(unread)?.filter(|record| record.keys > 0)
    else {
        return Ok(None);
    };
    let records = opened.registry.key_records(&of_table.id).await.map_err(unread)?;
    let is_meant = |record: &&KeyRecord| means(key, &record.key, record.key_type);
    let Some(record) = records.iter().find(is_meant) else { return Ok(None) };
    let at_rest = too_late::at_rest(table, record, &one.place);
    if let Some(why) = at_rest.or_else(|| too_late::of_key(table, Some(record), &one.place)) {
        return Err(Exit::failed(why));
    }
    let Some(moves) = &record.moves else { return Ok(None) };
    let request = Request {
        layout: WantedLayout::of(&moves.to),
        rate: DEFAULT_RATE,
        streams_confirmed: true,
        by: user(),
        asked: opened.env.unix_millis(),
    };
    let key: (&[u8], KeyType) = (&record.key, record.key_type);
    let intent = ReshardIntent { begun: true, ..opened.registry.new_intent((id, table), key, request) };
    let written = opened.registry.write_intent(None, &intent).await.map_err(unread)?;
    Ok(written.then_some(intent))
}

async fn of_value(
    opened: &Opened,
    (id, table): (&str, &str),
    one: &Steered,
    value: &str,
    index: &str,
) -> Result<Option<ReshardIntent>, Exit> {
    let record = opened.registry.read(id).await.map_err(unread)?;
    let of_index = |layout: &&ValueLayout| {
        layout.index.name == index && key_text(&layout.value, layout.index.attribute.key_type) == value
    };
    let Some(layout) = record.iter().flat_map(|record| &record.values).find(of_index) else {
        return Ok(None);
    };
    let Some(migration) = layout.migration else { return Ok(None) };
    let request = Request {
        layout: migration.to.into(),
        rate: DEFAULT_RATE,
        streams_confirmed: true,
        by: user(),
        asked: opened.env.unix_millis(),
    };
    let key_type = layout.index.attribute.key_type;
    let subject = Subject { index: Some(index), key: &layout.value, key_type };
    let intent = ReshardIntent { begun: true, ..opened.registry.new_intent((id, table), subject, request) };
    if let Some(why) = too_late::of_value(record.as_ref(), &intent, &one.place) {
        return Err(Exit::failed(why));
    }
    let written = opened.registry.write_intent(None, &intent).await.map_err(unread)?;
    Ok(written.then_some(intent))
}
