//! Pauses, resumes and cancels what is asked for.

use heatsink_control::reshard_intent::{EndedAs, ReshardIntent};
use heatsink_workers::is_wanted;
use serde_json::json;

use super::args::{Place, Steered};
use super::keys::means;
use super::opened::Opened;
use super::told::{command_on, say, status_of, unread};
use super::{on_record, too_late};
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
    /// The intent is gone: nothing of it is under way. The words say what had become of it.
    Removed(&'static str),
}

/// Changes the reshards of some keys, or all of a table, or all.
pub(super) async fn change(one: Steered, change: Change) -> Result<(), Exit> {
    let opened = Opened::at(&one.place).await?;
    let id = match &one.table {
        Some(table) => table_id(&opened, table).await?,
        None => None,
    };
    let intents = opened.registry.intents(true).await.map_err(unread)?;
    let of_table = |found: &ReshardIntent| {
        one.table.as_ref().is_none_or(|table| *table == found.table) || Some(&found.table_id) == id.as_ref()
    };
    let names = |found: &ReshardIntent, key: &String| {
        means(key, &found.key, found.key_type) && one.index == found.index
    };
    let named = !one.key.is_empty();
    let mut meant: Vec<ReshardIntent> = intents
        .known
        .into_iter()
        .filter(of_table)
        .filter(|found| !named || one.key.iter().any(|key| names(found, key)))
        .filter(|found| found.is_open() || change == Change::Cancel && (named || stopped(found)))
        .collect();
    let (mut changed, mut removed, mut late, mut text) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    if let Some(table) = &one.table {
        let of_cancel = id.as_deref().filter(|_| change == Change::Cancel);
        for key in &one.key {
            if meant.iter().any(|found| names(found, key)) {
                continue;
            }
            match on_record::intent(&opened, (of_cancel, table), &one, key).await {
                Ok(intent) => meant.push(intent),
                Err(why) if one.key.len() == 1 => return Err(why),
                Err(why) => late.push(why.to_string()),
            }
        }
    }
    if meant.is_empty() && late.is_empty() {
        return Err(Exit::usage(match &one.table {
            Some(table) => format!("no reshard of table {table} is asked for"),
            None => "no reshard is asked for".to_owned(),
        }));
    }
    let status = status_of(one.table.as_deref(), &one.place);
    let mut next_steps = vec![status.clone()];
    for intent in meant {
        let key = intent.key_text();
        let of = match one.table {
            Some(_) => intent.subject().in_words(),
            None => format!("{} of table {}", intent.subject().in_words(), intent.table),
        };
        let resume = command_on("resume", &intent, &one.place);
        let there = match &one.table {
            Some(_) => id.clone(),
            None => table_id(&opened, &intent.table).await?,
        };
        let there = there.as_ref() == Some(&intent.table_id);
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
            Ok(Done::Removed(was)) => {
                text.push(format!("the reshard of {of} is not asked for any more; {was}"));
                removed.push(key);
            }
            Err(why) if one.key.len() == 1 => return Err(Exit::failed(why)),
            Err(why) => late.push(why),
        }
    }
    let document = json!({
        "table": one.table, change.name(): changed, "removed": removed, "refused": late, "next_steps": next_steps,
    });
    text.extend(late);
    say(one.place.output, &document, &text.join("\n"))
}

/// The id of a table, if there is one of the name.
async fn table_id(opened: &Opened, table: &str) -> Result<Option<String>, Exit> {
    let described = opened.registry.describe(table).await.map_err(unread)?;
    Ok(described.map(|described| described.schema.id))
}

fn stopped(intent: &ReshardIntent) -> bool {
    intent.ended.as_ref().is_some_and(|ended| ended.how == EndedAs::Stopped)
}

/// Writes the change beside the gateway that may write at the same time. `there`: its table still
/// exists. The inner error is why it is refused.
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
        let was = match &intent.ended {
            Some(ended) if change == Change::Cancel && there && ended.how == EndedAs::Moved => {
                // What it came to may have been changed since.
                let record = match &intent.index {
                    Some(_) => None,
                    None => {
                        let read = registry.key_record(&intent.table_id, &intent.key, intent.key_type).await;
                        read.map_err(unread)?
                    }
                };
                let since = record
                    .filter(|record| !is_wanted(&record.layout, &intent.request.layout))
                    .and_then(|record| too_late::at_rest(&intent.table, &record, place));
                let why = since.unwrap_or_else(|| too_late::after_the_end(&intent, &ended.text, place));
                return Ok(Err(why));
            }
            Some(ended) if ended.how == EndedAs::Cancelled => "it had been cancelled already",
            Some(_) => "it had ended",
            None => "nothing of it was under way",
        };
        if change == Change::Cancel && there {
            let why = match &intent.index {
                Some(_) => {
                    let record = registry.read(&intent.table_id).await.map_err(unread)?;
                    too_late::of_value(record.as_ref(), &intent, place)
                }
                None => {
                    let record = registry.key_record(&intent.table_id, &intent.key, intent.key_type).await;
                    too_late::of_key(&intent.table, record.map_err(unread)?.as_ref(), place)
                }
            };
            if let Some(why) = why {
                return Ok(Err(why));
            }
        }
        let written = if change == Change::Cancel && rests {
            registry.remove_intent(&intent).await.map(|done| done.then_some(Done::Removed(was)))
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
            Some(found) if found.is_open() || change == Change::Cancel => intent = found,
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
