//! Reads the files that scenarios name: traces and lists of keys, in gzip or as they are.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use heatsink_trace::LONGEST_LINE;

/// The longest text: 5 million recorded requests are some 700 MB.
const LONGEST: usize = 2 << 30;

/// The text of a file. `skip_bad`: of compressed data that are cut off or damaged, what is before
/// that place.
///
/// # Errors
/// The file's own; compressed data that are cut off or damaged, with the last whole line; a line or
/// text that is too long; text that is no UTF-8.
pub fn text(file: &Path, skip_bad: bool) -> io::Result<String> {
    let mut file = BufReader::new(File::open(file)?);
    let (text, damaged) = if file.fill_buf()?.starts_with(&[0x1f, 0x8b]) {
        let (text, problem) = lines(MultiGzDecoder::new(file))?;
        (text, problem.is_some())
    } else {
        let (text, problem) = lines(file)?;
        problem.map_or(Ok((text, false)), Err)?
    };
    let invalid = |problem: String| io::Error::new(io::ErrorKind::InvalidData, problem);
    if damaged && !skip_bad {
        let lines = text.iter().filter(|byte| **byte == b'\n').count();
        return Err(invalid(format!(
            "the compressed data are cut off or damaged after line {lines}; --skip-bad takes what is before"
        )));
    }
    match String::from_utf8(text) {
        Ok(text) => Ok(text),
        Err(error) if damaged => {
            let whole = error.utf8_error().valid_up_to();
            let mut bytes = error.into_bytes();
            bytes.truncate(whole);
            String::from_utf8(bytes).map_err(|error| invalid(error.to_string()))
        }
        Err(error) => {
            let before = error.as_bytes().get(..error.utf8_error().valid_up_to()).unwrap_or_default();
            let line = 1 + before.iter().filter(|byte| **byte == b'\n').count();
            Err(invalid(format!("line {line} is no UTF-8")))
        }
    }
}

/// Reads to the end, or to where that fails: what was read before, and why. A text that is too long
/// is not read to its end.
///
/// # Errors
/// What is too long.
fn lines(mut from: impl Read) -> io::Result<(Vec<u8>, Option<io::Error>)> {
    let too_long = |problem: String| Err(io::Error::new(io::ErrorKind::InvalidData, problem));
    let (mut text, mut chunk, mut begun) = (Vec::new(), vec![0; LONGEST_LINE], 0);
    loop {
        let read = match from.read(&mut chunk) {
            Ok(0) => return Ok((text, None)),
            Ok(read) => chunk.get(..read).unwrap_or_default(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Ok((text, Some(error))),
        };
        // The line that the chunk begins with; others within it are shorter than it.
        let first = read.iter().position(|byte| *byte == b'\n').unwrap_or(read.len());
        if text.len() - begun + first > LONGEST_LINE {
            let line = 1 + text.iter().filter(|byte| **byte == b'\n').count();
            return too_long(format!("line {line} is longer than {} KB", LONGEST_LINE >> 10));
        }
        if text.len() + read.len() > LONGEST {
            return too_long("more than 2 GB of text: record a smaller share".to_owned());
        }
        if let Some(last) = read.iter().rposition(|byte| *byte == b'\n') {
            begun = text.len() + last + 1;
        }
        text.extend_from_slice(read);
    }
}
