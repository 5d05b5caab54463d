//! A request for one item (a point operation, or an action of a transaction) made physical: its key, and its expressions that
//! read or write keys that are stored otherwise than they were sent.
//!
//! Not here: what becomes of the answer (`point`, `transact`).

use bytes::Bytes;
use heatsink_dynamo::Error;
use heatsink_layout::Table;

use crate::context::PlanContext;
use crate::drawn;
use crate::expression::{self, Rewritten};
use crate::key::{Located, place};
use crate::legacy::{self, Expected};
use crate::plan::Finish;
use crate::refusal::Unplanned;
use crate::request::{Request, set_members};
use crate::splice::Splice;

/// What a request for one item becomes.
pub(crate) enum Physical<'a> {
    /// This body, for the item that lies there.
    Sent { body: Bytes, located: Located<'a> },
    /// The store refuses the request as it came, for certain.
    Invalid,
    /// An expression means nothing here. The body has an empty key, with which nothing can be written: the store's refusal of the
    /// expression, or else `error`, is the answer ([`in_store_words`]).
    Meaningless { body: Bytes, error: Error },
}

/// Makes a request physical whose key or item is the member `holder`.
///
/// # Errors
/// `ValidationException` for a key that its suffix makes too long, or an expression that the key's value makes too long.
pub(crate) fn physical<'a>(
    request: &Request<'a>,
    holder: &str,
    schema: &Table,
    context: &PlanContext<'_>,
) -> Result<Physical<'a>, Error> {
    let Some(object) = request.get(holder) else { return Ok(Physical::Invalid) };
    let mut splice = Splice::new(request.body);
    let located = match place(schema, context, object, &mut splice) {
        Ok(located) => located,
        Err(Unplanned::Invalid) => return Ok(Physical::Invalid),
        Err(Unplanned::Refused(error)) => return Err(error),
    };
    let mut changes = match expression::rewrite(request, schema, &located)? {
        Rewritten::Unchanged => Vec::new(),
        Rewritten::Invalid => return Ok(Physical::Invalid),
        Rewritten::Changed(changes) => changes,
        Rewritten::Meaningless(error) => return Ok(meaningless(request, &located, error)),
    };
    match legacy::expected(request, schema, &located)? {
        Expected::Unchanged => {}
        Expected::Changed(expected) => changes.push(("Expected", Some(expected))),
        Expected::Meaningless(error) => return Ok(meaningless(request, &located, error)),
    }
    if let Some(updates) = legacy::attribute_updates(request, schema, &located)? {
        changes.push(("AttributeUpdates", Some(updates)));
    }
    let mut body = splice.finish(request.body);
    if !changes.is_empty() {
        body = set_members(&body, &changes)?;
    }
    if located.astray {
        body = drawn::there(&body, schema)?;
    }
    Ok(Physical::Sent { body, located })
}

pub(crate) fn meaningless<'a>(request: &Request<'a>, located: &Located<'a>, error: Error) -> Physical<'a> {
    let mut splice = Splice::new(request.body);
    located.partition.empty(&mut splice);
    Physical::Meaningless { body: splice.finish(request.body), error }
}

/// The store's refusal of an expression or a legacy condition, or `error` where the empty key was all that it refused.
pub(crate) fn in_store_words(error: Error) -> Finish {
    Box::new(|answer| match answer {
        Err(refused) => Err(if of_empty_key(&refused) { error } else { refused }),
        Ok(_) => Err(error),
    })
}

/// Whether a refusal is of an empty key, and of nothing else.
pub(crate) fn of_empty_key(refused: &Error) -> bool {
    let message = refused.message.as_deref().unwrap_or_default();
    message.contains("empty ") && !message.contains("Expression")
}
