//! Audits files: exports, items in DynamoDB JSON, stream records.
//!
//! Not here: what a value means (`heatsink_heat::audit::records`), where a value ends (`heatsink_heat::audit::framing`).

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use heatsink_dynamo::TableSchema;
use heatsink_heat::audit::Audit;
use heatsink_heat::audit::framing::{Frame, Framing};
use heatsink_heat::audit::records::{KeyNames, Kind, Records, Unreadable};
use indicatif::ProgressBar;

use super::export::{self, Listed};
use super::said::{Files, Said};
use super::source::{Broken, Source, is_stdin};
use super::{Args, MOST};
use crate::cli::progress;
use crate::exit::{Exit, in_words};

/// Bytes that are taken at once.
const CHUNK: usize = 256 << 10;
/// Bytes that are read beyond the last item taken, to see how much of the file that was.
const BEYOND: usize = 8 << 20;
/// The name in proposed rules where none is known.
const UNNAMED: &str = "TABLE";
/// The most faults that are shown.
const FAULTS: usize = 5;

/// Runs it.
pub fn run(args: &Args) -> Result<(), Exit> {
    let (named, keys) = keys(args)?;
    let mut exported = None;
    let mut files = Vec::new();
    for path in &args.file {
        if is_stdin(path) || !path.is_dir() {
            files.push(Wanted { path: path.clone(), listed: None });
            continue;
        }
        let export = export::read(path)?;
        exported = exported.or(export.table);
        files.extend(export.files.into_iter().map(Wanted::of));
    }
    // Of standard input and of pipes nothing is known.
    let all: Option<u64> = files.iter().map(|wanted| size(&wanted.path)).sum();
    let template = match all {
        Some(_) => "reading {bar:30} {binary_bytes}/{binary_total_bytes}, {binary_bytes_per_sec}, {eta} left",
        None => "reading {binary_bytes}, {binary_bytes_per_sec}",
    };
    let bar = progress::bar(args.output, all, template);
    let mut reading = Reading {
        records: Records::new(keys),
        audit: Audit::default(),
        bar,
        skip_bad: args.skip_bad,
        most: args.items.unwrap_or(MOST),
        taken: 0,
        skipped: 0,
        faults: Vec::new(),
        bytes: 0,
    };
    // Of a sample: which share of the files was read, where that is known.
    let mut sample = None;
    for wanted in &files {
        let read = if reading.is_full() { Some(0.0) } else { reading.file(wanted)? };
        if let Some(of_file) = read {
            sample = Some(reading.share(of_file, &wanted.path, all));
            break;
        }
    }
    reading.bar.finish_and_clear();
    reading.said(args, named.or(exported), files.len(), sample)
}

/// The table's name and the names of its key, as the arguments give them.
fn keys(args: &Args) -> Result<(Option<String>, Option<KeyNames>), Exit> {
    let name = args.table.clone();
    if let Some(path) = &args.schema {
        let wrong = |why: String| Exit::usage(format!("--schema {}: {why}", path.display()));
        let text = std::fs::read(path).map_err(|error| wrong(in_words(&error)))?;
        let other = || wrong("this is no description of a table, nor a CreateTable request".to_owned());
        let mut described: serde_json::Value = serde_json::from_slice(&text).map_err(|_| other())?;
        let mut table = match described.get_mut("Table") {
            Some(table) => table.take(),
            None => described,
        };
        // A time, as the command line writes it, is text; the key is all that is needed.
        if let Some(members) = table.as_object_mut() {
            members.remove("CreationDateTime");
        }
        let schema = TableSchema::from_create(table.to_string().as_bytes()).map_err(|_| other())?;
        let keys = KeyNames {
            partition: schema.key.partition.name.clone(),
            sort: schema.key.sort.as_ref().map(|sort| sort.name.clone()),
        };
        return Ok((name.or(Some(schema.name)), Some(keys)));
    }
    let Some(key) = &args.key else { return Ok((name, None)) };
    let mut names = key.split(',').map(|name| name.trim().to_owned());
    match (names.next(), names.next(), names.next()) {
        (Some(partition), sort, None) if !partition.is_empty() && sort.as_deref() != Some("") => {
            Ok((name, Some(KeyNames { partition, sort })))
        }
        _ => Err(Exit::usage(format!("--key {key}: expected PK or PK,SK, the names of the key attributes"))),
    }
}

/// The bytes of a file; `None` of what is not one.
fn size(path: &Path) -> Option<u64> {
    let found = std::fs::metadata(path).ok()?;
    found.is_file().then_some(found.len())
}

/// A file that is asked for.
struct Wanted {
    path: PathBuf,
    /// What the manifest says of it.
    listed: Option<(u64, Option<String>)>,
}

impl Wanted {
    fn of(listed: Listed) -> Self {
        Wanted { path: listed.path, listed: Some((listed.items, listed.md5)) }
    }

    fn name(&self) -> String {
        if is_stdin(&self.path) { "standard input".to_owned() } else { self.path.display().to_string() }
    }
}

struct Reading {
    records: Records,
    audit: Audit,
    bar: ProgressBar,
    skip_bad: bool,
    most: u64,
    taken: u64,
    skipped: u64,
    faults: Vec<String>,
    /// Bytes of the files that were read to their end.
    bytes: u64,
}

impl Reading {
    fn is_full(&self) -> bool {
        self.taken >= self.most
    }

    /// Reads a file. Stopped before its end, it gives which share of what is in it was read.
    fn file(&mut self, wanted: &Wanted) -> Result<Option<f64>, Exit> {
        let name = wanted.name();
        if wanted.listed.is_some() && !wanted.path.is_file() {
            self.bad(format!("{name}: the manifest lists this file, and it is not there"))?;
            return Ok(None);
        }
        let (before, skipped) = (self.taken, self.skipped);
        self.records.next_file();
        let known = wanted.listed.as_ref().and_then(|(_, md5)| md5.as_ref());
        let mut source = Source::open(&wanted.path, known.is_some(), &self.bar)?;
        let share = self.values(&name, &mut source)?;
        if share.is_none() {
            self.bytes += source.bytes();
        }
        if let (Some((items, md5)), None, true) = (&wanted.listed, share, self.skipped == skipped) {
            if md5.is_some() && source.md5() != *md5 {
                self.bad(format!(
                    "{name}: its MD5 is not the one in the manifest: it was changed or cut off"
                ))?;
            } else if self.taken - before != *items {
                let found = self.taken - before;
                self.bad(format!("{name}: it has {found} items, and the manifest says {items}"))?;
            }
        }
        Ok(share)
    }

    /// Takes the values of a file.
    #[allow(clippy::cast_precision_loss, reason = "bytes, far below 2^52")]
    fn values(&mut self, name: &str, source: &mut Source) -> Result<Option<f64>, Exit> {
        let mut framing = Framing::default();
        let mut chunk = vec![0; CHUNK];
        let (mut used, mut seen) = (0, 0);
        loop {
            let length = match source.read(&mut chunk) {
                Ok(length) => length,
                Err(Broken::Unread(why)) => {
                    return Err(Exit::unavailable(format!("cannot read {name}: {why}")));
                }
                Err(Broken::Gzip) => {
                    let line = framing.line();
                    self.bad(format!("{name}:{line}: the gzip data is cut off or damaged here"))?;
                    return Ok(None);
                }
            };
            seen += length;
            let (mut failed, mut is_more) = (None, false);
            let mut take = |line: u64, frame: Frame<'_>| {
                if self.is_full() {
                    is_more = true;
                    return ControlFlow::Break(());
                }
                if let Frame::Value(value) = frame {
                    used += value.len() + 1;
                }
                match self.take(name, line, frame) {
                    Ok(()) => ControlFlow::Continue(()),
                    Err(exit) => {
                        failed = Some(exit);
                        ControlFlow::Break(())
                    }
                }
            };
            let flow = match chunk.get(..length).unwrap_or_default() {
                [] => framing.end(&mut take),
                read => framing.push(read, &mut take),
            };
            if let Some(exit) = failed {
                return Err(exit);
            }
            if is_more {
                break;
            }
            // Nothing follows what is lost.
            if length == 0 || flow.is_break() {
                return Ok(None);
            }
        }
        let most = seen + BEYOND;
        while let Ok(length) = source.read(&mut chunk) {
            seen += length;
            if length == 0 || seen > most {
                break;
            }
        }
        Ok(Some(used as f64 / seen.max(1) as f64))
    }

    fn take(&mut self, name: &str, line: u64, frame: Frame<'_>) -> Result<(), Exit> {
        let why = match frame {
            Frame::Value(value) => match self.records.read(value, &mut self.audit) {
                Ok(items) => {
                    self.taken += items;
                    return Ok(());
                }
                Err(Unreadable::NamesNeeded { names }) => {
                    return Err(Exit::usage(format!(
                        "{name}:{line}: the names of the table's key are not known. Give --key PK[,SK], or --schema FILE with what `aws dynamodb \
                         describe-table` says. Attributes there: {}",
                        names.join(", ")
                    )));
                }
                Err(why) => why.to_string(),
            },
            Frame::Bad(why) => why.to_owned(),
            Frame::Lost(why) if self.skip_bad => format!("{why}; what follows in this file is not read"),
            Frame::Lost(why) => why.to_owned(),
        };
        self.bad(format!("{name}:{line}: {why}"))
    }

    /// Something that cannot be read.
    fn bad(&mut self, what: String) -> Result<(), Exit> {
        if !self.skip_bad {
            return Err(Exit::usage(format!("{what}. With --skip-bad it is counted, and the rest is read")));
        }
        self.skipped += 1;
        if self.faults.len() < FAULTS {
            self.faults.push(what);
        }
        Ok(())
    }

    /// Which share of all files was read, when it stopped in one of which so much was read; `None` where their sizes are not known.
    #[allow(clippy::cast_precision_loss, reason = "bytes, far below 2^52")]
    fn share(&self, of_file: f64, file: &Path, all: Option<u64>) -> Option<f64> {
        let size = size(file)?;
        Some((self.bytes as f64 + size as f64 * of_file) / all?.max(1) as f64)
    }

    /// Prints the report. `sample`: not all was read, and which share it was.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_precision_loss,
        clippy::cast_sign_loss,
        reason = "items, far below 2^52"
    )]
    fn said(
        self,
        args: &Args,
        table: Option<String>,
        files: usize,
        sample: Option<Option<f64>>,
    ) -> Result<(), Exit> {
        if let (0, Some(first)) = (self.taken, self.faults.first()) {
            return Err(Exit::usage(format!("nothing could be read. The first fault: {first}")));
        }
        let of_records = self.records.table().map(str::to_owned);
        let table = table.or(of_records).unwrap_or_else(|| UNNAMED.to_owned());
        let of = sample.map(|share| share.map_or(0, |share| (self.taken as f64 / share.max(1e-9)) as u64));
        let report = match of {
            Some(of) => self.audit.report_sample(&table, of),
            None => self.audit.report(&table),
        };
        let files = Files {
            files,
            kind: self.records.first().unwrap_or(Kind::Items),
            skipped: self.skipped,
            faults: self.faults,
            expired: self.records.expired(),
            without_images: self.records.without_images(),
        };
        Said { table: &table, report: &report, of, recipe: None, files: Some(files) }.print(args.output)
    }
}
