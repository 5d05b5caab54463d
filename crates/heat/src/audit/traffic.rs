//! Recorded requests as a source of the audit: a trace tells of many tables and indexes, and each
//! of them has an [`Audit`] of its own.
//!
//! Not here: the lines of a trace (`heatsink-trace`), opening its file.

use std::collections::BTreeMap;

use heatsink_trace::{Access, End, Ended, Header, Line};
use serde::Serialize;

use super::Audit;
use super::recorded::Recorded;
use super::report::{Report, Totals};

/// Reads the lines of traces, one trace after the other.
#[derive(Debug, Default)]
pub struct Traffic {
    places: BTreeMap<Place, Of>,
    tables: BTreeMap<String, Known>,
    /// Of the trace that is read.
    header: Header,
    span: Option<Span>,
    seen: Recording,
}

/// A table, or an index of it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Place {
    /// The table's name.
    pub table: String,
    /// The index's name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub index: Option<String>,
}

/// What was recorded, and what was not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Recording {
    /// Traces.
    pub traces: usize,
    /// Accesses that are on record; each item of a batch or transaction is one.
    pub recorded: u64,
    /// Accesses that gateways left out, because their file was written too slowly.
    pub dropped: u64,
    /// Traces that end because their file was as large as it may become.
    pub limited: usize,
    /// Whether keys are hashes.
    pub hashed: bool,
    /// The most accesses that one of them stands for; 1 where all are on record.
    pub weight: u32,
    /// Seconds from the begin of the first trace to the end of the last one.
    pub seconds: i64,
}

/// Why a trace cannot be audited together with those before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "the keys of a trace that is recorded with hashes are other names in every trace: audit it by itself"
)]
pub struct Hashed;

#[derive(Debug, Default)]
struct Of {
    audit: Audit,
    requests: f64,
    throttled: f64,
    without_key: f64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Known {
    sort_key: bool,
    local_index: bool,
}

/// Microseconds since 1970.
#[derive(Clone, Copy, Debug)]
struct Span {
    first: u64,
    last: u64,
}

impl Traffic {
    /// Takes the next line of a trace. Gives how many accesses are in it: none or one.
    ///
    /// # Errors
    /// [`Hashed`].
    pub fn line(&mut self, line: &Line<'_>) -> Result<u64, Hashed> {
        match line {
            Line::Trace(header) => {
                self.seen.traces += 1;
                self.seen.hashed |= header.hashed;
                if self.seen.hashed && self.seen.traces > 1 {
                    return Err(Hashed);
                }
                self.header = header.clone();
                self.reaches(0);
            }
            Line::Table(table) => {
                let known = Known { sort_key: table.sort_key, local_index: table.local_index };
                self.tables.insert(table.name.clone().into_owned(), known);
            }
            Line::Access(access) => {
                self.access(access);
                return Ok(1);
            }
            Line::End(End { us, dropped, because, .. }) => {
                self.reaches(*us);
                self.seen.dropped += dropped;
                self.seen.limited += usize::from(*because == Ended::Limit);
            }
        }
        Ok(0)
    }

    fn access(&mut self, access: &Access<'_>) {
        self.reaches(access.us);
        let second = self.header.second(access.us);
        self.seen.recorded += 1;
        self.seen.weight = self.seen.weight.max(access.weight);
        let place = Place {
            table: access.table.clone().into_owned(),
            index: access.index.clone().map(std::borrow::Cow::into_owned),
        };
        let of = self.places.entry(place).or_default();
        let weight = f64::from(access.weight);
        of.requests += weight;
        of.throttled += if access.throttled { weight } else { 0.0 };
        match &access.key {
            Some(key) => of.audit.add_access(key.as_bytes(), second, access, self.header.hashed),
            None => of.without_key += weight,
        }
    }

    /// The trace that is read has a line of that moment.
    fn reaches(&mut self, us: u64) {
        let at = self.header.micros(us);
        let span = self.span.get_or_insert(Span { first: at, last: at });
        (span.first, span.last) = (span.first.min(at), span.last.max(at));
    }

    /// What was recorded, and what was not.
    pub fn recording(&self) -> Recording {
        let micros = self.span.map_or(0, |span| span.last - span.first);
        let seconds = i64::try_from(micros.div_ceil(1_000_000)).unwrap_or(i64::MAX);
        Recording { seconds, ..self.seen.clone() }
    }

    /// The tables and indexes that were asked for something.
    pub fn places(&self) -> impl Iterator<Item = &Place> {
        self.places.keys()
    }

    /// The report on one of them.
    pub fn report(&self, place: &Place) -> Option<Report> {
        let of = self.places.get(place)?;
        // A trace says what it knows of a table before the first access; without it nothing stands
        // in the way of shards.
        let known = self.tables.get(&place.table).copied();
        let known = known.unwrap_or(Known { sort_key: true, local_index: false });
        let Recording { hashed, seconds, .. } = self.recording();
        let recorded = Recorded {
            index: place.index.as_deref(),
            sort_key: known.sort_key,
            local_index: known.local_index,
            hashed,
            seconds,
        };
        let share = |part: f64| if of.requests > 0.0 { part / of.requests } else { 0.0 };
        let totals = Totals {
            index: place.index.clone(),
            throttled_share: share(of.throttled),
            without_key_share: share(of.without_key),
        };
        let report = of.audit.report_traffic(&place.table, recorded);
        Some(Report { traffic: Some(totals), seconds: Some(seconds), ..report })
    }
}
