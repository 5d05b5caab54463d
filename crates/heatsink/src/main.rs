//! The `heatsink` command: reads its arguments and hands over to one module per subcommand.
//!
//! Not here: anything a library user could want; that is in the other crates.

mod cli;
mod demo;
mod exit;

use std::process::ExitCode;

fn main() -> ExitCode {
    cli::run()
}
