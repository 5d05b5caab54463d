//! Writes a picture: SVG as it is, PNG from it.

#[cfg(feature = "png")]
mod png;

use std::path::Path;

use crate::exit::Exit;

/// Writes `svg` to `file`, as PNG if it is named so.
pub fn write(svg: &str, file: &Path) -> Result<(), Exit> {
    let bytes = if file.extension().is_some_and(|extension| extension == "png") {
        png::draw(svg)?
    } else {
        svg.as_bytes().to_vec()
    };
    std::fs::write(file, bytes)
        .map_err(|error| Exit::unavailable(format!("cannot write {}: {error}", file.display())))
}

/// Says that this build draws none.
#[cfg(not(feature = "png"))]
mod png {
    pub fn draw(_svg: &str) -> Result<Vec<u8>, super::Exit> {
        Err(super::Exit::usage(
            "--picture: this heatsink was built without the feature `png`; write an .svg instead",
        ))
    }
}
