//! A request for one item (a point operation, or an action of a transaction) made physical: its
//! key, and its expressions that read or write keys that are stored otherwise than they were sent.
//! And its answer made logical.
//!
//! A write to an item that was found in another slot than its hashed one requires that the item is
//! still there.

use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::{Error, Operation};
use heatsink_layout::Table;

use super::require_exists::require_exists;
use crate::answer;
use crate::context::PlanContext;
use crate::expression::{self, Rewritten};
use crate::index_key::Spread;
use crate::key::{Located, place};
use crate::legacy::expressed::expressions;
use crate::legacy::{self, Expected};
use crate::plan::{Finish, Plan, Single};
use crate::preflight::pass_refusal;
use crate::refusal::{Unplanned, too_large};
use crate::request::{Request, set_members};
use crate::splice::Splice;

/// Why the store is asked with an empty key.
pub(crate) const MEANINGLESS: &str =
    "an expression is not valid: the store is asked for its words, with a key that nothing can be written to";

/// The members of a request that may read or write keys beside its own key or item.
const WITH_KEYS: &[&str] = &["ConditionExpression", "UpdateExpression", "Expected", "AttributeUpdates"];

/// What a request for one item becomes.
pub(crate) enum Physical<'a> {
    /// This body, for the item that lies there.
    Sent { body: Bytes, located: Located<'a> },
    /// The store refuses the request as it came, for certain.
    Invalid,
    /// An expression means nothing here. The body has an empty key, with which nothing can be
    /// written: the store's refusal of the expression, or else `error`, is the answer
    /// ([`in_store_words`]).
    Meaningless { body: Bytes, error: Error },
}

impl<'a> Physical<'a> {
    /// The request with this body, for the item that lies there.
    fn to(located: Located<'a>, body: Bytes, table: &Table) -> Result<Self, Error> {
        let body = if located.location.misplaced { require_exists(&body, table)? } else { body };
        Ok(Physical::Sent { body, located })
    }

    /// The body to send and where it goes, or else the plan of a request that is refused.
    pub(crate) fn sent(
        self,
        operation: Operation,
        request: &Request<'_>,
    ) -> Result<(Bytes, Located<'a>), Plan> {
        match self {
            Physical::Sent { body, located } => Ok((body, located)),
            Physical::Invalid => Err(pass_refusal(operation, request.body)),
            Physical::Meaningless { body, error } => {
                Err(Single::new(operation, body, Some(in_store_words(error)), MEANINGLESS).plan())
            }
        }
    }
}

/// The member of a point operation that holds the key.
pub(crate) fn holder(operation: Operation) -> &'static str {
    if operation == Operation::PutItem { "Item" } else { "Key" }
}

/// Makes a request physical whose key or item is the member `holder`.
///
/// # Errors
/// `ValidationException` for a key that its suffix makes too long, or an expression that the key's
/// value makes too long.
pub(crate) fn physical<'a>(
    request: &Request<'a>,
    holder: &str,
    table: &Table,
    context: &PlanContext<'_>,
) -> Result<Physical<'a>, Error> {
    let Some(object) = request.get(holder) else { return Ok(Physical::Invalid) };
    let mut splice = Splice::new(request.body);
    let located = match place(table, context, object, &mut splice) {
        Ok(located) => located,
        Err(Unplanned::Invalid | Unplanned::Worded(_)) => return Ok(Physical::Invalid),
        Err(Unplanned::Refused(error)) => return Err(error),
    };
    if !request.has_any(WITH_KEYS) {
        return Physical::to(located, splice.finish(request.body), table);
    }
    let mut changes = match expression::rewrite(request, table, &located)? {
        Rewritten::Unchanged => Vec::new(),
        Rewritten::Invalid => return Ok(Physical::Invalid),
        Rewritten::Changed(changes) => changes,
        Rewritten::Meaningless(error) => return Ok(meaningless(request, &located, error)),
    };
    let expected = match legacy::expected(request, table, &located)? {
        Expected::Meaningless(error) => return Ok(meaningless(request, &located, error)),
        Expected::NoForm(conditions) => match Spread::of(table, &located) {
            Some(spread) => expressions(request, &conditions, &spread)?,
            None => None,
        },
        Expected::Changed(expected) => Some(vec![("Expected", Some(expected))]),
        Expected::Unchanged => None,
    };
    changes.extend(expected.into_iter().flatten());
    // Expressions in the place of `Expected` are in the place of these, too.
    if !changes.iter().any(|(name, _)| *name == "AttributeUpdates")
        && let Some(updates) = legacy::attribute_updates(request, table, &located)?
    {
        changes.push(("AttributeUpdates", Some(updates)));
    }
    let mut body = splice.finish(request.body);
    if !changes.is_empty() {
        body = set_members(&body, &changes)?;
    }
    Physical::to(located, body, table)
}

/// What to make of the answer of a point operation. A key without a suffix is its own physical key,
/// and its answers hold no other: they stay as they are.
pub(crate) fn finish(operation: Operation, table: &Arc<Table>, located: &Located<'_>) -> Option<Finish> {
    if located.affixes.is_empty() && table.index_keys().is_empty() {
        return None;
    }
    let table = Arc::clone(table);
    let suffix = located.affixes.len();
    Some(Box::new(move |answer| match answer {
        Ok(body) => answer::logical(operation, &table, &body),
        Err(error) => Err(too_large(answer::logical_error(&table, error), suffix)),
    }))
}

/// The plan of a point operation that is one physical request, to the slot where the item is
/// located.
pub(crate) fn to_one_slot(
    operation: Operation,
    body: Bytes,
    table: &Arc<Table>,
    located: &Located<'_>,
    why: &str,
) -> Plan {
    let shard = Some(located.location.slot.shard);
    Single { shard, ..Single::new(operation, body, finish(operation, table, located), why) }.plan()
}

/// The request with an empty key, which the store refuses after what it finds wrong with the
/// expressions.
pub(crate) fn meaningless<'a>(request: &Request<'a>, located: &Located<'a>, error: Error) -> Physical<'a> {
    let mut splice = Splice::new(request.body);
    located.partition.empty(&mut splice);
    Physical::Meaningless { body: splice.finish(request.body), error }
}

/// The store's refusal of an expression or a legacy condition, or `error` where the empty key was
/// all that it refused.
pub(crate) fn in_store_words(error: Error) -> Finish {
    Box::new(|answer| match answer {
        Err(refused) => Err(if of_empty_key(&refused) { error } else { refused }),
        Ok(_) => Err(error),
    })
}

/// Whether a refusal is of an empty key, and of nothing else.
pub(crate) fn of_empty_key(refused: &Error) -> bool {
    let message = refused.message.as_deref().unwrap_or_default();
    // The last two: where the key is a number.
    ["empty ", "does not match the schema", "Type mismatch for key"]
        .iter()
        .any(|words| message.contains(words))
        && !message.contains("Expression")
}
