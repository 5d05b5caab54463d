//! Pauses, resumes and cancels what is asked for.

use heatsink_control::reshard_intent::{Request, ReshardIntent, Subject, WantedLayout, key_text};
use heatsink_control::{KeyRecord, Move, Record};
use heatsink_dynamo::KeyType;
use heatsink_layout::{Moving, Phase, ValueLayout};
use heatsink_mover::{DEFAULT_RATE, never_narrower};
use serde_json::json;

use super::args::{One, Place};
use super::opened::Opened;
use super::told::{command, command_on, say, status_command, unread};
use super::value_words::{self, start_command};
use crate::exit::Exit;

/// What is to be changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    Pause,
    Resume,
    Cancel,
}

impl Change {
    const fn name(self) -> &'static str {
        match self {
            Change::Pause => "pause",
            Change::Resume => "resume",
            Change::Cancel => "cancel",
        }
    }
}

/// How often a change is tried again beside a gateway that writes how far it is.
const TRIES: usize = 50;

/// What was done.
enum Done {
    /// The intent says so, and its gateway does it.
    Asked,
    /// The intent is gone: nothing of it had begun.
    Removed,
}

/// Changes one reshard, or all of a table.
pub(super) async fn change(one: One, change: Change) -> Result<(), Exit> {
    let opened = Opened::at(&one.place).await?;
    let described = opened.registry.describe(&one.table).await.map_err(unread)?;
    let id = described.as_ref().map(|described| described.schema.id.clone());
    let intents = opened.registry.intents(true).await.map_err(unread)?;
    let meant: Vec<ReshardIntent> = intents
        .known
        .into_iter()
        .filter(|found| found.table == one.table || Some(&found.table_id) == id.as_ref())
        .filter(|found| {
            one.key.as_ref().is_none_or(|key| *key == found.key_text() && one.index == found.index)
        })
        .filter(|found| found.is_open() || change == Change::Cancel)
        .collect();
    let meant = match (&one.key, meant.is_empty()) {
        (Some(key), true) => match on_record(&opened, id.as_deref(), &one, key, change).await? {
            Some(intent) => vec![intent],
            None => {
                let of = match &one.index {
                    None => format!("the key {key:?}"),
                    Some(index) => format!("the value {key:?} of the index {index}"),
                };
                return Err(Exit::usage(format!("no reshard of {of} of table {} is asked for", one.table)));
            }
        },
        (None, true) => return Err(Exit::usage(format!("no reshard of table {} is asked for", one.table))),
        (_, false) => meant,
    };
    let (mut changed, mut removed, mut late, mut text) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let status = status_command(&one.table, &one.place);
    let mut next_steps = vec![status.clone()];
    for intent in meant {
        let (key, of) = (intent.key_text(), intent.subject().in_words());
        let resume = command_on("resume", &intent, &one.place);
        let there = Some(&intent.table_id) == id.as_ref();
        match apply(&opened, intent, there, change, &one.place).await? {
            Ok(Done::Asked) => {
                text.push(format!(
                    "{} is asked for, of the reshard of {of}. Follow it with: {status}",
                    change.name()
                ));
                if change == Change::Pause {
                    next_steps.push(resume);
                }
                changed.push(key);
            }
            Ok(Done::Removed) => {
                text.push(format!(
                    "the reshard of {of} is not asked for any more; nothing of it was under way"
                ));
                removed.push(key);
            }
            Err(why) if one.key.is_some() => return Err(Exit::failed(why)),
            Err(why) => late.push(why),
        }
    }
    let document = json!({
        "table": one.table, change.name(): changed, "removed": removed, "refused": late, "next_steps": next_steps,
    });
    text.extend(late);
    say(one.place.output, &document, &text.join("\n"))
}

/// Writes the change beside the gateway that may write at the same time. `there`: its table still exists. The inner error is why it is refused.
async fn apply(
    opened: &Opened,
    mut intent: ReshardIntent,
    there: bool,
    change: Change,
    place: &Place,
) -> Result<Result<Done, String>, Exit> {
    let registry = &opened.registry;
    for _ in 0..TRIES {
        let rests = !intent.begun && intent.carrier.is_none() || !intent.is_open();
        if change == Change::Cancel && there {
            let why = match &intent.index {
                Some(_) => {
                    let record = registry.read(&intent.table_id).await.map_err(unread)?;
                    value_too_late(record.as_ref(), &intent, place)
                }
                None => {
                    let record = registry.key_record(&intent.table_id, &intent.key, intent.key_type).await;
                    too_late(&intent.table, record.map_err(unread)?.as_ref(), place)
                }
            };
            if let Some(why) = why {
                return Ok(Err(why));
            }
        }
        let written = if change == Change::Cancel && rests {
            registry.remove_intent(&intent).await.map(|done| done.then_some(Done::Removed))
        } else {
            let mut next = intent.next();
            match change {
                Change::Pause => next.paused = true,
                Change::Resume => next.paused = false,
                Change::Cancel => next.cancelled = true,
            }
            registry.write_intent(Some(&intent), &next).await.map(|done| done.then_some(Done::Asked))
        };
        if let Some(done) = written.map_err(unread)? {
            return Ok(Ok(done));
        }
        match registry.intent_for(&intent.table_id, intent.subject()).await.map_err(unread)? {
            Some(found) if found.is_open() => intent = found,
            _ => {
                return Ok(Err(format!(
                    "the reshard of {} of table {} has just ended",
                    intent.subject().in_words(),
                    intent.table
                )));
            }
        }
    }
    Err(Exit::unavailable("The intent changes too fast to be written").retryable())
}

/// Why a key cannot be kept as it was, if it cannot: what to do instead.
fn too_late(table: &str, record: Option<&KeyRecord>, place: &Place) -> Option<String> {
    let record = record?;
    if let (None, Some(attributes)) = (&record.moves, record.layout.counter_attributes()) {
        let key = key_text(&record.key, record.key_type);
        let has = format!("The key {key:?} of table {table} has {} shards", record.layout.shards);
        // What was asked for before, or stopped before it began, is taken back.
        return (!record.settled).then(|| format!("{has}. {}", never_narrower(attributes)));
    }
    let steps = |moves: &Move| Moving::steps(&record.layout, &moves.to).is_some();
    let last = |moves: &Move| if steps(moves) { Phase::Reserve } else { Phase::Hold };
    let moves = record.moves.as_ref().filter(|moves| moves.phase > last(moves))?;
    let key = key_text(&record.key, record.key_type);
    if steps(moves) {
        return Some(format!(
            "Gateways know already that buckets to come of the key {key:?} of table {table} get {} shards. When this change has ended, another one takes its \
             place, if the first of them has not begun: `{} --shards {}`",
            moves.to.shards,
            command("start", table, &key, place),
            record.layout.shards
        ));
    }
    Some(format!(
        "The key {key:?} of table {table} has writes under its {} shards, so there is no way back but a second reshard. When this one has ended: `{} \
         --shards {}`. `{}` stops moving its items meanwhile",
        moves.to.shards,
        command("start", table, &key, place),
        record.layout.shards,
        command("pause", table, &key, place)
    ))
}

/// Why a value cannot be kept as it was, if it cannot: what to do instead.
fn value_too_late(record: Option<&Record>, intent: &ReshardIntent, place: &Place) -> Option<String> {
    let layout = value_words::of(record?, intent)?;
    let migration = layout.migration.filter(|migration| migration.writes_new)?;
    Some(format!(
        "{} of table {} is written in its {} shards, so there is no way back but a second reshard. When this one has ended: `{}`. `{}` stops rewriting its \
         items meanwhile",
        intent.subject().in_words(),
        intent.table,
        migration.to,
        start_command(&intent.table, &intent.key_text(), &layout.index.name, layout.shards, &place.words()),
        command_on("pause", intent, place)
    ))
}

/// The intent for a key that moves though none is on record, because a command with --here was killed: only a cancel has one.
async fn on_record(
    opened: &Opened,
    id: Option<&str>,
    one: &One,
    key: &str,
    change: Change,
) -> Result<Option<ReshardIntent>, Exit> {
    let table = one.table.as_str();
    let Some(id) = id.filter(|_| change == Change::Cancel) else { return Ok(None) };
    if let Some(index) = &one.index {
        return value_on_record(opened, id, one, key, index).await;
    }
    let records = opened.registry.key_records(id).await.map_err(unread)?;
    let text = |record: &KeyRecord| key_text(&record.key, record.key_type);
    let Some(record) = records.iter().find(|record| text(record) == key) else { return Ok(None) };
    let Some(moves) = &record.moves else { return Ok(None) };
    if let Some(why) = too_late(table, Some(record), &one.place) {
        return Err(Exit::failed(why));
    }
    let request = Request {
        layout: WantedLayout {
            counter: moves.to.counter_attributes().map(<[String]>::to_vec),
            ..moves.to.shards.into()
        },
        rate: DEFAULT_RATE,
        streams_confirmed: true,
        by: std::env::var("USER").unwrap_or_default(),
        asked: opened.env.unix_millis(),
    };
    let key: (&[u8], KeyType) = (&record.key, record.key_type);
    let intent = ReshardIntent { begun: true, ..opened.registry.new_intent((id, table), key, request) };
    let written = opened.registry.write_intent(None, &intent).await.map_err(unread)?;
    Ok(written.then_some(intent))
}

/// The same for a value of an index.
async fn value_on_record(
    opened: &Opened,
    id: &str,
    one: &One,
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
        by: std::env::var("USER").unwrap_or_default(),
        asked: opened.env.unix_millis(),
    };
    let key_type = layout.index.attribute.key_type;
    let subject = Subject { index: Some(index), key: &layout.value, key_type };
    let intent =
        ReshardIntent { begun: true, ..opened.registry.new_intent((id, &one.table), subject, request) };
    if let Some(why) = value_too_late(record.as_ref(), &intent, &one.place) {
        return Err(Exit::failed(why));
    }
    let written = opened.registry.write_intent(None, &intent).await.map_err(unread)?;
    Ok(written.then_some(intent))
}
