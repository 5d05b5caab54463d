//! The `heatsink-lab` command: demonstrations, simulation, and the pictures of both.
//!
//! Not here: what a production machine runs, and how its tables are judged (`heatsink`).

mod cli;
mod demo;
mod draw;

use std::process::ExitCode;

use heatsink_terminal::{exit, output, screen};

/// The demonstrations serve requests as `heatsink` does.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    cli::run()
}
