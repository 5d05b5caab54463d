//! The command line, one module per subcommand.

mod address;
mod adopt;
mod ask_server;
mod audit;
#[cfg_attr(not(feature = "top"), allow(dead_code, reason = "`top` shows it"))]
mod automatic;
mod clients;
mod config;
mod confirm;
mod doctor;
mod explain;
mod freeze;
mod gateways;
mod health;
mod heatmap;
#[cfg_attr(not(feature = "top"), allow(dead_code, reason = "`top` shows more of it than `watch`"))]
mod hot_keys;
mod init;
mod key_table;
mod known_tables;
mod leave;
mod logs;
mod open;
mod operator_socket;
#[cfg(feature = "otlp")]
mod otlp;
mod partitions;
mod place;
mod progress;
mod reshard;
mod right_flag;
mod rules;
mod runtime;
mod serve;
mod server_store;
mod shards;
mod status;
mod store;
mod store_args;
mod stream;
mod table_moves;
mod token_file;
#[cfg(feature = "top")]
mod top;
mod verify;
mod watch;
mod whole_answer;

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use heatsink_terminal::arguments::unparsed;
use heatsink_terminal::{completions, inert, print};

use crate::output::Output;

/// Makes hot DynamoDB partition keys disappear.
#[derive(Debug, Parser)]
#[command(name = "heatsink", version, args_conflicts_with_subcommands = true)]
struct Cli {
    #[command(subcommand)]
    command: Option<Command>,
    #[command(flatten)]
    serve: serve::Args,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serves DynamoDB's wire protocol on this machine (what plain `heatsink` does)
    Serve(serve::Args),
    /// Brings a table that holds items under its rules, or back out
    Adopt(adopt::Args),
    /// Reads a table's items and says which keys need a rule
    Audit(audit::Args),
    /// Reads the rules and explains what they mean
    Config(config::Args),
    /// Looks at configuration, store, registry and rights, and says what to do about what is wrong
    Doctor(doctor::Args),
    /// Shows the physical requests of a request and their cost, without sending it
    Explain(explain::Args),
    /// Stops layout changes in all gateways until they are allowed again
    Freeze(freeze::Args),
    /// Lists the gateways of a store, and what a layout change waits for
    Gateways(gateways::Args),
    /// Says by its exit code whether a running server would answer its clients
    Health(health::Args),
    /// Draws the heat of keys over time, as a running server has seen it
    Heatmap(heatmap::Args),
    /// Writes a commented configuration that changes nothing
    Init(init::Args),
    /// Brings everything that is sharded back, and at the end removes the registry
    Leave(leave::Args),
    /// Shows the partitions of a table in a running server
    Partitions(partitions::Args),
    /// Gives hot keys other shards while clients use them
    Reshard(reshard::Args),
    /// Computes how many shards a key needs, with the risk and the cost of reads
    Shards(shards::Args),
    /// Lists everything that is sharded in a store, what brings each back, and at what cost
    Status(status::Args),
    /// Prints the records of a table's stream with logical keys, a line of JSON each
    Stream(stream::Args),
    /// Shows the hot keys of a running server in the terminal, live
    #[cfg(feature = "top")]
    Top(top::Args),
    /// Checks that every item of a recorded table is where the record puts it, and moves it there
    Verify(verify::Args),
    /// Forwards every request as it is, shows which keys are hot, and ends with advice; changes
    /// nothing
    Watch(watch::Args),
    /// Prints a completion script for a shell
    Completions(completions::Args),
}

impl Command {
    /// How its result and its errors are printed.
    const fn output(&self) -> Output {
        match self {
            Command::Serve(args) => args.output,
            Command::Adopt(args) => args.output,
            Command::Audit(args) => args.output,
            Command::Config(args) => args.output(),
            Command::Doctor(args) => args.output,
            Command::Explain(args) => args.output,
            Command::Freeze(args) => args.output,
            Command::Gateways(args) => args.output,
            Command::Health(args) => args.output,
            Command::Heatmap(args) => args.output,
            Command::Init(args) => args.output,
            Command::Leave(args) => args.output,
            Command::Partitions(args) => args.output,
            Command::Reshard(args) => args.output(),
            Command::Shards(args) => args.output,
            Command::Status(args) => args.output(),
            #[cfg(feature = "top")]
            Command::Top(args) => args.output,
            Command::Verify(args) => args.output,
            Command::Watch(args) => args.output,
            Command::Stream(_) | Command::Completions(_) => Output::Text,
        }
    }
}

/// Reads the arguments and runs what they ask for.
pub fn run() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return unparsed("heatsink", &error, of_the_laboratory),
    };
    let output = cli.command.as_ref().map_or(cli.serve.output, Command::output);
    let log = match &cli.command {
        None => cli.serve.log(),
        Some(Command::Serve(args)) => args.log(),
        Some(_) => serve::Log::default(),
    };
    // Until the end: then the last spans are sent.
    let _spans = match logs::install(&log) {
        Ok(spans) => spans,
        Err(exit) => return exit.report("heatsink", output),
    };
    let outcome = match cli.command {
        None => serve::run(cli.serve),
        Some(Command::Serve(args)) => serve::run(args),
        Some(Command::Adopt(args)) => adopt::run(args),
        Some(Command::Audit(args)) => audit::run(args),
        Some(Command::Config(args)) => config::run(args),
        Some(Command::Doctor(args)) => doctor::run(args),
        Some(Command::Explain(args)) => explain::run(args),
        Some(Command::Freeze(args)) => freeze::run(args),
        Some(Command::Gateways(args)) => gateways::run(args),
        Some(Command::Health(args)) => health::run(args),
        Some(Command::Heatmap(args)) => heatmap::run(args),
        Some(Command::Init(args)) => init::run(args),
        Some(Command::Leave(args)) => leave::run(args),
        Some(Command::Partitions(args)) => partitions::run(args),
        Some(Command::Reshard(args)) => reshard::run(args),
        Some(Command::Shards(args)) => shards::run(args),
        Some(Command::Status(args)) => status::run(args),
        Some(Command::Stream(args)) => stream::run(args),
        #[cfg(feature = "top")]
        Some(Command::Top(args)) => top::run(args),
        Some(Command::Verify(args)) => verify::run(args),
        Some(Command::Watch(args)) => watch::run(args),
        Some(Command::Completions(args)) => completions::run::<Cli>(args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(exit) => exit.report("heatsink", output),
    }
}

/// Names the program that has a command which `heatsink` does not have.
fn of_the_laboratory(command: &str) -> Option<String> {
    ["demo", "picture", "plan", "simulate"].contains(&command).then(|| {
        format!("there is no command {command} here; it is one of heatsink-lab: heatsink-lab {command}")
    })
}
