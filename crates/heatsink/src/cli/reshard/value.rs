//! One value of an index: carried out here, beside the gateways.

use heatsink_adopt::{AdoptError, INDEX_DELAY, Options, ValueAsked, ValuePlan, ValueReport, ValueReshard};
use heatsink_layout::ValueLayout;
use serde_json::{Value as Json, json};

use super::args::Start;
use super::{Access, Opened, quoted, say, software, status_command};
use crate::cli::progress::Bar;
use crate::exit::{Exit, without_numbers};

/// How many items are rewritten at once. Each is one transaction, of which a claim lets eleven go at once.
const CONCURRENCY: usize = 16;

/// Gives the value its shards, or says what that would do.
pub(super) async fn begin(opened: &Opened, start: &Start, index: &str, value: &str) -> Result<(), Exit> {
    if opened.access == Access::BesideServer {
        return Err(Exit::usage(
            "--index: this command rewrites the items itself, and a server with a file or memory of its own does not follow it. Stop the server and say --data \
             FILE, or use gateways with --upstream",
        ));
    }
    let asked = ValueAsked { table: &start.table, index, value, shards: start.shards };
    let (store, env) = (opened.store.clone(), opened.env.clone());
    let reshard = ValueReshard::prepare(store, env, &opened.rules, asked).await.map_err(exit)?;
    let again = format!(
        "heatsink reshard start {} {} --index {} --shards {}{}",
        quoted(&start.table),
        quoted(value),
        quoted(index),
        start.shards,
        start.place.words()
    );
    let bar = Bar::new(start.place.output);
    if start.how.dry_run {
        let plan = reshard.plan(&bar).await.map_err(exit)?;
        bar.done();
        return say(
            start.place.output,
            &planned(start, index, value, &plan, &again),
            &words(value, index, &plan),
        );
    }
    if reshard.is_done() {
        let document = json!({
            "table": start.table, "index": index, "value": value, "to": start.shards, "already": true, "next_steps": [],
        });
        let text = format!("the value {value:?} of the index {index} has {} shards already", start.shards);
        return say(start.place.output, &document, &text);
    }
    if let Some(frozen) = opened.observer().frozen().await.map_err(super::unread)? {
        return Err(Exit::failed(format!("{frozen}. Nothing was changed")));
    }
    known(opened).await?;
    let options = Options { concurrency: CONCURRENCY, exclusive: opened.access == Access::Alone };
    // A file's index does not lag, and nobody else is there.
    let delay = if options.exclusive { std::time::Duration::ZERO } else { INDEX_DELAY };
    let report = reshard.run(options, delay, &bar).await.map_err(exit)?;
    bar.done();
    let mut document = serde_json::to_value(&report).map_err(software)?;
    document["value"] = json!(value);
    document["next_steps"] = json!([status_command(&start.table, &start.place)]);
    let ValueReport { table, from, to, rewritten, .. } = &report;
    let text = format!(
        "the value {value:?} of the index {index} of table {table} has {to} shards; it had {from}. {rewritten} items were rewritten"
    );
    say(start.place.output, &document, &text)
}

/// Refuses where gateways would refuse the table: older builds know no values on record.
async fn known(opened: &Opened) -> Result<(), Exit> {
    if opened.access == Access::Alone {
        return Ok(());
    }
    let older = opened.observer().gateways_without(|one| one.knows_values).await.map_err(super::unread)?;
    if older.is_empty() {
        return Ok(());
    }
    Err(Exit::unavailable(format!(
        "Gateways of an older build know no single values of indexes, and would refuse every request on the table: {}. Start newer ones in their place first. \
         Nothing was changed",
        older.join(", ")
    )))
}

fn planned(start: &Start, index: &str, value: &str, plan: &ValuePlan, again: &str) -> Json {
    json!({
        "table": start.table, "index": index, "value": value, "from": plan.from, "to": plan.to, "items": plan.items,
        "to_rewrite": plan.to_rewrite, "keeps_former_forms": plan.keeps_former_forms, "next_steps": [again],
    })
}

fn words(value: &str, index: &str, plan: &ValuePlan) -> String {
    let ValuePlan { from, to, items, to_rewrite, keeps_former_forms } = plan;
    let mut text = format!(
        "the value {value:?} of the index {index} would have {to} shards; it has {from}. {to_rewrite} of its {items} items would be rewritten, each in a transaction: \
         two writes to the table, two for the claim, two to each index that holds it. Clients go on"
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
    let (value, index, shards) = (text(one), &one.index.name, one.shards);
    match one.migration {
        Some(migration) if migration.writes_new => format!(
            "{value:?} of the index {index}: goes from {shards} to {} shards; its items are being rewritten",
            migration.to
        ),
        Some(migration) => format!(
            "{value:?} of the index {index}: goes from {shards} to {} shards; gateways learn to read both",
            migration.to
        ),
        None if one.reserved > one.extent() => format!(
            "{value:?} of the index {index}: {shards} shards; the forms of {} are reserved",
            one.reserved
        ),
        None => format!("{value:?} of the index {index}: {shards} shards"),
    }
}

/// The command that takes up a reshard that was interrupted.
pub(super) fn resume(table: &str, one: &ValueLayout, place: &str) -> Option<String> {
    let to = match one.migration {
        Some(migration) => migration.to,
        None if one.extent() == 1 => 1,
        None => return None,
    };
    let (value, index) = (text(one), quoted(&one.index.name));
    Some(format!(
        "heatsink reshard start {} {} --index {index} --shards {to}{place}",
        quoted(table),
        quoted(&value)
    ))
}

fn text(one: &ValueLayout) -> String {
    heatsink_control::reshard_intent::key_text(&one.value, one.index.attribute.key_type)
}

fn exit(error: AdoptError) -> Exit {
    match error {
        AdoptError::Usage(_) => Exit::usage(error.to_string()),
        AdoptError::Failed(_) => Exit::failed(error.to_string()),
        // Run again, it goes on where it stopped.
        AdoptError::Store(_) => Exit::failed(without_numbers(&error.to_string())).retryable(),
    }
}
