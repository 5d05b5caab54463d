//! Arguments that clap does not parse: help and version, which were asked for, and mistakes.

use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::exit::{Exit, Kind};
use crate::output::Output;
use crate::print;

/// Prints help, version or the mistake. There is no parsed `--output` then; the words are looked
/// at. `elsewhere` says where a command is that this program does not have.
pub fn unparsed(program: &str, error: &clap::Error, elsewhere: impl Fn(&str) -> Option<String>) -> ExitCode {
    if matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion) {
        return match print::written(error.print()) {
            Ok(()) => ExitCode::SUCCESS,
            Err(exit) => exit.report(program, Output::Text),
        };
    }
    let is_json = asks_for_json(std::env::args_os().map(|argument| argument.to_string_lossy().into_owned()));
    if let Some(hint) = unknown_command(error).and_then(elsewhere) {
        return Exit::usage(hint).report(program, if is_json { Output::Json } else { Output::Text });
    }
    if is_json {
        let rendered = error.render().to_string();
        let message = rendered.split("\n\n").next().unwrap_or_default().trim_start_matches("error: ");
        return Exit::usage(message.trim()).report(program, Output::Json);
    }
    // A closed terminal is no reason for another exit code.
    let _ = error.print();
    ExitCode::from(Kind::Usage.code())
}

/// The word that stands where a command's name is expected.
fn unknown_command(error: &clap::Error) -> Option<&str> {
    let word = [ContextKind::InvalidSubcommand, ContextKind::InvalidArg]
        .into_iter()
        .find_map(|kind| error.get(kind))?;
    match word {
        ContextValue::String(word) => Some(word),
        _ => None,
    }
}

fn asks_for_json(arguments: impl Iterator<Item = String>) -> bool {
    let arguments: Vec<String> = arguments.collect();
    arguments.iter().any(|argument| argument == "--output=json")
        || arguments.windows(2).any(|pair| pair == ["--output", "json"])
}
