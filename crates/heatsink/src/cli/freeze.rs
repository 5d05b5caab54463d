//! `heatsink freeze`: stops layout changes in all gateways until they are thawed, during an
//! incident.

use std::sync::Arc;

use heatsink_control::{Changer, Fencing};
use heatsink_env::{Env, RealEnv};
use serde_json::json;

use super::open::not_answered;
use super::store_args::{FenceArgs, StoreArgs};
use super::{print, runtime};
use crate::exit::Exit;
use crate::output::Output;

/// What `freeze` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// Allow changes again
    #[arg(long)]
    thaw: bool,
    #[command(flatten)]
    fence: FenceArgs,
    #[command(flatten)]
    store: StoreArgs,
    /// How the result is printed on stdout
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
}

/// Runs it. What is under way stops before its next step; clients go on with the layouts that are
/// in force.
pub fn run(args: Args) -> Result<(), Exit> {
    runtime::one_thread()?.block_on(freeze(args))
}

async fn freeze(args: Args) -> Result<(), Exit> {
    let env: Arc<dyn Env> = Arc::new(RealEnv);
    let fence = args.fence.settings()?;
    let store = args.store.open(&fence.registry, &env).await?;
    let fencing = match &args.store.upstream {
        None => Fencing::exclusive(&fence),
        Some(_) => Fencing::shared(&fence, "freeze"),
    };
    let changer = Changer::beside(store, env, fencing);
    changer
        .freeze(!args.thaw)
        .await
        .map_err(|error| not_answered("The registry could not be written", &error))?;
    match args.output {
        Output::Json => print::json(&json!({ "registry": fence.registry, "frozen": !args.thaw })),
        Output::Text if args.thaw => print::text("Layouts may change again.\n"),
        Output::Text => print::text(
            "No layout changes until `heatsink freeze --thaw`. Clients go on: what has begun waits where they can, or goes forward to where they can. New tables that rules name cannot be made.\n",
        ),
    }
}
