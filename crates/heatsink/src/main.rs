//! The `heatsink` command: reads its arguments and calls one module per subcommand.
//!
//! Not here: anything that a library user could want; that is in the other crates.

mod carrying;
mod cli;
mod demo;
mod exit;
mod output;
mod screen;

use std::process::ExitCode;

/// A forwarded request makes some fifty small allocations, often freed on another thread than they were made on.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    cli::run()
}
