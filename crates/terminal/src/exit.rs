//! Exit codes (`sysexits.h`) and the errors that end the process.
//!
//! docs/reference/errors.md lists the codes; a test below holds the list and this file to each
//! other.

use std::io::Write;
use std::process::ExitCode;

use serde_json::json;

use crate::output::Output;
use crate::screen::{inert_json, inert_lines};

/// What kind of end it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// The command did its work in part or not at all, or found something that needs a decision.
    Failed,
    /// The arguments, the rules or another input are wrong. Nothing was changed.
    Usage,
    /// Something the command needs is not to be had: a port, a data file, a server, a store.
    Unavailable,
    /// A failure inside Heatsink.
    Software,
    /// The signal of that number came a second time, before all was finished.
    Signalled(u8),
}

impl Kind {
    /// The exit code of the process.
    pub const fn code(self) -> u8 {
        match self {
            Kind::Failed => 1,
            Kind::Usage => 64,
            Kind::Unavailable => 69,
            Kind::Software => 70,
            Kind::Signalled(number) => 128 + number,
        }
    }

    /// The name in the JSON error.
    pub const fn name(self) -> &'static str {
        match self {
            Kind::Failed => "failed",
            Kind::Usage => "usage",
            Kind::Unavailable => "unavailable",
            Kind::Software => "software",
            Kind::Signalled(_) => "signalled",
        }
    }
}

/// Why the command ends early: what to tell the operator, and the exit code.
#[derive(Debug)]
pub struct Exit {
    kind: Kind,
    reason: String,
    retryable: bool,
}

impl Exit {
    /// 64 (`EX_USAGE`): the configuration or the arguments are wrong.
    pub fn usage(reason: impl Into<String>) -> Self {
        Exit { kind: Kind::Usage, reason: reason.into(), retryable: false }
    }

    /// 1: the command was carried out in part, or not at all; what it says tells how to go on.
    pub fn failed(reason: impl Into<String>) -> Self {
        Exit { kind: Kind::Failed, reason: reason.into(), retryable: false }
    }

    /// 69 (`EX_UNAVAILABLE`): something the command needs is not to be had, such as its port or its
    /// data file.
    pub fn unavailable(reason: impl Into<String>) -> Self {
        Exit { kind: Kind::Unavailable, reason: reason.into(), retryable: false }
    }

    /// 70 (`EX_SOFTWARE`): a failure inside Heatsink.
    pub fn software(reason: impl Into<String>) -> Self {
        Exit { kind: Kind::Software, reason: reason.into(), retryable: false }
    }

    /// 128 and the number of a signal, as shells name the end that the signal makes by itself: 130
    /// for SIGINT, 143 for SIGTERM.
    pub fn signalled(number: u8, reason: impl Into<String>) -> Self {
        Exit { kind: Kind::Signalled(number), reason: reason.into(), retryable: false }
    }

    /// The same end with other words.
    #[must_use]
    pub fn saying(self, reason: impl Into<String>) -> Self {
        Exit { reason: reason.into(), ..self }
    }

    /// The same command may succeed later without a change: the store is throttled, or the server
    /// is not up yet.
    pub fn retryable(self) -> Self {
        Exit { retryable: true, ..self }
    }

    /// Whether the same command may succeed later without a change.
    pub const fn is_retryable(&self) -> bool {
        self.retryable
    }

    /// Tells the operator on stderr and gives the code: in words that begin with the `program`'s
    /// name, or as one JSON document on one line.
    pub fn report(self, program: &str, output: Output) -> ExitCode {
        let Exit { kind, reason, retryable } = self;
        let line = match output {
            // A reason may quote a key.
            Output::Text => format!("{program}: {}", inert_lines(&reason)),
            Output::Json => {
                let error = json!({ "kind": kind.name(), "message": reason, "exit_code": kind.code(), "retryable": retryable });
                inert_json(&json!({ "error": error }).to_string()).into_owned()
            }
        };
        // A closed stderr is no reason for another exit code.
        let _ = writeln!(std::io::stderr().lock(), "{line}");
        ExitCode::from(kind.code())
    }
}

impl std::fmt::Display for Exit {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.reason)
    }
}

impl From<std::io::Error> for Exit {
    fn from(error: std::io::Error) -> Self {
        Exit::software(in_words(&error))
    }
}

/// What the system says, without the number that Rust appends: `Connection refused`.
pub fn in_words(error: &std::io::Error) -> String {
    without_numbers(&error.to_string())
}

/// A text without the numbers of system errors that stand in it.
pub fn without_numbers(text: &str) -> String {
    const OPENS: &str = " (os error ";
    let mut words = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, after)) = rest.split_once(OPENS) {
        words.push_str(before);
        let digits = after.bytes().take_while(u8::is_ascii_digit).count();
        rest = match after.get(digits..).and_then(|tail| tail.strip_prefix(')')) {
            Some(tail) if digits > 0 => tail,
            _ => {
                words.push_str(OPENS);
                after
            }
        };
    }
    words + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The rows of the table of exit codes: code and kind.
    fn documented() -> Vec<(String, String)> {
        let page = include_str!("../../../docs/reference/errors.md");
        let (_, section) = page.split_once("## Exit codes").unwrap();
        let rows = section.lines().filter(|line| line.starts_with("| ")).skip(1);
        let cells = rows.map(|row| row.split('|').map(|cell| cell.trim().trim_matches('`').to_owned()));
        cells.map(|mut cells| (cells.nth(1).unwrap(), cells.next().unwrap())).collect()
    }

    #[test]
    fn the_documented_codes_are_the_codes() {
        let kinds = [
            Kind::Failed,
            Kind::Usage,
            Kind::Unavailable,
            Kind::Software,
            Kind::Signalled(2),
            Kind::Signalled(15),
        ];
        let mut expected = vec![("0".to_owned(), String::new())];
        expected.extend(kinds.map(|kind| (kind.code().to_string(), kind.name().to_owned())));
        assert_eq!(documented(), expected);
    }

    #[test]
    fn the_number_of_a_system_error_is_left_out() {
        let error = std::io::Error::from_raw_os_error(2);
        assert!(error.to_string().contains("os error"));
        assert_eq!(in_words(&error), "No such file or directory");
        assert_eq!(in_words(&std::io::Error::other("its answer is not HTTP")), "its answer is not HTTP");
        assert_eq!(without_numbers("a (os error 7). b (os error x) c (os error 9)"), "a. b (os error x) c");
    }
}
