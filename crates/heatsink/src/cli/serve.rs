//! `heatsink serve`: assembles the gateway and serves until it is told to stop.

mod admin;
mod banner;
mod descriptors;
mod heat_history;
mod metric_help;
mod record;
mod recorder;
mod signals;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use arc_swap::ArcSwap;
use clap::ValueEnum;
use futures::future::{Either, join, select};
use heatsink::{Acts, Gateway, Limits, carry};
use heatsink_access::Clients;
use heatsink_control::{Fencing, Memory};
use heatsink_env::{Env, RealEnv};
use heatsink_gateway::http;
use heatsink_physics::Quotas;
use heatsink_store::embedded::Synchronous;
use heatsink_workers::INDEX_DELAY;
use tokio::sync::oneshot;

use super::known_tables::KnownTables;
use super::operator_socket::{self, OperatorSocket};
use super::rules::Found;
use super::{address, open, rules, store};
use crate::exit::Exit;
use crate::output::Output;

use admin::Admin;
pub use descriptors::provide as provide_descriptors;
use heat_history::HeatHistory;
pub use signals::Signals;

/// What `serve` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Address or host name to listen on; only loopback addresses, for signatures are not checked
    /// yet
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8000")]
    listen: String,
    /// Keep the data in this file; without it, data is in memory and is lost when the process ends
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// What an acknowledged write of the data file survives: `normal`, the end of this process,
    /// kill -9 included; `full`, a power loss too, for which each write waits for the disk
    #[arg(long, value_enum, requires = "data", default_value = "normal")]
    synchronous: Durability,
    /// Use the DynamoDB endpoint at this URL as the store, with credentials and region from the
    /// standard AWS chain
    #[arg(long, value_name = "URL", conflicts_with = "data")]
    upstream: Option<String>,
    /// Serve operations on the upstream's AWS account too: resource policies, deletion of backups,
    /// exports, imports, global tables, Kinesis destinations. Where the rules name no clients everyone
    /// on this machine can then use them
    #[arg(long, requires = "upstream")]
    allow_account_operations: bool,
    /// Which keys are sharded, and how [default: heatsink.toml in the working directory, where
    /// there is one]
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// No other gateway uses the same upstream, and none did within the last minutes: layout
    /// changes wait for nobody
    #[arg(long, requires = "upstream")]
    only_gateway: bool,
    /// Whether the embedded store throttles as DynamoDB's partitions do
    #[arg(long, value_enum, default_value = "on")]
    partitions: Switch,
    /// Whether the embedded store has the quotas of a new AWS account: capacity per table and
    /// account, decreases and switches per day, number of tables
    #[arg(long, value_enum, default_value = "on")]
    quotas: Switch,
    /// Also serve requests for this host name or address (Host header); loopback names are always
    /// served. Can be given again
    #[arg(long, value_name = "NAME")]
    allow_host: Vec<String>,
    /// Serve at most so many connections at once
    #[arg(long, value_name = "N", default_value_t = Limits::default().connections)]
    max_connections: usize,
    /// Process at most so many requests at once
    #[arg(long, value_name = "N", default_value_t = Limits::default().requests)]
    max_requests: usize,
    #[command(flatten)]
    admin: admin::Args,
    /// Keep the history of the heat in this file [default: beside the data file, named FILE.heat]
    #[arg(long, value_name = "FILE")]
    heat_history: Option<PathBuf>,
    /// Log each request: operation, tables, bytes, time, and what it failed with; no keys
    #[arg(long)]
    access_log: bool,
    /// The form of log lines on stderr
    #[arg(long, value_enum, default_value_t)]
    log_format: LogFormat,
    /// Send a span of each request and of each physical call to the OpenTelemetry collector at this
    /// URL, as OTLP over HTTP; no keys
    #[cfg(feature = "otlp")]
    #[arg(long, value_name = "URL", env = "OTEL_EXPORTER_OTLP_ENDPOINT")]
    otlp: Option<String>,
    #[command(flatten)]
    record: record::Args,
    /// How the endpoint is printed on stdout
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
}

impl Args {
    /// What is logged.
    pub fn log(&self) -> Log {
        Log {
            format: self.log_format,
            requests: self.access_log,
            #[cfg(feature = "otlp")]
            otlp: self.otlp.clone(),
        }
    }
}

/// What is logged, and how.
#[derive(Clone, Debug, Default)]
pub struct Log {
    /// The form of its lines.
    pub format: LogFormat,
    /// Whether each request has one.
    pub requests: bool,
    /// The collector to which spans are sent.
    #[cfg(feature = "otlp")]
    pub otlp: Option<String>,
}

/// The form of log lines.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// One JSON object a line.
    Json,
}

/// Whether something is there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Switch {
    On,
    Off,
}

/// SQLite's pragma `synchronous`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Durability {
    Normal,
    Full,
}

impl From<Durability> for Synchronous {
    fn from(durability: Durability) -> Self {
        match durability {
            Durability::Normal => Synchronous::Normal,
            Durability::Full => Synchronous::Full,
        }
    }
}

/// Serves until Ctrl-C or SIGTERM; a second one ends it without waiting for requests in flight.
pub fn run(args: Args) -> Result<(), Exit> {
    let addresses = address::loopback("--listen", &args.listen)?;
    let rules = rules::find(args.rules.as_deref())?;
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let served = runtime.block_on(serve(args, &addresses, rules));
    // A request that outlived the time to drain must not hold the process.
    runtime.shutdown_background();
    served
}

async fn serve(args: Args, addresses: &[SocketAddr], found: Found) -> Result<(), Exit> {
    let found = remembering(&args, found);
    let env: Arc<dyn Env> = Arc::new(RealEnv);
    let mut signals = Signals::catch()?;
    let hosts = http::Hosts::and(&args.allow_host)
        .map_err(|problem| Exit::usage(format!("--allow-host: {problem}")))?;
    let listener = address::listen("--listen", &args.listen, addresses).await?;
    let admin = args.admin.listen(&hosts).await?;
    let record = args.record.open()?;
    let quotas = if args.quotas == Switch::On { Quotas::default() } else { Quotas::NONE };
    let partitions = (args.partitions == Switch::On).then_some(quotas);
    // Before the store, which counts too.
    let recorded = recorder::install(&env).map_err(|error| Exit::unavailable(error.to_string()))?;
    let store::Opened { store, region, place, partitions } = match &args.upstream {
        Some(url) => store::upstream(url, args.allow_account_operations, &env).await?,
        None => {
            let address = Some(listener.local_addr()?);
            let (data, synchronous) = (args.data.as_deref(), args.synchronous.into());
            store::embedded(data, synchronous, partitions, address, &env).await?
        }
    };
    let record = record.map(|opened| opened.begin(&*env));
    let clients = Clients::load(found.rules.clients(), &region);
    let clients = clients.map_err(|fault| Exit::usage(fault.to_string()))?;
    let in_force = banner::Rules::of(&found);
    let fencing = if args.upstream.is_none() || args.only_gateway {
        Fencing::exclusive(found.rules.fence())
    } else {
        Fencing::shared(found.rules.fence(), &name_of(listener.local_addr()?))
    }
    .carrying();
    let limits =
        Limits { connections: args.max_connections, requests: args.max_requests, ..Limits::default() };
    let acts = Arc::new(Acts::default());
    let told = Arc::clone(&acts);
    let mut gateway = Gateway::builder(Arc::clone(&store))
        .env(Arc::clone(&env))
        .rules(found.rules)
        .fencing(fencing)
        .limits(limits)
        .region(&region)
        .clients(Arc::new(ArcSwap::from_pointee(clients)))
        .showing_store(args.upstream.is_none())
        .automatic(Box::new(move || told.shown()))
        .metrics(recorded);
    if let Some(partitions) = partitions {
        gateway = gateway.partitions(partitions);
    }
    if let Some(writer) = &record {
        gateway = gateway.recording(writer.recording());
    }
    let gateway = gateway.start().await.map_err(open::not_started)?;
    let upwards = if args.upstream.is_some() { store::upstream_connections() } else { 0 };
    provide_descriptors(limits.connections + upwards);
    let socket = operator_socket::listen(listener.local_addr()?);
    let at = banner::Addresses {
        clients: listener.local_addr()?,
        socket: socket.as_ref().map(|socket| socket.path.clone()),
        admin: admin.as_ref().map(|admin| admin.listener.local_addr()).transpose()?,
    };
    banner::print(&at, &region, &place, &in_force, args.output)?;
    let (control, status) = (gateway.control().clone(), Arc::clone(gateway.status()));
    let history = HeatHistory::of(args.heat_history.as_deref(), args.data.as_deref());
    let history = history.map(|history| {
        history.resume(&status);
        let keeping = tokio::spawn(history.clone().keep(Arc::clone(&status), Arc::clone(&env)));
        (history, keeping, Arc::clone(&status))
    });
    let (stop, stopped) = oneshot::channel();
    let (stop_runner, runner_stopped) = oneshot::channel();
    // The recording ends after the last request.
    let (stop_recording, recording_stopped) = oneshot::channel::<()>();
    let recording = record.map(|writer| {
        let env = Arc::clone(&env);
        tokio::spawn(writer.keep(env, async {
            let _ = recording_stopped.await;
        }))
    });
    // The embedded store's indexes do not lag.
    let delay = if args.upstream.is_none() { Duration::ZERO } else { INDEX_DELAY };
    // The senders live as long as this. Reshards are given back while requests are drained.
    let carrying = tokio::spawn(async move {
        let stopped = async {
            let _ = runner_stopped.await;
        };
        carry(store, env, control, status, acts, delay, stopped).await;
    });
    // Commands work on the store as clients do: they end when clients do, before the gateway leaves
    // its store.
    let (stop_commands, commands_stopped) = oneshot::channel::<()>();
    let commands = socket.map(|OperatorSocket { listener, file, .. }| {
        tokio::spawn(gateway.serve_operator(listener, async move {
            let _ = commands_stopped.await;
            // Before the address is free for another server, which puts its own there.
            drop(file);
        }))
    });
    // It says until the end how the gateway does.
    let (stop_admin, admin_stopped) = oneshot::channel::<()>();
    let operators = admin.map(|Admin { listener, access }| {
        let stopped = async {
            let _ = admin_stopped.await;
        };
        tokio::spawn(gateway.serve_admin(listener, access, stopped))
    });
    let serving = gateway.serve(listener, hosts, async {
        let _ = stopped.await;
    });
    let told = async {
        signals.next().await;
        let _ = stop_commands.send(());
        let _ = stop_runner.send(());
        let _ = stop.send(());
        signals.next().await
    };
    let serving = async {
        let drained = join(serving, carrying).await.0;
        if let Some(commands) = commands {
            let _ = commands.await;
        }
        if let Some((history, keeping, status)) = history {
            // Nothing may hold the store when this ends.
            keeping.abort();
            let _ = keeping.await;
            history.save(&status).await;
        }
        drop(stop_recording);
        if let Some(recording) = recording {
            let _ = recording.await;
        }
        drop(stop_admin);
        if let Some(operators) = operators {
            let _ = operators.await;
        }
        drained
    };
    match select(pin!(serving), pin!(told)).await {
        Either::Left((true, _)) => Ok(()),
        Either::Left((false, _)) => {
            tracing::warn!("requests were still in flight when the time to finish them ran out");
            Ok(())
        }
        Either::Right((at_once, _)) => Err(at_once),
    }
}

/// The rules of a gateway that remembers the tables of its store. What is in memory is gone with
/// the process.
fn remembering(args: &Args, found: Found) -> Found {
    let memory: Option<Arc<dyn Memory>> = match (&args.data, &args.upstream) {
        (_, Some(_)) => return found,
        (Some(data), None) => Some(Arc::new(KnownTables::beside_data(data))),
        (None, None) => None,
    };
    Found { rules: found.rules.remembering(memory), ..found }
}

/// What people find this gateway by.
fn name_of(address: SocketAddr) -> String {
    let host = rustix::system::uname().nodename().to_string_lossy().into_owned();
    format!("{host}, {address}, process {}", std::process::id())
}
