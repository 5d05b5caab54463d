//! `heatsink config check`: reads the rules and says in words what they mean.

use std::path::PathBuf;
use std::sync::Arc;

use heatsink_control::rules::Rule;
use heatsink_control::{Verdict, check};
use heatsink_env::{Env, RealEnv};
use serde_json::json;

use super::Output;
use super::open::open_existing;
use super::serve::read_rules;
use crate::exit::Exit;

/// What `config` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, clap::Subcommand)]
enum Action {
    /// Checks the rules and says what they mean; with a store, for each of its tables
    Check(Check),
}

#[derive(Debug, clap::Args)]
struct Check {
    /// The rules
    #[arg(long, value_name = "FILE", default_value = "heatsink.toml")]
    rules: PathBuf,
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

/// Runs it. Changes nothing in the store.
pub fn run(args: Args) -> Result<(), Exit> {
    let Action::Check(args) = args.action;
    let rules = read_rules(&args.rules)?;
    let words: Vec<String> = rules.iter().map(Rule::to_string).collect();
    let verdicts = if args.data.is_some() || args.upstream.is_some() {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let env: Arc<dyn Env> = Arc::new(RealEnv);
        runtime.block_on(async {
            let store = open_existing(args.data.as_deref(), args.upstream.as_deref(), &env).await?.store;
            check(store, env, &rules)
                .await
                .map_err(|error| Exit::unavailable(format!("the store could not be asked: {error}")))
        })?
    } else {
        Vec::new()
    };
    let refused = verdicts.iter().filter(|(_, verdict)| matches!(verdict, Verdict::Refused(_))).count();
    print(args.output, &words, &verdicts)?;
    match refused {
        0 => Ok(()),
        1 => Err(Exit::usage("the rules cannot hold for 1 table")),
        many => Err(Exit::usage(format!("the rules cannot hold for {many} tables"))),
    }
}

fn print(output: Output, words: &[String], verdicts: &[(String, Verdict)]) -> std::io::Result<()> {
    use std::io::Write;
    let mut out = std::io::stdout().lock();
    if output == Output::Json {
        let tables: Vec<_> = verdicts
            .iter()
            .map(|(table, verdict)| json!({ "table": table, "verdict": verdict.name(), "detail": verdict.to_string() }))
            .collect();
        writeln!(out, "{}", json!({ "rules": words, "tables": tables }))?;
        return out.flush();
    }
    if words.is_empty() {
        writeln!(out, "no rules: every table is forwarded")?;
    }
    for line in words {
        writeln!(out, "{line}")?;
    }
    for (table, verdict) in verdicts {
        writeln!(out, "table {table}: {verdict}")?;
    }
    out.flush()
}
