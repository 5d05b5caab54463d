//! The bar of a command that goes over the items of a table in phases.

pub use heatsink_terminal::progress::bar;
use heatsink_workers::{Phase, Progress};
use indicatif::{ProgressBar, ProgressStyle};

use crate::output::Output;

/// A bar for a command that goes over the items of a table in phases.
pub struct Bar(ProgressBar);

impl Bar {
    /// A bar of no phase yet.
    pub fn new(output: Output) -> Self {
        Bar(bar(output, None, "{msg} {human_pos} items, {per_sec}"))
    }

    /// Takes it off the screen.
    pub fn done(&self) {
        self.0.finish_and_clear();
    }
}

impl Progress for Bar {
    fn phase(&self, phase: Phase, items: Option<u64>) {
        self.0.reset();
        self.0.set_message(match phase {
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
            self.0.set_length(items);
        }
        if let Ok(style) = ProgressStyle::with_template(template) {
            self.0.set_style(style);
        }
    }

    fn passed(&self, items: u64) {
        self.0.inc(items);
    }

    fn moved(&self, items: u64) {
        self.0.set_position(items);
    }
}
