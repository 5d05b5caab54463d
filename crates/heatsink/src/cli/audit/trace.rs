//! Audits recorded traffic: what `serve --record` writes.
//!
//! Not here: the lines of a trace (`heatsink-trace`), what they tell
//! (`heatsink_heat::audit::traffic`).

use heatsink_heat::audit::bypass::Requested;
use heatsink_heat::audit::traffic::Traffic;
use heatsink_trace::{Line, NO_END, Reader, Unreadable};

use super::args::{Args, MOST};
use super::reading::{Reading, Refused, Taker, Wanted};
use super::said::Files;
use super::said_traffic::SaidTraffic;
use crate::exit::Exit;

/// Runs it.
pub fn run(args: &Args) -> Result<(), Exit> {
    let reading = read::<Traffic>(args)?;
    let traffic = &reading.taker.told;
    let wanted: Vec<_> = traffic
        .places()
        .filter(|place| args.table.as_ref().is_none_or(|table| place.table == *table))
        .collect();
    if wanted.is_empty() {
        let mut there: Vec<&str> = traffic.places().map(|place| place.table.as_str()).collect();
        there.dedup();
        return Err(Exit::usage(match (&args.table, there.is_empty()) {
            (Some(table), false) => {
                format!("the traffic of table {table} is not in it, but that of {}", there.join(", "))
            }
            _ => "the trace holds no access".to_owned(),
        }));
    }
    let files = Files {
        files: args.trace.len(),
        kind: "recorded requests",
        skipped: reading.skipped,
        faults: reading.faults,
        expired: 0,
        without_images: 0,
    };
    let reports = wanted.into_iter().filter_map(|place| Some((place, traffic.report(place)?)));
    SaidTraffic { reports: reports.collect(), recording: traffic.recording(), files }.print(args.output)
}

/// Reads the traces that the arguments name.
pub fn read<T: Told + Default>(args: &Args) -> Result<Reading<Traces<T>>, Exit> {
    let files: Vec<Wanted> = args.trace.iter().map(|path| Wanted::named(path)).collect();
    let (reading, _) = Reading::read(Traces::default(), &files, args.skip_bad, MOST, args.output)?;
    Ok(reading)
}

/// What the lines of traces are told to.
pub trait Told {
    /// Takes a line: how many accesses are in it.
    fn line(&mut self, line: &Line<'_>) -> Result<u64, String>;
}

impl Told for Traffic {
    fn line(&mut self, line: &Line<'_>) -> Result<u64, String> {
        Traffic::line(self, line).map_err(|why| why.to_string())
    }
}

impl Told for Requested {
    fn line(&mut self, line: &Line<'_>) -> Result<u64, String> {
        Requested::line(self, line);
        Ok(u64::from(matches!(line, Line::Access(_))))
    }
}

/// Traces that are read.
#[derive(Default)]
pub struct Traces<T> {
    /// What they are told to.
    pub told: T,
    /// Of the file that is read.
    reader: Reader,
}

impl<T: Told> Taker for Traces<T> {
    fn begin(&mut self) {
        self.reader = Reader::default();
    }

    fn take(&mut self, value: &[u8]) -> Result<u64, Refused> {
        // What is no text is no trace either, or a line of it that is damaged.
        let line =
            self.reader.line(std::str::from_utf8(value).unwrap_or_default()).map_err(|why| match why {
                Unreadable::Trace(why) => Refused::All(why),
                Unreadable::Line(why) => Refused::Value(why),
            })?;
        self.told.line(&line).map_err(Refused::All)
    }

    fn end(&mut self) -> Option<&'static str> {
        self.reader.end().is_none().then_some(NO_END)
    }
}
