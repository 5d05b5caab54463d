//! Carries the steps of a table out, and says each as it ends. Keys and values are brought back by
//! the gateways that are registered, many at once; without them by this process. So is a table under
//! a rule, key by key, where that can be done while clients use it.
//!
//! Not here: which steps there are (`heatsink_workers::Leave`).

use std::sync::Arc;

use heatsink_dynamo::KeyType;
use heatsink_workers::{
    Direction, Leave, LeaveOptions, LiveAdoption, PreparedLive, Progress, Step, StepReport,
};
use serde::Serialize;

use super::args::Args;
use super::words;
use crate::cli::confirm;
use crate::cli::progress::Bar;
use crate::cli::reshard::{Access, Opened, Wish, by_gateways, stopped, unread};
use crate::cli::table_moves::{NO_DIRECTORY, TableMoves};
use crate::exit::Exit;
use crate::output::Output;

/// Items a second that are read of an upstream to verify them, as by `heatsink verify`.
const UPSTREAM_RATE: u64 = 2_000;

/// The most keys that gateways are asked for at once.
const AT_ONCE: usize = 1_000;

/// A step that was carried out.
#[derive(Debug, Serialize)]
pub(super) struct Done {
    table: String,
    step: &'static str,
    moved: u64,
    looked_at: Option<u64>,
}

/// Takes a table out.
///
/// # Errors
/// What stopped it; the same command goes on.
pub(super) async fn carry_out(opened: &Opened, args: &Args, table: &str) -> Result<Vec<Done>, Exit> {
    let alone = opened.access == Access::Alone;
    let options = LeaveOptions {
        alone,
        rate: args.rate,
        read_rate: (!alone).then_some(UPSTREAM_RATE),
        streams_confirmed: args.confirm_streams,
        by: std::env::var("USER").unwrap_or_default(),
    };
    let (store, env) = (Arc::clone(&opened.store), Arc::clone(&opened.env));
    let mut leave = Leave::new(store, env, &opened.rules, table, options);
    let mut all = Vec::new();
    while let Some(step) = leave.next().await.map_err(stopped)? {
        let begun = opened.env.now();
        let bar = Arc::new(Bar::new(args.output));
        let live = if step == Step::Own { table_back(opened, args, table, &bar).await? } else { None };
        let report = match live {
            Some(report) => report,
            None => {
                if step == Step::Own {
                    ask_for_the_table(args, table)?;
                }
                one(opened, args, table, &mut leave, (&step, &bar)).await?
            }
        };
        bar.done();
        let seconds = opened.env.now().since(begun).as_secs();
        say(args.output, table, &step, report, seconds);
        let StepReport { moved, looked_at } = report;
        all.push(Done { table: table.to_owned(), step: words::step_name(&step), moved, looked_at });
    }
    Ok(all)
}

async fn one(
    opened: &Opened,
    args: &Args,
    table: &str,
    leave: &mut Leave,
    (step, bar): (&Step, &Arc<Bar>),
) -> Result<StepReport, Exit> {
    let shown: Arc<dyn Progress> = Arc::<Bar>::clone(bar);
    match step {
        Step::Keys(keys) if !args.here && opened.is_carried(|one| one.carries).await? => {
            keys_by_gateways(opened, args, table, keys).await
        }
        Step::Counters if !args.here && opened.is_carried(|one| one.carries).await? => {
            let keys = leave.counter_keys(&*shown).await.map_err(stopped)?;
            let report = keys_by_gateways(opened, args, table, &keys).await?;
            leave.note_counted();
            Ok(report)
        }
        Step::Values(values) if !args.here && opened.is_carried(|one| one.carries_values).await? => {
            let record = opened.registry.named(table).await.map_err(unread)?;
            let known = record.iter().flat_map(|record| &record.values);
            let known: Vec<_> = known.collect();
            let wish = |(index, key): &(String, Vec<u8>)| {
                let of = known.iter().find(|one| one.index.name == *index && one.value == *key);
                let key_type = of.map_or(KeyType::S, |one| one.index.attribute.key_type);
                Wish { index: Some(index.clone()), key: key.clone(), key_type, layout: 1.into() }
            };
            let wishes: Vec<Wish> = values.iter().map(wish).collect();
            ask_gateways(opened, args, table, &wishes).await
        }
        step => leave.carry_out(step, shown).await.map_err(stopped),
    }
}

/// Brings the keys of a table out of its rules while clients use it; `None` where that cannot be
/// done.
async fn table_back(
    opened: &Opened,
    args: &Args,
    table: &str,
    bar: &Arc<Bar>,
) -> Result<Option<StepReport>, Exit> {
    let mut live = match way_back(opened, args, table).await? {
        Ok(live) => live,
        Err(why) => {
            tracing::warn!("table {table} comes back while nobody uses it: {why}");
            return Ok(None);
        }
    };
    if live.phase().is_none() {
        let survey = live.survey(args.rate, &**bar).await.map_err(stopped)?;
        if let Some(why) = survey.in_the_way {
            return Err(Exit::failed(why));
        }
        if !live.can_enter_keys().await.map_err(stopped)? {
            tracing::warn!("table {table} comes back while nobody uses it: {NO_DIRECTORY}");
            return Ok(None);
        }
    }
    let moves = TableMoves { opened, table, how: args.how(), place: args.place(), output: args.output };
    let moved = moves.carry_out(&mut live, bar).await?.items;
    Ok(Some(StepReport { moved, looked_at: None }))
}

/// The way of a table out of its rules while clients use it, or why there is none.
async fn way_back(
    opened: &Opened,
    args: &Args,
    table: &str,
) -> Result<Result<Box<LiveAdoption>, String>, Exit> {
    if args.data.is_some() {
        return Ok(Err("a file has no clients".to_owned()));
    }
    let (store, env) = (Arc::clone(&opened.store), Arc::clone(&opened.env));
    let rules = opened.rules.clone().without_rules();
    let prepared = LiveAdoption::prepare(store, env, &rules, (table, Direction::Back), 100, false).await;
    Ok(match prepared.map_err(stopped)? {
        PreparedLive::Live(live) => Ok(live),
        PreparedLive::Done => Err("its keys are back already".to_owned()),
        PreparedLive::Offline(not_live) => Err(not_live.why),
    })
}

/// Why a table comes back only while nobody uses it, if that is so.
///
/// # Errors
/// The store's.
pub(super) async fn why_clients_wait(
    opened: &Opened,
    args: &Args,
    table: &str,
) -> Result<Option<String>, Exit> {
    Ok(way_back(opened, args, table).await?.err())
}

async fn keys_by_gateways(
    opened: &Opened,
    args: &Args,
    table: &str,
    keys: &[Vec<u8>],
) -> Result<StepReport, Exit> {
    let context = opened.table(table, args.confirm_streams).await.map_err(stopped)?;
    // Why one cannot move is said before anything is asked for.
    for key in keys {
        context.reshard(key, &1.into()).map_err(stopped)?;
    }
    let key_type = context.key_type();
    let wish = |key: &Vec<u8>| Wish { index: None, key: key.clone(), key_type, layout: 1.into() };
    let wishes: Vec<Wish> = keys.iter().map(wish).collect();
    ask_gateways(opened, args, table, &wishes).await
}

async fn ask_gateways(
    opened: &Opened,
    args: &Args,
    table: &str,
    wishes: &[Wish],
) -> Result<StepReport, Exit> {
    let mut report = StepReport::default();
    for some in wishes.chunks(AT_ONCE) {
        let reports = by_gateways(opened, table, some, &args.how(), &args.place()).await?;
        report.moved += reports.iter().map(|one| one.moved).sum::<u64>();
    }
    Ok(report)
}

/// The one step that clients notice, where there is no other way.
fn ask_for_the_table(args: &Args, table: &str) -> Result<(), Exit> {
    confirm::ask(
        args.yes,
        &format!(
            "About to move the items of table {table} back. Until that is done nobody else may read or write it, neither through Heatsink nor bypassing it: \
             gateways refuse its requests, retryably"
        ),
    )
}

/// What a step has done, while others are to come. On stderr: the result is one document.
fn say(output: Output, table: &str, step: &Step, report: StepReport, seconds: u64) {
    if output == Output::Json {
        return;
    }
    let looked_at = report.looked_at.map(|items| format!(", {items} items looked at")).unwrap_or_default();
    eprintln!(
        "table {table}: {}: {} items moved{looked_at}, in {seconds} s",
        words::step(step),
        report.moved
    );
}
