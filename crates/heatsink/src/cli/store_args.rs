//! Arguments of commands that look at a whole store: where it is, and which registry it has.
//!
//! Not here: those of commands for one table, whose help says what is read of it.

use std::path::PathBuf;
use std::sync::Arc;

use clap::ArgGroup;
use heatsink_control::rules::FenceSettings;
use heatsink_env::Env;
use heatsink_store::Store;

use super::open::open_behind_gateways;
use super::rules;
use crate::exit::Exit;

/// Where the store is.
#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("store").required(true).args(["data", "upstream"]))]
pub struct StoreArgs {
    /// The store is this file
    #[arg(long, value_name = "FILE")]
    pub data: Option<PathBuf>,
    /// The store is the DynamoDB endpoint with this URL
    #[arg(long, value_name = "URL")]
    pub upstream: Option<String>,
}

impl StoreArgs {
    /// Opens the store, which has this registry.
    pub async fn open(&self, registry: &str, env: &Arc<dyn Env>) -> Result<Arc<dyn Store>, Exit> {
        open_behind_gateways(self.data.as_deref(), self.upstream.as_deref(), registry, env).await
    }
}

/// Which registry the store has.
#[derive(Debug, clap::Args)]
pub struct FenceArgs {
    /// The rules file whose `[fence]` names the registry [default: heatsink.toml in the working
    /// directory, where there is one]
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
}

impl FenceArgs {
    /// What the rules say of it.
    pub fn settings(&self) -> Result<FenceSettings, Exit> {
        Ok(rules::find(self.rules.as_deref())?.rules.fence().clone())
    }
}
