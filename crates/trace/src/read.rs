//! Reads a trace, and says of one that cannot be read which line is to blame.

use heatsink_config_diagnostics::Fault;
use serde::Deserialize;

use crate::VERSION;
use crate::line::{Access, End, Header, Line, Table};

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

/// Reads a trace. `file` is its name, for messages. `skip_bad`: leave out lines that cannot be read, and count them.
///
/// # Errors
/// No trace, or one of a newer version; with its line, what cannot be read, a second trace in the same file, or that the end is missing; a trace
/// without any access, or with more than [`MOST_ACCESSES`].
pub fn read(file: &str, text: &str, skip_bad: bool) -> Result<Trace, Fault> {
    let header = header(text).map_err(|problem| Fault::line(file, 1, problem))?;
    let mut trace = Trace { header, ..Trace::default() };
    let mut last = 1;
    for (nth, line) in text.lines().enumerate().skip(1).filter(|(_, line)| !line.is_empty()) {
        last = nth + 1;
        let problem = match serde_json::from_str(line) {
            Ok(Line::Trace(_)) => "a second trace begins here: a file holds one".to_owned(),
            Ok(_) if trace.end.is_some() => "the trace has ended before this line".to_owned(),
            Ok(Line::Table(table)) => {
                trace.tables.push(table);
                continue;
            }
            Ok(Line::Access(access)) if access.weight == 0 || access.us > LONGEST => {
                "expected a weight of at least 1 and at most 31 days since the start".to_owned()
            }
            Ok(Line::Access(access)) => {
                trace.accesses.push(access);
                if trace.accesses.len() > MOST_ACCESSES {
                    return Err(Fault::line(
                        file,
                        last,
                        "more than 5 million accesses: record a smaller share",
                    ));
                }
                continue;
            }
            Ok(Line::End(end)) => {
                trace.end = Some(end);
                continue;
            }
            Err(error) => format!("cannot be read: {}", words(&error)),
        };
        if !skip_bad {
            return Err(Fault::line(file, last, problem));
        }
        trace.skipped += 1;
    }
    if trace.end.is_none() {
        if !skip_bad {
            let problem = "the trace has no last line: the gateway was killed, or the file is cut off; --skip-bad takes what is there";
            return Err(Fault::line(file, last, problem));
        }
        trace.skipped += 1;
    }
    if trace.accesses.is_empty() {
        return Err(Fault::line(file, last, "the trace holds no access"));
    }
    // Threads that answer at the same time write a few microseconds out of order.
    trace.accesses.sort_by_key(|access| access.us);
    Ok(trace)
}

/// 31 days, the longest run of the simulator, in microseconds.
const LONGEST: u64 = 31 * 86_400 * 1_000_000;

/// The first line. Its version is read before the rest, whose form may be a newer one.
fn header(text: &str) -> Result<Header, String> {
    #[derive(Deserialize)]
    struct Versioned {
        trace: Version,
    }
    #[derive(Deserialize)]
    struct Version {
        version: u32,
    }
    let line = text.lines().next().unwrap_or_default();
    let Ok(Versioned { trace: Version { version } }) = serde_json::from_str(line) else {
        return Err(
            "not a trace of `heatsink serve --record`: its first line says which version it has".to_owned()
        );
    };
    if version != VERSION {
        return Err(format!(
            "the trace has version {version}, and this build reads version {VERSION}: use the build that it was recorded with, or a newer one"
        ));
    }
    match serde_json::from_str(line) {
        Ok(Line::Trace(header)) => Ok(header),
        Ok(_) => Err("not the first line of a trace".to_owned()),
        Err(error) => Err(format!("cannot be read: {}", words(&error))),
    }
}

/// The reader's message without its line, which is always 1.
fn words(error: &serde_json::Error) -> String {
    let text = error.to_string();
    let (message, _) = text.rsplit_once(" at line 1 column ").unwrap_or((&text, ""));
    format!("{message} (column {})", error.column())
}
