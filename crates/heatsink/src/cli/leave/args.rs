//! What `heatsink leave` takes.

use std::path::PathBuf;

use clap::ArgGroup;
use heatsink_workers::DEFAULT_RATE;

use crate::cli::reshard::{How, Place};
use crate::output::Output;

/// What `leave` takes.
#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("store").required(true).args(["data", "upstream"]))]
pub struct Args {
    /// The table [default: every table, and the registry at the end]
    pub(super) table: Option<String>,
    /// Say what would be done; change nothing
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Do not ask
    #[arg(long, short)]
    pub(super) yes: bool,
    /// Carry it out in this process, without a gateway. Where gateways are registered they bring
    /// keys and values back otherwise, many at once
    #[arg(long)]
    pub(super) here: bool,
    /// The most capacity units a second that moving items takes of the old shards, where clients
    /// leave so many
    #[arg(long, value_name = "UNITS", default_value_t = DEFAULT_RATE, value_parser = clap::value_parser!(u32).range(1..))]
    pub(super) rate: u32,
    /// The table's stream may show each item that moves as inserted and removed
    #[arg(long)]
    pub(super) confirm_streams: bool,
    /// The rules file whose `[fence]` names the registry [default: heatsink.toml in the working
    /// directory, where there is one]
    #[arg(long, value_name = "FILE")]
    pub(super) rules: Option<PathBuf>,
    /// The table is in this file, which no server has open
    #[arg(long, value_name = "FILE")]
    pub(super) data: Option<PathBuf>,
    /// The table is at the DynamoDB endpoint with this URL: the one behind the gateways, not a
    /// gateway
    #[arg(long, value_name = "URL")]
    pub(super) upstream: Option<String>,
    /// How the result is printed on stdout
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
}

impl Args {
    /// Where the store is, as the commands on keys have it.
    pub(super) fn place(&self) -> Place {
        Place {
            rules: self.rules.clone(),
            data: self.data.clone(),
            upstream: self.upstream.clone(),
            server: None,
            output: self.output,
        }
    }

    /// How gateways bring keys back.
    pub(super) fn how(&self) -> How {
        How {
            rate: self.rate,
            confirm_streams: self.confirm_streams,
            dry_run: false,
            wait: true,
            here: self.here,
        }
    }
}
