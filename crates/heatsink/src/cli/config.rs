//! `heatsink config check`: reads the rules and explains what they mean.

use std::path::PathBuf;
use std::sync::Arc;

use heatsink_access::Clients;
use heatsink_control::{Checked, Named, Rules, Verdict, check};
use heatsink_env::{Env, RealEnv};
use serde_json::json;

use super::open::{not_answered, open_existing};
use super::rules::{self, Found};
use super::{print, runtime};
use crate::exit::Exit;
use crate::output::Output;

/// Tables of a rule that are listed; the rest is counted. JSON has all of them.
const LISTED: usize = 8;

/// What `config` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

impl Args {
    /// How the result is printed.
    pub const fn output(&self) -> Output {
        let Action::Check(check) = &self.action;
        check.output
    }
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Checks the rules and says what they mean; with a store, for each of its tables, and which
    /// rules match none
    Check(Check),
}

#[derive(Debug, clap::Args)]
struct Check {
    /// The rules [default: heatsink.toml in the working directory]
    #[arg(long, value_name = "FILE")]
    rules: Option<PathBuf>,
    /// Compare with the tables in this file
    #[arg(long, value_name = "FILE")]
    data: Option<PathBuf>,
    /// Compare with the tables of the DynamoDB endpoint at this URL
    #[arg(long, value_name = "URL", conflicts_with = "data")]
    upstream: Option<String>,
    /// How the result is printed on stdout
    #[arg(long, value_enum, default_value_t)]
    output: Output,
}

/// Runs it. Changes nothing in the store. Exit 64 when a rule is wrong or cannot hold for a table,
/// 1 when a rule matches no table.
pub fn run(args: Args) -> Result<(), Exit> {
    let Action::Check(args) = args.action;
    let found = rules::need(args.rules.as_deref())?;
    // Without their secrets, which are where the gateway runs; what a policy is for does not depend
    // on the region.
    let clients = Clients::check(found.rules.clients(), "");
    clients.map_err(|fault| Exit::usage(fault.to_string()))?;
    let checked = if args.data.is_some() || args.upstream.is_some() {
        Some(runtime::one_thread()?.block_on(compare(&args, &found.rules))?)
    } else {
        None
    };
    match args.output {
        Output::Json => print::json(&document(&found, checked.as_ref()))?,
        Output::Text => print::text(&words(&found.rules, checked.as_ref()))?,
    }
    checked.map_or(Ok(()), |checked| judge(&found.rules, &checked))
}

async fn compare(args: &Check, rules: &Rules) -> Result<Checked, Exit> {
    let env: Arc<dyn Env> = Arc::new(RealEnv);
    let store = open_existing(args.data.as_deref(), args.upstream.as_deref(), &env).await?.store;
    check(store, env, rules).await.map_err(|error| not_answered("the tables could not be read", &error))
}

/// What is wrong, most serious first.
fn judge(rules: &Rules, checked: &Checked) -> Result<(), Exit> {
    let refused = |(_, verdict): &&(String, Verdict)| {
        matches!(verdict, Verdict::Refused(_) | Verdict::Contradicted(..))
    };
    match checked.tables.iter().filter(refused).count() {
        0 => {}
        1 => return Err(Exit::usage("the rules cannot hold for 1 table")),
        many => return Err(Exit::usage(format!("the rules cannot hold for {many} tables"))),
    }
    let idle: Vec<String> = rules
        .iter()
        .zip(&checked.rules)
        .filter(|(_, named)| named.tables.is_empty())
        .map(|(rule, _)| {
            format!("rule {} (line {}, table \"{}\")", rule.number, rule.line, rule.table.text())
        })
        .collect();
    match idle.as_slice() {
        [] => Ok(()),
        [one] => Err(Exit::failed(format!("{one} matches no table of the store"))),
        many => Err(Exit::failed(format!(
            "{} rules match no table of the store: {}",
            many.len(),
            many.join("; ")
        ))),
    }
}

fn document(found: &Found, checked: Option<&Checked>) -> serde_json::Value {
    let rules: Vec<_> = found
        .rules
        .iter()
        .enumerate()
        .map(|(nth, rule)| {
            let named = checked.and_then(|checked| checked.rules.get(nth));
            json!({
                "rule": rule.number,
                "line": rule.line,
                "table": rule.table.text(),
                "text": rule.to_string(),
                "tables": named.map(|named| &named.tables),
                "left_alone": named.map(|named| &named.left_alone),
            })
        })
        .collect();
    let tables: Vec<_> = checked
        .iter()
        .flat_map(|checked| &checked.tables)
        .map(|(table, verdict)| json!({ "table": table, "verdict": verdict.name(), "detail": verdict.to_string() }))
        .collect();
    let automatic: Vec<_> = found.rules.automatics().map(ToString::to_string).collect();
    let clients: Vec<_> = found.rules.clients().iter().map(ToString::to_string).collect();
    let webhook = found.rules.webhook().map(ToString::to_string);
    json!({
        "file": found.file, "rules": rules, "automatic": automatic, "clients": clients, "webhook": webhook,
        "tables": tables,
    })
}

fn words(rules: &Rules, checked: Option<&Checked>) -> String {
    let mut text = String::new();
    if rules.is_empty() {
        let until = if rules.reshards_by_itself() { " until a key of it gets shards" } else { "" };
        text += &format!("no rules: every table is forwarded{until}\n");
    }
    for (nth, rule) in rules.iter().enumerate() {
        text += &format!("{rule}\n");
        if let Some(named) = checked.and_then(|checked| checked.rules.get(nth)) {
            text += &format!("  {}\n", tables(named));
        }
    }
    text.extend(rules.automatics().map(|automatic| format!("{automatic}\n")));
    text.extend(rules.clients().iter().map(|client| format!("{client}\n")));
    text.extend(rules.webhook().map(|webhook| format!("{webhook}\n")));
    if rules.clients().iter().any(|client| !client.certificates.is_empty()) {
        text += "  certificates: `serve` has to ask for them, with --tls-client-ca\n";
    }
    for (table, verdict) in checked.iter().flat_map(|checked| &checked.tables) {
        text += &format!("table {table}: {verdict}\n");
    }
    text
}

/// The tables of one rule.
fn tables(named: &Named) -> String {
    let mut text = match named.tables.as_slice() {
        [] => "matches no table".to_owned(),
        some => format!("matches {}", listed(some)),
    };
    if !named.left_alone.is_empty() {
        text += &format!("; leaves alone {}", listed(&named.left_alone));
    }
    text
}

fn listed(tables: &[String]) -> String {
    let (shown, rest) = tables.split_at(tables.len().min(LISTED));
    match rest.len() {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
