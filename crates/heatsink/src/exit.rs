//! Exit codes (`sysexits.h`) and the errors that end the process.

use std::process::ExitCode;

/// Why the command ends early: what to tell the operator, and the exit code.
#[derive(Debug)]
pub struct Exit {
    code: u8,
    reason: String,
}

impl Exit {
    /// 64 (`EX_USAGE`): the configuration or the arguments are wrong.
    pub fn usage(reason: impl Into<String>) -> Self {
        Exit { code: 64, reason: reason.into() }
    }

    /// 1: the command was carried out in part, or not at all; what it says tells how to go on.
    pub fn failed(reason: impl Into<String>) -> Self {
        Exit { code: 1, reason: reason.into() }
    }

    /// 69 (`EX_UNAVAILABLE`): something the command needs is not to be had, such as its port or its data file.
    pub fn unavailable(reason: impl Into<String>) -> Self {
        Exit { code: 69, reason: reason.into() }
    }

    /// 70 (`EX_SOFTWARE`): a failure inside Heatsink.
    pub fn software(reason: impl Into<String>) -> Self {
        Exit { code: 70, reason: reason.into() }
    }

    /// Tells the operator on stderr and gives the code.
    #[allow(clippy::print_stderr, reason = "the command line speaks to its operator on stderr")]
    pub fn report(self) -> ExitCode {
        eprintln!("heatsink: {}", self.reason);
        ExitCode::from(self.code)
    }
}

impl From<std::io::Error> for Exit {
    fn from(error: std::io::Error) -> Self {
        Exit::software(error.to_string())
    }
}
