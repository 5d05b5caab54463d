//! Lets the readers of a rules file report an error and its position without access to the file.

use std::ops::Range;

use super::RulesError;

/// Makes a fault of a place and what is wrong there.
pub(super) type Fault<'a> = &'a dyn Fn(Range<usize>, String) -> RulesError;
