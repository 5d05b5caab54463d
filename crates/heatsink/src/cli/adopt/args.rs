//! The arguments of `adopt`.

use std::path::PathBuf;

use heatsink_workers::DEFAULT_RATE;

use crate::cli::reshard::{How, Place};
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
    /// Move the table's own keys while nobody uses it: for keys that are written like shards, and for
    /// buckets, which cannot be moved otherwise. On a file that is always so
    #[arg(long)]
    pub offline: bool,
    /// Move only keys in the first so many hundredths of all hashes; run again, the command takes
    /// more, or the rest
    #[arg(long, value_name = "PERCENT", conflicts_with = "offline", value_parser = clap::value_parser!(u8).range(1..=99))]
    pub up_to: Option<u8>,
    /// Move keys in this process. Where gateways are registered they do otherwise, many at once
    #[arg(long, conflicts_with = "offline")]
    pub here: bool,
    /// The most capacity units a second that moving a key takes of its old shards, where clients
    /// leave so many
    #[arg(long, value_name = "UNITS", default_value_t = DEFAULT_RATE, value_parser = clap::value_parser!(u32).range(1..))]
    pub rate: u32,
    /// The table's stream may show each item that moves as inserted and removed
    #[arg(long)]
    pub confirm_streams: bool,
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

    /// Whether clients may use the table meanwhile, where its layouts allow that. A file has no
    /// clients.
    pub fn is_live(&self) -> bool {
        self.data.is_none()
            && !self.offline
            && !self.as_it_lies
            && !self.as_logical_keys
            && !self.keep_keys
            && self.records_from.is_none()
    }

    /// Where the store is, as the commands on keys have it.
    pub fn place(&self) -> Place {
        Place {
            rules: self.rules.clone(),
            data: self.data.clone(),
            upstream: self.upstream.clone(),
            server: None,
            output: self.output,
        }
    }

    /// How gateways move keys.
    pub fn how(&self) -> How {
        How {
            rate: self.rate,
            confirm_streams: self.confirm_streams,
            dry_run: false,
            wait: true,
            here: self.here,
        }
    }
}
