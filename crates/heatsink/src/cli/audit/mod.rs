//! `heatsink audit`: which keys of a table need a rule, by its items, its stream records or
//! recorded requests, and what to do about them.

mod args;
mod beside;
mod export;
mod file;
mod past;
mod reading;
mod said;
mod said_traffic;
mod source;
mod table;
mod trace;

use super::runtime;
use crate::exit::Exit;

pub use args::Args;

/// Runs it. Changes nothing.
pub fn run(args: Args) -> Result<(), Exit> {
    match &args.table {
        _ if !args.file.is_empty() => file::run(&args),
        _ if !args.trace.is_empty() => trace::run(&args),
        Some(table) => runtime::one_thread()?.block_on(table::run(&args, table)),
        None => file::run(&args),
    }
}
