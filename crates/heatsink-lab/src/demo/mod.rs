//! `heatsink-lab demo leaderboard`: a viral title overloads one partition; the same load, sharded,
//! does not.
//!
//! It runs in real time through the real HTTP front, with an open-loop load and without retries:
//! first unsharded, then sharded, then sharded again for further titles, because the partitions of
//! shards depend on their names.
//!
//! Not here: the arguments (`cli::demo`), the load generator (`heatsink-load`).

mod account;
mod bars;
mod fleet;
pub mod loads;
mod report;
pub mod reshard;
mod server;
mod slow;
mod stage;
pub mod table;
mod workload;

use std::sync::Arc;
use std::time::Duration;

use heatsink_dynamo::Operation;
use heatsink_env::Env;
use heatsink_load::{Rate, Report, Span, Work, open_loop};
use heatsink_physics::PARTITION_WRITES;

use crate::exit::Exit;
use crate::output::Output;
use bars::Bars;
use report::{Game, Games, Odds, Phase, Settings};
use stage::Stage;
use workload::{Background, Readers, Scores};

pub use report::Story;

/// Connections of the put load, of the readers and of the other titles.
const CONNECTIONS: [usize; 3] = [48, 8, 4];
/// The title that goes viral.
const GAME: &str = "game_x";

/// The options of the demo. Options that are left out follow from the table.
#[derive(Clone, Copy, Debug)]
pub struct Options {
    /// Seconds of load before and after; a third of it for each further title.
    pub seconds: u64,
    /// Puts per second on the viral title.
    pub writes: u32,
    /// Its shard count; `None` for the recommended one.
    pub shards: Option<u16>,
    /// Further titles.
    pub games: u32,
    /// Top-100 Queries per second.
    pub reads: u32,
}

impl Options {
    /// The settings on a table of `partitions`: the shard count is the one that every command
    /// recommends for these rates.
    fn settings(self, partitions: u32) -> Result<Settings, Exit> {
        let Options { seconds, writes, shards, games, reads } = self;
        let recommended = heatsink_heat::advise(rates(writes, reads, partitions)).recommended;
        let recommended = recommended.map(|row| row.shards);
        // Before and after are to differ, whatever is asked for.
        let shards = shards.or(recommended).map(|shards| shards.max(2)).ok_or_else(|| {
            Exit::usage(format!(
                "no shard count carries {writes} puts/s on the demo's table of {partitions} partitions; ask for fewer with --writes, or \
                 name a count with --shards"
            ))
        })?;
        let background = Background::per_second();
        Ok(Settings { seconds, writes, shards, recommended, games, reads, background })
    }
}

/// The viral title's rates, as `heatsink shards` takes them.
fn rates(writes: u32, reads: u32, partitions: u32) -> heatsink_heat::Asked {
    let writes = f64::from(writes);
    heatsink_heat::Asked {
        writes,
        peak: writes,
        reads: f64::from(reads),
        item_bytes: workload::ITEM_BYTES,
        page: workload::PAGE,
        partitions: Some(partitions),
        risk: heatsink_heat::DEFAULT_RISK,
    }
}

/// Runs the whole story.
pub async fn leaderboard(env: Arc<dyn Env>, options: Options, output: Output) -> Result<Story, Exit> {
    let seconds = options.seconds;
    let unsharded = Stage::start(&env, "").await?;
    let partitions = u32::try_from(unsharded.partitions().len()).unwrap_or(u32::MAX);
    let settings = options.settings(partitions)?;
    let player = Player { env: &env, settings: &settings, output };
    let (before, _) = player.play(&unsharded, GAME, seconds, "before: one key").await?;
    unsharded.stop().await;

    let sharded = Stage::start(&env, &workload::rule(settings.shards)).await?;
    let title = format!("after: {} shards", settings.shards);
    let (after, after_meetings) = player.play(&sharded, GAME, seconds, &title).await?;
    let mut games = Vec::new();
    for nth in 1..=settings.games {
        let name = format!("game_{nth:02}");
        let title = format!("{name} ({nth} of {})", settings.games);
        let (phase, meetings) = player.play(&sharded, &name, seconds.div_ceil(3), &title).await?;
        let unanswered = phase.unanswered + phase.failed;
        games.push(Game { name, throttled_share: phase.throttled_share, unanswered, meetings });
    }
    sharded.stop().await;
    let expected =
        heatsink_heat::assess(&rates(settings.writes, settings.reads, partitions), settings.shards);
    Ok(Story {
        before,
        after,
        after_meetings,
        after_games: Games::new(games),
        odds: Odds {
            partitions,
            two_meet: heatsink_heat::some_partition_holds(settings.shards, partitions, 2),
            fill_together: expected.too_many_together,
            fill: expected.risk,
        },
        settings,
    })
}

/// What all loads have in common.
struct Player<'a> {
    env: &'a Arc<dyn Env>,
    settings: &'a Settings,
    output: Output,
}

impl Player<'_> {
    /// One load on one title, and which of its shards share a partition.
    async fn play(
        &self,
        stage: &Stage,
        game: &str,
        seconds: u64,
        title: &str,
    ) -> Result<(Phase, Vec<Vec<usize>>), Exit> {
        let Player { env, settings, output } = *self;
        let offered = u64::from(settings.writes) * seconds;
        let scores = Arc::new(Scores::new(game, usize::try_from(offered).unwrap_or(usize::MAX)));
        let readers = Arc::new(Readers::new(game));
        let span = Duration::from_secs(seconds);
        let [puts, reads, others] = CONNECTIONS;
        let bars = Bars::new(title, seconds, PARTITION_WRITES, output);
        let load = async {
            futures::try_join!(
                drive(env, stage, f64::from(settings.writes), puts, span, scores.clone()),
                drive(env, stage, f64::from(settings.reads), reads, span, readers.clone()),
                #[allow(clippy::cast_precision_loss, reason = "a few hundred")]
                drive(env, stage, settings.background as f64, others, span, Arc::new(Background)),
            )
        };
        let (puts, reads, others) = tokio::select! {
            reports = load => reports?,
            () = bars.run(&**env, || stage.partitions()) => return Err(Exit::software("the display ended early")),
        };
        drop(bars);
        let exact = top_is_exact(env, stage, &scores, game).await?;
        if let Some(failure) = puts.first_failure.as_ref().or(reads.first_failure.as_ref()) {
            tracing::warn!(game, "a request failed: {failure}");
        }
        let meetings = if settings.shards > 1 { meetings(stage, settings.shards, game) } else { Vec::new() };
        Ok((Phase::new(&puts, &reads, &others, readers.units(), exact), meetings))
    }
}

async fn drive<W: Work>(
    env: &Arc<dyn Env>,
    stage: &Stage,
    per_second: f64,
    connections: usize,
    span: Duration,
    work: Arc<W>,
) -> Result<Report, Exit> {
    let rate = Rate { per_second, span: Span::of(span), connections };
    open_loop(env.clone(), stage.address(), rate, work)
        .await
        .map_err(|error| Exit::software(error.to_string()))
}

/// Whether the leaderboard shows exactly the best of the scores that were accepted.
async fn top_is_exact(env: &Arc<dyn Env>, stage: &Stage, scores: &Scores, game: &str) -> Result<bool, Exit> {
    // The burnt partition may still be in debt.
    env.sleep(Duration::from_secs(1)).await;
    let answer = stage.call(Operation::Query, &workload::top(game)).await?;
    let shown: Vec<&str> =
        answer["Items"].as_array().into_iter().flatten().filter_map(|row| row["sk"]["S"].as_str()).collect();
    Ok(shown == scores.expected_top())
}

/// The groups of a title's shards that share a partition.
fn meetings(stage: &Stage, shards: u16, game: &str) -> Vec<Vec<usize>> {
    let positions: Vec<u64> = (0..shards)
        .filter_map(|shard| heatsink_layout::codec::encode(game.as_bytes(), shard).ok())
        .map(|key| heatsink_physics::position(&key))
        .collect();
    let firsts: Vec<u64> = stage.partitions().iter().map(|partition| partition.first).collect();
    heatsink_heat::sharing_a_partition(&positions, &firsts)
}
