//! Reads the values of files, plain or gzip, in one order for all sources: what cannot be read ends
//! the audit, or is counted and passed over.
//!
//! Not here: what a value means ([`Taker`]), where a value ends (`heatsink_heat::audit::framing`),
//! opening a file ([`source`](super::source)).

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use heatsink_heat::audit::framing::{Frame, Framing};
use indicatif::ProgressBar;

use super::export::Listed;
use super::source::{Broken, Source, is_stdin};
use crate::cli::progress;
use crate::exit::Exit;
use crate::output::Output;

/// Bytes that are taken at once.
const CHUNK: usize = 256 << 10;
/// Bytes that are read beyond the last item taken, to see how much of the file that was.
const BEYOND: usize = 8 << 20;
/// The most faults that are shown.
const FAULTS: usize = 5;

/// What takes the values of files.
pub trait Taker {
    /// A file begins.
    fn begin(&mut self);

    /// Takes a value: how many items are in it.
    fn take(&mut self, value: &[u8]) -> Result<u64, Refused>;

    /// The file was read to its end. Gives what is missing there.
    fn end(&mut self) -> Option<&'static str>;
}

/// Why a value is not taken.
pub enum Refused {
    /// It cannot be read; the next one may be.
    Value(String),
    /// No other value can be read either.
    All(String),
}

/// The bytes of a file; `None` of what is not one.
fn size(path: &Path) -> Option<u64> {
    let found = std::fs::metadata(path).ok()?;
    found.is_file().then_some(found.len())
}

/// A file that is asked for.
pub struct Wanted {
    path: PathBuf,
    /// What the manifest says of it.
    listed: Option<(u64, Option<String>)>,
}

impl Wanted {
    /// One that is named.
    pub fn named(path: &Path) -> Self {
        Wanted { path: path.to_owned(), listed: None }
    }

    /// One of an export.
    pub fn listed(listed: Listed) -> Self {
        Wanted { path: listed.path, listed: Some((listed.items, listed.md5)) }
    }

    fn name(&self) -> String {
        if is_stdin(&self.path) { "standard input".to_owned() } else { self.path.display().to_string() }
    }
}

/// Files that are read.
pub struct Reading<T> {
    /// What takes their values.
    pub taker: T,
    bar: ProgressBar,
    skip_bad: bool,
    most: u64,
    /// Items.
    pub taken: u64,
    /// Lines, or files, that could not be read.
    pub skipped: u64,
    /// The first of them.
    pub faults: Vec<String>,
    /// Bytes of the files that were read to their end.
    bytes: u64,
}

impl<T: Taker> Reading<T> {
    /// Reads files, up to so many items. Stopped before, it gives which share of what is in the
    /// files was read, where that is known.
    pub fn read(
        taker: T,
        files: &[Wanted],
        skip_bad: bool,
        most: u64,
        output: Output,
    ) -> Result<(Self, Option<Option<f64>>), Exit> {
        // Of standard input and of pipes nothing is known.
        let all: Option<u64> = files.iter().map(|wanted| size(&wanted.path)).sum();
        let template = match all {
            Some(_) => {
                "reading {bar:30} {binary_bytes}/{binary_total_bytes}, {binary_bytes_per_sec}, {eta} left"
            }
            None => "reading {binary_bytes}, {binary_bytes_per_sec}",
        };
        let bar = progress::bar(output, all, template);
        let mut reading =
            Reading { taker, bar, skip_bad, most, taken: 0, skipped: 0, faults: Vec::new(), bytes: 0 };
        let mut sample = None;
        for wanted in files {
            let read = if reading.is_full() { Some(0.0) } else { reading.file(wanted)? };
            if let Some(of_file) = read {
                sample = Some(reading.share(of_file, &wanted.path, all));
                break;
            }
        }
        reading.bar.finish_and_clear();
        if let (0, Some(first)) = (reading.taken, reading.faults.first()) {
            return Err(Exit::usage(format!("nothing could be read. The first fault: {first}")));
        }
        Ok((reading, sample))
    }

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
        self.taker.begin();
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
            if flow.is_break() {
                return Ok(None);
            }
            if length == 0 {
                if let Some(missing) = self.taker.end() {
                    self.bad(format!("{name}: {missing}"))?;
                }
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
            Frame::Value(value) => match self.taker.take(value) {
                Ok(items) => {
                    self.taken += items;
                    return Ok(());
                }
                Err(Refused::All(why)) => return Err(Exit::usage(format!("{name}:{line}: {why}"))),
                Err(Refused::Value(why)) => why,
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

    /// Which share of all files was read, when it stopped in one of which so much was read; `None`
    /// where their sizes are not known.
    #[allow(clippy::cast_precision_loss, reason = "bytes, far below 2^52")]
    fn share(&self, of_file: f64, file: &Path, all: Option<u64>) -> Option<f64> {
        let size = size(file)?;
        Some((self.bytes as f64 + size as f64 * of_file) / all?.max(1) as f64)
    }
}
