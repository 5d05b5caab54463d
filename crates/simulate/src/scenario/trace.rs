//! Recorded requests: a text file with one request per line.
//!
//! `seconds,operation,key,sort,bytes`: the time in seconds since the start, not before the line above; `put`, `update`, `delete`, `get` or `query`;
//! the partition key; the sort key (may be empty); the bytes of the item, or those that the query reads. Keys may not contain commas. Empty lines and
//! lines that start with `#` are ignored.

use heatsink_config_diagnostics::Fault;

use super::file::Operation;

/// One recorded request.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// Nanoseconds since the start.
    pub at: u64,
    /// What it does; never a scan.
    pub operation: Operation,
    /// The partition key.
    pub key: String,
    /// The sort key; may be empty.
    pub sort: String,
    /// Bytes written or read.
    pub bytes: usize,
}

/// Requests in order of time.
pub type Trace = Vec<Recorded>;

/// The longest trace: the longest run.
const MAX_SECONDS: f64 = 31.0 * 86_400.0;

/// Reads a trace. Gives the number of lines left out, too: 0 unless `skip_bad`.
///
/// # Errors
/// The first line that cannot be read, unless `skip_bad`; a trace without any request.
pub fn read(file: &str, text: &str, skip_bad: bool) -> Result<(Trace, usize), Fault> {
    let mut trace: Trace = Vec::new();
    let mut skipped = 0;
    for (nth, line) in text.lines().enumerate() {
        if line.trim().is_empty() || line.starts_with('#') {
            continue;
        }
        match request(line, trace.last().map_or(0, |last| last.at)) {
            Ok(request) => trace.push(request),
            Err(_) if skip_bad => skipped += 1,
            Err(problem) => return Err(Fault::line(file, nth + 1, problem)),
        }
    }
    if trace.is_empty() {
        return Err(Fault::line(file, 1, "the trace holds no request"));
    }
    Ok((trace, skipped))
}

fn request(line: &str, earliest: u64) -> Result<Recorded, String> {
    let fields: Vec<&str> = line.split(',').collect();
    let [seconds, operation, key, sort, bytes] = fields[..] else {
        return Err(format!("{} fields; expected seconds,operation,key,sort,bytes", fields.len()));
    };
    let seconds: Option<f64> = seconds.trim().parse().ok();
    let seconds = seconds.filter(|seconds| (0.0..=MAX_SECONDS).contains(seconds));
    let seconds = seconds.ok_or("seconds: expected a number from 0 to 31 days")?;
    #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "checked above")]
    let at = (seconds * 1e9).round() as u64;
    if at < earliest {
        return Err("seconds: earlier than the line above".to_owned());
    }
    let operation = match operation.trim() {
        "put" => Operation::Put,
        "update" => Operation::Update,
        "delete" => Operation::Delete,
        "get" => Operation::Get,
        "query" => Operation::Query,
        other => return Err(format!("operation: {other:?}; expected put, update, delete, get or query")),
    };
    if key.is_empty() {
        return Err("key: empty".to_owned());
    }
    let bytes = bytes.trim().parse().ok().filter(|bytes| *bytes <= 1 << 20);
    let bytes = bytes.ok_or("bytes: expected a whole number up to 1048576")?;
    Ok(Recorded { at, operation, key: key.to_owned(), sort: sort.to_owned(), bytes })
}
