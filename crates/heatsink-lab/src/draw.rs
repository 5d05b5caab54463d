//! Writes a picture: SVG as it is, PNG from it.

mod png;

use std::path::Path;

use crate::exit::{Exit, in_words};

/// Writes `picture`, which is SVG, to `file`, as PNG if it is named so.
pub fn write(picture: &str, file: &Path) -> Result<(), Exit> {
    if file.extension().is_some_and(|extension| extension == "png") {
        png(picture, file)
    } else {
        put(picture.as_bytes(), file)
    }
}

/// Writes `picture`, which is SVG, as PNG.
pub fn png(picture: &str, file: &Path) -> Result<(), Exit> {
    put(&png::draw(picture)?, file)
}

fn put(bytes: &[u8], file: &Path) -> Result<(), Exit> {
    std::fs::write(file, bytes)
        .map_err(|error| Exit::unavailable(format!("cannot write {}: {}", file.display(), in_words(&error))))
}
