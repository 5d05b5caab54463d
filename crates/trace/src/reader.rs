//! Reads a trace line by line, as it comes.
//!
//! Not here: lines that are left out, and a trace in memory ([`read`](crate::read)).

use serde::Deserialize;

use crate::line::{End, Header, Line, VERSION};

/// What is wrong with a trace that has no last line.
pub const NO_END: &str = "the trace has no last line: the gateway was killed, or the file is cut off; --skip-bad takes what is there";

/// The longest line, in bytes. A key and a sort key of 3 KB, each byte written as six, and names
/// are less.
pub const LONGEST_LINE: usize = 64 << 10;

/// One request in 1,000 at most is recorded (`serve --record-one-in`), of those that the heat has
/// drawn: one batch in 256.
const MOST_WEIGHT: u32 = 1_000_000;

/// Thousandths of units, and bytes, of one access: more than any page or item takes.
const MOST_UNITS: u64 = 1_000_000_000;
const MOST_BYTES: u64 = 1 << 30;

/// 31 days, the longest run of the simulator, in microseconds.
const LONGEST: u64 = 31 * 86_400 * 1_000_000;

/// Reads the lines of one trace in their order.
#[derive(Debug, Default)]
pub struct Reader {
    header: Option<Header>,
    end: Option<End>,
}

/// Why a line is not read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// This is no trace, or one of a newer version: no other line can be read either.
    #[error("{0}")]
    Trace(String),
    /// This line alone.
    #[error("{0}")]
    Line(String),
}

impl Reader {
    /// Reads the next line.
    ///
    /// # Errors
    /// See [`Unreadable`].
    pub fn line(&mut self, line: &str) -> Result<Line<'static>, Unreadable> {
        if line.len() > LONGEST_LINE {
            let problem = format!("longer than {} KB: no line of a trace is", LONGEST_LINE >> 10);
            let first = self.header.is_none();
            return Err(if first { Unreadable::Trace(problem) } else { Unreadable::Line(problem) });
        }
        if self.header.is_none() {
            let header = header(line).map_err(Unreadable::Trace)?;
            self.header = Some(header.clone());
            return Ok(Line::Trace(header));
        }
        let problem = match serde_json::from_str(line) {
            Ok(Line::Trace(_)) => "a second trace begins here: a file holds one".to_owned(),
            Ok(_) if self.end.is_some() => "the trace has ended before this line".to_owned(),
            Ok(Line::Access(access))
                if !(1..=MOST_WEIGHT).contains(&access.weight) || access.us > LONGEST =>
            {
                "expected a weight of 1 to 1,000,000 and at most 31 days since the start".to_owned()
            }
            Ok(Line::Access(access)) if access.units > MOST_UNITS || access.bytes > MOST_BYTES => {
                "expected at most 1,000,000 units and 1 GB".to_owned()
            }
            Ok(line) => {
                if let Line::End(end) = &line {
                    self.end = Some(end.clone());
                }
                return Ok(line);
            }
            Err(error) => format!("cannot be read: {}", words(&error)),
        };
        Err(Unreadable::Line(problem))
    }

    /// The first line, once it is read.
    pub fn header(&self) -> Option<&Header> {
        self.header.as_ref()
    }

    /// The last line, once it is read.
    pub fn end(&self) -> Option<&End> {
        self.end.as_ref()
    }
}

/// The first line. Its version is read before the rest, whose form may be a newer one.
fn header(line: &str) -> Result<Header, String> {
    #[derive(Deserialize)]
    struct Versioned {
        trace: Version,
    }
    #[derive(Deserialize)]
    struct Version {
        version: u32,
    }
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
