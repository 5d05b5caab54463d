//! Carries reshards out in this process, one after the other.

use heatsink_control::reshard_intent::WantedLayout;
use heatsink_reshard::State;
use heatsink_workers::{Progress, ReshardOptions, ReshardReport, WorkerError};
use indicatif::ProgressBar;

use super::args::{How, Place};
use super::opened::{Access, Opened};
use super::told::phase_name;
use crate::cli::progress::bar;

/// Gives a key the layout; `None` if it has it.
pub(super) async fn carry_out(
    opened: &Opened,
    table: &str,
    (key, wanted): &(Vec<u8>, WantedLayout),
    how: &How,
    place: &Place,
) -> Result<Option<ReshardReport>, WorkerError> {
    let context = opened.table(table, how.confirm_streams).await?;
    let reshard = context.reshard(key, wanted)?;
    if reshard.is_done() {
        return Ok(None);
    }
    context.beside_keys()?;
    let shown = Shown(bar(place.output, None, "{msg} {human_pos} items moved, {per_sec}"));
    let options = ReshardOptions { exclusive: opened.access == Access::Alone, rate: how.rate };
    let report = reshard.run(options, &shown).await?;
    shown.0.finish_and_clear();
    Ok(Some(report))
}

/// Shows how far it is.
pub(super) struct Shown(pub ProgressBar);

impl Progress for Shown {
    fn state(&self, state: State) {
        let phase = match state {
            State::Moving { phase, .. } => phase_name(phase),
            State::Stable { .. } => "STABLE".to_owned(),
        };
        self.0.set_message(phase);
    }

    fn moved(&self, items: u64) {
        self.0.set_position(items);
    }

    fn hindered(&self, why: Option<String>) {
        if let Some(why) = why {
            self.0.set_message(why);
        }
    }
}
