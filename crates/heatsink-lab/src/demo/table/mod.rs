//! `heatsink-lab demo table`: a table of many keys comes under a rule while clients write to all of
//! them, and to keys that are new; and everything that they wrote is counted.
//!
//! It runs in real time through the real HTTP fronts of several gateways, with an open-loop load
//! and without retries. The adoption is the one that `heatsink adopt` makes without a gateway that
//! carries reshards out.
//!
//! Not here: the arguments (`cli::demo`), the load generator (`heatsink-load`), the adoption
//! (`heatsink-workers`).

mod ledger;
mod options;
mod report;
mod watched;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use futures::FutureExt;
use futures::future::{self, try_join_all};
use heatsink_control::Rules;
use heatsink_control::reshard_intent::Request;
use heatsink_env::Env;
use heatsink_load::{Rate, Report, Span, open_loop};
use heatsink_workers::{Direction, Here, LiveAdoption, LiveNext, PreparedLive, Progress, WorkerError};

use crate::demo::fleet::{Fleet, Ground};
use crate::demo::workload;
use crate::exit::Exit;
use crate::output::Output;
use ledger::{Client, Ledger};
use watched::Watched;

pub use options::Options;
pub use report::Story;

/// Connections of the clients, over all gateways.
const CONNECTIONS: usize = 32;
/// The load is offered in pieces of this length, so that it ends with the adoption.
const PIECE: Duration = Duration::from_secs(1);

/// The parts of the load; the first is before.
const DURING: usize = 1;
const AFTER: usize = 2;

/// Runs the whole story.
pub async fn table(env: Arc<dyn Env>, options: Options, output: Output) -> Result<Story, Exit> {
    let rules = Rules::default();
    let mut table = workload::create_table();
    table["ProvisionedThroughput"]["WriteCapacityUnits"] = options.capacity.into();
    let ground = Ground { table, quotas: workload::QUOTAS, registry: true };
    let old = ledger::old(options.keys, options.items);
    let fleet = Fleet::start(&env, options.gateways, &rules, &ground, old).await?;
    let ledger = Arc::new(Ledger::new(env.clone(), &options));
    let adopted = AtomicBool::new(false);
    let watched = Arc::new(Watched::new(env.clone(), output));
    let load = async {
        let for_seconds = |pieces| pieces < options.seconds;
        let before = offer(&env, &fleet, &options, &ledger, for_seconds).await?;
        ledger.begin(DURING);
        let during = offer(&env, &fleet, &options, &ledger, |_| !adopted.load(Ordering::Relaxed)).await?;
        ledger.begin(AFTER);
        let after = offer(&env, &fleet, &options, &ledger, for_seconds).await?;
        Ok::<_, Exit>([before, during, after])
    };
    let adopting = async {
        env.sleep(Duration::from_secs(options.seconds)).await;
        let begun = env.now();
        let adoption = adopt(&env, &fleet, &options, &watched);
        let moved = match options.at_most {
            None => adoption.await,
            // Whoever is killed there has moved so much.
            Some(time) => {
                let stopped = env.sleep(time).map(|()| Ok(()));
                future::select(adoption.boxed(), stopped).await.factor_first().0
            }
        };
        adopted.store(true, Ordering::Relaxed);
        moved.map(|()| env.now().since(begun)).map_err(|error| Exit::failed(error.to_string()))
    };
    let (parts, took) = futures::try_join!(load, adopting)?;
    let counted = ledger.count(&fleet).await?;
    fleet.stop().await;
    Ok(Story::new(&options, &parts, (watched.moved(), took), &ledger, &watched.phases(), counted))
}

/// Offers the load in pieces, for as long as `goes_on` says after so many.
async fn offer(
    env: &Arc<dyn Env>,
    fleet: &Fleet,
    options: &Options,
    ledger: &Arc<Ledger>,
    goes_on: impl Fn(u64) -> bool,
) -> Result<Vec<Report>, Exit> {
    let (mut reports, mut pieces) = (Vec::new(), 0);
    while goes_on(pieces) {
        reports.extend(piece(env, fleet, options, ledger).await?);
        pieces += 1;
    }
    Ok(reports)
}

async fn piece(
    env: &Arc<dyn Env>,
    fleet: &Fleet,
    options: &Options,
    ledger: &Arc<Ledger>,
) -> Result<Vec<Report>, Exit> {
    let addresses = fleet.addresses();
    let of = addresses.len();
    #[allow(clippy::cast_precision_loss, reason = "a few")]
    let per_second = f64::from(options.writes) / of as f64;
    let first = ledger.numbers(2 * u64::from(options.writes) + 100);
    let loads = addresses.into_iter().zip(first..).map(|(address, first)| {
        let rate = Rate { per_second, span: Span::of(PIECE), connections: CONNECTIONS.div_ceil(of) };
        let of = u64::try_from(of).unwrap_or(1);
        let client = Client { ledger: Arc::clone(ledger), first, of };
        open_loop(env.clone(), address, rate, Arc::new(client))
    });
    let reports = try_join_all(loads).await.map_err(|error| Exit::software(error.to_string()))?;
    for failure in reports.iter().filter_map(|report| report.first_failure.as_ref()) {
        tracing::warn!("a request failed: {failure}");
    }
    ledger.unanswered(reports.iter().map(|report| report.unanswered).sum());
    Ok(reports)
}

/// Brings the table under its rule, as `heatsink adopt` does.
async fn adopt(
    env: &Arc<dyn Env>,
    fleet: &Fleet,
    options: &Options,
    watched: &Arc<Watched>,
) -> Result<(), WorkerError> {
    let rule = format!(
        "[[rule]]\ntable = \"{}\"\nstrategy = \"calculated\"\nshards = {}\n",
        workload::TABLE,
        options.shards
    );
    let rules =
        Rules::read("the demo's rules", &rule).map_err(|error| WorkerError::Usage(error.to_string()))?;
    let table = (workload::TABLE, Direction::Adopt);
    let prepared = LiveAdoption::prepare(fleet.store.clone(), env.clone(), &rules, table, 100, false).await?;
    let mut live = match prepared {
        PreparedLive::Live(live) => live,
        PreparedLive::Done => return Ok(()),
        PreparedLive::Offline(not_live) => return Err(WorkerError::Usage(not_live.why)),
    };
    let here = Here::new(fleet.store.clone(), env.clone(), &Rules::default(), "the demo", false);
    let request = Request {
        layout: 1.into(),
        rate: heatsink_workers::DEFAULT_RATE,
        streams_confirmed: false,
        by: String::new(),
        asked: env.unix_millis(),
    };
    let progress: Arc<dyn Progress> = watched.clone();
    loop {
        match live.next(&*progress).await? {
            LiveNext::Move(wishes) => {
                watched.moves(true);
                live.move_here(&here, wishes, &request, &progress).await?;
                watched.moves(false);
            }
            LiveNext::Done | LiveNext::UpTo => return Ok(()),
        }
    }
}
