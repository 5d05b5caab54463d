//! `heatsink watch`: a gateway that changes nothing, and says which keys are hot. It forwards every
//! request as it is, on a store that has no sharded tables, and refuses every request as soon as
//! another Heatsink begins to shard there.
//!
//! Not here: how heat is measured (`heatsink-gateway`), what refuses
//! (`heatsink_control::Fencing::forwarding`).

mod banner;
mod live;
mod report;
mod seen;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::future::{Either, select};
use heatsink::{Fencing, Gateway, Limits};
use heatsink_control::Control;
use heatsink_env::{Env, RealEnv};
use heatsink_gateway::{Status, http};
use tokio::sync::oneshot;

use super::hot_keys::Heat;
use super::operator_socket::{self, OperatorSocket};
use super::place::Place;
use super::serve::{Signals, provide_descriptors};
use super::store::{DataLocation, Opened};
use super::{address, open, print, rules, runtime, store};
use crate::exit::Exit;
use crate::output::Output;
use live::Live;
use report::Report;
use seen::Seen;

/// How often the heat is looked at: once a window.
const LOOK: Duration = Duration::from_secs(1);

/// What `watch` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The DynamoDB endpoint that requests are forwarded to, with credentials and region from the
    /// standard AWS chain. There is no default
    #[arg(long, value_name = "URL")]
    upstream: String,
    /// Address or host name to listen on; only loopback addresses, for signatures are not checked
    /// yet
    #[arg(long, value_name = "HOST:PORT", default_value = "127.0.0.1:8000")]
    listen: String,
    /// Watch for so long, then report [default: until Ctrl-C]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..=31_536_000))]
    seconds: Option<u64>,
    /// The rules file whose `[fence]` names the registry that must not be there [default:
    /// heatsink.toml in the working directory, where there is one]. Its rules are not applied
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// How it is printed on stdout: `json` is a line for each thing that happens
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
}

/// Watches until Ctrl-C, SIGTERM or the end of the time, and reports.
pub fn run(args: Args) -> Result<(), Exit> {
    let addresses = address::loopback("--listen", &args.listen)?;
    let runtime = runtime::threads()?;
    let watched = runtime.block_on(watch(args, &addresses));
    runtime.shutdown_background();
    watched
}

async fn watch(args: Args, addresses: &[SocketAddr]) -> Result<(), Exit> {
    let env: Arc<dyn Env> = Arc::new(RealEnv);
    let found = rules::find(args.rules.as_deref())?;
    let mut signals = Signals::catch()?;
    let listener = address::listen("--listen", &args.listen, addresses).await?;
    let Opened { store, region, place, .. } = store::upstream(&args.upstream, None, false, &env).await?;
    let limits = Limits::default();
    let gateway = Gateway::builder(store)
        .env(Arc::clone(&env))
        .fencing(Fencing::forwarding(found.rules.fence()))
        .limits(limits)
        .region(&region);
    let gateway = gateway.start().await.map_err(|error| match error {
        heatsink::StartError::Rules(registry) => {
            Exit::usage(format!("{registry}. {}", instead(&args.upstream)))
        }
        other => open::not_started(other),
    })?;
    provide_descriptors(limits.connections + store::upstream_connections());
    let upstream = match &place {
        DataLocation::Upstream(url) => url.clone(),
        _ => args.upstream.clone(),
    };
    let said = banner::Banner {
        address: listener.local_addr()?,
        upstream: &upstream,
        region: &region,
        registry: &found.rules.fence().registry,
        has_rules: !found.rules.is_empty() || found.rules.acts_on_heat(),
        seconds: args.seconds,
    };
    let socket = operator_socket::listen(&Place::Tcp(listener.local_addr()?), false);
    said.print(args.output)?;
    let (control, status) = (gateway.control().clone(), Arc::clone(gateway.status()));
    // It ends with the process: what is told there is of this process alone.
    let _commands = socket.map(|OperatorSocket { listener, file, .. }| {
        tokio::spawn(gateway.serve_operator(listener, std::future::pending()));
        file
    });
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(gateway.serve(listener, http::Hosts::loopback(), async {
        let _ = stopped.await;
    }));
    let mut seen = Seen::new(env.now());
    let mut live = Live::new(args.output);
    let ended = {
        let looking = pin!(look(&mut seen, &mut live, &status, &control, &*env, args.seconds));
        let told = pin!(signals.next());
        match select(looking, told).await {
            Either::Left((ended, _)) => ended,
            Either::Right(_) => Ok(()),
        }
    };
    if ended.is_ok() {
        seen.add(env.now(), &heat(&status).await);
    }
    live.clear();
    let _ = stop.send(());
    let drained = pin!(serving);
    let at_once = match select(drained, pin!(signals.next())).await {
        Either::Left(_) => None,
        Either::Right((told, _)) => Some(told.at_once()),
    };
    let report = Report { seen: &seen, upstream: &upstream };
    match args.output {
        Output::Json => print::json(&report.json())?,
        Output::Text => print::as_it_is(&report.text())?,
    }
    match (ended, at_once) {
        (Err(exit), _) | (Ok(()), Some(exit)) => Err(exit),
        (Ok(()), None) => Ok(()),
    }
}

/// Looks at the heat once a window, until the time is over.
///
/// # Errors
/// Another Heatsink has begun to shard on this store; stdout cannot be written.
async fn look(
    seen: &mut Seen,
    live: &mut Live,
    status: &Status,
    control: &Control,
    env: &dyn Env,
    seconds: Option<u64>,
) -> Result<(), Exit> {
    let begun = env.now();
    let end = seconds.map(|seconds| begun + Duration::from_secs(seconds));
    loop {
        let now = env.now();
        let pause = end.map_or(LOOK, |end| end.since(now).min(LOOK));
        if pause.is_zero() {
            return Ok(());
        }
        env.sleep(pause).await;
        if control.has_seen_registry() {
            return Err(Exit::unavailable(
                "another Heatsink has begun to shard tables in this store: items may lie under other keys than clients name. Every request was refused from \
                 then on. Send the application through that Heatsink instead",
            ));
        }
        let heat = heat(status).await;
        seen.add(env.now(), &heat);
        live.show(env.unix_millis(), env.now().since(begun), &heat)?;
    }
}

async fn heat(status: &Status) -> Heat {
    // It is this process's own answer: what cannot be read of it is nothing.
    serde_json::from_value(status.heat_shown().await).unwrap_or_default()
}

/// What to run on a store with sharded tables.
fn instead(upstream: &str) -> String {
    format!(
        "Run `heatsink serve --upstream {upstream}` instead, which answers by the registry and measures heat too, and look with `heatsink top`. Nothing was \
         written"
    )
}
