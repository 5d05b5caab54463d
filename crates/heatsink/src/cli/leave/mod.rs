//! `heatsink leave [TABLE]`: brings everything that is sharded back, takes it off the record, says
//! when direct access is right again, and at the end removes the registry. Run again, it goes on
//! where it stopped.
//!
//! - `found`: what is sharded. `words`: that in words. `hindrances`: what is in the way.
//! - `steps`: carries a table's steps out. `end`: removes the registry.

mod args;
mod end;
pub(in crate::cli) mod found;
mod hindrances;
mod steps;
pub(in crate::cli) mod words;

use heatsink_workers::Step;
use serde_json::{Value as Json, json};

pub use self::args::Args;
use self::found::Found;
use super::reshard::{Access, Opened};
use super::{confirm, print, rules, runtime};
use crate::exit::Exit;
use crate::output::Output;

/// Runs it. Exit 0 when it is done, or nothing was to be done; 64 when it cannot be done as asked,
/// and nothing was changed; 69 when the store did not answer; 1 when it stopped on the way, and what
/// it says tells how to go on.
pub fn run(args: Args) -> Result<(), Exit> {
    runtime::threads()?.block_on(leave(args))
}

async fn leave(args: Args) -> Result<(), Exit> {
    let place = args.place();
    let opened = Opened::at(&place).await?;
    let given = rules::find(args.rules.as_deref())?.rules;
    let found = Found::read(&opened, args.table.as_deref(), args.dry_run).await?;
    let in_the_way = hindrances::of(&found, &opened, &given, &place);
    if args.dry_run {
        return plan(&args, &opened, &found, &in_the_way).await;
    }
    if !in_the_way.is_empty() {
        return Err(Exit::usage(format!("Nothing was changed. {}", in_the_way.join("\n"))));
    }
    ask(&args, &opened, &found)?;
    let mut done = Vec::new();
    let mut left_alone = Vec::new();
    for table in &found.tables {
        let name = &table.of.record.name;
        match table.of.exists && table.of.is_sharded_by_hand() {
            true => left_alone.push(name.clone()),
            false => done.extend(steps::carry_out(&opened, &args, name).await?),
        }
    }
    let out = |one: &&found::FoundTable| !left_alone.contains(&one.of.record.name);
    let names: Vec<&str> = found.tables.iter().filter(out).map(|one| &*one.of.record.name).collect();
    // Others went on meanwhile.
    let since = hindrances::since(&names, &Found::anew(&opened).await?, &opened, &given, &place);
    let ended = match &args.table {
        _ if !since.is_empty() => end::End::Sharded(since.join("\n")),
        Some(_) => end::End::OfTables,
        None => end::remove_registry(&opened, &left_alone).await?,
    };
    let text = end::words(&args, &found, &left_alone, &ended);
    let document = json!({
        "table": args.table, "steps": done, "left_alone": left_alone, "direct_access": left_alone.is_empty() && !ended.is_sharded(),
        "registry_removed": ended.is_removed(), "untagged": ended.untagged(), "next_steps": ended.next_steps(),
    });
    match args.output {
        Output::Json => print::json(&document)?,
        Output::Text => print::text(&text)?,
    }
    ended.outcome()
}

/// Says what would be done, and what is in the way of it.
async fn plan(args: &Args, opened: &Opened, found: &Found, in_the_way: &[String]) -> Result<(), Exit> {
    let place = args.place();
    let mut document = words::document(found, &place.words());
    document["table"] = json!(args.table);
    document["in_the_way"] = json!(in_the_way);
    let mut lines = vec![words::text(found, &place.words())];
    let mut number = 0;
    let mut say = |text: String| {
        number += 1;
        lines.push(format!("{number}. {text}\n"));
    };
    let mut planned: Vec<Json> = Vec::new();
    for table in found.tables.iter().filter(|one| !one.of.exists || !one.of.is_sharded_by_hand()) {
        let name = &table.of.record.name;
        for step in Step::all(&table.of) {
            let wait = match step {
                Step::Own => steps::why_clients_wait(opened, args, name).await?,
                _ => None,
            };
            let why = wait.as_ref().map(|why| format!("; clients wait for the table meanwhile: {why}"));
            say(format!("table {name}: {}{}", words::step(&step), why.unwrap_or_default()));
            planned.push(
                json!({ "table": name, "step": words::step_name(&step), "clients_wait": wait.is_some() }),
            );
        }
    }
    if args.table.is_none() && found.there {
        say(format!("the registry {} goes, once all gateways have ended", found.registry));
        planned.push(json!({ "table": null, "step": "registry", "clients_wait": false }));
    }
    document["steps"] = json!(planned);
    lines.extend(in_the_way.iter().map(|why| format!("In the way: {why}\n")));
    lines.push("Nothing was changed.\n".to_owned());
    match args.output {
        Output::Json => print::json(&document),
        Output::Text => print::text(&lines.concat()),
    }
}

/// Asks once before anything is changed.
fn ask(args: &Args, opened: &Opened, found: &Found) -> Result<(), Exit> {
    let leaving: Vec<&str> = found.tables.iter().map(|one| &*one.of.record.name).collect();
    if leaving.is_empty() {
        return Ok(());
    }
    let mut about = format!("About to take these tables out of Heatsink: {}", leaving.join(", "));
    if let Some(unsaid) = hindrances::unsaid(found, opened) {
        about += &format!(".\n{unsaid}");
    }
    if opened.access == Access::BesideGateways {
        about +=
            ".\nA gateway with --only-gateway is not registered, and would not notice: there must be none";
    }
    confirm::ask(args.yes, &about)
}
