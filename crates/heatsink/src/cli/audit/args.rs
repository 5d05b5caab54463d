//! What `audit` takes, and how much it reads if nothing is said.

use std::path::PathBuf;

use crate::output::Output;

/// How many items of a table are read if nothing is said. Files are read whole, up to [`MOST`].
pub const ITEMS: u64 = 100_000;
/// The most items that are read.
pub const MOST: u64 = 50_000_000;

/// What `audit` takes.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("store").required(true).multiple(true).args(["data", "upstream", "file", "trace"]))]
pub struct Args {
    /// The table; with --file, its name in the rules that are proposed; with --trace, the one of
    /// which to tell
    #[arg(required_unless_present_any = ["file", "trace"])]
    pub table: Option<String>,
    /// The table is in this file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["upstream", "file", "trace"])]
    pub data: Option<PathBuf>,
    /// The table is at the DynamoDB endpoint with this URL; reading it costs half a unit for each 4
    /// KB
    #[arg(long, value_name = "URL", conflicts_with_all = ["file", "trace"])]
    pub upstream: Option<String>,
    /// Read these files: an export to S3 (its directory, or data files), items in DynamoDB JSON,
    /// the output of `aws dynamodb scan`, or stream records; plain or gzip, told by what is in
    /// them; `-` is standard input
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub file: Vec<PathBuf>,
    /// Read recorded traffic: what `heatsink serve --record` has written, at one gateway or at
    /// several. Beside --file with stream records: say which writes did not come through these
    /// gateways
    #[arg(long, value_name = "FILE", num_args = 1..)]
    pub trace: Vec<PathBuf>,
    /// The names of the table's key attributes, for --file
    #[arg(long, value_name = "PK[,SK]", requires = "file", conflicts_with_all = ["schema", "data", "upstream"])]
    pub key: Option<String>,
    /// The names are in this file: what `aws dynamodb describe-table` says, or a CreateTable
    /// request
    #[arg(long, value_name = "FILE", requires = "file", conflicts_with_all = ["data", "upstream"])]
    pub schema: Option<PathBuf>,
    /// Count lines of files that cannot be read, and go on
    #[arg(long, conflicts_with_all = ["data", "upstream"])]
    pub skip_bad: bool,
    /// Stop when this many items are read: of a table, evenly in eight parts of it [default: 100000
    /// of a table, 50000000 of files]
    #[arg(long, value_name = "COUNT", conflicts_with = "trace", value_parser = clap::value_parser!(u64).range(1..=MOST))]
    pub items: Option<u64>,
    /// How the result is printed on stdout
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
}
