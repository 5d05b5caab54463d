//! What has to end, or to change, before a table can leave: reshards and adoptions under way, frozen
//! layouts, and rules that would bring the table back.
//!
//! Not here: what is sharded (`found`).

use heatsink_control::reshard_intent::{ReshardIntent, key_text};
use heatsink_control::{RuledTables, Rules};
use heatsink_dynamo::display::inert;
use heatsink_workers::{InTheWay, asks_for_whole};

use super::found::{Found, FoundTable};
use crate::cli::reshard::{Opened, Place, command, command_on, quoted, start_value_command};

/// Everything that is in the way of these tables, a sentence each.
pub(super) fn of(found: &Found, opened: &Opened, rules: &Rules, place: &Place) -> Vec<String> {
    let mut all = Vec::new();
    let anything_left = found.tables.iter().any(|one| one.of.exists && !one.of.is_sharded_by_hand());
    if found.frozen.is_some() && anything_left {
        all.push("Layout changes are frozen: allow them again with `heatsink freeze --thaw`".to_owned());
    }
    for table in &found.tables {
        let moving = table.of.in_the_way(&found.intents);
        all.extend(moving.iter().map(|one| moves(table, one, place)));
    }
    let leaving = found.tables.iter().filter(|one| one.of.exists && !one.of.is_sharded_by_hand());
    let names: Vec<&str> = leaving.map(|one| &*one.of.record.name).collect();
    all.extend(of_rules(&names, found, opened, rules));
    all
}

/// What has put tables back on record since they left, or will: `names` are those that left.
pub(super) fn since(
    names: &[&str],
    now: &Found,
    opened: &Opened,
    rules: &Rules,
    place: &Place,
) -> Vec<String> {
    let on_record = |name: &str| now.tables.iter().any(|one| one.of.record.name == name);
    let mut all: Vec<String> = names
        .iter()
        .filter(|name| on_record(name))
        .map(|name| format!("Table {name} was put on record again meanwhile: run this again"))
        .collect();
    let asked = |one: &&ReshardIntent| {
        one.is_open() && names.contains(&&*one.table) && !asks_for_whole(&one.request.layout)
    };
    let gone = now.intents.iter().filter(asked).filter(|one| !on_record(&one.table));
    all.extend(gone.map(|one| {
        format!(
            "A reshard of {} of table {} was asked for meanwhile, which puts the table back on record: take it back with `{}`, or run this again once it has ended",
            one.subject().in_words(),
            one.table,
            command_on("cancel", one, place)
        )
    }));
    all.extend(of_rules(names, now, opened, rules));
    all
}

/// Who has rules that would shard these tables again.
fn of_rules(names: &[&str], found: &Found, opened: &Opened, rules: &Rules) -> Vec<String> {
    let here = RuledTables::of(rules);
    let mut all = Vec::new();
    for name in names {
        for gateway in found.living(opened) {
            if let Some(rule) = gateway.ruled.as_ref().and_then(|ruled| ruled.naming(name)) {
                all.push(format!(
                    "The gateway {} ({}) has {rule}, which would shard table {name} again: take it out of its rules and reload them (SIGHUP). It says so with its \
                     next heartbeat",
                    inert(&gateway.name),
                    inert(&gateway.registration.gateway)
                ));
            }
        }
        if let Some(rule) = here.naming(name) {
            all.push(format!(
                "The rules that this command was given have {rule}, which would shard table {name} again: take it out, there and at every gateway"
            ));
        }
    }
    all
}

/// Gateways that do not say which rules they have.
pub(super) fn unsaid(found: &Found, opened: &Opened) -> Option<String> {
    let silent = found.living(opened).into_iter().filter(|one| one.ruled.is_none());
    let names: Vec<_> = silent.map(|one| inert(&one.name).into_owned()).collect();
    (!names.is_empty()).then(|| {
        format!(
            "Gateways of an older build do not say which tables their rules shard: {}. Make sure that none of them names a table that leaves",
            names.join(", ")
        )
    })
}

fn moves(table: &FoundTable, one: &InTheWay, place: &Place) -> String {
    let name = &table.of.record.name;
    match one {
        InTheWay::Asked(intent) => format!(
            "A reshard of {} of table {name} to {} is asked for: let that end (`heatsink reshard status {}{}`), or take it back with `{}`",
            intent.subject().in_words(),
            intent.request.layout.in_words(),
            quoted(name),
            place.words(),
            command_on("cancel", intent, place)
        ),
        InTheWay::Key(record) => {
            let key = key_text(&record.key, record.key_type);
            format!(
                "The key {key:?} of table {name} moves, and nobody carries that out: go on with it, or take it back with `{}`",
                command("cancel", name, &key, place)
            )
        }
        InTheWay::Value(layout) => {
            let value = key_text(&layout.value, layout.index.attribute.key_type);
            format!(
                "The value {value:?} of the index {} of table {name} gets other shards, and nobody carries that out: go on with it: `{}`",
                layout.index.name,
                start_value_command(name, &value, &layout.index.name, layout.target(), &place.words())
            )
        }
        InTheWay::Adoption => format!(
            "`heatsink adopt {name}` is under way, or was interrupted: let it end, or turn it round with `heatsink adopt {} --back{}`",
            quoted(name),
            place.words()
        ),
        InTheWay::Lifecycle => {
            format!("Table {name} is being put on record, or deleted: run this again once that is done")
        }
    }
}
