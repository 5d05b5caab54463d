//! Progress on stderr: only if it is a terminal, and never under `--output json`, so that stderr
//! holds nothing but log lines and the error there.

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressFinish, ProgressStyle};

use crate::output::Output;

/// A bar over `length` steps, or a counter where that is not known. It goes away at the end, and
/// when a command fails.
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
