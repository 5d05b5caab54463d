//! What all commands tell alike: other commands that can be pasted, documents, errors.

use heatsink_control::reshard_intent::{ReshardIntent, WantedLayout};
use heatsink_layout::Phase;
use heatsink_workers::WorkerError;
use serde_json::Value as Json;

use super::args::Place;
use super::quoted::quoted;
use crate::cli::open::{not_answered, passes};
use crate::cli::print;
use crate::exit::{Exit, without_numbers};
use crate::output::Output;

/// A command on a key, as it can be run.
pub(in crate::cli) fn command(what: &str, table: &str, key: &str, place: &Place) -> String {
    format!("heatsink reshard {what} {} {}{}", quoted(table), quoted(key), place.words())
}

/// A command on what an intent is for, as it can be run.
pub(in crate::cli) fn command_on(what: &str, intent: &ReshardIntent, place: &Place) -> String {
    let index = intent.index.as_ref().map(|index| format!(" --index {}", quoted(index)));
    let (table, key) = (quoted(&intent.table), quoted(&intent.key_text()));
    format!("heatsink reshard {what} {table} {key}{}{}", index.unwrap_or_default(), place.words())
}

pub(super) fn status_command(table: &str, place: &Place) -> String {
    format!("heatsink reshard status {}{}", quoted(table), place.words())
}

/// The same of one table or of all.
pub(super) fn status_of(table: Option<&str>, place: &Place) -> String {
    match table {
        Some(table) => status_command(table, place),
        None => format!("heatsink reshard status{}", place.words()),
    }
}

/// `4 shards are`, with their slots where these are asked for by name.
pub(super) fn are(wanted: &WantedLayout) -> String {
    format!("{} {}", wanted.in_words(), if wanted.shards == 1 { "is" } else { "are" })
}

/// A phase as the documentation writes it.
pub(super) fn phase_name(phase: Phase) -> String {
    format!("{phase:?}").to_uppercase()
}

pub(super) fn say(output: Output, document: &Json, text: &str) -> Result<(), Exit> {
    match output {
        Output::Json => print::json(document),
        Output::Text => print::text(&format!("{text}\n")),
    }
}

#[allow(clippy::needless_pass_by_value, reason = "a conversion of errors")]
pub(super) fn software(error: serde_json::Error) -> Exit {
    Exit::software(error.to_string())
}

pub(in crate::cli) fn unread(error: heatsink_dynamo::Error) -> Exit {
    not_answered("The registry could not be read", &error)
}

/// Why nothing was begun.
pub(super) fn exit(error: WorkerError) -> Exit {
    match error {
        WorkerError::Store(error) => not_answered("Nothing was changed, because the store failed", &error),
        other => stopped(other),
    }
}

/// Why it stopped on the way. Run again, it goes on there.
pub(in crate::cli) fn stopped(error: WorkerError) -> Exit {
    let words = without_numbers(&error.to_string());
    match &error {
        WorkerError::Usage(_) => Exit::usage(words),
        WorkerError::Store(cause) if passes(cause) => Exit::failed(words).retryable(),
        WorkerError::Stopped(_) | WorkerError::Cancelled(_) | WorkerError::Store(_) => Exit::failed(words),
        WorkerError::Busy(_) => Exit::failed(words).retryable(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_can_be_pasted_whatever_the_key_is() {
        let server = Some("127.0.0.1:8000".to_owned());
        let place = Place { rules: None, data: None, upstream: None, server, output: Output::Text };
        let of = |key: &str| command("resume", "T", key, &place);
        assert_eq!(of("game_x"), "heatsink reshard resume T game_x --server 127.0.0.1:8000");
        assert_eq!(of("it's $(x)"), r"heatsink reshard resume T 'it'\''s $(x)' --server 127.0.0.1:8000");
    }
}
