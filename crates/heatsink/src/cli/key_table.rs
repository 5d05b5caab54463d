//! The hot keys as rows of a printed table.
//!
//! Not here: the full-screen table of `top`, whose columns depend on the terminal.

use super::hot_keys::{HotKey, percent, rate};
use super::inert;

/// What the columns show.
pub const HEAD: [&str; 7] = ["Key", "Table", "", "Units/s", "±", "Load", "Throttled"];
/// Which of them are numbers.
pub const NUMBERS: [usize; 4] = [3, 4, 5, 6];

/// The cells of a key: its text and its place, each in so many columns of the screen at most, and
/// figures.
pub fn cells(of: &HotKey, key: usize, place: usize) -> [String; 7] {
    [
        inert::shortened(&of.key, key),
        inert::shortened(&of.place, place),
        of.kind().to_owned(),
        rate(of.units),
        rate(of.error),
        percent(of.filled()),
        percent(of.throttled()),
    ]
}
