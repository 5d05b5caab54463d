//! Audits a table by its items, read through a gateway without rules, so that keys are logical
//! ones.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use heatsink::Gateway;
use heatsink_control::Fencing;
use heatsink_dynamo::value::read_item;
use heatsink_dynamo::{Code, Error, Operation, TableSchema, pages};
use heatsink_env::{Env, RealEnv};
use heatsink_heat::audit::Audit;
use heatsink_workers::RecipeObserver;
use indicatif::ProgressBar;
use serde_json::{Value as Json, json};

use super::args::{Args, ITEMS};
use super::said::Said;
use crate::cli::open::{not_answered, not_started, open_existing};
use crate::cli::{progress, rules};
use crate::exit::Exit;

/// Parts of the table that are read in turn, so that a table that is not read whole is read in
/// several places.
const SEGMENTS: u64 = 8;
/// Longest pause after a throttled page.
const LONGEST: Duration = Duration::from_secs(5);

/// Runs it. Changes nothing in the store.
pub async fn run(args: &Args, table: &str) -> Result<(), Exit> {
    let env: Arc<dyn Env> = Arc::new(RealEnv);
    let opened = open_existing(args.data.as_deref(), args.upstream.as_deref(), &env).await?;
    // A gateway without rules of its own: what is on record as sharded is seen by its logical keys.
    // Behind another gateway there is nothing on record, and the keys are logical already.
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
    let most = args.items.unwrap_or(ITEMS);
    let reader = Reader { gateway, env, table };

    let described = reader.call(Operation::DescribeTable, &json!({ "TableName": table })).await?;
    let schema = TableSchema::from_description(&described).map_err(unreadable)?;
    let there = read(&described)?["Table"]["ItemCount"].as_u64().unwrap_or(0);
    // A table that is refused is refused to its reader as well, who is told why.
    let _ = store.observe(reader.gateway.control(), table).await;
    let bar = progress::bar(
        args.output,
        Some(there.min(most)),
        "reading {bar:30} {human_pos}/{human_len} items, {per_sec}, {eta} left",
    );
    let (found, whole) = reader.read(&schema, most, &bar).await?;
    bar.finish_and_clear();
    let report = if whole { found.report(table) } else { found.report_sample(table, there) };
    let of = (!whole).then_some(there);
    Said { table, report: &report, of, recipe: store.advice().as_deref(), files: None, past: None }
        .print(args.output)
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
                pages::advances(Operation::Scan, &scan, &page).map_err(unreadable)?;
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
