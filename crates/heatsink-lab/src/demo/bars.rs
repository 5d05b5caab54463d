//! Live bars: the hottest partitions while a load runs. On a terminal only, on stderr.

use std::time::Duration;

use heatsink_env::Env;
use heatsink_physics::PartitionSnapshot;
use indicatif::{MultiProgress, ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::output::Output;

/// How many partitions are shown.
const SHOWN: usize = 12;
/// How often they are drawn anew.
const EVERY: Duration = Duration::from_millis(250);

/// Bars for one phase. Dropping it clears the screen again.
pub struct Bars {
    all: MultiProgress,
    clock: ProgressBar,
    bars: Vec<ProgressBar>,
}

impl Bars {
    /// Bars under a title. `seconds` is how long the phase takes; partitions are drawn up to
    /// `ceiling` units per second. Under JSON nothing is drawn.
    pub fn new(title: &str, seconds: u64, ceiling: u64, output: Output) -> Self {
        let all = match output {
            Output::Text => MultiProgress::new(),
            Output::Json => MultiProgress::with_draw_target(ProgressDrawTarget::hidden()),
        };
        let style = |template: &str| {
            ProgressStyle::with_template(template).unwrap_or_else(|_| ProgressStyle::default_bar())
        };
        let clock = all.add(ProgressBar::new(seconds));
        clock.set_style(style("{prefix}  [{bar:30}] {pos}/{len} s  {msg}").progress_chars("=> "));
        clock.set_prefix(title.to_owned());
        let bars: Vec<ProgressBar> = (0..SHOWN).map(|_| all.add(ProgressBar::new(ceiling))).collect();
        for bar in &bars {
            bar.set_style(style("  {prefix:>14} {bar:40.red} {pos:>5} writes/s {msg}").progress_chars("█▌ "));
        }
        Bars { all, clock, bars }
    }

    /// Shows what is going on, beside the clock.
    pub fn says(&self, words: String) {
        self.clock.set_message(words);
    }

    /// Draws what `partitions` answers until dropped.
    pub async fn run(&self, env: &dyn Env, partitions: impl Fn() -> Vec<PartitionSnapshot>) {
        let start = env.now();
        loop {
            self.draw(partitions());
            self.clock.set_position(env.now().since(start).as_secs());
            env.sleep(EVERY).await;
        }
    }

    fn draw(&self, mut partitions: Vec<PartitionSnapshot>) {
        let heat = |at: &PartitionSnapshot| at.writes_per_second + at.reads_per_second / 3.0;
        partitions.sort_by(|a, b| heat(b).total_cmp(&heat(a)));
        for (bar, partition) in self.bars.iter().zip(&partitions) {
            bar.set_prefix(format!("partition {}", partition.id));
            #[allow(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "`as` saturates; a bar is drawn"
            )]
            bar.set_position(partition.writes_per_second.round() as u64);
            bar.set_message(match partition.throttles_per_second {
                0 => format!("{:.0} reads/s", partition.reads_per_second),
                throttles => format!("{:.0} reads/s  {throttles} throttled/s", partition.reads_per_second),
            });
        }
    }
}

impl Drop for Bars {
    fn drop(&mut self) {
        // A screen that cannot be cleared is no reason to fail.
        let _ = self.all.clear();
    }
}
