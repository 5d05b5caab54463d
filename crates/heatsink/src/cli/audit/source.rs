//! Opens a file for the audit: plain or gzip, told by its first bytes; counts its bytes, and their
//! MD5 where one is known.

use std::cell::RefCell;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::rc::Rc;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::bufread::MultiGzDecoder;
use indicatif::ProgressBar;

use crate::exit::{Exit, in_words};

/// Bytes of a file that are read at once.
const BUFFER: usize = 64 << 10;

/// A file that is read.
pub struct Source {
    reader: Box<dyn Read>,
    counted: Rc<RefCell<Counted>>,
}

#[derive(Default)]
struct Counted {
    bytes: u64,
    md5: Option<md5::Context>,
    /// Why the file itself could not be read: not what is in it.
    failed: Option<String>,
}

/// Why no more can be read.
pub enum Broken {
    /// The disk, or whatever the file is on.
    Unread(String),
    /// The file's gzip data.
    Gzip,
}

struct Counting<R> {
    inner: R,
    counted: Rc<RefCell<Counted>>,
    bar: ProgressBar,
}

impl<R: Read> Read for Counting<R> {
    fn read(&mut self, into: &mut [u8]) -> std::io::Result<usize> {
        let read = self.inner.read(into);
        let mut counted = self.counted.borrow_mut();
        match &read {
            Ok(length) => {
                let bytes = u64::try_from(*length).unwrap_or(0);
                counted.bytes += bytes;
                self.bar.inc(bytes);
                if let (Some(md5), Some(read)) = (&mut counted.md5, into.get(..*length)) {
                    md5.consume(read);
                }
            }
            Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
            Err(error) => counted.failed = Some(in_words(error)),
        }
        read
    }
}

impl Source {
    /// Opens a file, or standard input for `-`; with `md5` its MD5 is computed on the way.
    pub fn open(path: &Path, md5: bool, bar: &ProgressBar) -> Result<Self, Exit> {
        let unread = |error| Exit::usage(format!("cannot read {}: {}", path.display(), in_words(&error)));
        let inner: Box<dyn Read> = if is_stdin(path) {
            Box::new(std::io::stdin().lock())
        } else {
            Box::new(File::open(path).map_err(unread)?)
        };
        let counted =
            Rc::new(RefCell::new(Counted { md5: md5.then(md5::Context::new), ..Counted::default() }));
        let counting = Counting { inner, counted: Rc::clone(&counted), bar: bar.clone() };
        let mut buffered = BufReader::with_capacity(BUFFER, counting);
        let start = buffered.fill_buf().map_err(unread)?;
        let wrong = |why: &str| Err(Exit::usage(format!("{}: {why}", path.display())));
        let reader: Box<dyn Read> = match start {
            [0x1F, 0x8B, ..] => Box::new(MultiGzDecoder::new(buffered)),
            [0xFF, 0xFE, ..] | [0xFE, 0xFF, ..] => {
                return wrong("this is UTF-16, as PowerShell writes it; write the file as UTF-8");
            }
            [0x28, 0xB5, 0x2F, 0xFD, ..] => return wrong("this is zstd; decompress it first"),
            [0xEF, 0xBB, 0xBF, ..] => {
                buffered.consume(3);
                Box::new(buffered)
            }
            _ => Box::new(buffered),
        };
        Ok(Source { reader, counted })
    }

    /// Reads on; 0 at the end.
    pub fn read(&mut self, into: &mut [u8]) -> Result<usize, Broken> {
        loop {
            match self.reader.read(into) {
                Ok(length) => return Ok(length),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => {
                    let failed = self.counted.borrow_mut().failed.take();
                    return Err(failed.map_or(Broken::Gzip, Broken::Unread));
                }
            }
        }
    }

    /// The bytes of the file that were read, compressed as they may be.
    pub fn bytes(&self) -> u64 {
        self.counted.borrow().bytes
    }

    /// The MD5 of what was read, in base64.
    pub fn md5(&self) -> Option<String> {
        let context = self.counted.borrow_mut().md5.take()?;
        Some(STANDARD.encode(context.compute().0))
    }
}

/// Whether standard input is meant.
pub fn is_stdin(path: &Path) -> bool {
    path == Path::new("-")
}
