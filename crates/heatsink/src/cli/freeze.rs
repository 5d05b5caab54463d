//! `heatsink freeze`: stops layout changes in all gateways until they are thawed, during an
//! incident.

use std::path::PathBuf;
use std::sync::Arc;

use heatsink_control::{Changer, Fencing};
use heatsink_env::{Env, RealEnv};
use serde_json::json;

use super::open::{not_answered, open_existing};
use super::{print, right_flag, rules};
use crate::exit::Exit;
use crate::output::Output;

/// What `freeze` takes.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("store").required(true).args(["data", "upstream"]))]
pub struct Args {
    /// Allow changes again
    #[arg(long)]
    thaw: bool,
    /// The rules file whose `[fence]` names the registry [default: heatsink.toml in the working
    /// directory, where there is one]
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// The store is this file
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// The store is the DynamoDB endpoint with this URL
    #[arg(long, value_name = "URL")]
    upstream: Option<String>,
    /// How the result is printed on stdout
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
}

/// Runs it. What is under way stops before its next step; clients go on with the layouts that are
/// in force.
pub fn run(args: Args) -> Result<(), Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(freeze(args))
}

async fn freeze(args: Args) -> Result<(), Exit> {
    let env: Arc<dyn Env> = Arc::new(RealEnv);
    let fence = rules::find(args.rules.as_deref())?.rules.fence().clone();
    let exclusive = args.upstream.is_none();
    let store = open_existing(args.data.as_deref(), args.upstream.as_deref(), &env).await?.store;
    if let Some(url) = &args.upstream {
        right_flag::upstream(&*store, &fence.registry, url).await?;
    }
    let fencing = if exclusive { Fencing::exclusive(&fence) } else { Fencing::shared(&fence, "freeze") };
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
