//! What is sharded, in words and as a JSON document: each with the command that brings it back, and
//! what that takes.

use heatsink_control::reshard_intent::key_text;
use heatsink_control::{KeyRecord, State};
use heatsink_layout::{in_slots, shards};
use heatsink_workers::{Plan, Step};
use serde_json::{Value as Json, json};

use super::found::{Found, FoundTable, KeyCost, ValueCost};
use crate::cli::reshard::{quoted, start_value_command};

/// For people. `place`: the arguments that say where the store is.
pub(in crate::cli) fn text(found: &Found, place: &str) -> String {
    let mut lines = Vec::new();
    if !found.there {
        lines.push(format!(
            "There is no registry {}, and no sign that there was one: nothing is sharded.",
            found.registry
        ));
    } else if found.tables.is_empty() {
        lines.push(format!("Nothing is on record in the registry {}: nothing is sharded.", found.registry));
    }
    found.tables.iter().for_each(|one| table(&mut lines, one, place));
    if let Some(rest) = rest(found, place) {
        lines.push(rest);
    }
    lines.join("\n") + "\n"
}

/// What is left beside the tables.
fn rest(found: &Found, place: &str) -> Option<String> {
    let what = if found.directory { " and the directory of buckets go" } else { " goes" };
    found.there.then(|| {
        format!(
            "The registry {}{what} last, when no table is on record and no gateway is registered: `heatsink leave{place}`",
            found.registry
        )
    })
}

fn table(lines: &mut Vec<String>, one: &FoundTable, place: &str) {
    let of = &one.of;
    let name = &of.record.name;
    let size = match (of.items, of.bytes) {
        (Some(items), Some(bytes)) => format!(", about {items} items, {} KB", bytes / 1024),
        (Some(items), None) => format!(", about {items} items"),
        _ => String::new(),
    };
    lines.push(format!("table {name}{size}"));
    if !of.exists {
        lines.push(format!(
            "  does not exist any more; its record stays until `heatsink leave {}{place}`",
            quoted(name)
        ));
        return;
    }
    if let Some(state) = state(&of.record.state) {
        lines.push(format!("  {state}"));
    }
    for layout in of.record.layouts.iter() {
        let index = layout.index().map(|index| format!("index {}, ", index.name)).unwrap_or_default();
        lines.push(format!("  rule on record: {index}keys {:?}: {}", layout.keys().text(), layout.layout()));
    }
    if of.is_sharded_by_hand() {
        lines.push(format!(
            "  sharded by the application itself, and left as it is. Its items keep their keys with `heatsink adopt {0} --back --keep-keys{place}`, and get \
             their logical ones with `heatsink adopt {0} --back{place}`",
            quoted(name)
        ));
        return;
    }
    if of.has_own_rules() {
        lines.push(format!("    back: heatsink adopt {} --back{place}", quoted(name)));
    } else if !of.record.layouts.is_empty() {
        lines.push(format!("    back, while clients go on: heatsink adopt {} --back{place}", quoted(name)));
    }
    if of.has_counters_by_rule() {
        lines.push(
            "    its counters are summed into whole items first, key by key, while clients go on".to_owned(),
        );
    }
    one.keys.iter().zip(of.spread_keys()).for_each(|(cost, record)| key(lines, one, cost, record, place));
    more(lines, of.spread_keys().count(), one.keys.len(), "keys in shards");
    one.values.iter().for_each(|cost| value(lines, name, cost, place));
    more(lines, of.values_to_bring_back().count(), one.values.len(), "values of indexes in shards");
    let whole = of.keys.len() - of.spread_keys().count();
    if whole > 0 {
        lines.push(format!("  {whole} keys on record are whole again; their records go with the table"));
    }
    if of.has_former_forms() {
        lines.push(
            "  values of an index are whole again, and items that no index shows may keep a former form"
                .to_owned(),
        );
    }
    lines.push(format!("  all of it: heatsink leave {}{place}", quoted(name)));
}

fn more(lines: &mut Vec<String>, all: usize, listed: usize, what: &str) {
    if all > listed {
        lines.push(format!("  and {} more {what}", all - listed));
    }
}

fn state(state: &State) -> Option<&'static str> {
    match state {
        State::Active => None,
        State::Pending => Some("is being put on record"),
        State::Deleting { .. } | State::Gone => Some("is being deleted"),
        State::Adopting(_) => Some("is being brought under its rules, and clients wait"),
        State::Returning(_) => Some("is being brought back out of its rules, and clients wait"),
        State::MigratingIndexKeys(_) => Some("its index keys are being rewritten"),
        State::ChangingKeys(_) => Some("all its keys are being given other shards, while clients use it"),
    }
}

/// The command that brings one key back.
fn key_command(one: &FoundTable, cost: &KeyCost, place: &str) -> String {
    let (table, key) = (quoted(&one.of.record.name), quoted(&cost.key));
    match one.of.has_own_rules() {
        false => format!("heatsink reshard back {table} {key}{place}"),
        true => format!("heatsink reshard start {table} {key} --shards 1{place}"),
    }
}

/// Whether a key comes back with its whole table.
fn with_its_table(one: &FoundTable, record: &KeyRecord) -> bool {
    !one.of.keys_to_bring_back().any(|back| back.key == record.key)
}

fn key(lines: &mut Vec<String>, one: &FoundTable, cost: &KeyCost, record: &KeyRecord, place: &str) {
    let what = match record.layout.counter_attributes() {
        Some(names) => format!("a counter of {} in {}", names.join(", "), shards(record.layout.shards)),
        None => format!("{}{}", shards(record.layout.shards), in_slots(record.layout.slots())),
    };
    let moves = record.moves.as_ref().map(|moves| format!(", on its way to {}", shards(moves.to.shards)));
    lines.push(format!("  key {:?}: {what}{}", cost.key, moves.unwrap_or_default()));
    if with_its_table(one, record) {
        lines.push("    back with the table".to_owned());
        return;
    }
    lines.push(format!("    back, while clients go on: {}", key_command(one, cost, place)));
    lines.push(match &cost.plan {
        Ok(plan) => format!("    {}", takes(plan)),
        Err(why) => format!("    not as it is: {why}"),
    });
}

fn takes(plan: &Plan) -> String {
    format!(
        "takes {} of {} items, some {} write and {} read units (${:.2} on demand), {} s at {} units/s",
        plan.to_move,
        plan.items,
        plan.write_units,
        plan.read_units,
        plan.dollars,
        plan.seconds,
        heatsink_workers::DEFAULT_RATE
    )
}

fn value(lines: &mut Vec<String>, table: &str, cost: &ValueCost, place: &str) {
    lines.push(format!("  value {:?} of the index {}: {}", cost.value, cost.index, shards(cost.shards)));
    let command = start_value_command(table, &cost.value, &cost.index, 1, place);
    lines.push(format!("    back, while clients go on: {command}"));
    lines.push(match &cost.plan {
        Ok(plan) => format!("    takes {} of {} items, which are rewritten", plan.to_rewrite, plan.items),
        Err(why) => format!("    not as it is: {why}"),
    });
}

/// What a step does, in words.
pub(in crate::cli) fn step(one: &Step) -> String {
    match one {
        Step::Keys(keys) => format!("{} keys become whole, while clients go on", keys.len()),
        Step::Counters => {
            "counters of the rules become whole items, key by key, while clients go on".to_owned()
        }
        Step::Values(values) => {
            format!("{} values of indexes get one shard, while clients go on", values.len())
        }
        Step::FormerForms => {
            "every item is read, and those that no index shows get the plain form, while clients go on"
                .to_owned()
        }
        Step::Indexes(attributes) => {
            format!("{} is rewritten in every item, while clients go on", attributes.join(", "))
        }
        Step::Own => "every item goes back to its own key".to_owned(),
        Step::OffRecord => "every item is verified, and the records go, while clients go on".to_owned(),
        Step::Forgotten => "the record of a table that does not exist any more goes".to_owned(),
    }
}

/// A step for programs.
pub(in crate::cli) fn step_name(one: &Step) -> &'static str {
    match one {
        Step::Keys(_) => "keys",
        Step::Counters => "counters",
        Step::Values(_) => "values",
        Step::FormerForms => "former_forms",
        Step::Indexes(_) => "indexes",
        Step::Own => "table",
        Step::OffRecord => "off_record",
        Step::Forgotten => "forgotten",
    }
}

/// For programs.
pub(in crate::cli) fn document(found: &Found, place: &str) -> Json {
    let tables: Vec<Json> = found.tables.iter().map(|one| of_table(one, place)).collect();
    let next: Vec<String> =
        if found.there { vec![format!("heatsink leave{place} --dry-run")] } else { Vec::new() };
    json!({
        "registry": found.registry, "there": found.there, "frozen_since": found.frozen, "gateways": found.gateways.len(),
        "directory": found.directory, "tables": tables, "next_steps": next,
    })
}

fn of_table(one: &FoundTable, place: &str) -> Json {
    let of = &one.of;
    let rules: Vec<Json> = of
        .record
        .layouts
        .iter()
        .map(|layout| json!({ "index": layout.index().map(|index| &index.name), "keys": layout.keys().text(), "layout": layout.layout().to_string() }))
        .collect();
    let keys: Vec<Json> = one
        .keys
        .iter()
        .zip(of.spread_keys())
        .map(|(cost, record)| of_key(one, cost, record, place))
        .collect();
    let values: Vec<Json> = one
        .values
        .iter()
        .map(|cost| {
            json!({
                "index": cost.index, "value": cost.value, "shards": cost.shards, "takes": cost.plan.as_ref().ok(), "refused": cost.plan.as_ref().err(),
                "command": start_value_command(&of.record.name, &cost.value, &cost.index, 1, place),
            })
        })
        .collect();
    let steps: Vec<&str> = Step::all(of).iter().map(step_name).collect();
    json!({
        "table": of.record.name, "id": of.record.id, "exists": of.exists, "state": json!(of.record.state)["state"], "items": of.items,
        "bytes": of.bytes, "by_hand": of.is_sharded_by_hand(), "rules": rules, "keys": keys, "keys_in_shards": of.spread_keys().count(),
        "keys_whole": of.keys.len() - of.spread_keys().count(), "values": values, "values_in_shards": of.values_to_bring_back().count(),
        "former_forms": of.has_former_forms(), "steps": steps, "command": format!("heatsink leave {}{place}", quoted(&of.record.name)),
    })
}

fn of_key(one: &FoundTable, cost: &KeyCost, record: &KeyRecord, place: &str) -> Json {
    let takes = cost.plan.as_ref().ok().map(|plan| {
        json!({
            "items": plan.items, "to_move": plan.to_move, "bytes_to_move": plan.bytes_to_move, "write_units": plan.write_units,
            "read_units": plan.read_units, "dollars": plan.dollars, "seconds": plan.seconds,
        })
    });
    let with_table = with_its_table(one, record);
    json!({
        "key": key_text(&record.key, record.key_type), "shards": record.layout.shards, "counter": record.layout.counter_attributes(),
        "moves_to": record.moves.as_ref().map(|moves| moves.to.shards), "with_table": with_table, "takes": takes,
        "refused": cost.plan.as_ref().err().filter(|_| !with_table), "command": (!with_table).then(|| key_command(one, cost, place)),
    })
}
