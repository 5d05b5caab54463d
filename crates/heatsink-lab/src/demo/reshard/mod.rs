//! `heatsink-lab demo reshard` and `heatsink-lab demo viral`: a key burns its partition, is sharded
//! while clients go on writing, by a command or by the gateways themselves, and everything that
//! they wrote is counted.
//!
//! It runs in real time through the real HTTP fronts of several gateways, with an open-loop load
//! and without retries.
//!
//! Not here: the arguments (`cli::demo`), the load generator (`heatsink-load`), the reshard
//! (`heatsink-workers`).

mod drained;
mod follow;
mod ledger;
mod options;
mod reached;
mod report;
mod steps;

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::try_join_all;
use heatsink_control::Rules;
use heatsink_dynamo::Operation;
use heatsink_env::Env;
use heatsink_load::{Rate, Report, Span, open_loop};
use heatsink_physics::PARTITION_WRITES;
use heatsink_workers::Reshard;
use serde_json::json;

use crate::demo::bars::Bars;
use crate::demo::fleet::{Fleet, Ground};
use crate::demo::loads::Neighbours;
use crate::demo::workload::{self, Readers};
use crate::exit::Exit;
use crate::output::Output;
use ledger::{Client, Ledger};
use options::KEY;
use reached::Moved;
use report::Settings;
use steps::Steps;

pub use options::{Options, Sample};
pub use report::Story;

/// Connections of the writers, over all gateways, and of the readers.
const CONNECTIONS: [usize; 2] = [48, 4];
/// What the gateways may do by themselves.
const AUTOMATIC: &str =
    "[[automatic]]\ntable = \"Leaderboards\"\nkeys = \"game_*\"\nmode = \"auto\"\npatience = \"0s\"\n";
/// How often the partitions are written down for the picture.
const SAMPLE: Duration = Duration::from_millis(500);

/// Runs the whole story.
pub async fn reshard(env: Arc<dyn Env>, options: Options, output: Output) -> Result<Story, Exit> {
    let old = (0..options.items).map(|nth| Ledger::old(KEY, nth));
    let rules = if options.automatic { AUTOMATIC } else { "" };
    let rules = Rules::read("the demo's rules", rules).map_err(|error| Exit::software(error.to_string()))?;
    let ground = Ground { table: workload::create_table(), quotas: workload::QUOTAS, registry: true };
    let fleet = Fleet::start(&env, options.gateways, &rules, &ground, old).await?;
    let partitions = u32::try_from(fleet.partitions().len()).unwrap_or(u32::MAX);
    let settings = Settings::of(&options, partitions)?;
    let seconds = options.before + options.after;
    let offered = u64::from(options.writes) * seconds;
    // Each client's share is rounded up.
    let offered = usize::try_from(offered).unwrap_or(usize::MAX).saturating_add(options.gateways);
    let ledger = Arc::new(Ledger::new(env.clone(), KEY, offered, options.conditional));
    let bars = Bars::new("one key", seconds, PARTITION_WRITES, output);
    bars.says(format!("{} puts/s on {KEY}", options.writes));
    let steps = Steps { ledger: &ledger, fleet: &fleet, bars: &bars, seen: Mutex::default() };
    let samples = Mutex::new(Vec::new());
    let readers = Arc::new(Readers::new(KEY));
    let neighbours = Neighbours::of(&env, &fleet, KEY, seconds);
    let all = async {
        futures::try_join!(
            write(&env, &fleet, &options, &ledger),
            read(&env, &fleet, &options, readers.clone()),
            neighbours.offer(&env, &fleet),
            async {
                match options.automatic {
                    true => follow::follow(&env, &fleet, &options, &steps).await,
                    false => operate(&env, &fleet, &options, settings.shards, &steps).await,
                }
            },
        )
    };
    let ((), reads, (), ran) = tokio::select! {
        ended = all => ended?,
        () = bars.run(&*env, || fleet.partitions()) => return Err(Exit::software("the display ended early")),
        () = sample(&env, &fleet, &ledger, &samples) => return Err(Exit::software("the record ended early")),
    };
    let reached = steps.seen.into_inner().unwrap_or_else(PoisonError::into_inner);
    bars.says("counting".to_owned());
    let count = ledger.count(options.items, &everything(&fleet).await?);
    drop(bars);
    let heat = fleet.heat_map();
    fleet.stop().await;
    let samples = samples.into_inner().unwrap_or_else(PoisonError::into_inner);
    let story = Story::new(settings, &ledger, reached, ran, &reads, count, samples);
    let (from, to) = story.burnt();
    Ok(Story { heat, neighbours: neighbours.suffered(from, to), ..story })
}

/// The load of the writers: a share of it through each gateway.
async fn write(
    env: &Arc<dyn Env>,
    fleet: &Fleet,
    options: &Options,
    ledger: &Arc<Ledger>,
) -> Result<(), Exit> {
    let addresses = fleet.addresses();
    let clients = addresses.len();
    let loads = addresses.into_iter().enumerate().map(|(nth, address)| {
        #[allow(clippy::cast_precision_loss, reason = "a few gateways")]
        let per_second = f64::from(options.writes) / clients as f64;
        let span = Span::of(Duration::from_secs(options.before + options.after));
        let rate = Rate { per_second, span, connections: CONNECTIONS[0].div_ceil(clients) };
        let client = Client { ledger: Arc::clone(ledger), nth: nth as u64, clients: clients as u64 };
        open_loop(env.clone(), address, rate, Arc::new(client))
    });
    let reports = try_join_all(loads).await.map_err(|error| Exit::software(error.to_string()))?;
    for failure in reports.iter().filter_map(|report| report.first_failure.as_ref()) {
        tracing::warn!("a put failed: {failure}");
    }
    Ok(())
}

/// The load of the readers, through the first gateway.
async fn read(
    env: &Arc<dyn Env>,
    fleet: &Fleet,
    options: &Options,
    readers: Arc<Readers>,
) -> Result<Report, Exit> {
    let address = *fleet.addresses().first().ok_or_else(|| Exit::software("no gateway runs"))?;
    let span = Span::of(Duration::from_secs(options.before + options.after));
    let rate = Rate { per_second: f64::from(options.reads), span, connections: CONNECTIONS[1] };
    open_loop(env.clone(), address, rate, readers).await.map_err(|error| Exit::software(error.to_string()))
}

/// The operator: watches for a while, then gives the command.
async fn operate(
    env: &Arc<dyn Env>,
    fleet: &Fleet,
    options: &Options,
    shards: u16,
    steps: &Steps<'_>,
) -> Result<Moved, Exit> {
    env.sleep(Duration::from_secs(options.before)).await;
    steps.reached("command");
    let rules = Rules::default();
    let prepared = Reshard::prepare(
        fleet.store.clone(),
        env.clone(),
        &rules,
        workload::TABLE,
        KEY.as_bytes(),
        shards,
        false,
    );
    let stopped = |error: heatsink_workers::WorkerError| Exit::failed(error.to_string());
    let how = heatsink_workers::ReshardOptions { exclusive: false, rate: options.rate };
    let report = prepared.await.map_err(stopped)?.run(how, steps).await.map_err(stopped)?;
    steps.reached("done");
    Ok(Moved { items: report.moved, rate: options.rate, shards, because: None })
}

async fn sample(env: &Arc<dyn Env>, fleet: &Fleet, ledger: &Ledger, samples: &Mutex<Vec<Sample>>) {
    loop {
        let seen = (ledger.millis(), fleet.partitions());
        samples.lock().unwrap_or_else(PoisonError::into_inner).push(seen);
        env.sleep(SAMPLE).await;
    }
}

/// The sort keys of all items of the key, as a consistent Query through a gateway shows them.
async fn everything(fleet: &Fleet) -> Result<Vec<String>, Exit> {
    let mut body = json!({
        "TableName": workload::TABLE, "KeyConditionExpression": "pk = :key", "ExpressionAttributeValues": { ":key": { "S": KEY } },
        "ConsistentRead": true, "ProjectionExpression": "sk",
    });
    let mut found = Vec::new();
    loop {
        let mut page = fleet.call(Operation::Query, &body).await?;
        let items = page["Items"].as_array().into_iter().flatten();
        found.extend(items.filter_map(|item| item["sk"]["S"].as_str()).map(str::to_owned));
        body["ExclusiveStartKey"] = page["LastEvaluatedKey"].take();
        if body["ExclusiveStartKey"].is_null() {
            return Ok(found);
        }
    }
}
