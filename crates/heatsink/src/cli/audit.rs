//! `heatsink audit TABLE`: which keys of a table need a rule, by its items, and what to do about them.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use heatsink::Gateway;
use heatsink_adopt::RecipeObserver;
use heatsink_control::Fencing;
use heatsink_dynamo::value::read_item;
use heatsink_dynamo::{Code, Error, Operation, TableSchema};
use heatsink_env::{Env, RealEnv};
use heatsink_heat::audit::{Audit, Report};
use indicatif::ProgressBar;
use serde_json::{Value as Json, json};

use super::open::{not_answered, not_started, open_existing};
use super::{print, progress, rules};
use crate::exit::Exit;
use crate::output::Output;
use crate::screen;

/// Parts of the table that are read in turn, so that a table that is not read whole is read in several places.
const SEGMENTS: u64 = 8;
/// Longest pause after a throttled page.
const LONGEST: Duration = Duration::from_secs(5);

/// What `audit` takes.
#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("store").required(true).args(["data", "upstream"]))]
pub struct Args {
    /// The table
    table: String,
    /// The table is in this file
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// The table is at the DynamoDB endpoint with this URL; reading it costs half a unit for each 4 KB
    #[arg(long, value_name = "URL")]
    upstream: Option<String>,
    /// Stop when this many items are read, evenly in eight parts of the table
    #[arg(long, value_name = "COUNT", default_value_t = 100_000, value_parser = clap::value_parser!(u64).range(1..=50_000_000))]
    items: u64,
    /// How the result is printed on stdout
    #[arg(long, value_enum, default_value_t)]
    pub output: Output,
}

/// Runs it. Changes nothing in the store.
pub fn run(args: Args) -> Result<(), Exit> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    runtime.block_on(audit(args))
}

async fn audit(args: Args) -> Result<(), Exit> {
    let env: Arc<dyn Env> = Arc::new(RealEnv);
    let opened = open_existing(args.data.as_deref(), args.upstream.as_deref(), &env).await?;
    // A gateway without rules of its own: what is on record as sharded is seen by its logical keys. Behind another gateway there is
    // nothing on record, and the keys are logical already.
    let rules = rules::find(None)?.rules.without_rules();
    let fencing = Fencing::observing(rules.fence());
    let store = RecipeObserver::before(opened.store);
    let gateway = Gateway::builder(store.clone())
        .env(env.clone())
        .rules(rules)
        .fencing(fencing)
        .region(&opened.region)
        .start()
        .await
        .map_err(not_started)?;
    let reader = Reader { gateway, env, table: &args.table };

    let described = reader.call(Operation::DescribeTable, &json!({ "TableName": args.table })).await?;
    let schema = TableSchema::from_description(&described).map_err(unreadable)?;
    let there = read(&described)?["Table"]["ItemCount"].as_u64().unwrap_or(0);
    // A table that is refused is refused to its reader as well, who is told why.
    let _ = store.observe(reader.gateway.control(), &args.table).await;
    let bar = progress::bar(
        args.output,
        Some(there.min(args.items)),
        "reading {bar:30} {human_pos}/{human_len} items, {per_sec}, {eta} left",
    );
    let (found, whole) = reader.read(&schema, args.items, &bar).await?;
    bar.finish_and_clear();
    let report = if whole { found.report(&args.table) } else { found.report_sample(&args.table, there) };
    shown(&args, &report, (!whole).then_some(there), store.advice().as_deref())
}

/// Reads a table by its logical keys.
struct Reader<'a> {
    gateway: Gateway,
    env: Arc<dyn Env>,
    table: &'a str,
}

impl Reader<'_> {
    /// A page at a time of each part in turn; whether that was all of the table.
    async fn read(&self, schema: &TableSchema, most: u64, bar: &ProgressBar) -> Result<(Audit, bool), Exit> {
        let (partition, sort) =
            (&schema.key.partition.name, schema.key.sort.as_ref().map(|sort| sort.name.as_str()));
        let mut audit = Audit::default();
        let mut taken = 0;
        let mut parts: Vec<Json> = (0..SEGMENTS)
            .map(|part| {
                // Of a small number of items each part gives its share.
                json!({ "TableName": self.table, "TotalSegments": SEGMENTS, "Segment": part, "Limit": most.div_ceil(SEGMENTS) })
            })
            .collect();
        while !parts.is_empty() {
            let mut more = Vec::new();
            for mut scan in parts {
                let page = read(&self.call(Operation::Scan, &scan).await?)?;
                for item in page["Items"].as_array().into_iter().flatten() {
                    let item = read_item(item.to_string().as_bytes()).map_err(unreadable)?;
                    audit.add_item(&item, partition, sort);
                    taken += 1;
                    bar.inc(1);
                }
                if let Some(last) = page.get("LastEvaluatedKey") {
                    scan["ExclusiveStartKey"] = last.clone();
                    more.push(scan);
                }
            }
            if taken >= most && !more.is_empty() {
                return Ok((audit, false));
            }
            parts = more;
        }
        Ok((audit, true))
    }

    /// One request; throttled, it waits and is sent again.
    async fn call(&self, operation: Operation, body: &Json) -> Result<Bytes, Exit> {
        let mut pause = Duration::from_millis(100);
        loop {
            match self.gateway.call(operation, Bytes::from(body.to_string())).await {
                Ok(answer) => return Ok(answer),
                Err(error) if error.code == Code::ResourceNotFoundException => {
                    return Err(Exit::usage(format!("There is no table {}", self.table)));
                }
                Err(error) if error.retryable() && pause < LONGEST => {
                    self.env.sleep(pause).await;
                    pause *= 2;
                }
                Err(error) => {
                    return Err(not_answered(&format!("table {} could not be read", self.table), &error));
                }
            }
        }
    }
}

fn read(answer: &[u8]) -> Result<Json, Exit> {
    serde_json::from_slice(answer)
        .map_err(|error| Exit::failed(format!("the store's answer cannot be read: {error}")))
}

fn unreadable(error: Error) -> Exit {
    Exit::failed(format!("the store's answer cannot be read: {error}"))
}

/// `of` is how many items the table has, where not all were read; `recipe` warns of a rule that looks for what could be computed.
fn shown(args: &Args, report: &Report, of: Option<u64>, recipe: Option<&str>) -> Result<(), Exit> {
    if args.output == Output::Json {
        let mut document = json!(report);
        document["table"] = json!(args.table);
        document["whole"] = json!(of.is_none());
        if let Some(recipe) = recipe {
            document["recipe"] = json!(recipe);
        }
        return print::json(&document);
    }
    let warning = recipe.map_or_else(String::new, |recipe| format!("\nwarning: {recipe}\n"));
    print::text(&(text(args, report, of) + &warning))
}

fn text(args: &Args, report: &Report, of: Option<u64>) -> String {
    let part = of
        .map_or_else(String::new, |of| {
            format!(" of about {of}: rates and sizes are at least what is shown, and keys that were not read are not in it")
        });
    let mut text = format!("table {}: {} items read{part}\n\n", args.table, report.items);
    let mut table =
        screen::table(["keys like", "keys", "items", "largest, bytes", "busiest, units/s", "what to do"]);
    for pattern in &report.patterns {
        let peak = pattern.busiest.as_ref().and_then(|key| key.peak_units);
        table.add_row([
            pattern.pattern.clone(),
            pattern.keys.to_string(),
            pattern.items.to_string(),
            pattern.largest.bytes.to_string(),
            peak.map_or_else(|| "unknown".to_owned(), |peak| format!("{peak:.1}")),
            pattern.verdict.action.words().to_owned(),
        ]);
    }
    text += &screen::drawn(table, &[1, 2, 3, 4]);
    text += "\n";
    for pattern in &report.patterns {
        let verdict = &pattern.verdict;
        text += &format!("{}: {}, because {}.\n", pattern.pattern, verdict.action.words(), verdict.reason);
        for line in verdict.rule.iter().flat_map(|rule| rule.lines()) {
            text += &format!("    {line}\n");
        }
    }
    text + "\nRates are those of items that are still there, by the times in their sort keys. Overwrites, updates, deletes and reads leave no trace.\n"
}
