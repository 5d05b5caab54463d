//! Where a walk stands in a request's members, as DynamoDB writes it, and what was found wrong on
//! the way.
//!
//! Not here: what the members must be (`walk`, `constraint`), how many faults are told
//! (`problems`).

use super::problems::{Problems, cut};
use super::scan::decoded;
use super::shape::Wording;

/// One step of a member's path.
pub(super) enum Step<'a> {
    Member(&'static str),
    /// A map's key.
    Key(&'a [u8]),
    /// A list's place, from 1.
    Place(usize),
}

/// The way to where a walk stands.
#[derive(Default)]
pub(super) struct Trail<'a> {
    path: Vec<Step<'a>>,
    /// The request's member that is being read, by its place in the shape.
    top: usize,
    pub(super) problems: Problems,
}

impl<'a> Trail<'a> {
    /// Whether the walk stands at the request itself.
    pub(super) fn is_at_request(&self) -> bool {
        self.path.is_empty()
    }

    /// The walk comes to a member of the request, of that place in the shape.
    pub(super) fn come_to(&mut self, place: usize) {
        self.top = place;
    }

    pub(super) fn enter(&mut self, step: Step<'a>) {
        self.path.push(step);
    }

    pub(super) fn leave(&mut self) {
        self.path.pop();
    }

    /// Takes note of what is wrong where the walk stands. Its text is made only if it will be told.
    pub(super) fn problem(&mut self, wording: Wording, text: impl FnOnce(&Self) -> String) {
        if let Some(place) = self.problems.admits(wording, self.top) {
            let text = text(self);
            self.problems.keep(place, text);
        }
    }

    /// A member is longer or shorter than `limit`.
    pub(super) fn length(&mut self, value: &str, wording: Wording, direction: &str, limit: usize) {
        self.problem(wording, |trail| {
            let path = trail.path(wording);
            let quoted = if wording == Wording::Quoted { format!("'{value}' ") } else { String::new() };
            format!(
                "Value {quoted}at '{path}' failed to satisfy constraint: Member must have length {direction} than or equal to {limit}"
            )
        });
    }

    /// Where the walk stands, as DynamoDB writes it.
    pub(super) fn path(&self, wording: Wording) -> String {
        let mut path = String::new();
        for step in &self.path {
            if !path.is_empty() {
                path.push('.');
            }
            match step {
                Step::Member(name) if wording == Wording::Quoted => {
                    let mut letters = name.chars();
                    path.extend(letters.next().map(|letter| letter.to_ascii_lowercase()));
                    path.push_str(letters.as_str());
                }
                Step::Member(name) => path.push_str(name),
                Step::Key(key) => {
                    path.push_str(&cut(&decoded(key)));
                    path.push_str(".member");
                }
                Step::Place(place) => {
                    path.push_str(&place.to_string());
                    path.push_str(".member");
                }
            }
        }
        path
    }
}
