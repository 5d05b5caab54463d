//! How the readers of a rules file say where something is wrong, without knowing the file.

use std::ops::Range;

use super::RulesError;

/// Makes a fault of a place and what is wrong there.
pub(super) type Fault<'a> = &'a dyn Fn(Range<usize>, String) -> RulesError;
