//! The arguments of `heatsink verify`.

use crate::cli::store_args::FenceArgs;
use crate::output::Output;

/// What `verify` takes.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("store").required(true).args(["data", "upstream"]))]
#[command(group = clap::ArgGroup::new("change").args(["repair", "rebuild"]))]
pub struct Args {
    /// The table
    pub(super) table: String,
    /// One logical partition key instead of the whole table; in base64 where the table's are binary
    #[arg(allow_negative_numbers = true)]
    pub(super) key: Option<String>,
    #[command(flatten)]
    pub(super) fence: FenceArgs,
    /// The table is in this file
    #[arg(long, value_name = "FILE")]
    pub(super) data: Option<std::path::PathBuf>,
    /// The table is at the DynamoDB endpoint with this URL; reading it costs one unit for each 4 KB
    #[arg(long, value_name = "URL")]
    pub(super) upstream: Option<String>,
    /// Say what a repair would do; with --yes, do it
    #[arg(long)]
    pub(super) repair: bool,
    /// Of a table whose record is lost with its registry: say which layouts its items show; with
    /// --yes, put it on record so. No gateway may run meanwhile
    #[arg(long, conflicts_with = "key")]
    pub(super) rebuild: bool,
    /// With --rebuild: what is written like a shard, and does not lie like one, is keys of clients
    #[arg(long, requires = "rebuild")]
    pub(super) as_logical_keys: bool,
    /// With --repair or --rebuild: carry it out
    #[arg(long, short, requires = "change")]
    pub(super) yes: bool,
    /// Read at most so many items a second [default: 2000 with --upstream; no limit with --data]
    #[arg(long, value_name = "ITEMS", value_parser = clap::value_parser!(u64).range(1..=10_000_000))]
    pub(super) rate: Option<u64>,
    /// How the result is printed on stdout
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
}
