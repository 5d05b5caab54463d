//! The command line, one module per subcommand.

mod demo;
mod picture;
mod plan;
mod simulate;
mod trace_file;

use std::io::IsTerminal;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use heatsink_terminal::arguments::unparsed;
use heatsink_terminal::{completions, print, progress};
use tracing::Level;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::util::SubscriberInitExt;

use crate::output::Output;

/// Heatsink's laboratory: demonstrations, simulation, and the pictures of both.
#[derive(Debug, Parser)]
#[command(name = "heatsink-lab", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Runs a demonstration with sample data, before and after sharding
    Demo(demo::Args),
    /// Makes a PNG of a picture that `heatsink heatmap` or this program has drawn as SVG
    Picture(picture::Args),
    /// Simulates the remedies for a key's rates, and recommends one
    Plan(plan::Args),
    /// Runs a scenario in virtual time and compares remedies
    Simulate(simulate::Args),
    /// Prints a completion script for a shell
    Completions(completions::Args),
}

impl Command {
    /// How its result and its errors are printed.
    const fn output(&self) -> Output {
        match self {
            Command::Demo(args) => args.output,
            Command::Plan(args) => args.output,
            Command::Simulate(args) => args.output,
            Command::Picture(_) | Command::Completions(_) => Output::Text,
        }
    }
}

/// Reads the arguments and runs what they ask for.
pub fn run() -> ExitCode {
    let command = match Cli::try_parse() {
        Ok(cli) => cli.command,
        Err(error) => return unparsed("heatsink-lab", &error, |_| None),
    };
    log();
    let output = command.output();
    let outcome = match command {
        Command::Demo(args) => demo::run(args),
        Command::Picture(args) => picture::run(&args),
        Command::Plan(args) => plan::run(args),
        Command::Simulate(args) => simulate::run(args),
        Command::Completions(args) => completions::run::<Cli>(args),
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(exit) => exit.report("heatsink-lab", output),
    }
}

/// Sends log lines to stderr: warnings and errors, and each reshard that a gateway takes, ends or
/// gives back. `RUST_LOG` asks for more.
fn log() {
    let asked = std::env::var("RUST_LOG").ok().and_then(|levels| levels.parse::<Targets>().ok());
    let usual = || Targets::new().with_default(Level::WARN).with_target("heatsink_workers", Level::INFO);
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_ansi(std::io::stderr().is_terminal())
        .with_filter(asked.unwrap_or_else(usual));
    tracing_subscriber::registry().with(lines).init();
}
