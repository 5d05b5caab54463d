//! `heatsink demo`: whole stories on sample data.

use std::sync::Arc;

use clap::Subcommand;
use heatsink_env::RealEnv;
use heatsink_examples::{SYSTEMS, System};

use super::Output;
use crate::demo::{self, Settings};
use crate::exit::Exit;

/// What `demo` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    story: Option<Story>,
}

#[derive(Debug, Subcommand)]
enum Story {
    /// A viral leaderboard: one title takes 5,000 writes/s, before and after sharding
    Leaderboard(Leaderboard),
    /// An operations log under one key: a bucket of days bounds its size, shards lift its rate
    OpsLog(Example),
    /// A busy conversation of a chat: shards for it alone, messages sent twice, history in order
    Chat(Example),
    /// Busy users and tenants: random, days, days with shards, and suffixes appended by hand
    Events(Example),
    /// Votes on one item, and ballots that an index lists under one key
    Votes(Example),
    /// A leaderboard's questions: top 100 and next pages, own score, rank; by score and by player; yesterday's scores adopted
    Ranking(Example),
}

#[derive(Debug, clap::Args)]
struct Example {
    /// How the result is printed on stdout
    #[arg(long, value_enum, default_value_t)]
    output: Output,
}

#[derive(Debug, clap::Args)]
struct Leaderboard {
    /// Seconds of load before and after; a third of it for each further title
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Puts per second on the viral title
    #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    writes: u32,
    /// Shard count of the viral title
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u16).range(2..=1_000))]
    shards: u16,
    /// Further titles to run sharded; 0 for none
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(0..=1_000))]
    games: u32,
    /// Top-100 Queries per second
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    reads: u32,
    /// How the result is printed on stdout
    #[arg(long, value_enum, default_value_t)]
    output: Output,
}

/// Runs a story and prints what it shows; without one, lists them.
#[allow(clippy::print_stdout, reason = "the result goes to stdout")]
pub fn run(args: Args) -> Result<(), Exit> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    match args.story {
        None => {
            let viral = ("leaderboard", "A viral title takes 5,000 writes/s, in real time and over HTTP");
            let others = SYSTEMS.iter().map(|system| (system.name, system.about));
            for (name, about) in std::iter::once(viral).chain(others) {
                println!("{name:<12} {about}");
            }
            println!("\n`heatsink demo NAME` runs one before and after its rule.");
            Ok(())
        }
        Some(Story::Leaderboard(args)) => {
            let settings = Settings::new(args.seconds, args.writes, args.shards, args.games, args.reads);
            let story = runtime.block_on(demo::leaderboard(Arc::new(RealEnv), settings))?;
            match args.output {
                Output::Text => println!("{}", story.print()),
                Output::Json => println!("{}", json(&story)?),
            }
            Ok(())
        }
        Some(Story::Chat(args)) => example(&runtime, "chat", args.output),
        Some(Story::Ranking(args)) => example(&runtime, "ranking", args.output),
        Some(Story::Events(args)) => example(&runtime, "events", args.output),
        Some(Story::Votes(args)) => example(&runtime, "votes", args.output),
        Some(Story::OpsLog(args)) => example(&runtime, "ops-log", args.output),
    }
}

/// Runs one of the example systems, which fails when an answer is not what it has to be.
#[allow(clippy::print_stdout, reason = "the result goes to stdout")]
fn example(runtime: &tokio::runtime::Runtime, name: &str, output: Output) -> Result<(), Exit> {
    let named = |system: &&System| system.name == name;
    let system =
        SYSTEMS.iter().find(named).ok_or_else(|| Exit::usage(format!("no demo is called {name}")))?;
    let story = runtime.block_on((system.run)()).map_err(|fault| Exit::software(fault.to_string()))?;
    match output {
        Output::Text => print!("{story}"),
        Output::Json => println!("{}", json(&story)?),
    }
    if story.holds() { Ok(()) } else { Err(Exit::failed("an answer was not what it had to be")) }
}

fn json(story: &impl serde::Serialize) -> Result<String, Exit> {
    serde_json::to_string_pretty(story).map_err(|error| Exit::software(error.to_string()))
}
