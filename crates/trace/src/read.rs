//! Reads a whole trace, and says of one that cannot be read which line is to blame.

use heatsink_config_diagnostics::Fault;

use crate::line::{Access, End, Header, Line, Table};
use crate::reader::{NO_END, Reader};

/// The most accesses of a trace that are read: all are kept in memory, some 300 bytes each.
pub const MOST_ACCESSES: usize = 5_000_000;

/// What a trace holds.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Trace {
    /// Its first line.
    pub header: Header,
    /// The tables.
    pub tables: Vec<Table<'static>>,
    /// The accesses in the order of time.
    pub accesses: Vec<Access<'static>>,
    /// Its last line; `None` where it is missing and that was allowed.
    pub end: Option<End>,
    /// Lines that were left out because they cannot be read, and a last line that is missing.
    pub skipped: usize,
}

/// Whether a text is a trace, or means to be one.
pub fn is_trace(text: &str) -> bool {
    text.starts_with("{\"trace\":")
}

/// Reads a trace. `file` is its name, for messages. `skip_bad`: leave out lines that cannot be
/// read, and count them.
///
/// # Errors
/// No trace, or one of a newer version; with its line, what cannot be read, a second trace in the
/// same file, or that the end is missing; a trace without any access, or with more than
/// [`MOST_ACCESSES`].
pub fn read(file: &str, text: &str, skip_bad: bool) -> Result<Trace, Fault> {
    let mut lines = text.lines().enumerate();
    let mut reader = Reader::default();
    let mut trace = Trace::default();
    // A text of no lines has a first line that is none.
    if let Err(problem) = reader.line(lines.next().map_or("", |(_, line)| line)) {
        return Err(Fault::line(file, 1, problem.to_string()));
    }
    let mut last = 1;
    for (nth, line) in lines.filter(|(_, line)| !line.is_empty()) {
        last = nth + 1;
        match reader.line(line) {
            Ok(Line::Access(_)) if trace.accesses.len() >= MOST_ACCESSES => {
                let problem = "more than 5 million accesses: record a smaller share";
                return Err(Fault::line(file, last, problem));
            }
            Ok(Line::Access(access)) => trace.accesses.push(access),
            Ok(Line::Table(table)) => trace.tables.push(table),
            Ok(Line::Trace(_) | Line::End(_)) => {}
            Err(_) if skip_bad => trace.skipped += 1,
            Err(problem) => return Err(Fault::line(file, last, problem.to_string())),
        }
    }
    if reader.end().is_none() {
        if !skip_bad {
            return Err(Fault::line(file, last, NO_END));
        }
        trace.skipped += 1;
    }
    if trace.accesses.is_empty() {
        return Err(Fault::line(file, last, "the trace holds no access"));
    }
    // Threads that answer at the same time write a few microseconds out of order.
    trace.accesses.sort_by_key(|access| access.us);
    trace.header = reader.header().cloned().unwrap_or_default();
    trace.end = reader.end().cloned();
    Ok(trace)
}
