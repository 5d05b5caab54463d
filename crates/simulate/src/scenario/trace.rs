//! Recorded requests: a gateway's recording (`heatsink-trace`), or a text file with one request per
//! line.
//!
//! `seconds,operation,key,sort,bytes`: the time in seconds since the start, not before the line
//! above; `put`, `update`, `delete`, `get` or `query`; the partition key; the sort key (may be
//! empty); the bytes of the item, or those that the query reads. Keys may not contain commas. Empty
//! lines and lines that start with `#` are ignored.

use std::sync::Arc;

use heatsink_config_diagnostics::Fault;
use heatsink_trace as recording;

use super::file::{Operation, Workload};

/// One recorded request.
#[derive(Clone, Debug, PartialEq)]
pub struct Recorded {
    /// Nanoseconds since the start.
    pub at: u64,
    /// What it does; a scan only in a gateway's recording.
    pub operation: Operation,
    /// The partition key; empty where it is not known.
    pub key: Arc<str>,
    /// The sort key; may be empty. Of a read of a gateway's recording: what tells it from others of
    /// its key.
    pub sort: String,
    /// Bytes written or read.
    pub bytes: usize,
    /// What only a gateway's recording says.
    pub(crate) more: Option<More>,
}

/// What a gateway's recording says of a request.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct More {
    pub table: Arc<str>,
    pub index: Option<Arc<str>>,
    /// Thousandths of capacity units.
    pub units: u64,
    /// Items of a page; 0 where they are not known.
    pub items: u32,
    pub strong: bool,
    pub throttled: bool,
    /// The sort key is a hash.
    pub hashed: bool,
    /// The hashed sort key is above all of its partition key before it.
    pub grows: bool,
    /// How many requests it stands for.
    pub weight: u32,
}

impl Recorded {
    /// How many requests it stands for.
    pub(crate) fn weight(&self) -> u64 {
        self.more.as_ref().map_or(1, |more| u64::from(more.weight))
    }

    /// Whether a workload takes it.
    pub(crate) fn is_of(&self, workload: &Workload) -> bool {
        let here = self.more.as_ref().is_none_or(|more| {
            *more.table == *workload.table && more.index.as_deref() == workload.index.as_deref()
        });
        here && workload.only.is_none_or(|only| only == self.operation)
    }
}

/// Requests in order of time.
pub type Trace = Vec<Recorded>;

/// Reads a gateway's recording. Gives the number of lines left out, too.
fn of_gateway(file: &str, text: &str, skip_bad: bool) -> Result<(Trace, usize), Fault> {
    let read = recording::read(file, text, skip_bad)?;
    let mut names = Names::default();
    let hashed = read.header.hashed;
    let request = |access: recording::Access<'static>| {
        let more = More {
            table: names.of(&access.table),
            index: access.index.as_deref().map(|index| names.of(index)),
            units: access.units,
            items: access.items,
            strong: access.strong,
            throttled: access.throttled,
            hashed,
            grows: access.grows,
            weight: access.weight,
        };
        Recorded {
            at: access.us.saturating_mul(1_000),
            operation: match access.op {
                recording::Operation::Put => Operation::Put,
                recording::Operation::Update => Operation::Update,
                recording::Operation::Get => Operation::Get,
                recording::Operation::Query => Operation::Query,
                recording::Operation::Scan => Operation::Scan,
            },
            key: names.of(access.key.as_deref().unwrap_or_default()),
            sort: access.sort.or(access.page).unwrap_or_default().into_owned(),
            bytes: usize::try_from(access.bytes).unwrap_or(usize::MAX).min(1 << 20),
            more: Some(more),
        }
    };
    Ok((read.accesses.into_iter().map(request).collect(), read.skipped))
}

/// One copy of each name.
#[derive(Default)]
struct Names(std::collections::HashSet<Arc<str>>);

impl Names {
    fn of(&mut self, name: &str) -> Arc<str> {
        if let Some(known) = self.0.get(name) {
            return Arc::clone(known);
        }
        let new: Arc<str> = Arc::from(name);
        self.0.insert(Arc::clone(&new));
        new
    }
}

/// The longest trace: the longest run.
const MAX_SECONDS: f64 = 31.0 * 86_400.0;

/// Reads a trace. Gives the number of lines left out, too: 0 unless `skip_bad`.
///
/// # Errors
/// The first line that cannot be read, unless `skip_bad`; a trace without any request.
pub fn read(file: &str, text: &str, skip_bad: bool) -> Result<(Trace, usize), Fault> {
    if recording::is_trace(text) {
        return of_gateway(file, text, skip_bad);
    }
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
    Ok(Recorded { at, operation, key: Arc::from(key), sort: sort.to_owned(), bytes, more: None })
}
