//! The heat of keys over time, drawn as SVG and in letters.
//!
//! Not here: what a server has seen (`GET /_heatsink/heat/map`), the same map in a browser (the
//! page of the admin address).

mod map;
mod scale;
pub mod svg;
pub mod text;

pub use map::Map;

use crate::exit::Exit;

/// Keys that are drawn where nothing else is asked for.
pub const DEFAULT_ROWS: usize = 30;

/// The picture, as SVG, of a map that a gateway told, from its first load to its last.
///
/// # Errors
/// Exit 70 for a map that cannot be read.
pub fn picture(told: &str) -> Result<String, Exit> {
    let map: Map = serde_json::from_str(told)
        .map_err(|problem| Exit::software(format!("the map cannot be read: {problem}")))?;
    Ok(svg::draw(&map.trimmed(), DEFAULT_ROWS))
}
