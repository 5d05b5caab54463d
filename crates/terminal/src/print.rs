//! Writes results on stdout. A reader that closes the pipe early (`heatsink audit … | head`) is no
//! failure: the rest is dropped in silence, and the command's own outcome decides the exit code.
//!
//! Not here: errors, which go to stderr (`exit`); the width of text and tables (`screen`).

use std::io::{ErrorKind, Write};

use serde::Serialize;

use crate::exit::{Exit, in_words};
use crate::screen;

/// Text for people. What acts on a terminal is escaped, whoever wrote it; lines that are longer
/// than the screen are wrapped where its width is known. A line end within a name has to be escaped
/// where the name is put in.
pub fn text(text: &str) -> Result<(), Exit> {
    as_it_is(&screen::wrapped(&screen::inert_lines(text), screen::columns()))
}

/// Text to paste or to redirect, and text that is wrapped already.
pub fn as_it_is(text: &str) -> Result<(), Exit> {
    let mut out = std::io::stdout().lock();
    written(out.write_all(text.as_bytes()).and_then(|()| out.flush()))
}

/// What came of writing on stdout. A closed pipe is no failure.
pub fn written(outcome: std::io::Result<()>) -> Result<(), Exit> {
    match outcome {
        Err(error) if error.kind() == ErrorKind::BrokenPipe => Ok(()),
        written => written.map_err(|error| {
            Exit::unavailable(format!("the result could not be written to stdout: {}", in_words(&error)))
        }),
    }
}

/// One JSON document on one line.
pub fn json(document: &impl Serialize) -> Result<(), Exit> {
    line(serde_json::to_string(document))
}

/// One JSON document, indented for people.
pub fn pretty_json(document: &impl Serialize) -> Result<(), Exit> {
    line(serde_json::to_string_pretty(document))
}

fn line(document: serde_json::Result<String>) -> Result<(), Exit> {
    let document = document.map_err(|error| Exit::software(error.to_string()))?;
    as_it_is(&format!("{}\n", screen::inert_json(&document)))
}
