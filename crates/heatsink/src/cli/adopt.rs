//! `heatsink adopt TABLE`: brings a table with items under its rules, or back, while clients use it:
//! its own keys ([`live`]), and then those of its indexes. Its own keys while nobody else uses it,
//! where that cannot be done otherwise, and on a file. Or records it as it is ([`as_it_lies`]).

mod args;
mod as_it_lies;
mod dialogue;
mod live;

use std::sync::Arc;

use heatsink_control::Rules;
use heatsink_env::{Env, RealEnv};
use heatsink_workers::{Adoption, AdoptionOptions, Direction, NotLive, Survey, WorkerError};
use serde_json::json;

use super::open::open_behind_gateways;
use super::progress::Bar;
use super::{rules, runtime};
use crate::exit::Exit;
pub use args::Args;
use dialogue::{ask, exit, not_begun, say};

/// How many items are read and moved at once. Of the moves, each one transaction, a claim lets
/// eleven go at once; an upstream ten milliseconds away then moves some thousand items per second.
const CONCURRENCY: usize = 32;

/// Runs it. Exit 0 when it is done; 64 when it cannot be done as asked; 69 when the store did not
/// answer and nothing was begun; 1 when items stand in the way or it stopped on the way.
pub fn run(args: Args) -> Result<(), Exit> {
    let direction = match (args.back, args.keep_keys) {
        (false, _) => Direction::Adopt,
        (true, false) => Direction::Back,
        (true, true) => Direction::Release,
    };
    // The way back is on record, and so are the records of another table; of the rules they need
    // only where that is.
    let rules = if args.back || args.copies_record() {
        rules::find(args.rules.as_deref())?.rules.without_rules()
    } else {
        rules::need(args.rules.as_deref())?.rules
    };
    runtime::threads()?.block_on(adopt(args, rules, direction))
}

async fn adopt(args: Args, rules: Rules, direction: Direction) -> Result<(), Exit> {
    let mut said = false;
    if args.is_live() {
        match live::run(&args, &rules, direction).await? {
            live::Live::Said if direction != Direction::Adopt || args.dry_run || args.up_to.is_some() => {
                return Ok(());
            }
            live::Live::Said => said = true,
            live::Live::Next => {}
            live::Live::Offline(NotLive { why, goes_on: false }) if args.yes && !args.dry_run => {
                return Err(Exit::usage(format!(
                    "table {} can only be moved while nobody uses it: {why}. Keep its clients away, and say --offline. Nothing was changed",
                    args.table
                )));
            }
            live::Live::Offline(NotLive { why, .. }) => {
                tracing::warn!("table {} is adopted while nobody uses it: {why}", args.table);
            }
        }
    }
    let env: Arc<dyn Env> = Arc::new(RealEnv);
    let (data, upstream) = (args.data.as_deref(), args.upstream.as_deref());
    let store = open_behind_gateways(data, upstream, &rules.fence().registry, &env).await?;
    if args.as_it_lies || args.copies_record() {
        return as_it_lies::run(&args, store, env, &rules).await;
    }
    let anew = args.records_from.is_some();
    let prepare = async || {
        let (store, env) = (Arc::clone(&store), Arc::clone(&env));
        let adoption = match anew {
            true => Adoption::prepare_anew(store, env, &rules, &args.table).await?,
            false => Adoption::prepare(store, env, &rules, &args.table, direction).await?,
        };
        Ok::<_, WorkerError>(if args.as_logical_keys { adoption.with_logical_keys() } else { adoption })
    };
    let mut adoption = prepare().await.map_err(not_begun)?;
    if said && adoption.is_done() {
        return Ok(());
    }
    loop {
        step(&args, direction, adoption).await?;
        // The table's own keys come first, those of its indexes after them. Coming back, the rest
        // is another decision: it stops clients.
        if direction != Direction::Adopt || args.dry_run {
            return Ok(());
        }
        adoption = prepare().await.map_err(exit)?;
        if adoption.is_done() {
            return Ok(());
        }
    }
}

async fn step(args: &Args, direction: Direction, adoption: Adoption) -> Result<(), Exit> {
    let bar = Bar::new(args.output);
    if args.dry_run {
        if adoption.is_done() || adoption.is_resumed() {
            let text = if adoption.is_done() {
                "already adopted"
            } else {
                "interrupted; run without --dry-run to go on"
            };
            return say(
                args.output,
                &json!({ "table": args.table, "state": text }),
                &format!("table {}: {text}", args.table),
            );
        }
        let survey = adoption.survey(&bar).await.map_err(exit)?;
        bar.done();
        return dry_run(args, &survey);
    }
    if !adoption.is_done() {
        confirm(args, &adoption)?;
    }
    let (rest, undoes) = (adoption.rest_of_the_way_back(), adoption.undoes_a_change());
    // A file has one process at a time; an upstream may have gateways that have yet to notice.
    let exclusive = args.upstream.is_none();
    let report =
        adoption.run(AdoptionOptions { concurrency: CONCURRENCY, exclusive }, &bar).await.map_err(exit)?;
    bar.done();
    let document = serde_json::to_value(&report).map_err(|error| Exit::software(error.to_string()))?;
    let (table, indexes) = (&report.table, report.indexes.join(", "));
    let text = match (report.already, direction) {
        (true, _) => format!("table {table} is under its rules already"),
        (false, Direction::Adopt) if !indexes.is_empty() => {
            format!("table {table}: {indexes} is spread, in {} of {} items", report.moved, report.items)
        }
        (false, _) if !indexes.is_empty() => {
            let rest = match (rest, undoes) {
                (true, _) => ". Its own keys are still spread: run this again to bring them back",
                (false, true) => {
                    " before the change that was interrupted. It is still spread: run this again to bring it back"
                }
                (false, false) => "",
            };
            format!(
                "table {table}: {indexes} is as it was, in {} of {} items{rest}",
                report.moved, report.items
            )
        }
        (false, Direction::Adopt) => {
            format!(
                "table {table} is under its rules: {} items, {} of them moved, all found at their place, none lost{}{}",
                report.items,
                report.moved,
                tied(report.tied),
                recipe(report.recipe.as_deref())
            )
        }
        (false, Direction::Release) => {
            format!(
                "table {table} is out of its rules: {} items, all under their physical keys as its own code wrote them",
                report.items
            )
        }
        (false, Direction::Back) => {
            format!(
                "table {table} is out of its rules: {} items, {} of them moved, all as they were",
                report.items, report.moved
            )
        }
    };
    say(args.output, &document, &text)
}

fn dry_run(args: &Args, survey: &Survey) -> Result<(), Exit> {
    let document = serde_json::to_value(survey).map_err(|error| Exit::software(error.to_string()))?;
    let text = format!(
        "table {}: {} items, {} would move, {} have keys in the reserved form that would be escaped{}{}",
        args.table,
        survey.items,
        survey.to_move,
        survey.escaped,
        tied(survey.tied),
        recipe(survey.recipe.as_deref())
    );
    say(args.output, &document, &text)?;
    if let Some(why) = &survey.sharded_already {
        return Err(Exit::usage(why.clone()));
    }
    if survey.refused > 0 { Err(Exit::failed(survey.refusal(&args.table))) } else { Ok(()) }
}

/// A warning of items that cannot be told apart by their key.
fn tied(items: u64) -> String {
    match items {
        0 => String::new(),
        items => format!(
            "\nwarning: {items} items have the primary key of another one, in another shard. Queries and Scans show all of them; requests that \
             name one by its key are refused"
        ),
    }
}

/// A warning of a rule that looks for what could be computed.
fn recipe(found: Option<&str>) -> String {
    found.map_or_else(String::new, |found| format!("\nwarning: {found}"))
}

/// Says what is about to happen and asks, if there is somebody to ask.
fn confirm(args: &Args, adoption: &Adoption) -> Result<(), Exit> {
    let back = if args.back { "back out of its rules" } else { "under its rules" };
    let about = if args.keep_keys {
        format!(
            "About to take table {} off the record ({}). Its items stay under their physical keys, which clients of Heatsink see from then on.",
            args.table,
            adoption.layouts(),
        )
    } else if adoption.indexes().is_empty() {
        format!(
            "{} table {} {back}: {}.\nNobody else may read or write the table until this is done, neither through Heatsink nor bypassing it.",
            if adoption.is_resumed() { "Going on with" } else { "About to move the items of" },
            args.table,
            adoption.layouts(),
        )
    } else {
        format!(
            "{} {} in the items of table {} {back}: {}.\nClients may go on through Heatsink, and through nothing else.",
            if adoption.is_resumed() { "Going on to rewrite" } else { "About to rewrite" },
            adoption.indexes().join(", "),
            args.table,
            adoption.layouts(),
        )
    };
    ask(args, &about)
}
