//! `heatsink explain`: the physical requests of a request, and their cost, without sending it.

use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use bytes::Bytes;
use heatsink::Gateway;
use heatsink_control::{Fencing, Rules};
use heatsink_dynamo::display::inert;
use heatsink_dynamo::{Error, Operation};
use heatsink_env::{Env, RealEnv};
use heatsink_route::{Explanation, Kind};
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;

use super::open::{not_started, open_existing};
use super::{print, rules, runtime};
use crate::exit::{Exit, in_words};
use crate::output::Output;
use crate::screen;

/// What `explain` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The request's JSON body; `-` reads it from standard input
    #[arg(value_name = "REQUEST.json")]
    request: PathBuf,
    /// The operation
    #[arg(long = "op", value_name = "OPERATION", value_parser = operation)]
    operation: Operation,
    /// A CreateTable request for the table; then nothing else is needed but the rules
    #[arg(long, value_name = "FILE", conflicts_with_all = ["data", "upstream"])]
    table: Option<PathBuf>,
    /// The rules, with --table [default: heatsink.toml in the working directory, where there is
    /// one]. A store's own registry says how its tables are laid out
    #[arg(long, value_name = "FILE", requires = "table")]
    rules: Option<PathBuf>,
    /// Ask the registry in this file
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// Ask the registry at this DynamoDB endpoint
    #[arg(long, value_name = "URL", conflicts_with = "data")]
    upstream: Option<String>,
    /// How the plan is printed on stdout
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
}

fn operation(name: &str) -> Result<Operation, String> {
    Operation::by_name(name)
        .ok_or_else(|| format!("DynamoDB has no operation {name}; expected a name such as Query or PutItem"))
}

/// Prints the plan.
pub fn run(args: Args) -> Result<(), Exit> {
    let body = read(&args.request)?;
    heatsink_dynamo::wire::check(args.operation, &body).map_err(|error| {
        let (file, operation) = (args.request.display(), args.operation.name());
        Exit::usage(format!("{file}: this is no valid request for {operation}: {}", words_of(&error)))
    })?;
    let explanation = runtime::one_thread()?.block_on(explain(&args, body))?;
    match args.output {
        Output::Json => print::pretty_json(&explanation),
        Output::Text => print::text(&words(&explanation)),
    }
}

/// What DynamoDB says; to text that is no JSON it says nothing but a code.
fn words_of(error: &Error) -> String {
    error.message.clone().unwrap_or_else(|| format!("DynamoDB answers {}", error.code.name()))
}

fn read(file: &Path) -> Result<Bytes, Exit> {
    let mut text = Vec::new();
    let read = if file == Path::new("-") {
        std::io::stdin().lock().read_to_end(&mut text).map(|_| ())
    } else {
        std::fs::read(file).map(|read| text = read)
    };
    read.map_err(|error| Exit::usage(format!("cannot read {}: {}", file.display(), in_words(&error))))?;
    Ok(Bytes::from(text))
}

async fn explain(args: &Args, body: Bytes) -> Result<Explanation, Exit> {
    let env: Arc<dyn Env> = Arc::new(RealEnv);
    let gateway = match &args.table {
        Some(table) => {
            let rules = rules::find(args.rules.as_deref())?.rules;
            let memory = Embedded::memory().map_err(|error| Exit::software(error.to_string()))?;
            let gateway = {
                let fencing = Fencing::exclusive(rules.fence());
                gateway(Arc::new(memory), &env, rules, fencing).await?
            };
            gateway.call(Operation::CreateTable, read(table)?).await.map_err(|error| {
                Exit::usage(format!("{}: not a valid CreateTable request: {error}", table.display()))
            })?;
            gateway
        }
        None => {
            let store = open_existing(args.data.as_deref(), args.upstream.as_deref(), &env).await?.store;
            let rules = rules::find(None)?.rules.without_rules();
            let fencing = Fencing::observing(rules.fence());
            gateway(store, &env, rules, fencing).await?
        }
    };
    Ok(gateway.explain(args.operation, &body).await)
}

async fn gateway(
    store: Arc<dyn Store>,
    env: &Arc<dyn Env>,
    rules: Rules,
    fencing: Fencing,
) -> Result<Gateway, Exit> {
    let gateway = Gateway::builder(store).env(env.clone()).rules(rules).fencing(fencing);
    gateway.start().await.map_err(not_started)
}

fn words(explanation: &Explanation) -> String {
    let kind = match explanation.plan {
        Kind::Forward => "Forward",
        Kind::Single => "Single",
        Kind::Scatter => "Scatter",
        Kind::Refused => "Refused",
    };
    let mut lines = vec![format!("{kind}: {}", inert(&explanation.why))];
    if !explanation.calls.is_empty() {
        lines.push(calls(explanation).trim_end().to_owned());
    }
    let units = explanation.calls.iter().filter_map(|call| call.estimate.as_ref());
    let (read, write) = units
        .clone()
        .fold((0.0, 0.0), |(read, write), units| (read + units.read_units, write + units.write_units));
    if let Some(estimate) = units.clone().next() {
        lines.push(format!("About {read} read and {write} write units, {}.", estimate.assumes));
    }
    lines.push(String::new());
    lines.join("\n")
}

fn calls(explanation: &Explanation) -> String {
    let mut table =
        screen::table(["operation", "shard", "physical key", "limit", "read units", "write units"]);
    for call in &explanation.calls {
        table.add_row([
            call.operation.clone(),
            call.shard.map(|shard| shard.to_string()).unwrap_or_default(),
            call.key.as_deref().map(inert).unwrap_or_default().into_owned(),
            call.body.get("Limit").map(ToString::to_string).unwrap_or_default(),
            call.estimate.as_ref().map(|units| units.read_units.to_string()).unwrap_or_default(),
            call.estimate.as_ref().map(|units| units.write_units.to_string()).unwrap_or_default(),
        ]);
    }
    screen::drawn(table, &[1, 3, 4, 5])
}
