//! `heatsink serve`: puts the rooms together and serves until told to stop.

mod banner;
mod signals;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use heatsink_env::{Env, RealEnv};
use heatsink_gateway::{Limits, Service, http};
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;
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
    /// How the endpoint is printed on stdout
    #[arg(long, value_enum, default_value_t)]
    output: Output,
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
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(serve(args))
}

async fn serve(args: Args) -> Result<(), Exit> {
    let env: Arc<dyn Env> = Arc::new(RealEnv);
    let stop = signals::stop()?;
    let store = open(&args)?;
    let listener = TcpListener::bind(args.listen).await.map_err(|error| {
        Exit::unavailable(format!("cannot listen on {}: {error}; choose another address with --listen", args.listen))
    })?;
    let service = Arc::new(Service::new(store, "us-east-1"));
    banner::print(listener.local_addr()?, &banner::Place::of(args.data.as_deref()), args.output)?;
    let drained = http::serve(listener, service, Limits::default(), env, stop).await;
    if !drained {
        tracing::warn!("requests were still in flight when the time to finish them ran out");
    }
    Ok(())
}

fn open(args: &Args) -> Result<Arc<dyn Store>, Exit> {
    let embedded = match &args.data {
        Some(file) => Embedded::file(file)
            .map_err(|error| Exit::unavailable(format!("cannot open the data file {}: {error}", file.display())))?,
        None => Embedded::memory().map_err(|error| Exit::software(error.to_string()))?,
    };
    Ok(Arc::new(embedded))
}
