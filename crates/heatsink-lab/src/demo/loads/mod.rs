//! `heatsink-lab demo viral --load NAME`: loads that the gateways have to relieve by themselves, and
//! an exact account of what became of every request.
//!
//! They run in real time through the real HTTP fronts of several gateways, with an open-loop load
//! and without retries, on the embedded store and its partitions. The registry is not there before:
//! the store is as fresh as a new user's.
//!
//! Not here: the arguments (`cli::demo`), the load generator (`heatsink-load`), what the gateways
//! decide (`heatsink_heat::policy`).

mod found;
mod least;
mod measure;
mod names;
mod neighbours;
mod print;
mod scene;
mod story;
mod subject;
mod traffic;
mod watch;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::try_join_all;
use heatsink::Rules;
use heatsink_env::Env;
use heatsink_load::{Rate, Span, open_loop};
use heatsink_physics::{PARTITION_WRITES, Quotas};

use crate::demo::account::Account;
use crate::demo::bars::Bars;
use crate::demo::fleet::{Fleet, Ground};
use crate::demo::slow::Slow;
use crate::exit::Exit;
use crate::output::Output;
use names::Partitions;
use story::Settings;
use subject::Subject;
use traffic::{Offer, Part};
use watch::Seen;

pub use neighbours::{Neighbours, Suffered};
pub use scene::Load;
pub use story::Story;

/// Connections of the clients, over all gateways.
const CONNECTIONS: usize = 96;
/// What the gateways may do by themselves: everything, for all keys, at once.
const AUTOMATIC: &str =
    "[[automatic]]\ntable = \"Leaderboards\"\nmode = \"auto\"\npatience = \"0s\"\nindex_values = true\n";

/// The options.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// The load.
    pub load: Load,
    /// Its seconds.
    pub seconds: u64,
    /// Gateways, each with its part of the requests.
    pub gateways: usize,
    /// Seconds that they are up before it.
    pub idle: u64,
    /// How many seconds of the machine one second takes.
    pub slow: u32,
}

/// Runs a load.
pub async fn run(env: Arc<dyn Env>, options: Options, output: Output) -> Result<Story, Exit> {
    let Options { load, seconds, gateways, idle, slow } = options;
    let env: Arc<dyn Env> = if slow > 1 { Arc::new(Slow::new(env, slow)) } else { env };
    let rules =
        Rules::read("the demo's rules", AUTOMATIC).map_err(|error| Exit::software(error.to_string()))?;
    let ground = Ground { table: load.table(), quotas: Quotas::NONE, registry: false };
    let firsts = ground.partitions(&env).await?.iter().map(|one| one.first).collect();
    let partitions = Partitions::new(firsts);
    let subjects = load.subjects(&partitions, seconds);
    let old = subjects.iter().flat_map(Subject::old);
    let fleet = Fleet::start(&env, gateways, &rules, &ground, old).await?;
    let items: Vec<usize> = subjects.iter().map(|subject| subject.items).collect();
    env.sleep(Duration::from_secs(idle)).await;
    let offer = Arc::new(Offer::new(subjects, Account::new(env.clone(), seconds, &items)));
    let settings = Settings {
        load,
        gateways,
        idle,
        seconds,
        slow,
        requests: offer.per_second(),
        items: offer.subjects().iter().map(|one| f64::from(one.per_second * one.items_each())).sum(),
        partitions: partitions.count(),
    };
    let bars = Bars::new("the load", seconds, PARTITION_WRITES, output);
    let seen = Mutex::new(Seen::default());
    tokio::select! {
        ended = offered(&env, &fleet, &offer, seconds) => ended?,
        watched = watch::watch(&env, &fleet, &offer, &seen) => match watched? {},
        () = bars.run(&*env, || fleet.partitions()) => return Err(Exit::software("the display ended early")),
    }
    bars.says("counting".to_owned());
    let counts = found::count(&env, &fleet, &offer).await?;
    drop(bars);
    fleet.stop().await;
    let seen = seen.into_inner().unwrap_or_else(PoisonError::into_inner);
    Ok(Story::new(settings, &offer, &partitions, seen, &counts))
}

/// Offers the load: each gateway gets its part.
async fn offered(env: &Arc<dyn Env>, fleet: &Fleet, offer: &Arc<Offer>, seconds: u64) -> Result<(), Exit> {
    let addresses = fleet.addresses();
    let of = addresses.len();
    #[allow(clippy::cast_precision_loss, reason = "a few thousand")]
    let per_second = offer.per_second() as f64 / of as f64;
    let loads = addresses.into_iter().enumerate().map(|(nth, address)| {
        let rate = Rate {
            per_second,
            span: Span::of(Duration::from_secs(seconds)),
            connections: CONNECTIONS.div_ceil(of),
        };
        let part = Part { offer: Arc::clone(offer), nth: nth as u64, of: of as u64 };
        open_loop(env.clone(), address, rate, Arc::new(part))
    });
    let reports = try_join_all(loads).await.map_err(|error| Exit::software(error.to_string()))?;
    for failure in reports.iter().filter_map(|report| report.first_failure.as_ref()) {
        tracing::warn!("a request failed: {failure}");
    }
    Ok(())
}
