//! `serve --record`: writes the traffic that the gateway counts to a file, in gzip, beside the
//! requests.
//!
//! Half a second of lines is a block of its own, so that what a killed process leaves can be read
//! up to its last block. A file that cannot be written ends the recording and nothing else.
//!
//! Not here: what is recorded (`heatsink_gateway::Recording`), the form of the lines
//! (`heatsink-trace`).

use std::fs::{File, OpenOptions, Permissions};
use std::hash::{BuildHasher, RandomState};
use std::io::{self, Write};
use std::os::unix::fs::{OpenOptionsExt, PermissionsExt};
use std::path::PathBuf;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use flate2::Compression;
use flate2::write::GzEncoder;
use futures::future::{Either, select};
use heatsink_env::Env;
use heatsink_gateway::{Recording, RecordingOptions};
use heatsink_trace::Ended;
use metrics::{Gauge, gauge};

use crate::exit::{Exit, in_words};

/// How often lines are written.
const EVERY: Duration = Duration::from_millis(500);

/// What `serve` takes for it.
#[derive(Debug, clap::Args)]
#[group(skip)]
pub struct Args {
    /// Record which key each request asks for, when, and what it takes, to this new file, for
    /// `heatsink-lab simulate --trace`. Of items only keys and sizes are recorded
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Stop recording when the file has so many MB; one is some 60,000 requests
    #[arg(long, value_name = "MB", default_value_t = 16, requires = "record", value_parser = clap::value_parser!(u64).range(1..=64))]
    record_limit: u64,
    /// Record keys and sort keys as hashes with a secret that is not kept; names of tables and
    /// indexes are recorded as they are
    #[arg(long, requires = "record")]
    record_hashed: bool,
    /// Record one request in N, which stands for all of them
    #[arg(long, value_name = "N", default_value_t = 1, requires = "record", value_parser = clap::value_parser!(u32).range(1..=1_000))]
    record_one_in: u32,
}

/// A file that is to be written.
pub struct Opened {
    name: String,
    file: File,
    limit: u64,
    options: RecordingOptions,
}

impl Args {
    /// Makes the file.
    ///
    /// # Errors
    /// Exit 64 for a file that is there already; 69 for one that cannot be made.
    pub fn open(&self) -> Result<Option<Opened>, Exit> {
        let Some(path) = &self.record else { return Ok(None) };
        let name = path.display().to_string();
        let cannot = |error: io::Error| {
            Exit::unavailable(format!("--record {name}: cannot make the file: {}", in_words(&error)))
        };
        if path.is_symlink() {
            return Err(Exit::usage(format!(
                "--record {name}: it is a link, and what it points at is not written"
            )));
        }
        // Keys are data: nobody else reads them.
        let no_link = rustix::fs::OFlags::NOFOLLOW.bits().cast_signed();
        let mut options = OpenOptions::new();
        options.write(true).create(true).truncate(false).mode(0o600).custom_flags(no_link);
        let file = options.open(path).map_err(cannot)?;
        let about = file.metadata().map_err(cannot)?;
        if about.is_file() && about.len() > 0 {
            return Err(Exit::usage(format!(
                "--record {name}: the file is there already, and is not overwritten"
            )));
        }
        if about.is_file() {
            file.set_permissions(Permissions::from_mode(0o600)).map_err(cannot)?;
        }
        let source = RandomState::new();
        let secret = std::array::from_fn(|nth| source.hash_one(nth));
        let options = RecordingOptions { one_in: self.record_one_in, hashed: self.record_hashed, secret };
        Ok(Some(Opened { name, file, limit: self.record_limit << 20, options }))
    }
}

/// Writes a recording.
pub struct Writer {
    recording: Arc<Recording>,
    name: String,
    limit: u64,
    /// Nothing once it has ended.
    out: Option<GzEncoder<Counted>>,
    failed: Gauge,
}

/// A file and the bytes that were written to it.
struct Counted {
    file: File,
    bytes: u64,
}

impl Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write(bytes)?;
        self.bytes += written as u64;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Opened {
    /// Begins the recording.
    pub fn begin(self, env: &dyn Env) -> Writer {
        let Opened { name, file, limit, options } = self;
        let failed = gauge!("heatsink_recording_failed");
        failed.set(0.0);
        Writer {
            recording: Arc::new(Recording::new(options, env)),
            name,
            limit,
            out: Some(GzEncoder::new(Counted { file, bytes: 0 }, Compression::default())),
            failed,
        }
    }
}

impl Writer {
    /// What the gateway records to.
    pub fn recording(&self) -> Arc<Recording> {
        Arc::clone(&self.recording)
    }

    /// Writes until `stopped` resolves, the file is as large as it may become, or it cannot be
    /// written.
    pub async fn keep(mut self, env: Arc<dyn Env>, stopped: impl Future<Output = ()>) {
        let mut stopped = pin!(stopped);
        while self.out.is_some() {
            let over = matches!(select(&mut stopped, env.sleep(EVERY)).await, Either::Left(_));
            let env = Arc::clone(&env);
            let written = tokio::task::spawn_blocking(move || {
                self.write(over, &*env);
                self
            });
            match written.await {
                Ok(writer) => self = writer,
                // The runtime ends.
                Err(_) => return,
            }
        }
    }

    /// Writes what waits; `over`: and the end.
    fn write(&mut self, over: bool, env: &dyn Env) {
        let lines = if over { self.recording.end(Ended::Stopped, env) } else { self.recording.take() };
        if let Err(error) = self.append(&lines, over) {
            return self.fail(&error);
        }
        let bytes = self.out.as_ref().map_or(0, |out| out.get_ref().bytes);
        if bytes < self.limit {
            return;
        }
        tracing::warn!(
            file = self.name,
            "the recording is complete: the file has {} MB, its limit; requests are served as before",
            bytes >> 20
        );
        let lines = self.recording.end(Ended::Limit, env);
        if let Err(error) = self.append(&lines, true) {
            self.fail(&error);
        }
    }

    /// Writes lines as a block; `over`: the last one.
    fn append(&mut self, lines: &[u8], over: bool) -> io::Result<()> {
        let Some(mut out) = self.out.take() else { return Ok(()) };
        if !lines.is_empty() {
            out.write_all(lines)?;
            out.flush()?;
        }
        if !over {
            self.out = Some(out);
            return Ok(());
        }
        let dropped = self.recording.dropped();
        if dropped > 0 {
            tracing::warn!(
                file = self.name,
                dropped,
                "the recording left out accesses: its file was written too slowly"
            );
        }
        out.finish().map(|_| ())
    }

    /// Says once that there is no recording any more.
    fn fail(&mut self, error: &io::Error) {
        self.recording.close();
        self.failed.set(1.0);
        tracing::error!(
            file = self.name,
            "the recording has ended: its file cannot be written: {}; requests are served as before",
            in_words(error)
        );
    }
}
