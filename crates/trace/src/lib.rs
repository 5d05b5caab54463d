//! Recorded traffic: which key each request asked for, when, and what it took. A gateway writes it,
//! the simulator replays it.
//!
//! A trace is text, one JSON document a line: the header, then accesses and the tables that they
//! name, in the order in which they are met, then an end. Its file is this text in gzip
//! (docs/explain/simulator.md#recorded-traffic).
//!
//! Sans-IO. Not here: files and compression (the command line), what a request accesses
//! (`gateway`), what becomes of it (`simulate`).

mod line;
mod read;
mod reader;
#[cfg(test)]
mod tests;

pub use line::{Access, End, Ended, Header, Line, Operation, Table, VERSION};
pub use read::{MOST_ACCESSES, Trace, is_trace, read};
pub use reader::{LONGEST_LINE, NO_END, Reader, Unreadable};
