//! What a check of a scenario's fields finds.

/// A field and what is wrong with it.
pub(super) type Found = Result<(), (&'static str, String)>;

pub(super) fn fault(field: &'static str, problem: impl Into<String>) -> Found {
    Err((field, problem.into()))
}
