//! What `heatsink reshard` takes.

use std::path::PathBuf;

use clap::{ArgGroup, Subcommand};
use heatsink_control::reshard_intent::{WantedLayout, key_text};
use heatsink_layout::{By, check_slots};
use heatsink_workers::{DEFAULT_RATE, slots_flag};

use super::quoted::quoted;
use crate::exit::Exit;
use crate::output::Output;

/// The most shards of a key.
const MOST_SHARDS: u16 = 1_000;

/// What `reshard` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    pub(super) what: What,
}

#[derive(Debug, Subcommand)]
pub(super) enum What {
    /// Asks for another number of shards for a key, or for several; a gateway carries it out
    Start(Start),
    /// Says how far reshards are, and which keys of a table are on record
    Status(Status),
    /// Stops moving the items of keys for now
    Pause(Steered),
    /// Goes on moving the items of keys
    Resume(Steered),
    /// Keeps keys as they were, as long as nothing was written under their new shards
    Cancel(Steered),
    /// Asks for the shards that a key has by its rule, or for one
    Back(Back),
}

/// Where the tables are, and how the result is printed.
#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("store").required(true).args(["data", "upstream", "server"]))]
pub(in crate::cli) struct Place {
    /// The rules file whose `[fence]` names the registry [default: heatsink.toml in the working
    /// directory, where there is one]
    #[arg(long, value_name = "FILE")]
    pub rules: Option<PathBuf>,
    /// The table is in this file, which no server has open
    #[arg(long, value_name = "FILE")]
    pub data: Option<PathBuf>,
    /// The table is at the DynamoDB endpoint with this URL: the one behind the gateways, not a
    /// gateway
    #[arg(long, value_name = "URL")]
    pub upstream: Option<String>,
    /// The table is in the memory or the file of this user's running server: the address of its
    /// clients, or its socket
    #[arg(long, value_name = "HOST:PORT|SOCKET")]
    pub server: Option<String>,
    /// How the result is printed on stdout
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
}

impl Place {
    /// The arguments that say it, for a command that is run next.
    pub fn words(&self) -> String {
        let file = |file: &Option<PathBuf>| file.as_ref().map(|file| file.display().to_string());
        let all = [
            ("data", file(&self.data)),
            ("upstream", self.upstream.clone()),
            ("server", self.server.clone()),
            ("rules", file(&self.rules)),
        ];
        let words =
            all.into_iter().filter_map(|(name, value)| Some(format!(" --{name} {}", quoted(&value?))));
        words.collect()
    }
}

/// How a reshard is carried out.
#[derive(Debug, clap::Args)]
pub(in crate::cli) struct How {
    /// The most capacity units a second that moving items takes of the old shards, where clients
    /// leave so many. A partition has 1,000 write units. With --index: the most items a second
    #[arg(long, value_name = "UNITS", default_value_t = DEFAULT_RATE, value_parser = clap::value_parser!(u32).range(1..))]
    pub rate: u32,
    /// The table's stream may show each item that moves as inserted and removed
    #[arg(long)]
    pub confirm_streams: bool,
    /// Say what would be done; change nothing
    #[arg(long)]
    pub dry_run: bool,
    /// Wait until it is done, and show how far it is
    #[arg(long, conflicts_with = "dry_run")]
    pub wait: bool,
    /// Carry it out in this process, without a gateway. If it is killed, a gateway goes on with what
    /// it had begun; without one, run it again
    #[arg(long, conflicts_with = "dry_run")]
    pub here: bool,
}

#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("keys").required(true).args(["key", "prefix", "file"]))]
pub(super) struct Start {
    /// The table
    pub table: String,
    /// The logical partition keys, or with --index the values of the index's; binary in base64.
    /// Keys move together, up to 100 at once; one that cannot move is named, and the others go on
    #[arg(allow_negative_numbers = true)]
    pub key: Vec<String>,
    /// Reshard a value of this global index's partition key instead: only that value is spread
    #[arg(long, value_name = "INDEX", conflicts_with_all = ["strategy", "attribute", "separator", "part", "split_at"])]
    pub index: Option<String>,
    /// All keys of the table that begin so, at most 1,000, or with --index all values of the index,
    /// at most 100. Reads the keys of at most 1,000,000 items
    #[arg(long, value_name = "PREFIX")]
    pub prefix: Option<String>,
    /// The keys, or with --index the values, in this file, one a line: at most 1,000 keys, or 100
    /// values
    #[arg(long, value_name = "FILE", visible_alias = "keys-from")]
    pub file: Option<PathBuf>,
    /// How many shards each gets; 1 brings all of its items back under the key itself
    #[arg(long, value_name = "N", required_unless_present_any = ["slots", "split_at"])]
    pub shards: Option<u16>,
    /// The slot of each shard, by shard: K#~7 is slot 7 of the key K, which itself is slot 0. Only
    /// items of shards whose slot changes move [default: shards keep their slots, new ones get the
    /// lowest free ones, one shard slot 0]
    #[arg(long, value_name = "NUMBERS", value_delimiter = ',', conflicts_with_all = ["index", "attribute"])]
    pub slots: Option<Vec<u16>>,
    /// What decides an item's shard: `calculated`, a hash of the sort key, or `random`, which is
    /// the same; `range`: the range that its sort key lies in, split at the quantiles of its items;
    /// `counter`: numbers that are added to lie in parts [default: as it is now, or `calculated`]
    #[arg(long, value_name = "STRATEGY")]
    pub strategy: Option<String>,
    /// Lay it out in ranges of the sort key, and begin one at this sort key; may be given several
    /// times, ascending; binary in base64
    #[arg(long, value_name = "SORT_KEY", allow_negative_numbers = true, conflicts_with_all = ["attribute", "separator"])]
    pub split_at: Vec<String>,
    /// A number of a counter; may be given several times [default: of a key that is a counter,
    /// those it has]
    #[arg(long, value_name = "NAME", requires = "strategy")]
    pub attribute: Vec<String>,
    /// Hash only a part of the sort key, of those that this separates
    #[arg(long, value_name = "TEXT", requires = "part")]
    pub separator: Option<String>,
    /// Which part, counted from 0
    #[arg(long, value_name = "N", requires = "separator")]
    pub part: Option<u16>,
    /// Do not ask whether everything that uses the table goes through gateways
    #[arg(long, short)]
    pub yes: bool,
    #[command(flatten)]
    pub how: How,
    #[command(flatten)]
    pub place: Place,
}

#[derive(Debug, clap::Args)]
pub(super) struct Status {
    /// The table [default: the reshards of all tables]
    pub table: Option<String>,
    #[command(flatten)]
    pub place: Place,
}

#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("keys").required(true).args(["key", "all"]))]
pub(super) struct Steered {
    /// The table [default, with --all: every table]
    pub table: Option<String>,
    /// The logical partition keys, or with --index the values of the index's; binary in base64
    #[arg(allow_negative_numbers = true)]
    pub key: Vec<String>,
    /// They are values of this index's partition key
    #[arg(long, value_name = "INDEX", conflicts_with = "all")]
    pub index: Option<String>,
    /// Every reshard of the table, or of all tables, those of values of indexes too
    #[arg(long)]
    pub all: bool,
    #[command(flatten)]
    pub place: Place,
}

#[derive(Debug, clap::Args)]
#[command(group = ArgGroup::new("keys").required(true).args(["key", "all"]))]
pub(super) struct Back {
    /// The table
    pub table: String,
    /// The logical partition key; binary in base64
    #[arg(allow_negative_numbers = true)]
    pub key: Option<String>,
    /// Every key of the table that is on record with other shards, at most 1,000
    #[arg(long)]
    pub all: bool,
    #[command(flatten)]
    pub how: How,
    #[command(flatten)]
    pub place: Place,
}

impl Args {
    /// How the result and errors are printed.
    pub const fn output(&self) -> Output {
        match &self.what {
            What::Start(start) => start.place.output,
            What::Status(status) => status.place.output,
            What::Pause(some) | What::Resume(some) | What::Cancel(some) => some.place.output,
            What::Back(back) => back.place.output,
        }
    }
}

/// The number of shards that is asked for, checked before the store is opened.
pub(super) fn shards(start: &Start) -> Result<u16, Exit> {
    let ranges = Some(start.split_at.len() + 1).filter(|ranges| *ranges > 1);
    let named = start.slots.as_ref().map(Vec::len).or(ranges).unwrap_or(0);
    let shards = start.shards.map_or(named, usize::from);
    let few = u16::try_from(shards).ok().filter(|few| (1..=MOST_SHARDS).contains(few));
    let Some(few) = few else {
        return Err(Exit::usage(format!("A key has 1 to {MOST_SHARDS} shards, and {shards} were asked for")));
    };
    if let Some(slots) = &start.slots {
        check_slots(slots, few).map_err(|why| Exit::usage(format!("--slots: {why}")))?;
    }
    Ok(few)
}

/// Whether ranges of the sort key are asked for.
pub(super) fn in_ranges(start: &Start) -> bool {
    start.strategy.as_deref() == Some("range") || !start.split_at.is_empty()
}

/// The layout that is asked for; where [ranges](in_ranges) are, without them.
pub(super) fn wanted(start: &Start) -> Result<WantedLayout, Exit> {
    let of = WantedLayout { slots: start.slots.clone(), ..shards(start)?.into() };
    if let Some(other) = start.strategy.as_deref().filter(|one| *one != "range" && !start.split_at.is_empty())
    {
        return Err(Exit::usage(format!("--split-at is of --strategy range, not of {other:?}")));
    }
    if in_ranges(start) {
        if start.separator.is_some() || !start.attribute.is_empty() {
            return Err(Exit::usage(
                "--strategy range: it takes the whole sort key: leave --separator, --part and --attribute out",
            ));
        }
        return Ok(of);
    }
    if start.strategy.as_deref() != Some("counter") {
        if !start.attribute.is_empty() {
            return Err(Exit::usage("--attribute names a number of a counter: say --strategy counter"));
        }
        return Ok(WantedLayout { by: by(start)?, ..of });
    }
    if start.separator.is_some() {
        return Err(Exit::usage(
            "--strategy counter: its parts do not follow from a sort key: leave --separator and --part out",
        ));
    }
    if start.slots.is_some() {
        return Err(Exit::usage("--strategy counter: its parts have no slots by name: leave --slots out"));
    }
    Ok(WantedLayout { counter: Some(start.attribute.clone()), ..of })
}

/// The arguments that ask for a layout, for a command that is run next.
pub(super) fn words(wanted: &WantedLayout) -> String {
    let attributes = wanted.counter.iter().flatten().map(|name| format!(" --attribute {}", quoted(name)));
    let counter = match &wanted.counter {
        Some(_) => format!(" --strategy counter{}", attributes.collect::<String>()),
        None => String::new(),
    };
    let slots = slots_flag(wanted.slots.as_deref().unwrap_or_default());
    let by = match &wanted.by {
        Some(By::Part { separator, part }) => format!(" --separator {} --part {part}", quoted(separator)),
        Some(_) if wanted.shards > 1 => " --strategy calculated".to_owned(),
        _ => String::new(),
    };
    let points = wanted.split_at.iter().flat_map(|points| points.iter());
    let points: String = points
        .map(|point| format!(" --split-at {}", quoted(&key_text(&point.canonical_bytes(), point.key_type()))))
        .collect();
    match points.is_empty() {
        true => format!("--shards {}{slots}{by}{counter}", wanted.shards),
        false => format!("--strategy range{points}{slots}"),
    }
}

/// What is to decide an item's shard; `None` where nothing is said.
fn by(start: &Start) -> Result<Option<By>, Exit> {
    let part = start.separator.clone().zip(start.part);
    let by = part.map(|(separator, part)| By::Part { separator, part: part.into() });
    let why = match start.strategy.as_deref() {
        None => return Ok(by),
        Some("calculated") => return Ok(Some(by.unwrap_or(By::SortKey))),
        Some("random") if by.is_none() => return Ok(Some(By::SortKey)),
        Some("random") => "takes the whole sort key: leave --separator and --part out, or say `calculated`",
        Some("none") => "is one shard: say --shards 1",
        Some("time_bucket") => {
            "gives a key buckets, which needs a rule and `heatsink adopt`. A key that has them gets other shards without --strategy"
        }
        Some("template") => {
            "writes physical keys in another form, for all keys of a table: it needs a rule and `heatsink adopt`"
        }
        Some(other) => {
            return Err(Exit::usage(format!(
                "--strategy {other:?}: single keys are laid out as `calculated`, `random`, `range` or `counter`"
            )));
        }
    };
    let named = start.strategy.as_deref().unwrap_or_default();
    Err(Exit::usage(format!("--strategy {named}: it {why}")))
}
