//! `heatsink-lab demo`: demonstrations with sample data.

use std::sync::Arc;
use std::time::Duration;

use clap::Subcommand;
use heatsink_env::RealEnv;
use heatsink_systems::{SYSTEMS, System};
use heatsink_terminal::heatmap;
use serde_json::json;

use super::print;
use crate::demo;
use crate::exit::Exit;
use crate::output::Output;
use crate::screen;

/// What `demo` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    #[command(subcommand)]
    story: Option<Story>,
    /// How the result is printed on stdout
    #[arg(long, value_enum, default_value_t, global = true)]
    pub output: Output,
}

#[derive(Debug, Subcommand)]
enum Story {
    /// A viral leaderboard: one title takes 5,000 writes/s, before and after sharding
    Leaderboard(Leaderboard),
    /// A key burns, and is sharded while clients write: relief, the moving items, and a count of
    /// everything written
    Reshard(Reshard),
    /// A key burns, and the gateways see it, decide, and shard it; nobody gives a command
    Viral(Viral),
    /// All keys of a table get shards while clients write to them, and make new ones
    Table(Table),
    /// An operations log under one key: a bucket of days bounds its size, shards lift its rate
    OpsLog,
    /// A busy conversation of a chat: shards for it alone, messages sent twice, history in order;
    /// sharded while messages are sent
    Chat,
    /// Busy users and tenants: random, days, days with shards, and suffixes appended by hand
    Events,
    /// Votes on one item, and ballots that an index lists under one key
    Votes,
    /// A leaderboard's questions: top 100 and next pages, own score, rank; by score and by player;
    /// yesterday's scores adopted
    Ranking,
}

#[derive(Debug, clap::Args)]
struct Leaderboard {
    /// Seconds of load before and after; a third of it for each further title
    #[arg(long, default_value_t = 15, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Puts per second on the viral title
    #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    writes: u32,
    /// Shard count of the viral title [default: what `heatsink shards` recommends for these rates]
    #[arg(long, value_parser = clap::value_parser!(u16).range(2..=1_000))]
    shards: Option<u16>,
    /// Further titles to run sharded; 0 for none
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(0..=1_000))]
    games: u32,
    /// Top-100 Queries per second
    #[arg(long, default_value_t = 50, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    reads: u32,
}

#[derive(Debug, clap::Args)]
struct Reshard {
    /// Seconds of load before the command
    #[arg(long, default_value_t = 4, value_parser = clap::value_parser!(u64).range(1..=600))]
    before: u64,
    /// Seconds of load from the command on
    #[arg(long, default_value_t = 25, value_parser = clap::value_parser!(u64).range(1..=3_600))]
    seconds: u64,
    /// Puts per second on the key
    #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    writes: u32,
    /// Top-100 Queries per second
    #[arg(long, default_value_t = 20, value_parser = clap::value_parser!(u32).range(1..=10_000))]
    reads: u32,
    /// Shard count of the key [default: what `heatsink shards` recommends for these rates]
    #[arg(long, value_parser = clap::value_parser!(u16).range(2..=1_000))]
    shards: Option<u16>,
    /// Items that the key has before the load
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    items: u64,
    /// Gateways, in one process
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=20))]
    gateways: u16,
    /// Each put has the condition that its item is new, as a chat's messages have
    #[arg(long)]
    conditional: bool,
    /// The most capacity units a second that moving items takes of the old shards, where clients
    /// leave so many
    #[arg(long, value_name = "UNITS", default_value_t = heatsink_workers::DEFAULT_RATE, value_parser = clap::value_parser!(u32).range(1..))]
    rate: u32,
    /// Draws partitions and throttles over time, as SVG, or as PNG if the file is named so
    #[arg(long, value_name = "FILE")]
    picture: Option<std::path::PathBuf>,
}

#[derive(Debug, clap::Args)]
struct Viral {
    /// Seconds of load
    #[arg(long, default_value_t = 40, value_parser = clap::value_parser!(u64).range(8..=3_600))]
    seconds: u64,
    /// Puts per second on the key
    #[arg(long, default_value_t = 5_000, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    writes: u32,
    /// Gateways, in one process; each sees its part of the load
    #[arg(long, default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=20))]
    gateways: u16,
    /// Draws partitions and throttles over time, as SVG, or as PNG if the file is named so
    #[arg(long, value_name = "FILE")]
    picture: Option<std::path::PathBuf>,
    /// Draws the heat of keys over time, as the first gateway saw it, as SVG, or as PNG if the file
    /// is named so
    #[arg(long, value_name = "FILE")]
    heatmap: Option<std::path::PathBuf>,
    /// Another load than one key of single puts; ends with 1 where a key burns to the end and
    /// nothing is said of it
    #[arg(long, value_enum, conflicts_with_all = ["writes", "picture", "heatmap"])]
    load: Option<demo::loads::Load>,
    /// Seconds that the gateways are up before that load
    #[arg(long, default_value_t = 5, requires = "load", value_parser = clap::value_parser!(u64).range(0..=600))]
    idle: u64,
    /// How many seconds each second of that load takes, for a machine that is too slow to offer it
    #[arg(long, default_value_t = 1, requires = "load", value_parser = clap::value_parser!(u32).range(1..=100))]
    slow: u32,
}

#[derive(Debug, clap::Args)]
struct Table {
    /// Keys that the table has
    #[arg(long, default_value_t = 1_000, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    keys: u64,
    /// Items of each key
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u64).range(1..=10_000))]
    items: u64,
    /// Writes per second over all keys
    #[arg(long, default_value_t = 500, value_parser = clap::value_parser!(u32).range(1..=100_000))]
    writes: u32,
    /// One write in so many is the first of a new key; 0: none is
    #[arg(long, value_name = "WRITES", default_value_t = 50, value_parser = clap::value_parser!(u64).range(0..=1_000_000))]
    new_key_in: u64,
    /// Write units a second that the table has
    #[arg(long, value_name = "UNITS", default_value_t = 30_000, value_parser = clap::value_parser!(u32).range(100..=40_000))]
    capacity: u32,
    /// Stop moving keys after so many seconds. The figures, and the account, are of what has moved by
    /// then
    #[arg(long, value_name = "SECONDS", value_parser = clap::value_parser!(u64).range(1..))]
    at_most: Option<u64>,
    /// Shards that each key gets
    #[arg(long, default_value_t = 8, value_parser = clap::value_parser!(u16).range(2..=1_000))]
    shards: u16,
    /// Seconds of load before the adoption, and after it
    #[arg(long, default_value_t = 5, value_parser = clap::value_parser!(u64).range(1..=600))]
    seconds: u64,
    /// Gateways, in one process
    #[arg(long, default_value_t = 3, value_parser = clap::value_parser!(u16).range(1..=20))]
    gateways: u16,
}

/// Runs a story and prints what it shows; without one, lists them.
pub fn run(args: Args) -> Result<(), Exit> {
    let output = args.output;
    let name = match args.story {
        None => return list(output),
        Some(Story::Leaderboard(args)) => return leaderboard(&args, output),
        Some(Story::Reshard(args)) => return reshard(&args, output),
        Some(Story::Viral(args)) => return viral(&args, output),
        Some(Story::Table(args)) => return table(&args, output),
        Some(Story::Chat) => "chat",
        Some(Story::Ranking) => "ranking",
        Some(Story::Events) => "events",
        Some(Story::Votes) => "votes",
        Some(Story::OpsLog) => "ops-log",
    };
    system(name, output)
}

fn list(output: Output) -> Result<(), Exit> {
    let viral = ("leaderboard", "A viral title takes 5,000 writes/s, in real time and over HTTP");
    let reshard = ("reshard", "A key burns, and is sharded while clients write: in real time and over HTTP");
    let others = SYSTEMS.iter().map(|system| (system.name, system.about));
    let by_itself =
        ("viral", "The same, and nobody gives the command: the gateways see the heat and act on it");
    let whole =
        ("table", "All keys of a table get shards while clients write to them: in real time and over HTTP");
    let all = [viral, reshard, by_itself, whole].into_iter().chain(others);
    if output == Output::Json {
        return print::json(
            &all.map(|(name, about)| json!({ "demo": name, "about": about })).collect::<Vec<_>>(),
        );
    }
    let mut table = screen::table::<&str>([]);
    for (name, about) in all {
        table.add_row([name, about]);
    }
    let next = "`heatsink-lab demo NAME` runs one before and after its rule.\n";
    print::text(&(screen::drawn(table, &[]) + next))
}

fn runtime() -> std::io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_multi_thread().enable_all().build()
}

fn leaderboard(args: &Leaderboard, output: Output) -> Result<(), Exit> {
    let Leaderboard { seconds, writes, shards, games, reads } = *args;
    let options = demo::Options { seconds, writes, shards, games, reads };
    let story = runtime()?.block_on(demo::leaderboard(Arc::new(RealEnv), options, output))?;
    match output {
        Output::Text => print::text(&format!("{}\n", story.print())),
        Output::Json => print::pretty_json(&story),
    }?;
    if story.holds() {
        Ok(())
    } else {
        Err(Exit::failed("the top 100 was not exactly the best of the accepted scores"))
    }
}

fn reshard(args: &Reshard, output: Output) -> Result<(), Exit> {
    let options = demo::reshard::Options {
        before: args.before,
        after: args.seconds,
        writes: args.writes,
        reads: args.reads,
        shards: args.shards,
        items: args.items,
        gateways: args.gateways.into(),
        conditional: args.conditional,
        rate: args.rate,
        automatic: false,
    };
    let story = runtime()?.block_on(demo::reshard::reshard(Arc::new(RealEnv), options, output))?;
    draw(&story, args.picture.as_deref())?;
    tell(&story, output)
}

fn table(args: &Table, output: Output) -> Result<(), Exit> {
    let Table { keys, items, writes, new_key_in, capacity, at_most, shards, seconds, gateways } = *args;
    let gateways = gateways.into();
    let options = demo::table::Options {
        keys,
        items,
        writes,
        new_key_in,
        capacity,
        at_most: at_most.map(Duration::from_secs),
        shards,
        seconds,
        gateways,
    };
    let story = runtime()?.block_on(demo::table::table(Arc::new(RealEnv), options, output))?;
    match output {
        Output::Text => print::text(&story.print()),
        Output::Json => print::pretty_json(&story),
    }?;
    match story.holds() {
        true => Ok(()),
        false => Err(Exit::failed("not everything that was accepted was found, once")),
    }
}

fn viral(args: &Viral, output: Output) -> Result<(), Exit> {
    if let Some(load) = args.load {
        return under(load, args, output);
    }
    let options = demo::reshard::Options {
        before: 0,
        after: args.seconds,
        writes: args.writes,
        reads: 20,
        shards: None,
        items: 200,
        gateways: args.gateways.into(),
        conditional: false,
        rate: heatsink_workers::DEFAULT_RATE,
        automatic: true,
    };
    let story = runtime()?.block_on(demo::reshard::reshard(Arc::new(RealEnv), options, output))?;
    draw(&story, args.picture.as_deref())?;
    if let Some(file) = &args.heatmap {
        crate::draw::write(&heatmap::picture(&story.heat)?, file)?;
    }
    tell(&story, output)
}

/// Runs one of the other loads.
fn under(load: demo::loads::Load, args: &Viral, output: Output) -> Result<(), Exit> {
    let Viral { seconds, idle, slow, gateways, .. } = *args;
    let options = demo::loads::Options { load, seconds, gateways: gateways.into(), idle, slow };
    let story = runtime()?.block_on(demo::loads::run(Arc::new(RealEnv), options, output))?;
    match output {
        Output::Text => print::text(&format!("{}\n", story.print())),
        Output::Json => print::pretty_json(&story),
    }?;
    story.fault().map_or(Ok(()), |fault| Err(Exit::failed(fault)))
}

fn draw(story: &demo::reshard::Story, file: Option<&std::path::Path>) -> Result<(), Exit> {
    file.map_or(Ok(()), |file| crate::draw::write(&story.svg(), file))
}

fn tell(story: &demo::reshard::Story, output: Output) -> Result<(), Exit> {
    match output {
        Output::Text => print::text(&format!("{}\n", story.print())),
        Output::Json => print::pretty_json(story),
    }?;
    if story.count.is_exact() { Ok(()) } else { Err(Exit::failed("what was written is not what was found")) }
}

/// Runs one of the systems, which fails when an answer is not what it has to be.
fn system(name: &str, output: Output) -> Result<(), Exit> {
    let named = |system: &&System| system.name == name;
    let system =
        SYSTEMS.iter().find(named).ok_or_else(|| Exit::usage(format!("no demo is called {name}")))?;
    let story = runtime()?.block_on((system.run)()).map_err(|fault| Exit::software(fault.to_string()))?;
    match output {
        Output::Text => print::text(&story.to_string()),
        Output::Json => print::pretty_json(&story),
    }?;
    if story.holds() { Ok(()) } else { Err(Exit::failed("an answer was not what it had to be")) }
}
