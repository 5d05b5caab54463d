//! What is known of a pattern: what a verdict is about.

use super::collected::Collected;
use super::context::Context;
use super::report::Key;

/// The longest key that a sentence shows, in characters.
pub(super) const SHOWN: usize = 60;
/// A collection of this size should be bounded: DynamoDB's partitions hold 10 GB, and a read of old
/// items pages through all of it.
pub(super) const LARGE: f64 = 1e9;
/// What is known of a pattern.
pub(super) struct Seen<'a> {
    pub context: Context<'a>,
    pub pattern: &'a str,
    pub keys: usize,
    pub largest: &'a Key,
    pub busiest: Option<(&'a Key, &'a Collected)>,
    /// The most items, or writes, that one of the keys has.
    pub most: u64,
}
