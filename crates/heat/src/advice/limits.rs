//! The shares from which on something is said of a key.

/// A key is near a ceiling from this share of it on.
pub const NEAR: f64 = 0.7;
/// A key whose requests are throttled more often than this is over a ceiling, whatever was counted.
pub const THROTTLED: f64 = 0.01;
/// From this share on the load is one item's, or one page's.
pub(super) const MOST: f64 = 0.5;
