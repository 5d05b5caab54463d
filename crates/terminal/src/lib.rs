//! What the commands of `heatsink` and `heatsink-lab` print, and how they end.
//!
//! Not here: any command; what it finds (the other crates).

pub mod arguments;
pub mod burned;
pub mod completions;
pub mod exit;
pub mod heatmap;
pub mod inert;
pub mod output;
pub mod print;
pub mod progress;
pub mod rates;
pub mod screen;
