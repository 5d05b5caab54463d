//! Lets the readers of a rules file report an error and its position without access to the file.

use std::ops::Range;

use super::RulesError;

/// Creates an error from a position and a message.
pub(super) type Fault<'a> = &'a dyn Fn(Range<usize>, String) -> RulesError;
