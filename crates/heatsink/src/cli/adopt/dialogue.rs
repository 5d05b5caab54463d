//! The question and the final message of `adopt`.

use heatsink_workers::WorkerError;

use super::args::Args;
use crate::cli::open::{not_answered, passes};
use crate::cli::{confirm, print};
use crate::exit::{Exit, without_numbers};
use crate::output::Output;

/// Asks whether that is as it should be, unless `--yes` has said so.
pub fn ask(args: &Args, about: &str) -> Result<(), Exit> {
    confirm::ask(args.yes, about)
}

/// Why it stopped on the way.
pub fn exit(error: WorkerError) -> Exit {
    match &error {
        WorkerError::Usage(_) => Exit::usage(error.to_string()),
        WorkerError::Stopped(_) | WorkerError::Cancelled(_) => Exit::failed(error.to_string()),
        WorkerError::Busy(_) => Exit::failed(error.to_string()).retryable(),
        // Run again, it goes on where it stopped.
        WorkerError::Store(cause) if passes(cause) => {
            Exit::failed(without_numbers(&error.to_string())).retryable()
        }
        WorkerError::Store(_) => Exit::failed(without_numbers(&error.to_string())),
    }
}

/// A store that fails before anything is begun: there is nothing to go on with.
pub fn not_begun(error: WorkerError) -> Exit {
    match error {
        WorkerError::Store(error) => not_answered("nothing was changed, because the store failed", &error),
        other => exit(other),
    }
}

/// Says what came of it.
pub fn say(output: Output, document: &serde_json::Value, text: &str) -> Result<(), Exit> {
    match output {
        Output::Json => print::json(document),
        Output::Text => print::text(&format!("{text}\n")),
    }
}
