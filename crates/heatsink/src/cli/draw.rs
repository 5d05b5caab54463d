//! Writes a picture: SVG as it is, PNG from it.

#[cfg(feature = "png")]
mod png;

use std::path::Path;

use crate::exit::Exit;

/// Writes `picture`, which is SVG, to `file`, as PNG if it is named so.
#[cfg(feature = "simulate")]
pub fn write(picture: &str, file: &Path) -> Result<(), Exit> {
    if file.extension().is_some_and(|extension| extension == "png") {
        png(picture, file)
    } else {
        svg(picture, file)
    }
}

/// Writes `picture`, which is SVG, as it is.
pub fn svg(picture: &str, file: &Path) -> Result<(), Exit> {
    put(picture.as_bytes(), file)
}

/// Writes `picture`, which is SVG, as PNG.
pub fn png(picture: &str, file: &Path) -> Result<(), Exit> {
    put(&png::draw(picture)?, file)
}

fn put(bytes: &[u8], file: &Path) -> Result<(), Exit> {
    std::fs::write(file, bytes)
        .map_err(|error| Exit::unavailable(format!("cannot write {}: {error}", file.display())))
}

/// Says that this build draws none.
#[cfg(not(feature = "png"))]
mod png {
    pub fn draw(_svg: &str) -> Result<Vec<u8>, super::Exit> {
        Err(super::Exit::usage("this heatsink was built without the feature `png`; write an .svg instead"))
    }
}
