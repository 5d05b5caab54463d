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
mod signals;
mod tls;

use std::hash::RandomState;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use futures::future::{Either, join, select};
use heatsink::{Acts, Gateway, Limits, carry};
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
use super::{open, store};
use crate::exit::Exit;
use crate::output::Output;

use admin::Admin;
pub use descriptors::provide as provide_descriptors;
use heat_history::HeatHistory;
use reload::ServedClients;
pub use signals::Signals;
use signals::StopSignal;

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
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let served = runtime.block_on(serve(args));
    // A request that outlived the time to drain must not hold the process.
    runtime.shutdown_background();
    served
}

async fn serve(args: Args) -> Result<(), Exit> {
    let env: Arc<dyn Env> = Arc::new(RealEnv);
    let (mut signals, hangups) = (Signals::catch()?, reload::hangups()?);
    let sources = reload::Sources {
        rules: args.rules.clone(),
        front: args.front.clone(),
        tls: args.tls.clone(),
        upwards: if args.upstream.is_some() { store::upstream_connections() } else { 0 },
        remember: remembering(&args),
        hasher: RandomState::new(),
    };
    let configuration = sources.read(&*env)?;
    let (found, settings) = (&configuration.found, configuration.settings.clone());
    let front::Opened { socket: listener, place: door, is_alone, file: _file } =
        args.front.open(settings.tls.as_ref(), !found.rules.clients().is_empty()).await?;
    let admin = args.admin.listen(&settings.hosts).await?;
    let record = args.record.open()?;
    let quotas = if args.quotas == Switch::On { Quotas::default() } else { Quotas::NONE };
    let partitions = (args.partitions == Switch::On).then_some(quotas);
    // Before the store, which counts too.
    let recorded = recorder::install(&env).map_err(|error| Exit::unavailable(error.to_string()))?;
    let store::Opened { store, region, place, partitions } = match &args.upstream {
        Some(url) => {
            let ca = args.upstream_ca.as_deref();
            store::upstream(url, ca, args.allow_account_operations, &env).await?
        }
        None => {
            let (data, synchronous) = (args.data.as_deref(), args.synchronous.into());
            store::embedded(data, synchronous, partitions, Some(&door.to_string()), &env).await?
        }
    };
    let record = record.map(|opened| opened.begin(&*env));
    let served = ServedClients::load(found, &region)?;
    let in_force = banner::Rules::of(found);
    let name = former::Name::at(&door);
    let fencing = if args.upstream.is_none() || args.only_gateway {
        Fencing::exclusive(found.rules.fence())
    } else {
        Fencing::shared(found.rules.fence(), &name.to_string())
    }
    .carrying();
    let limits =
        Limits { connections: settings.connections, requests: settings.requests, ..Limits::default() };
    let acts = Arc::new(Acts::default());
    let told = Arc::clone(&acts);
    let mut gateway = Gateway::builder(Arc::clone(&store))
        .env(Arc::clone(&env))
        .rules(found.rules.clone())
        .fencing(fencing)
        .limits(limits)
        .region(&region)
        .clients(Arc::clone(&served.clients))
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
    let (control, status) = (gateway.control().clone(), Arc::clone(gateway.status()));
    let live = http::Live::new(settings);
    let reload = reload::Reload::of(
        sources,
        &configuration,
        served,
        control.clone(),
        live.clone(),
        Arc::clone(&env),
        hangups,
    );
    let reloading = tokio::spawn(reload.keep());
    let (ending, clock) = (Arc::clone(&status), Arc::clone(&env));
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
    let serving = gateway.serve_live(listener, live, async {
        let _ = stopped.await;
    });
    notify::ready();
    let told = async {
        let told = signals.next().await;
        notify::stopping();
        if told == StopSignal::Terminate {
            ending.stop_soon();
            let lame_duck = clock.sleep(Duration::from_secs(args.lame_duck));
            if let Either::Left((second, _)) = select(pin!(signals.next()), lame_duck).await {
                return second.at_once();
            }
        }
        // The registry is not compared with rules any more.
        reloading.abort();
        let _ = stop_commands.send(());
        let _ = stop_runner.send(());
        let _ = stop.send(());
        signals.next().await.at_once()
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
fn remembering(args: &Args) -> Box<dyn Fn(Found) -> Found + Send + Sync> {
    let memory: Option<Arc<dyn Memory>> = match (&args.data, &args.upstream) {
        (_, Some(_)) => return Box::new(|found| found),
        (Some(data), None) => Some(Arc::new(KnownTables::beside_data(data))),
        (None, None) => None,
    };
    Box::new(move |found| Found { rules: found.rules.remembering(memory.clone()), ..found })
}
