//! `heatsink-lab picture`: PNG of a picture in SVG.

use std::path::PathBuf;

use crate::draw;
use crate::exit::{Exit, in_words};

/// What `picture` takes.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The picture
    #[arg(value_name = "FILE.svg")]
    svg: PathBuf,
    /// The file that is written
    #[arg(value_name = "FILE.png")]
    png: PathBuf,
}

/// Draws it, with the machine's fonts.
pub fn run(args: &Args) -> Result<(), Exit> {
    let svg = std::fs::read_to_string(&args.svg)
        .map_err(|error| Exit::usage(format!("cannot read {}: {}", args.svg.display(), in_words(&error))))?;
    draw::png(&svg, &args.png)
}
