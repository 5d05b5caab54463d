//! The writes of one table that gateways recorded.

use std::collections::HashMap;
use std::hash::BuildHasher;

use foldhash::fast::FixedState;
use heatsink_trace::{Access, Header, Line};

use crate::audit::load::writes;

/// The recorded writes of the items of each table.
#[derive(Debug, Default)]
pub struct Requested {
    header: Header,
    tables: HashMap<String, Requests>,
    /// First and last second of each trace.
    spans: Vec<(i64, i64)>,
    hashed: bool,
    dropped: u64,
}

/// Those of a table.
#[derive(Debug, Default)]
pub(super) struct Requests {
    /// By the text of the logical key.
    pub keys: HashMap<String, Vec<Request>>,
    pub without_key: u64,
    /// The most requests that one stands for.
    pub weight: u32,
    /// The most writes of one request, which are drawn together.
    pub together: u32,
    last: (u64, u32),
}

#[derive(Clone, Copy, Debug)]
pub(super) struct Request {
    pub second: i64,
    /// The hash of the text of the sort key.
    pub sort: u64,
    pub weight: u32,
}

/// The hash of a sort key as traces have it; of none, that of an empty text.
pub(super) fn sort_hash(text: &str) -> u64 {
    FixedState::with_seed(0).hash_one(text)
}

impl Requested {
    /// Takes the next line of a trace, one trace after the other.
    pub fn line(&mut self, line: &Line<'_>) {
        match line {
            Line::Trace(header) => {
                self.hashed |= header.hashed;
                self.header = header.clone();
                let begin = self.header.second(0);
                self.spans.push((begin, begin));
            }
            Line::Table(_) => {}
            Line::Access(access) => self.access(access),
            Line::End(end) => {
                self.dropped += end.dropped;
                self.reaches(end.us);
            }
        }
    }

    fn access(&mut self, access: &Access<'_>) {
        self.reaches(access.us);
        // What was throttled left no record, and what a write does to an index has none of its own.
        if !writes(access.op) || access.index.is_some() || access.throttled {
            return;
        }
        let second = self.header.second(access.us);
        let of = self.tables.entry(access.table.clone().into_owned()).or_default();
        of.weight = of.weight.max(access.weight);
        of.last = if of.last.0 == access.us { (access.us, of.last.1 + 1) } else { (access.us, 1) };
        of.together = of.together.max(of.last.1);
        let Some(key) = &access.key else {
            of.without_key += u64::from(access.weight);
            return;
        };
        let sort = sort_hash(access.sort.as_deref().unwrap_or_default());
        let request = Request { second, sort, weight: access.weight };
        match of.keys.get_mut(&**key) {
            Some(requests) => requests.push(request),
            None => {
                of.keys.insert(key.clone().into_owned(), vec![request]);
            }
        }
    }

    /// The trace that is read goes on until then.
    fn reaches(&mut self, us: u64) {
        let second = self.header.second(us);
        if let Some((_, last)) = self.spans.last_mut() {
            *last = (*last).max(second);
        }
    }

    /// The tables with recorded writes.
    pub fn tables(&self) -> impl Iterator<Item = &str> {
        self.tables.keys().map(String::as_str)
    }

    /// Whether keys are hashes.
    pub fn is_hashed(&self) -> bool {
        self.hashed
    }

    pub(super) fn dropped(&self) -> u64 {
        self.dropped
    }

    pub(super) fn of(&self, table: &str) -> Option<&Requests> {
        self.tables.get(table)
    }

    /// The first and the last second in which all traces were recorded.
    pub(super) fn in_common(&self) -> (i64, i64) {
        let first = self.spans.iter().map(|span| span.0).max().unwrap_or(i64::MAX);
        (first, self.spans.iter().map(|span| span.1).min().unwrap_or(i64::MIN))
    }
}
