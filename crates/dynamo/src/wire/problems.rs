//! What is wrong with a request's members: as many faults, and as much of each, as are told.
//!
//! A body can have a fault in every element and repeat a name of any length in each: what is kept
//! is bounded, whatever the body.

use std::borrow::Cow;

use super::shape::Wording;
use crate::Error;

/// How many faults DynamoDB tells of a request that has more ("10 validation errors detected: …"
/// for a request with 27; observed on DynamoDB by the tests of the `dynalite` project,
/// `createTable` and `query`).
const MOST: usize = 10;

/// The longest part of a name or value that is told, in bytes. Table names have 255 characters,
/// tokens 36.
const LONGEST: usize = 1024;

/// The faults of one request.
#[derive(Default)]
pub(super) struct Problems {
    /// Per wording, in the order in which they are told; at most [`MOST`].
    quoted: Vec<(Place, String)>,
    unquoted: Vec<(Place, String)>,
    order: u64,
}

/// Where a fault stands among the others: by the request's member, then by the walk.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Place {
    top: usize,
    order: u64,
    quoted: bool,
}

impl Problems {
    /// The place of a fault, if it is among those that are told.
    pub(super) fn admits(&mut self, wording: Wording, top: usize) -> Option<Place> {
        self.order += 1;
        let place = Place { top, order: self.order, quoted: wording == Wording::Quoted };
        let kept = self.of(place);
        let told = kept.len() < MOST || kept.last().is_some_and(|(last, _)| place < *last);
        told.then_some(place)
    }

    /// Keeps an admitted fault; one behind all others goes where there are too many.
    pub(super) fn keep(&mut self, place: Place, text: String) {
        let kept = self.of(place);
        let at = kept.partition_point(|(before, _)| *before < place);
        kept.insert(at, (place, text));
        kept.truncate(MOST);
    }

    /// Where the walk stands now; [`go_back`](Self::go_back) puts a fault there later.
    pub(super) fn place(&mut self) -> u64 {
        // Room for one fault.
        self.order += 1;
        self.order - 1
    }

    /// Goes back to a place, for one fault. Gives what [`go_on`](Self::go_on) takes.
    pub(super) fn go_back(&mut self, place: u64) -> u64 {
        std::mem::replace(&mut self.order, place)
    }

    /// Goes on where the walk stood before it went back.
    pub(super) fn go_on(&mut self, place: u64) {
        self.order = place;
    }

    fn of(&mut self, place: Place) -> &mut Vec<(Place, String)> {
        if place.quoted { &mut self.quoted } else { &mut self.unquoted }
    }

    /// What DynamoDB says of them. Those without the value come alone.
    pub(super) fn verdict(self) -> Result<(), Error> {
        let told = if self.unquoted.is_empty() { self.quoted } else { self.unquoted };
        let texts: Vec<_> = told.iter().map(|(_, text)| text.as_str()).collect();
        match texts.as_slice() {
            [] => Ok(()),
            [one] => Err(Error::validation(format!("1 validation error detected: {one}"))),
            more => Err(Error::validation(format!(
                "{} validation errors detected: {}",
                more.len(),
                more.join("; ")
            ))),
        }
    }
}

/// A name or value as an error tells it: cut where it is longer than any that is valid.
pub(super) fn cut(text: &str) -> Cow<'_, str> {
    if text.len() <= LONGEST {
        return Cow::Borrowed(text);
    }
    let end = (0..=LONGEST).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    Cow::Owned(format!("{}...", text.get(..end).unwrap_or_default()))
}
