//! `heatsink serve`: assembles the gateway and serves until it is told to stop.

mod admin;
mod banner;
mod descriptors;
mod former;
mod front;
mod heat_history;
mod metric_help;
mod notify;
mod record;
mod recorder;
mod reload;
mod serving;
mod signals;
mod sources;
mod tls;
mod webhook;

use std::hash::RandomState;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use heatsink::{Acts, Gateway, Limits, Store};
use heatsink_control::{Fencing, Memory};
use heatsink_env::{Env, RealEnv};
use heatsink_gateway::http;
use heatsink_physics::Quotas;
use heatsink_store::embedded::Synchronous;
use heatsink_workers::INDEX_DELAY;

use super::known_tables::KnownTables;
use super::place::Place;
use super::rules::Found;
use super::{open, operator_socket, runtime, store};
use crate::exit::Exit;
use crate::output::Output;

pub use descriptors::provide as provide_descriptors;
use heat_history::HeatHistory;
use reload::{Reload, ServedClients};
use serving::Started;
pub use signals::Signals;
use sources::{Configuration, Sources};
use webhook::ServedWebhook;

/// What says in the log which configuration is in force.
pub const CONFIGURATION: &str = "heatsink::cli::serve::reload";

/// What `serve` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(flatten)]
    front: front::Args,
    #[command(flatten)]
    tls: tls::Args,
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
    /// Trust the CAs in this PEM file [default: AWS_CA_BUNDLE, SSL_CERT_FILE, or the system's]
    #[arg(long, value_name = "FILE", requires = "upstream")]
    upstream_ca: Option<PathBuf>,
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
    /// Serve on for so long after SIGTERM: not ready, and each answer ends its connection
    #[arg(long, value_name = "SECONDS", env = "HEATSINK_LAME_DUCK", hide_env_values = true, default_value_t = 5, value_parser = clap::value_parser!(u64).range(0..=3_600))]
    lame_duck: u64,
    /// Also stop, as at Ctrl-C, when standard input ends: the process that started this one has ended
    #[arg(long)]
    end_with_stdin: bool,
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
    let runtime = runtime::threads()?;
    let served = runtime.block_on(serve(args));
    // A request that outlived the time to drain must not hold the process.
    runtime.shutdown_background();
    served
}

async fn serve(args: Args) -> Result<(), Exit> {
    let env: Arc<dyn Env> = Arc::new(RealEnv);
    let (mut signals, hangups) = (Signals::catch()?, reload::hangups()?);
    if args.end_with_stdin {
        signals = signals.or_end_of_input()?;
    }
    let sources = sources(&args);
    let configuration = sources.begin(&env).await?;
    let (found, settings) = (&configuration.found, configuration.settings.clone());
    let front::Opened { socket: listener, place: door, is_alone, file: _file } =
        args.front.open(settings.tls.as_ref(), !found.rules.clients().is_empty()).await?;
    let admin = args.admin.listen(&settings.hosts).await?;
    let recording = args.record.open()?;
    // Before the store, which counts too.
    let recorded = recorder::install(&env).map_err(|error| Exit::unavailable(error.to_string()))?;
    let store::Opened { store, region, place, partitions } = open_store(&args, &door, &env).await?;
    let recording = recording.map(|opened| opened.begin(&*env));
    let served = ServedClients::load(found, &region)?;
    let in_force = banner::Rules::of(found);
    let name = former::Name::at(&door);
    let webhook = ServedWebhook::default();
    webhook.replace(configuration.webhook.clone());
    let (events, queue) = heatsink_workers::events(Arc::clone(&env));
    let acts = Arc::new(Acts::telling(events));
    let told = Arc::clone(&acts);
    let mut gateway = builder(&args, &configuration, &store, &name)
        .env(Arc::clone(&env))
        .region(&region)
        .clients(Arc::clone(&served.clients))
        .automatic(Box::new(move || told.shown()))
        .metrics(recorded);
    if let Some(partitions) = partitions {
        gateway = gateway.partitions(partitions);
    }
    if let Some(names) = args.admin.hot_keys() {
        gateway = gateway.hot_keys(names);
    }
    if let Some(writer) = &recording {
        gateway = gateway.recording(writer.recording());
    }
    let gateway = gateway.start().await.map_err(open::not_started)?;
    if is_alone && args.upstream.is_some() && !args.only_gateway {
        former::take_off(gateway.control(), &name, &*env).await;
    }
    provide_descriptors(reload::needed(&settings) + sources.upwards);
    let socket = operator_socket::listen(&door, !is_alone);
    // From here on clients are answered.
    let listener = listener.listen()?;
    let at = banner::Addresses {
        clients: door,
        is_tls: settings.tls.is_some(),
        socket: socket.as_ref().map(|socket| socket.path.clone()),
        admin: admin.as_ref().map(|admin| admin.listener.local_addr()).transpose()?,
    };
    banner::print(&at, &region, &place, &in_force, args.output)?;
    let (control, live) = (gateway.control().clone(), http::Live::new(settings));
    let reload =
        Reload::of(sources, &configuration, served, control, live.clone(), Arc::clone(&env), hangups)
            .with(webhook.clone());
    let started = Started {
        gateway,
        listener,
        live,
        reload,
        store,
        // The embedded store's indexes do not lag.
        index_delay: if args.upstream.is_none() { Duration::ZERO } else { INDEX_DELAY },
        acts,
        webhook: (queue, webhook),
        history: HeatHistory::of(args.heat_history.as_deref(), args.data.as_deref()),
        recording,
        socket,
        admin,
        env,
    };
    if !serving::until_stopped(started, signals, Duration::from_secs(args.lame_duck)).await? {
        tracing::warn!("requests were still in flight when the time to finish them ran out");
    }
    Ok(())
}

/// What makes the configuration.
fn sources(args: &Args) -> Sources {
    Sources {
        rules: args.rules.clone(),
        front: args.front.clone(),
        tls: args.tls.clone(),
        upwards: if args.upstream.is_some() { store::upstream_connections() } else { 0 },
        remember: remembering(args),
        hasher: RandomState::new(),
    }
}

/// Opens the store, whose clients will find it at `door`.
async fn open_store(args: &Args, door: &Place, env: &Arc<dyn Env>) -> Result<store::Opened, Exit> {
    match &args.upstream {
        Some(url) => {
            store::upstream(url, args.upstream_ca.as_deref(), args.allow_account_operations, env).await
        }
        None => {
            let quotas = if args.quotas == Switch::On { Quotas::default() } else { Quotas::NONE };
            let partitions = (args.partitions == Switch::On).then_some(quotas);
            let (data, synchronous) = (args.data.as_deref(), args.synchronous.into());
            store::embedded(data, synchronous, partitions, Some(&door.to_string()), env).await
        }
    }
}

/// A gateway of that name in front of the store, with what the configuration says.
fn builder(
    args: &Args,
    configuration: &Configuration,
    store: &Arc<dyn Store>,
    name: &former::Name,
) -> heatsink::Builder {
    let Configuration { found, settings, .. } = configuration;
    let fencing = if args.upstream.is_none() || args.only_gateway {
        Fencing::exclusive(found.rules.fence())
    } else {
        Fencing::shared(found.rules.fence(), &name.to_string())
    };
    let limits =
        Limits { connections: settings.connections, requests: settings.requests, ..Limits::default() };
    Gateway::builder(Arc::clone(store))
        .rules(found.rules.clone())
        .fencing(fencing.carrying())
        .limits(limits)
        .showing_store(args.upstream.is_none())
}

/// The rules of a gateway that remembers the tables of its store. What is in memory is gone with
/// the process.
fn remembering(args: &Args) -> Box<dyn Fn(Found) -> Found + Send + Sync> {
    let memory: Option<Arc<dyn Memory>> = match (&args.data, &args.upstream) {
        (_, Some(_)) => return Box::new(|found| found),
        (Some(data), None) => Some(Arc::new(KnownTables::beside_data(data))),
        (None, None) => None,
    };
    Box::new(move |found| Found { rules: found.rules.remembering(memory.clone()), ..found })
}
