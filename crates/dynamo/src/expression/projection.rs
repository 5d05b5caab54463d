//! The grammar of projections, and paths that must not overlap.

use super::ast::{Path, Projection, Step};
use super::bindings::Bindings;
use super::faults::{Faults, Grave};
use super::kind::{Checks, Kind};
use super::parse::Parser;
use crate::Error;

impl Projection {
    /// Reads a `ProjectionExpression`.
    ///
    /// # Errors
    /// `ValidationException` in DynamoDB's words; also for paths that overlap.
    pub fn parse(text: &str, bindings: &Bindings<'_>) -> Result<Projection, Error> {
        Projection::read(text, bindings, Checks::All)
    }

    /// [`parse`](Self::parse) with as many checks as are asked for.
    ///
    /// # Errors
    /// `ValidationException` in DynamoDB's words.
    pub fn read(text: &str, bindings: &Bindings<'_>, checks: Checks) -> Result<Projection, Error> {
        let mut parser = Parser::new(Kind::Projection, text, bindings)?;
        let mut paths = vec![parser.path()?];
        while parser.takes(",") {
            paths.push(parser.path()?);
        }
        check_overlaps(&paths.iter().collect::<Vec<_>>(), Kind::Projection, &mut parser.faults);
        parser.finish(checks)?;
        Ok(Projection { paths })
    }
}

/// Notes the first two paths of which one leads into the other, or that take one value for both a
/// map and a list.
pub(super) fn check_overlaps(paths: &[&Path], kind: Kind, faults: &mut Faults) {
    let mut sorted: Vec<(usize, &Path)> = paths.iter().copied().enumerate().collect();
    sorted.sort_by_key(|(_, path)| *path);
    // Sorted, a path stands next to what overlaps it, and the indexes of one parent before its
    // names.
    let clash = sorted.windows(2).find_map(|pair| match pair {
        [(a_at, a), (b_at, b)] if a.root == b.root => {
            let (first, second) = if a_at < b_at { (a, b) } else { (b, a) };
            let steps = a.rest.iter().zip(&b.rest).find(|(a, b)| a != b);
            match steps {
                None => Some((Grave::Overlap, "overlap", first, second)),
                Some((Step::Index(_), Step::Name(_)) | (Step::Name(_), Step::Index(_))) => {
                    Some((Grave::Conflict, "conflict", first, second))
                }
                Some(_) => None,
            }
        }
        _ => None,
    });
    if let Some((grave, how, first, second)) = clash {
        let message = format!(
            "Two document paths {how} with each other; must remove or rewrite one of these paths; path one: {first}, path two: {second}"
        );
        faults.note(grave, kind, &message);
    }
}
