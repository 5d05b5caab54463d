//! `heatsink demo`: whole stories on sample data.

use std::sync::Arc;

use clap::Subcommand;
use heatsink_env::RealEnv;

use super::Output;
use crate::demo::{self, Settings};
use crate::exit::Exit;

/// What `demo` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    story: Story,
}

#[derive(Debug, Subcommand)]
enum Story {
    /// A viral leaderboard: one title takes 5,000 writes/s, before and after sharding
    Leaderboard(Leaderboard),
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

/// Runs a story and prints what it shows.
#[allow(clippy::print_stdout, reason = "the result goes to stdout")]
pub fn run(args: Args) -> Result<(), Exit> {
    let Story::Leaderboard(args) = args.story;
    let settings = Settings::new(args.seconds, args.writes, args.shards, args.games, args.reads);
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build()?;
    let story = runtime.block_on(demo::leaderboard(Arc::new(RealEnv), settings))?;
    match args.output {
        Output::Text => println!("{}", story.print()),
        Output::Json => {
            let json =
                serde_json::to_string_pretty(&story).map_err(|error| Exit::software(error.to_string()))?;
            println!("{json}");
        }
    }
    Ok(())
}
