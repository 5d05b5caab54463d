//! The `heatsink` command: reads its arguments and calls one module per subcommand.
//!
//! Not here: anything that a library user could want; that is in the other crates; demonstrations
//! and simulation (`heatsink-lab`).

mod cli;

use std::process::ExitCode;

use heatsink_terminal::{exit, output, screen};

/// A forwarded request makes some fifty small allocations, often freed on another thread than they
/// were made on.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    cli::run()
}
