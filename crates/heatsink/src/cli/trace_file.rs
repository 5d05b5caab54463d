//! Reads the files that scenarios name: traces and lists of keys, in gzip or as they are.

use std::io::{self, Read};
use std::path::Path;

use flate2::read::MultiGzDecoder;

/// The longest text: 5 million recorded requests are some 700 MB.
const LONGEST: u64 = 2 << 30;

/// The text of a file. `skip_bad`: of compressed data that are cut off or damaged, what is before that place.
///
/// # Errors
/// The file's own; compressed data that are cut off or damaged, with the last whole line; text that is no UTF-8 or too long.
pub fn text(file: &Path, skip_bad: bool) -> io::Result<String> {
    let bytes = std::fs::read(file)?;
    let mut text = Vec::new();
    let damaged = if bytes.starts_with(&[0x1f, 0x8b]) {
        MultiGzDecoder::new(&*bytes).take(LONGEST + 1).read_to_end(&mut text).is_err()
    } else {
        text = bytes;
        false
    };
    let invalid = |problem: String| io::Error::new(io::ErrorKind::InvalidData, problem);
    if text.len() as u64 > LONGEST {
        return Err(invalid("more than 2 GB of text: record a smaller share".to_owned()));
    }
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
