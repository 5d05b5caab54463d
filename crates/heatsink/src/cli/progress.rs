//! The bar of a command that goes over the items of a table in phases.

use heatsink_layout::TablePhase;
pub use heatsink_terminal::progress::bar;
use heatsink_workers::{Phase, Progress};
use indicatif::{ProgressBar, ProgressStyle};

use crate::output::Output;

/// A bar for a command that goes over the items of a table in phases.
pub struct Bar {
    bar: ProgressBar,
    output: Output,
}

impl Bar {
    /// A bar of no phase yet.
    pub fn new(output: Output) -> Self {
        Bar { bar: bar(output, None, "{msg} {human_pos} items, {per_sec}"), output }
    }

    /// Takes it off the screen.
    pub fn done(&self) {
        self.bar.finish_and_clear();
    }
}

impl Progress for Bar {
    fn phase(&self, phase: Phase, items: Option<u64>) {
        self.bar.reset();
        self.bar.set_message(match phase {
            Phase::Looking => "looking",
            Phase::Settling => "waiting until every gateway has noticed",
            Phase::Moving => "moving",
            Phase::Verifying => "verifying",
        });
        let template = match items {
            Some(_) => "{msg} {bar:30} {human_pos}/{human_len} items, {per_sec}, {eta} left",
            None => "{msg} {human_pos} items, {per_sec}",
        };
        if let Some(items) = items {
            self.bar.set_length(items);
        }
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.bar.set_style(style);
        }
    }

    fn table(&self, phase: TablePhase) {
        if self.output == Output::Text {
            let text = match phase {
                TablePhase::Enter => "ENTER: the table's keys are put on record as they lie",
                TablePhase::Prepare => "PREPARE: requests are planned under short leases",
                TablePhase::Hold => "HOLD: first writes of keys wait",
                TablePhase::Turn => "TURN: the new layouts hold for keys that have no items",
                TablePhase::Rest => "REST: first writes go on, and keys are moved",
            };
            self.bar.suspend(|| eprintln!("{text}"));
        }
    }

    fn passed(&self, items: u64) {
        self.bar.inc(items);
    }

    fn moved(&self, items: u64) {
        self.bar.set_position(items);
    }
}
