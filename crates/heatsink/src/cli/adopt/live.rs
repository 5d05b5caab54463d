//! `heatsink adopt TABLE` while clients use the table: says what it takes, has its keys moved, and
//! says what came of it.
//!
//! Not here: who moves the keys (`table_moves`), adoption while nobody uses the table (`adopt`).

use std::sync::Arc;

use heatsink_control::Rules;
use heatsink_layout::TablePhase;
use heatsink_workers::{Direction, LiveAdoption, LiveSurvey, NotLive, PreparedLive};
use serde_json::{Value as Json, json};

use super::args::Args;
use super::dialogue::{ask, exit, not_begun, say};
use crate::cli::progress::Bar;
use crate::cli::reshard::{Opened, stopped};
use crate::cli::table_moves::{Moved, NO_DIRECTORY, TableMoves};
use crate::exit::Exit;

/// What came of it.
pub(super) enum Live {
    /// It was said.
    Said,
    /// Keys of indexes come next, as they do while nobody uses the table.
    Next,
    /// Only while nobody uses the table.
    Offline(NotLive),
}

/// Adopts a table while clients use it, or brings it back, where that can be done.
pub(super) async fn run(args: &Args, rules: &Rules, direction: Direction) -> Result<Live, Exit> {
    let mut opened = Opened::at(&args.place()).await?;
    let registry = rules.fence().registry_in(Arc::clone(&opened.store), Arc::clone(&opened.env));
    // What a key is to get is said to it; a rule that is not on record yet would stand in its way.
    (opened.rules, opened.registry) = (rules.clone().without_rules(), registry);
    let (store, env) = (Arc::clone(&opened.store), Arc::clone(&opened.env));
    let up_to = args.up_to.unwrap_or(100);
    let prepared = LiveAdoption::prepare(store, env, rules, (&args.table, direction), up_to, false).await;
    let mut live = match prepared.map_err(not_begun)? {
        PreparedLive::Live(live) => live,
        PreparedLive::Done => return Ok(Live::Next),
        PreparedLive::Offline(why) => return Ok(Live::Offline(why)),
    };
    if live.phase().is_none() && !live.can_enter_keys().await.map_err(not_begun)? {
        return Ok(Live::Offline(NotLive { why: NO_DIRECTORY.to_owned(), goes_on: false }));
    }
    let bar = Arc::new(Bar::new(args.output));
    let survey = live.survey(args.rate, &*bar).await.map_err(exit)?;
    bar.done();
    if args.dry_run {
        say(args.output, &document(&survey, live.phase()), &plan(&survey, live.phase()))?;
        return match survey.in_the_way {
            Some(why) => Err(Exit::failed(why)),
            None => Ok(Live::Said),
        };
    }
    if live.phase().is_none() {
        if let Some(why) = &survey.in_the_way {
            return Err(Exit::usage(format!("{why}. Nothing was changed")));
        }
        let context = opened.table(&args.table, args.confirm_streams).await.map_err(stopped)?;
        if let Some(why) = context.unconfirmed() {
            return Err(Exit::usage(format!("{why}. Nothing was changed")));
        }
    }
    ask(args, &about(&live, &survey))?;
    let begun = opened.env.now();
    let (opened, table, output) = (&opened, &*args.table, args.output);
    let moves = TableMoves { opened, table, how: args.how(), place: args.place(), output };
    let Moved { keys, items: moved, ended } = moves.carry_out(&mut live, &bar).await?;
    bar.done();
    let seconds = opened.env.now().since(begun).as_secs();
    let next_steps = match ended {
        true => vec![format!("heatsink verify {}{}", args.table, args.place().words())],
        false => vec![
            format!("heatsink verify {}{}", args.table, args.place().words()),
            format!("heatsink adopt {}{}", args.table, args.place().words()),
        ],
    };
    let document = json!({
        "table": args.table, "live": true, "done": ended, "keys": keys, "moved": moved, "seconds": seconds, "layouts": live.layouts(), "kept": live.kept(),
        "next_steps": next_steps,
    });
    say(args.output, &document, &told(&live, ended, keys, moved, seconds, up_to))?;
    Ok(Live::Said)
}

fn document(survey: &LiveSurvey, phase: Option<TablePhase>) -> Json {
    let mut document = serde_json::to_value(survey).unwrap_or_default();
    document["live"] = json!(true);
    document["phase"] = json!(phase);
    document
}

fn plan(survey: &LiveSurvey, phase: Option<TablePhase>) -> String {
    let LiveSurvey { table, layouts, keys, keys_to_move, items, items_to_move, .. } = survey;
    let under_way = phase.map_or_else(String::new, |phase| {
        format!("\nIt is under way, in {}: run without --dry-run it goes on", phase_name(phase))
    });
    format!(
        "table {table}: {keys} keys with {items} items; {keys_to_move} keys move, and about {items_to_move} items of them, to: {layouts}\nabout {} write units, {} read \
         units, ${:.2}; about {} s\nclients go on meanwhile; first writes of new keys wait for less than a second, once{under_way}",
        survey.write_units, survey.read_units, survey.dollars, survey.seconds
    )
}

/// The phase's name, as records have it.
fn phase_name(phase: TablePhase) -> String {
    json!(phase).as_str().unwrap_or_default().to_owned()
}

fn about(live: &LiveAdoption, survey: &LiveSurvey) -> String {
    let begins = match live.phase() {
        None => "About to give".to_owned(),
        Some(phase) => format!("Going on, in {}, to give", phase_name(phase)),
    };
    format!(
        "{begins} all keys of table {} these layouts: {}. {} keys move, about {} items of them, in about {} s.\nClients may go on through Heatsink, and through \
         nothing else. A gateway with --only-gateway is not registered, and would not notice: there must be none.",
        live.table(),
        live.layouts(),
        survey.keys_to_move,
        survey.items_to_move,
        survey.seconds
    )
}

fn told(live: &LiveAdoption, ended: bool, keys: usize, moved: u64, seconds: u64, up_to: u8) -> String {
    let table = live.table();
    match ended {
        true => format!(
            "table {table}: all keys have these layouts: {}{}. {keys} keys moved, {moved} items of them, in {seconds} s{}",
            live.layouts(),
            match live.kept() {
                0 => String::new(),
                kept => format!(", but for {kept} that keep layouts of their own"),
            },
            if live.is_back_but_for_indexes() {
                ". Keys of its indexes are still spread: run this again to bring them back"
            } else {
                ""
            }
        ),
        false => format!(
            "table {table}: {up_to} % of its keys have these layouts: {}. {keys} keys moved, {moved} items of them, in {seconds} s. Run this again, with a larger \
             --up-to or without, for the rest; --back takes it back",
            live.layouts()
        ),
    }
}
