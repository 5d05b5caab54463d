//! Which of several mistakes in one expression DynamoDB reports.
//!
//! A syntax error ends the parse at once. Other mistakes are collected and the first of the gravest
//! kind is told; the order of kinds was observed by the dynalite project on AWS.

use super::kind::{Checks, Kind};
use crate::Error;

/// Kinds of mistakes, gravest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Grave {
    Parentheses,
    UnknownFunction,
    Misused,
    Reserved,
    Section,
    Undefined,
    Overlap,
    Conflict,
    Operand,
    Distinct,
    Function,
}

#[derive(Debug, Default)]
pub(super) struct Faults {
    /// What a whole predicate found: the first predicate with any mistake of these kinds decides.
    predicate: Option<Error>,
    found: Option<(Grave, Error)>,
    /// The tree does not say what the text means: a part of it could not be read.
    lost: bool,
}

impl Faults {
    pub(super) fn note(&mut self, grave: Grave, kind: Kind, message: &str) {
        self.note_error(grave, || kind.error(message));
    }

    /// Notes a mistake that leaves a hole in the tree.
    pub(super) fn note_lost(&mut self, grave: Grave, kind: Kind, message: &str) {
        self.lost = true;
        self.note(grave, kind, message);
    }

    pub(super) fn note_error(&mut self, grave: Grave, error: impl FnOnce() -> Error) {
        if self.found.as_ref().is_none_or(|(known, _)| grave < *known) {
            self.found = Some((grave, error()));
        }
    }

    /// A predicate of a condition ends here.
    pub(super) fn end_predicate(&mut self) {
        if self.found.as_ref().is_some_and(|(grave, _)| *grave > Grave::Reserved)
            && let Some((_, error)) = self.found.take()
        {
            self.predicate.get_or_insert(error);
        }
    }

    /// Tells the gravest mistake, or only whether the meaning was lost.
    pub(super) fn finish(self, checks: Checks) -> Result<(), Error> {
        if checks == Checks::Meaning && !self.lost {
            return Ok(());
        }
        match (self.found, self.predicate) {
            (Some((grave, error)), Some(_)) if grave <= Grave::Reserved => Err(error),
            (_, Some(error)) | (Some((_, error)), None) => Err(error),
            (None, None) => Ok(()),
        }
    }
}
