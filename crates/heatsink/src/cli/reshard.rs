//! `heatsink reshard`: moves one key to other shards while clients use it, and says which keys are on record.

use std::path::PathBuf;
use std::sync::Arc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use clap::Subcommand;
use heatsink_control::registry::Registry;
use heatsink_control::{KeyRecord, Rules};
use heatsink_dynamo::KeyType;
use heatsink_env::{Env, RealEnv};
use heatsink_mover::{Options, Plan, Progress, Reshard, ReshardError};
use heatsink_reshard::State;
use heatsink_store::Store;
use indicatif::ProgressBar;
use serde_json::{Value as Json, json};

use super::open::{not_answered, open_existing};
use super::progress::bar;
use super::{print, rules};
use crate::exit::{Exit, without_numbers};
use crate::output::Output;

/// What `reshard` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Subcommand)]
enum What {
    /// Gives a key another number of shards, or goes on with a move that was interrupted
    Start(Start),
    /// Lists the keys of a table that are on record, and how far a move has come
    Status(Status),
}

/// Where the tables are, and how the result is printed.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("store").required(true).args(["data", "upstream"]))]
struct Place {
    /// The rules file whose `[fence]` names the registry [default: heatsink.toml in the working directory, where there is one]
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// The table is in this file
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// The table is at the DynamoDB endpoint with this URL
    #[arg(long, value_name = "URL")]
    upstream: Option<String>,
    /// How the result is printed on stdout
    #[arg(long, value_enum, default_value_t)]
    output: Output,
}

#[derive(Debug, clap::Args)]
struct Start {
    /// The table
    table: String,
    /// The logical partition key; binary in base64
    key: String,
    /// How many shards it gets; 1 brings all of its items back under the key itself
    #[arg(long, value_name = "N")]
    shards: u16,
    /// The most capacity units a second that moving items takes of the old shards, where clients leave so many. A partition has 1,000 write units
    #[arg(long, value_name = "UNITS", default_value_t = 1_000, value_parser = clap::value_parser!(u32).range(1..))]
    rate: u32,
    /// The table's stream may show each item that moves as inserted and removed
    #[arg(long)]
    confirm_streams: bool,
    /// Say what would be done; change nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    place: Place,
}

#[derive(Debug, clap::Args)]
struct Status {
    /// The table
    table: String,
    #[command(flatten)]
    place: Place,
}

impl Args {
    /// How the result and errors are printed.
    pub const fn output(&self) -> Output {
        match &self.what {
            What::Start(start) => start.place.output,
            What::Status(status) => status.place.output,
        }
    }
}

/// Runs it. Exit 0 when the key has so many shards; 64 when it cannot have them; 69 when the store did not answer; 1 when it stopped on the way, and
/// goes on if the command is run again.
pub fn run(args: Args) -> Result<(), Exit> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    runtime.block_on(async {
        match args.what {
            What::Start(start) => begin(start).await,
            What::Status(status) => list(status).await,
        }
    })
}

async fn opened(place: &Place) -> Result<(Arc<dyn Store>, Arc<dyn Env>, Rules), Exit> {
    let env: Arc<dyn Env> = Arc::new(RealEnv);
    let rules = rules::find(place.rules.as_deref())?.rules;
    let store = open_existing(place.data.as_deref(), place.upstream.as_deref(), &env).await?.store;
    Ok((store, env, rules))
}

async fn begin(start: Start) -> Result<(), Exit> {
    let (store, env, rules) = opened(&start.place).await?;
    let registry = Registry::new(Arc::clone(&store), Arc::clone(&env), &rules.fence().registry);
    let described = registry.describe(&start.table).await;
    let described = described.map_err(|error| not_answered("The table could not be described", &error))?;
    let binary = described.is_some_and(|described| described.schema.key.partition.key_type == KeyType::B);
    let key = match binary {
        true => STANDARD.decode(&start.key).map_err(|_| {
            Exit::usage(format!(
                "the partition keys of table {} are binary: give the key in base64",
                start.table
            ))
        })?,
        false => start.key.clone().into_bytes(),
    };
    let prepared =
        Reshard::prepare(store, env, &rules, &start.table, &key, start.shards, start.confirm_streams);
    let reshard = prepared.await.map_err(exit)?;
    let output = start.place.output;
    let run = format!(
        "heatsink reshard start {} {} --shards {}",
        quoted(&start.table),
        quoted(&start.key),
        start.shards
    );
    if start.dry_run {
        let mut plan = reshard.plan().await.map_err(exit)?;
        if !reshard.is_done() {
            plan.next_steps.push(run);
        }
        return say(output, &serde_json::to_value(&plan).map_err(software)?, &in_words(&plan));
    }
    if reshard.is_done() {
        let document = json!({ "table": start.table, "key": start.key, "to": start.shards, "already": true });
        return say(
            output,
            &document,
            &format!("the key {:?} has {} shards already", start.key, start.shards),
        );
    }
    let shown = Shown(bar(output, None, "{msg} {human_pos} items moved, {per_sec}"));
    // A file has one process at a time; an upstream may have gateways.
    let options = Options { exclusive: start.place.upstream.is_none(), rate: start.rate };
    let report = reshard.run(options, &shown).await.map_err(exit)?;
    shown.0.finish_and_clear();
    let text = format!(
        "the key {:?} of table {} has {} shards; it had {}. {} items were moved",
        report.key, report.table, report.to, report.from, report.moved
    );
    say(output, &serde_json::to_value(&report).map_err(software)?, &text)
}

async fn list(status: Status) -> Result<(), Exit> {
    let (store, env, rules) = opened(&status.place).await?;
    let registry = Registry::new(store, env, &rules.fence().registry);
    let failed = |error| not_answered("The registry could not be read", &error);
    let Some(described) = registry.describe(&status.table).await.map_err(failed)? else {
        return Err(Exit::usage(format!("there is no table {}", status.table)));
    };
    let recorded = registry.read(&described.schema.id).await.map_err(failed)?;
    let records = match &recorded {
        Some(record) if record.keys > 0 => registry.key_records(&record.id).await.map_err(failed)?,
        _ => Vec::new(),
    };
    let document = json!({ "table": status.table, "keys": records.iter().map(document).collect::<Vec<_>>() });
    let mut text: Vec<String> = records.iter().map(line).collect();
    if text.is_empty() {
        text.push(format!("no key of table {} is on record by itself", status.table));
    }
    say(status.place.output, &document, &text.join("\n"))
}

fn shown(record: &KeyRecord) -> String {
    match record.key_type {
        KeyType::B => STANDARD.encode(&record.key),
        _ => String::from_utf8_lossy(&record.key).into_owned(),
    }
}

fn document(record: &KeyRecord) -> Json {
    let moves = record.moves.as_ref().map(|moves| json!({ "to": moves.to.shards, "phase": moves.phase }));
    json!({
        "key": shown(record), "shards": record.layout.shards, "reserved": record.reserved, "moves": moves, "settled": record.settled,
        "changed": record.changed,
    })
}

fn line(record: &KeyRecord) -> String {
    let key = shown(record);
    let shards = record.layout.shards;
    match &record.moves {
        Some(moves) => {
            format!("{key:?}: moves from {shards} to {} shards, phase {:?}", moves.to.shards, moves.phase)
        }
        None if record.settled => format!("{key:?}: {shards} shards"),
        None => format!("{key:?}: {shards} shards; late requests of its last move are waited for"),
    }
}

fn in_words(plan: &Plan) -> String {
    let next = plan.next_steps.first().map(|next| format!("\nNext: {next}")).unwrap_or_default();
    format!(
        "the key {:?} of table {} has {} shards and {} items; for {} shards some {} of them move, with some {} write units. Phases: {}. Point of no \
         return: {}{next}",
        plan.key,
        plan.table,
        plan.from,
        plan.items,
        plan.to,
        plan.to_move,
        plan.write_units,
        plan.phases.join(", "),
        plan.point_of_no_return
    )
}

/// A word as a shell takes it.
fn quoted(word: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_./:".contains(c);
    if !word.is_empty() && word.chars().all(plain) {
        return word.to_owned();
    }
    format!("'{}'", word.replace('\'', r"'\''"))
}

fn say(output: Output, document: &Json, text: &str) -> Result<(), Exit> {
    match output {
        Output::Json => print::json(document),
        Output::Text => print::text(&format!("{text}\n")),
    }
}

#[allow(clippy::needless_pass_by_value, reason = "a conversion of errors")]
fn software(error: serde_json::Error) -> Exit {
    Exit::software(error.to_string())
}

fn exit(error: ReshardError) -> Exit {
    match error {
        ReshardError::Usage(problem) => Exit::usage(problem),
        ReshardError::Stopped(problem) => Exit::failed(problem),
        ReshardError::Store(_) => Exit::failed(without_numbers(&error.to_string())).retryable(),
    }
}

/// Shows how far it is.
struct Shown(ProgressBar);

impl Progress for Shown {
    fn phase(&self, state: State) {
        let phase = match state {
            State::Moving { phase, .. } => format!("{phase:?}").to_uppercase(),
            State::Stable { .. } => "STABLE".to_owned(),
        };
        self.0.set_message(phase);
    }

    fn moved(&self, items: u64) {
        self.0.set_position(items);
    }
}
