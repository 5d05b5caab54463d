//! Lets the readers of a rules file tell positions, and report errors at them, without access to the
//! file.

use std::ops::Range;

use super::RulesError;

/// Creates an error from a position and a message.
pub(super) type Fault<'a> = &'a dyn Fn(Range<usize>, String) -> RulesError;

/// The line of a position, counted from 1.
pub(super) type LineOf<'a> = &'a dyn Fn(usize) -> usize;
