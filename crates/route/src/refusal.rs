//! What Heatsink itself refuses because of how keys are laid out: said with the rules, so that
//! whoever reads it knows what to change.

use heatsink_dynamo::expression::Checks;
use heatsink_dynamo::json::Malformed;
use heatsink_dynamo::{Code, Error, Origin};
use heatsink_layout::{LayoutSource, Unplaced};

/// Why there is no plan of its own for a request.
#[derive(Debug)]
pub(crate) enum Unplanned {
    /// It is not valid. A read is harmless: it is sent as it came, so that the refusal is the
    /// store's own. So is a write whose key no item can have.
    Invalid,
    /// The same, and the checks here know how DynamoDB says so: the answer where the store accepts
    /// it.
    Worded(Error),
    /// Refused here.
    Refused(Error),
}

impl Unplanned {
    /// Whether the store has the last word: what the checks here find wrong it may take.
    pub(crate) fn is_for_the_store(&self) -> bool {
        matches!(self, Unplanned::Invalid | Unplanned::Worded(_))
    }
}

/// What `read` makes of a request, and whether all checks here pass. An error that `is_left` to the
/// store may come of the checks alone: then the request is read by its meaning, and the store has to
/// be asked before it is carried out.
///
/// # Errors
/// Those of `read`.
pub(crate) fn strict_then_lenient<T, E>(
    is_left: impl FnOnce(&E) -> bool,
    read: impl Fn(Checks) -> Result<T, E>,
) -> Result<(T, bool), E> {
    match read(Checks::All) {
        Ok(strict) => Ok((strict, true)),
        Err(error) if is_left(&error) => read(Checks::Meaning).map(|lenient| (lenient, false)),
        Err(error) => Err(error),
    }
}

impl From<Unplaced> for Unplanned {
    fn from(unplaced: Unplaced) -> Self {
        Unplanned::Refused(self::unplaced(unplaced))
    }
}

/// The refusal of an item that has no slot, or of a key that has no physical one.
pub(crate) fn unplaced(unplaced: Unplaced) -> Error {
    Error::gateway_rejection(unplaced.to_string())
}

impl From<Error> for Unplanned {
    fn from(error: Error) -> Self {
        Unplanned::Refused(error)
    }
}

impl From<Malformed> for Unplanned {
    fn from(_: Malformed) -> Self {
        Unplanned::Invalid
    }
}

/// Why a write of an item is not sent.
#[derive(Debug)]
pub(crate) enum Unsent {
    /// Refused here.
    Refused(Error),
    /// An expression is not valid: the refusal is the store's, or else this one.
    Meaningless(Error),
}

impl From<Error> for Unsent {
    fn from(error: Error) -> Self {
        Unsent::Refused(error)
    }
}

/// The error as clients are told it: a refusal of Heatsink's own names the rules of the request's
/// tables.
#[must_use]
pub fn name_rules<S: AsRef<str>>(mut error: Error, tables: &[S], layouts: &dyn LayoutSource) -> Error {
    if error.origin != Origin::Gateway {
        return error;
    }
    let sharded = tables.iter().filter_map(|name| layouts.table(name.as_ref()));
    let in_force = sharded.map(|table| match table.layouts().iter().next() {
        Some(_) => format!("{}: {}", table.name, table.layouts()),
        None => format!("{}: none; single keys of it are on record", table.name),
    });
    let rules: Vec<String> = in_force.collect();
    if !rules.is_empty() {
        let why = error.message.unwrap_or_default();
        error.message = Some(format!("{why} (the rules in force for table {})", rules.join("; for table ")));
    }
    error
}

/// DynamoDB's refusal of an item over 400 KB does not say that the suffix counts; this does.
pub(crate) fn too_large(mut error: Error, suffix: usize) -> Error {
    if error.code == Code::ValidationException
        && let Some(noted) = error.message.as_deref().and_then(|message| size_note(message, suffix))
    {
        error = Error::validation(noted);
    }
    error
}

/// The message of an item over 400 KB, with a note on the suffix; `None` for any other message.
pub(crate) fn size_note(message: &str, suffix: usize) -> Option<String> {
    let too_large =
        message.contains("Item size has exceeded") || message.contains("Item size to update has exceeded");
    too_large
        .then(|| format!("{message} (the table is sharded, and the shard suffix of {suffix} bytes counts)"))
}
