//! Says how far reshards are, and which keys are on record.

use heatsink_control::KeyRecord;
use heatsink_control::reshard_intent::{
    EndedAs, Intents, MAX_INTENTS, ReshardIntent, UnderWay, WantedLayout, key_text,
};
use heatsink_dynamo::display::inert;
use heatsink_layout::{Layout, in_slots, shards};
use heatsink_workers::NewestStep;
use serde_json::{Value as Json, json};

use super::args::{Place, Status, words};
use super::opened::Opened;
use super::summary;
use super::told::{command, command_on, phase_name, say, unread};
use super::value_words::start_command;
use super::{unasked, value_words};
use crate::exit::Exit;

/// How many of a kind are listed for people.
const LISTED: usize = 200;

/// Lists them.
pub(super) async fn list(status: Status) -> Result<(), Exit> {
    let opened = Opened::at(&status.place).await?;
    let registry = &opened.registry;
    let Intents { mut known, unknown, next } = registry.intents(true).await.map_err(unread)?;
    let mut unreadable: Vec<String> = unknown.iter().map(ToString::to_string).collect();
    let (mut records, mut values) = (Vec::new(), Vec::new());
    let left = match &status.table {
        None => unasked::of_all(&opened, &known).await.unwrap_or_else(|error| {
            unreadable.push(error.to_string());
            Vec::new()
        }),
        Some(table) => {
            known.retain(|one| one.table == *table);
            let Some(described) = registry.describe(table).await.map_err(unread)? else {
                return Err(Exit::usage(format!("there is no table {table}")));
            };
            let id = described.schema.id;
            let recorded = registry.read(&id).await.map_err(unread)?;
            if recorded.as_ref().is_some_and(|record| record.keys > 0) {
                records = registry.key_records(&id).await.map_err(unread)?;
            }
            values = recorded.map(|record| record.values).unwrap_or_default();
            let of_table = UnderWay::of((&id, table), records.iter().cloned(), values.iter().cloned());
            vec![unasked::without(of_table, &known)]
        }
    };
    known.sort_by_key(|one| (one.table.clone(), one.request.asked));
    let now = opened.env.unix_millis();
    let mut next_steps = next_steps(&known, &status.place);
    next_steps.extend(unasked::next_steps(&left, &status.place));
    let summaries = summary::of(&known);
    let mut document = json!({
        "reshards": known.iter().map(asked).collect::<Vec<_>>(), "unasked": unasked::told(&left, recorded), "unreadable": unreadable,
        "more": next.is_some(), "tables": summaries, "next_steps": next_steps,
    });
    let mut text: Vec<String> = summaries.iter().map(summary::Summary::line).collect();
    text.extend(known.iter().take(LISTED).map(|one| asked_line(one, now)));
    if known.len() > LISTED {
        text.push(format!("and {} others; `--output json` lists them", known.len() - LISTED));
    }
    if next.is_some() {
        text.push(format!("more than {MAX_INTENTS} reshards are asked for; the others are not listed"));
    }
    if let Some(table) = &status.table {
        document["table"] = json!(table);
        document["keys"] = records.iter().map(recorded).collect();
        document["values"] = values.iter().map(value_words::recorded).collect();
        text.extend(records.iter().map(recorded_line));
        text.extend(values.iter().map(value_words::recorded_line));
        if records.is_empty() {
            text.push(format!("no key of table {table} is on record by itself"));
        }
    } else if known.is_empty() {
        text.push("no reshard is asked for".to_owned());
    }
    text.extend(unasked::lines(&left, recorded_line).into_iter().take(LISTED));
    text.extend(unreadable.into_iter().take(LISTED));
    text.extend(next_steps.iter().take(LISTED).map(|step| format!("Next: {step}")));
    say(status.place.output, &document, &text.join("\n"))
}

/// What an operator may want to do about them.
fn next_steps(intents: &[ReshardIntent], place: &Place) -> Vec<String> {
    let mut steps = Vec::new();
    for one in intents {
        let (key, wanted) = (one.key_text(), &one.request.layout);
        match (&one.ended, &one.index) {
            (Some(ended), None) if ended.how == EndedAs::Stopped => {
                steps.push(format!("{} {}", command("start", &one.table, &key, place), words(wanted)));
            }
            (Some(ended), Some(index)) if ended.how == EndedAs::Stopped => {
                steps.push(start_command(&one.table, &key, index, wanted.shards, &place.words()));
            }
            (None, _) if one.paused => steps.push(command_on("resume", one, place)),
            _ => {}
        }
    }
    steps
}

fn asked(one: &ReshardIntent) -> Json {
    let progress = &one.progress;
    let left = progress.to_move.map(|all| all.saturating_sub(progress.moved));
    let seconds = left.filter(|_| progress.per_second > 0).map(|left| left / progress.per_second.max(1));
    json!({
        "table": one.table, "index": one.index, "key": one.key_text(), "shards": one.request.layout.shards, "by": one.request.layout.by,
        "counter": one.request.layout.counter, "slots": one.request.layout.slots, "asked_by": one.request.by,
        "asked": one.request.asked, "rate": one.request.rate, "paused": one.paused, "cancelled": one.cancelled,
        "gateway": one.carrier.as_ref().map(|carrier| json!({ "id": carrier.gateway, "name": carrier.name })), "phase": progress.phase,
        "items_moved": progress.moved, "items_to_move": progress.to_move, "items_per_second": progress.per_second, "seconds_left": seconds,
        "hindered": progress.hindered, "ended": one.ended,
    })
}

fn asked_line(one: &ReshardIntent, now: u64) -> String {
    let (asked, progress) = (one.request.layout.in_words(), &one.progress);
    let of = match &one.index {
        None => format!("{:?}", one.key_text()),
        Some(index) => format!("{:?} of the index {index}", one.key_text()),
    };
    let ago = now.saturating_sub(one.request.asked) / 1000;
    let mut text = format!("{}, {of}: {asked} asked for {ago} s ago", one.table);
    if let Some(ended) = &one.ended {
        let how = match ended.how {
            EndedAs::Moved => "done",
            EndedAs::Cancelled => "cancelled",
            EndedAs::Stopped => "stopped",
        };
        return format!("{text}; {how}: {}", inert(&ended.text));
    }
    if one.paused {
        text.push_str("; paused");
    }
    if one.cancelled {
        text.push_str("; being cancelled");
    }
    match &one.carrier {
        Some(carrier) if carrier.name.is_empty() => {
            text.push_str(&format!("; carried out by the gateway {}", inert(&carrier.gateway)));
        }
        Some(carrier) => text.push_str(&format!("; carried out by {}", inert(&carrier.name))),
        None => text.push_str("; waits for a gateway"),
    }
    if let Some(phase) = progress.phase {
        text.push_str(&format!("; phase {}", phase_name(phase)));
    }
    if progress.moved > 0 {
        let what = if one.index.is_some() { "rewritten" } else { "moved" };
        // What was counted is done: the walk begins anew, until a whole one finds nothing.
        let (of, rest) = match progress.to_move {
            Some(all) if progress.moved < all => (format!(" of about {all}"), ""),
            Some(_) => (String::new(), "; it looks for items that are left"),
            None => (String::new(), ""),
        };
        let (done, speed) = (progress.moved, progress.per_second);
        text.push_str(&format!("; {done}{of} items {what}, {speed} a second{rest}"));
    }
    if let Some(why) = &progress.hindered {
        text.push_str(&format!("; {}", inert(why)));
    }
    text
}

fn recorded(record: &KeyRecord) -> Json {
    let moves = record
        .moves
        .as_ref()
        .map(|moves| json!({ "to": moves.to.shards, "slots": slots(&moves.to), "phase": moves.phase, "time_to_live": moves.expires }));
    json!({
        "key": key_text(&record.key, record.key_type), "shards": record.layout.shards, "slots": slots(&record.layout), "reserved": record.reserved, "moves": moves,
        "settled": record.settled, "changed": record.changed, "counter": counted(record), "step": step(record),
    })
}

/// The slots by name of a layout.
fn slots(layout: &Layout) -> Option<&[u16]> {
    Some(layout.slots()).filter(|slots| !slots.is_empty())
}

/// From when on its buckets have, or get, their newest number of shards.
fn step(record: &KeyRecord) -> Option<NewestStep> {
    NewestStep::of(record.moves.as_ref().map_or(&record.layout, |moves| &moves.to))
}

/// The numbers of a counter, or of a key that becomes or was one.
fn counted(record: &KeyRecord) -> Option<&[String]> {
    let to = record.moves.as_ref().and_then(|moves| moves.to.counter_attributes());
    to.or(record.layout.counter_attributes())
}

fn recorded_line(record: &KeyRecord) -> String {
    let key = key_text(&record.key, record.key_type);
    let has = WantedLayout::of(&record.layout).in_words();
    if let Some(counter) = counted(record) {
        let names = counter.iter().map(|name| inert(name).into_owned()).collect::<Vec<_>>().join(", ");
        return match &record.moves {
            Some(moves) => format!(
                "{key:?}: a counter of {names}, goes from {has} to {}, phase {}",
                moves.to.shards,
                phase_name(moves.phase)
            ),
            None if record.settled => format!("{key:?}: a counter of {names}, {has}"),
            None => format!(
                "{key:?}: a counter of {names}, {has}; late requests of its last change are waited for"
            ),
        };
    }
    if let Some(step) = step(record) {
        return match &record.moves {
            Some(moves) => {
                format!("{key:?}: gets {} {step}; phase {}", shards(moves.to.shards), phase_name(moves.phase))
            }
            None => format!("{key:?}: {has} {step}"),
        };
    }
    match &record.moves {
        Some(moves) => {
            let expires = moves.expires.as_ref().map(|attribute| {
                format!("; puts with the attribute {attribute:?} (time to live) bring their item over first")
            });
            let expires = expires.unwrap_or_default();
            format!(
                "{key:?}: moves from {has} to {}{}, phase {}{expires}",
                moves.to.shards,
                in_slots(moves.to.slots()),
                phase_name(moves.phase)
            )
        }
        None if record.settled => format!("{key:?}: {has}"),
        None => format!("{key:?}: {has}; late requests of its last move are waited for"),
    }
}
