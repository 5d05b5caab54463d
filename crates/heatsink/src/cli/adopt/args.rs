//! The arguments of `adopt`.

use std::path::PathBuf;

use crate::output::Output;

/// What `adopt` takes.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("store").required(true).args(["data", "upstream"]))]
pub struct Args {
    /// The table
    pub table: String,
    /// The rules to bring it under [default: heatsink.toml in the working directory]
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,
    /// The table is in this file
    #[arg(long, value_name = "FILE")]
    pub data: Option<PathBuf>,
    /// The table is at the DynamoDB endpoint with this URL
    #[arg(long, value_name = "URL")]
    pub upstream: Option<String>,
    /// Bring every item back to its logical key and remove the table's record
    #[arg(long)]
    pub back: bool,
    /// With --back: remove the table's record and leave every item under its physical key, for code
    /// that continues to shard by hand. Only where the rules were templates
    #[arg(long, requires = "back")]
    pub keep_keys: bool,
    /// Put the table on record and leave every item where it lies: for a table whose items lie
    /// already as the rules say, such as a copy of a sharded one
    #[arg(long, conflicts_with_all = ["back", "as_logical_keys"])]
    pub as_it_lies: bool,
    /// The same with the record of another table, by its name or id: for a copy restored from a
    /// backup. `none`: the record that the name has is of another table, and says nothing of this
    /// one
    #[arg(long, value_name = "ID|NAME", conflicts_with_all = ["back", "as_it_lies"])]
    pub records_from: Option<String>,
    /// Treat keys that look like shards as clients' own keys, though they are exactly where the
    /// rule puts them
    #[arg(long, conflicts_with = "back")]
    pub as_logical_keys: bool,
    /// Say what would be moved; change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask
    #[arg(long, short)]
    pub yes: bool,
    /// How the result is printed on stdout
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
}

impl Args {
    /// Whether another table's record is taken over.
    pub fn copies_record(&self) -> bool {
        self.records_from.as_deref().is_some_and(|from| from != "none")
    }
}
