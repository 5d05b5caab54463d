//! Progress on stderr: only if it is a terminal, and never under `--output json`, so that stderr holds nothing but log lines and the
//! error there.

use heatsink_adopt::{Phase, Progress};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};

use crate::output::Output;

/// A bar over `length` steps, or a counter where that is not known. It goes away at the end, and when a command fails.
pub fn bar(output: Output, length: Option<u64>, template: &str) -> ProgressBar {
    let target = match output {
        // Draws nothing where stderr is no terminal.
        Output::Text => ProgressDrawTarget::stderr(),
        Output::Json => ProgressDrawTarget::hidden(),
    };
    let bar = ProgressBar::with_draw_target(length, target).with_finish(ProgressFinish::AndClear);
    match ProgressStyle::with_template(template) {
        Ok(style) => bar.with_style(style),
        Err(_) => bar,
    }
}

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
}
