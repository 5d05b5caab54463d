//! Carries reshards out in this process, one after the other, as a gateway would.

use std::sync::Arc;

use heatsink_control::reshard_intent::ReshardIntent;
use heatsink_reshard::State;
use heatsink_workers::{Here, Progress, ReshardReport, WorkerError};
use indicatif::ProgressBar;

use super::args::{How, Place};
use super::intents::{self, Wish};
use super::opened::{Access, Opened};
use super::told::phase_name;
use crate::cli::progress::bar;

/// This process, as others see it that meets its intents.
pub(super) fn here(opened: &Opened) -> Here {
    let name = match intents::user() {
        user if user.is_empty() => "a command".to_owned(),
        user => format!("a command of {user}"),
    };
    let (store, env) = (Arc::clone(&opened.store), Arc::clone(&opened.env));
    Here::new(store, env, &opened.rules, &name, opened.access == Access::Alone)
}

/// Gives a key or a value what is wanted of it. `before`: the intent on record.
pub(super) async fn carry_out(
    (opened, here): (&Opened, &Here),
    table: (&str, &str),
    (wish, before): (&Wish, Option<&ReshardIntent>),
    how: &How,
    place: &Place,
) -> Result<ReshardReport, WorkerError> {
    let counted = match wish.index {
        None => "{msg} {human_pos} items moved, {per_sec}",
        Some(_) => "{msg} {human_pos} items rewritten, {per_sec}",
    };
    let shown = Arc::new(Shown(bar(place.output, None, counted)));
    let request = intents::request(wish, how, opened.env.unix_millis());
    let report = here.carry(before, (table, wish.subject()), request, shown.clone()).await?;
    shown.0.finish_and_clear();
    Ok(report)
}

/// Shows how far it is.
struct Shown(ProgressBar);

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
