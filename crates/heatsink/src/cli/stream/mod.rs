//! `heatsink stream TABLE`: prints the records of a table's stream with logical keys, a line of JSON
//! each, and goes on from a checkpoint.
//!
//! It is a gateway of the store, so that no layout changes before it has noticed: a record is never
//! read with the layout of before.

mod checkpoint;
mod reading;
mod shards;

use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use clap::ValueEnum;
use futures::future::{Either, select};
use heatsink::{Fencing, Gateway};
use heatsink_env::{Env, RealEnv};

use self::checkpoint::Checkpoint;
use self::reading::Reading;
use super::open::not_started;
use super::runtime;
use super::serve::Signals;
use super::store_args::{FenceArgs, StoreArgs};
use crate::exit::Exit;

/// What `stream` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The table
    table: String,
    /// Where to begin without a checkpoint: at the oldest record that the store has, or at the
    /// newest
    #[arg(long, value_enum, default_value_t = From::Oldest)]
    from: From,
    /// Go on behind what this file says was printed, and write to it what is. A record may be
    /// printed twice where the command is killed, and is never left out
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// End when no record has come for so many seconds [default: at Ctrl-C]
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..=86_400))]
    idle: Option<u64>,
    #[command(flatten)]
    fence: FenceArgs,
    #[command(flatten)]
    store: StoreArgs,
}

/// Where to begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum From {
    /// At the oldest record
    Oldest,
    /// Behind the newest record
    Newest,
}

/// Prints until Ctrl-C, SIGTERM, a closed pipe or the end of `--idle`. Exit 1 where records are gone
/// that were not read; 64 for a table without a stream; 69 where the store does not answer.
pub fn run(args: Args) -> Result<(), Exit> {
    let runtime = runtime::threads()?;
    let outcome = runtime.block_on(stream(args));
    runtime.shutdown_background();
    outcome
}

async fn stream(args: Args) -> Result<(), Exit> {
    let env: Arc<dyn Env> = Arc::new(RealEnv);
    let fence = args.fence.settings()?;
    let mut signals = Signals::catch()?;
    let store = args.store.open(&fence.registry, &env).await?;
    let fencing = match &args.store.upstream {
        None => Fencing::exclusive(&fence),
        Some(_) => Fencing::shared(&fence, &format!("stream of {}", args.table)),
    };
    let gateway = Gateway::builder(store).env(Arc::clone(&env)).fencing(fencing);
    let gateway = gateway.start().await.map_err(not_started)?;
    let control = gateway.control().clone();
    let kept = {
        let control = control.clone();
        tokio::spawn(async move { control.keep().await })
    };
    let checkpoint = Checkpoint::read(args.checkpoint, &args.table)?;
    let idle = args.idle.map(Duration::from_secs);
    let outcome = {
        let reading = async {
            let from_newest = args.from == From::Newest;
            Reading::begin(&gateway, &*env, &args.table, checkpoint, from_newest).await?.run(idle).await
        };
        // What was printed is on record by then: both are done in one step.
        match select(pin!(reading), pin!(signals.next())).await {
            Either::Left((outcome, _)) => outcome,
            Either::Right(_) => Ok(()),
        }
    };
    kept.abort();
    control.leave().await;
    outcome
}
