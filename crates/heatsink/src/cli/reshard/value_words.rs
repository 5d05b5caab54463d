//! Values of indexes in words: on record, what a reshard of one would do, and the commands for it.

use heatsink_control::Record;
use heatsink_control::reshard_intent::{ReshardIntent, key_text};
use heatsink_layout::{ValueLayout, shards};
use heatsink_workers::ValuePlan;
use serde_json::{Value as Json, json};

use super::quoted::quoted;

/// What it would do, for programs.
pub(super) fn planned(table: &str, index: &str, value: &str, plan: &ValuePlan, again: &str) -> Json {
    json!({
        "table": table, "index": index, "value": value, "from": plan.from, "to": plan.to, "items": plan.items,
        "to_rewrite": plan.to_rewrite, "keeps_former_forms": plan.keeps_former_forms, "phases": ["RESERVE", "PREPARE", "MOVE"],
        "point_of_no_return": "MOVE", "next_steps": [again],
    })
}

/// What it would do, for people.
pub(super) fn words(value: &str, index: &str, plan: &ValuePlan) -> String {
    let ValuePlan { from, to, items, to_rewrite, keeps_former_forms } = plan;
    let mut text = format!(
        "the value {value:?} of the index {index} would have {}; it has {from}. {to_rewrite} of its {items} items would be rewritten, each in a transaction: \
         two writes to the table, two for the claim, two to each index that holds it. Clients go on",
        shards(*to)
    );
    if *keeps_former_forms {
        text += "\nThe index has a sort key, and no other index of the attribute has none. Items without that sort key are not found, and keep their form: from then \
                 on conditions on the value name all forms that it had, and a page of its Query reads all rows that have its last sort key";
    }
    text
}

/// A value on record, for programs.
pub(super) fn recorded(one: &ValueLayout) -> Json {
    let migration =
        one.migration.map(|migration| json!({ "to": migration.to, "writes_new": migration.writes_new }));
    json!({
        "index": one.index.name, "attribute": one.index.attribute.name, "value": text(one), "shards": one.shards, "reserved": one.reserved,
        "former": one.former, "migration": migration,
    })
}

/// A value on record, for people.
pub(super) fn recorded_line(one: &ValueLayout) -> String {
    let (value, index, has) = (text(one), &one.index.name, shards(one.shards));
    match one.migration {
        Some(migration) if migration.writes_new => format!(
            "{value:?} of the index {index}: goes from {has} to {}; its items are being rewritten",
            migration.to
        ),
        Some(migration) => format!(
            "{value:?} of the index {index}: goes from {has} to {}; gateways learn to read both",
            migration.to
        ),
        None if one.reserved > one.extent() => {
            format!("{value:?} of the index {index}: {has}; the forms of {} are reserved", one.reserved)
        }
        None => format!("{value:?} of the index {index}: {has}"),
    }
}

/// The command that takes up a reshard that was interrupted.
pub(super) fn resume(table: &str, one: &ValueLayout, place: &str) -> Option<String> {
    let to = match one.migration {
        Some(migration) => migration.to,
        None if one.extent() == 1 => 1,
        None => return None,
    };
    Some(start_command(table, &text(one), &one.index.name, to, place))
}

/// The command that asks for shards of a value.
pub(in crate::cli) fn start_command(table: &str, value: &str, index: &str, to: u16, place: &str) -> String {
    let (table, value, index) = (quoted(table), quoted(value), quoted(index));
    format!("heatsink reshard start {table} {value} --index {index} --shards {to}{place}")
}

/// The layout of the value that an intent is for, if it has one on record.
pub(super) fn of<'r>(record: &'r Record, intent: &ReshardIntent) -> Option<&'r ValueLayout> {
    let values = record.values.iter();
    let mut values =
        values.filter(|one| one.value == intent.key && one.index.attribute.key_type == intent.key_type);
    values.find(|one| Some(&one.index.name) == intent.index.as_ref())
}

fn text(one: &ValueLayout) -> String {
    key_text(&one.value, one.index.attribute.key_type)
}
