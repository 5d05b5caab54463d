//! `heatsink serve`: puts the rooms together and serves until told to stop.

mod banner;
mod recorder;
mod signals;
pub(super) mod store;

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use clap::ValueEnum;
use heatsink_control::{Control, Rules, StartError};
use heatsink_env::{Env, RealEnv};
use heatsink_gateway::{Limits, Service, http};
use heatsink_physics::Quotas;
use tokio::net::TcpListener;

use super::Output;
use crate::exit::Exit;

/// What `serve` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Address to listen on; only loopback addresses, for signatures are not checked yet
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:8000")]
    listen: SocketAddr,
    /// Keep the data in this file; without it, data lies in memory and goes with the process
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// Use the DynamoDB endpoint at this URL as the store, with credentials and region from the standard AWS chain
    #[arg(long, value_name = "URL", conflicts_with = "data")]
    upstream: Option<String>,
    /// Serve operations on the upstream's AWS account too: resource policies, deletion of backups, exports, imports, global tables,
    /// Kinesis destinations. Clients are not authenticated, so everyone on this machine can then use them
    #[arg(long, requires = "upstream")]
    allow_account_operations: bool,
    /// Which keys are sharded, and how
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// Whether the embedded store throttles as DynamoDB's partitions do
    #[arg(long, value_enum, default_value = "on")]
    partitions: Switch,
    /// Whether the embedded store has the quotas of a new AWS account: capacity per table and account, decreases and switches
    /// per day, number of tables
    #[arg(long, value_enum, default_value = "on")]
    quotas: Switch,
    /// How the endpoint is printed on stdout
    #[arg(long, value_enum, default_value_t)]
    output: Output,
}

/// Whether something is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Switch {
    On,
    Off,
}

/// Serves until Ctrl-C or SIGTERM.
pub fn run(args: Args) -> Result<(), Exit> {
    if !args.listen.ip().is_loopback() {
        return Err(Exit::usage(format!(
            "--listen {}: only loopback addresses are served (127.0.0.1, [::1]), because signatures are not checked yet: \
             anyone who can reach the port could read and write all data",
            args.listen
        )));
    }
    let rules = args.rules.as_deref().map(read_rules).transpose()?.unwrap_or_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let served = runtime.block_on(serve(args, rules));
    // A request that outlived the time to drain must not hold the process.
    runtime.shutdown_background();
    served
}

async fn serve(args: Args, rules: Rules) -> Result<(), Exit> {
    let env: Arc<dyn Env> = Arc::new(RealEnv);
    let stop = signals::stop()?;
    let listener = TcpListener::bind(args.listen).await.map_err(|error| {
        Exit::unavailable(format!(
            "cannot listen on {}: {error}; choose another address with --listen",
            args.listen
        ))
    })?;
    let quotas = if args.quotas == Switch::On { Quotas::default() } else { Quotas::NONE };
    let partitions = (args.partitions == Switch::On).then_some(quotas);
    let store::Opened { store, region, place, partitions } = match &args.upstream {
        Some(url) => store::upstream(url, args.allow_account_operations, &env).await?,
        None => store::embedded(args.data.as_deref(), partitions, &env).await?,
    };
    let recorded = recorder::install(&env).map_err(|error| Exit::unavailable(error.to_string()))?;
    let control = Control::start(store.clone(), env.clone(), rules).await.map_err(|error| match error {
        StartError::Rules(_) => Exit::usage(error.to_string()),
        StartError::Store(_) => Exit::unavailable(error.to_string()),
    })?;
    let limits = Limits::default();
    let mut service = Service::new(store, control, env.clone(), limits, &region).with_metrics(recorded);
    if let Some(partitions) = partitions {
        service = service.with_partitions(partitions);
    }
    let service = Arc::new(service);
    banner::print(listener.local_addr()?, &place, args.output)?;
    if !http::serve(listener, service, limits, env, stop).await {
        tracing::warn!("requests were still in flight when the time to finish them ran out");
    }
    Ok(())
}

pub(super) fn read_rules(file: &Path) -> Result<Rules, Exit> {
    let text = std::fs::read_to_string(file)
        .map_err(|error| Exit::usage(format!("cannot read the rules in {}: {error}", file.display())))?;
    Rules::read(&file.display().to_string(), &text).map_err(|error| Exit::usage(error.to_string()))
}
