//! Why something cannot be cancelled any more, and what to do instead.

use heatsink_control::reshard_intent::{ReshardIntent, WantedLayout, key_text};
use heatsink_control::{KeyRecord, Move, Record};
use heatsink_dynamo::display::inert;
use heatsink_layout::{Layout, Moving, Phase, Strategy, shards};

use super::args::{Place, words};
use super::told::{command, command_on};
use super::value_words::{self, start_command};

/// What was asked for has ended as it was meant to.
pub(super) fn after_the_end(intent: &ReshardIntent, ended: &str, place: &Place) -> String {
    let (table, key, of) = (&intent.table, intent.key_text(), intent.subject().in_words());
    let ended = inert(ended);
    let back = match &intent.index {
        None if intent.request.layout.shards == 1 && intent.request.layout.slots.is_none() => {
            format!("{} --shards N", command("start", table, &key, place))
        }
        None => command("back", table, &key, place),
        Some(index) => start_command(table, &key, index, 1, &place.words()),
    };
    format!("the reshard of {of} of table {table} has ended: {ended}. The way back is a second one: `{back}`")
}

/// A key that has its shards, and nothing of it is asked for.
pub(super) fn at_rest(table: &str, record: &KeyRecord, place: &Place) -> Option<String> {
    let (key, count) = (key_text(&record.key, record.key_type), record.layout.shards);
    let has = format!(
        "no reshard of the key {key:?} of table {table} is under way: it has {}",
        WantedLayout::of(&record.layout).in_words()
    );
    if record.moves.is_some() || count == 1 && record.layout.slots().is_empty() {
        return None;
    }
    let back = command("back", table, &key, place);
    Some(format!("{has}. The way back is a second one: `{back}`"))
}

/// Why a key cannot be kept as it was, if it cannot: what to do instead.
pub(super) fn of_key(table: &str, record: Option<&KeyRecord>, place: &Place) -> Option<String> {
    let record = record?;
    if record.moves.is_none() && record.layout.counter_attributes().is_some() && !record.settled {
        let key = key_text(&record.key, record.key_type);
        let back = command("back", table, &key, place);
        let has = format!("The key {key:?} of table {table} has {}", shards(record.layout.shards));
        return Some(format!("{has} already. The way back is a second reshard: `{back}`"));
    }
    let steps = |moves: &Move| Moving::steps(&record.layout, &moves.to).is_some();
    let last = |moves: &Move| if steps(moves) { Phase::Reserve } else { Phase::Hold };
    let moves = record.moves.as_ref().filter(|moves| moves.phase > last(moves))?;
    let key = key_text(&record.key, record.key_type);
    if steps(moves) {
        return Some(format!(
            "Gateways know already that buckets to come of the key {key:?} of table {table} get {}. When this change has ended, another one takes its \
             place, if the first of them has not begun: `{} --shards {}`",
            shards(moves.to.shards),
            command("start", table, &key, place),
            record.layout.shards
        ));
    }
    Some(format!(
        "The key {key:?} of table {table} has writes under its {}, so there is no way back but a second reshard. When this one has ended: `{} \
         {}`. `{}` stops moving its items meanwhile",
        WantedLayout::of(&moves.to).in_words(),
        command("start", table, &key, place),
        words(&before(record, &moves.to)),
        command("pause", table, &key, place)
    ))
}

/// What brings a key back that is on its way: its slots, too, where it has others on the way.
fn before(record: &KeyRecord, to: &Layout) -> WantedLayout {
    let of = WantedLayout::of(&record.layout);
    let usual = (record.layout.shards > 1 && !to.slots().is_empty()).then(|| (0..of.shards).collect());
    // By its number alone it would go on as the ranges that it is about to have.
    let by = match (&record.layout.strategy, to.split_points()) {
        (Strategy::Calculated { by, .. }, Some(_)) => Some(by.clone()),
        _ => None,
    };
    WantedLayout { by, slots: of.slots.or(usual), split_at: of.split_at, ..of.shards.into() }
}

/// Why a value cannot be kept as it was, if it cannot: what to do instead.
pub(super) fn of_value(record: Option<&Record>, intent: &ReshardIntent, place: &Place) -> Option<String> {
    let layout = value_words::of(record?, intent)?;
    let migration = layout.migration.filter(|migration| migration.writes_new)?;
    Some(format!(
        "{} of table {} is written in its {}, so there is no way back but a second reshard. When this one has ended: `{}`. `{}` stops rewriting its \
         items meanwhile",
        intent.subject().in_words(),
        intent.table,
        shards(migration.to),
        start_command(&intent.table, &intent.key_text(), &layout.index.name, layout.shards, &place.words()),
        command_on("pause", intent, place)
    ))
}
