//! What is on its way by the records, and nobody asks for on record: no gateway goes on with it. Its
//! intent is lost, or it is carried out by a command of an older build, or was.
//!
//! Not here: what is asked for (`status`).

use heatsink_control::KeyRecord;
use heatsink_control::reshard_intent::{EndedAs, ReshardIntent, UnderWay, WantedLayout, key_text};
use heatsink_dynamo::Error;
use serde_json::{Value as Json, json};

use super::args::{Place, words};
use super::opened::Opened;
use super::told::command;
use super::value_words;

/// Of every table that exists.
///
/// # Errors
/// As [`under_way`](heatsink_control::registry::Registry::under_way).
pub(super) async fn of_all(opened: &Opened, intents: &[ReshardIntent]) -> Result<Vec<UnderWay>, Error> {
    let mut found = Vec::new();
    for under_way in opened.registry.under_way().await? {
        let left = without(under_way, intents);
        if left.is_empty() {
            continue;
        }
        let described = opened.registry.describe(&left.table).await?;
        if described.is_some_and(|described| described.schema.id == left.table_id) {
            found.push(left);
        }
    }
    Ok(found)
}

/// What of it has no intent that is open, or has stopped and says so.
pub(super) fn without(mut under_way: UnderWay, intents: &[ReshardIntent]) -> UnderWay {
    let says = |one: &ReshardIntent| one.ended.as_ref().is_none_or(|ended| ended.how == EndedAs::Stopped);
    let of_table = |one: &&ReshardIntent| one.table_id == under_way.table_id && says(one);
    let of_table: Vec<&ReshardIntent> = intents.iter().filter(of_table).collect();
    let is_asked = |index: Option<&str>, key: &[u8]| {
        of_table.iter().any(|one| one.index.as_deref() == index && one.key == key)
    };
    under_way.keys.retain(|one| !is_asked(None, &one.key));
    under_way.values.retain(|one| !is_asked(Some(&one.index.name), &one.value));
    under_way
}

/// For programs: each key and value, with its table.
pub(super) fn told(left: &[UnderWay], key: fn(&KeyRecord) -> Json) -> Json {
    let of_table = |one: &UnderWay| {
        let values = one.values.iter().map(value_words::recorded);
        let told = one.keys.iter().map(key).chain(values);
        let table = json!(one.table);
        let named = told.map(move |mut told| {
            told["table"] = table.clone();
            told
        });
        named.collect::<Vec<_>>()
    };
    left.iter().flat_map(of_table).collect()
}

/// For people.
pub(super) fn lines(left: &[UnderWay], key: fn(&KeyRecord) -> String) -> Vec<String> {
    let line = |table: &str, told: String| {
        format!("{table}, {told}; nobody asks for it on record, so no gateway goes on with it")
    };
    let of_table = |one: &UnderWay| {
        let keys = one.keys.iter().map(|record| line(&one.table, key(record)));
        let values = one.values.iter().map(|value| line(&one.table, value_words::recorded_line(value)));
        keys.chain(values).collect::<Vec<_>>()
    };
    left.iter().flat_map(of_table).collect()
}

/// The commands that have it gone on with.
pub(super) fn next_steps(left: &[UnderWay], place: &Place) -> Vec<String> {
    let of_key = |table: &str, one: &KeyRecord| {
        let layout = one.moves.as_ref().map_or(&one.layout, |moves| &moves.to);
        let start = command("start", table, &key_text(&one.key, one.key_type), place);
        format!("{start} {}", words(&WantedLayout::of(layout)))
    };
    let of_table = |one: &UnderWay| {
        let keys = one.keys.iter().map(|record| of_key(&one.table, record));
        let values =
            one.values.iter().filter_map(|value| value_words::resume(&one.table, value, &place.words()));
        keys.chain(values).collect::<Vec<_>>()
    };
    left.iter().flat_map(of_table).collect()
}
