//! Writes whose conditions or updates cost too much. The items are read first and the expressions
//! are evaluated on them. Then the write is executed if the items are unchanged.

use bytes::Bytes;
use heatsink_dynamo::expression::Extent;
use heatsink_dynamo::json;
use heatsink_dynamo::size::MAX_ITEM;
use heatsink_dynamo::value::read_item;
use heatsink_dynamo::{Code, Error, Operation};
use serde_json::json;

use super::super::engine::Engine;
use super::super::tokens;
use super::BUDGET;
use super::action::{Action, malformed};

/// The most bytes of items in one transaction (DynamoDB, "Service, account, and table quotas").
const TRANSACTION: usize = 4 << 20;

/// A write's expressions, to be evaluated with its items.
pub(crate) struct Costly {
    operation: Operation,
    body: Bytes,
    actions: Vec<Action>,
}

/// The stored items of a request's actions, as the engine stores them; `None` for cheap actions.
pub(crate) type Seen = Vec<Option<String>>;

/// The result of reading the items.
pub(crate) enum Look {
    /// The items are small enough to pass the request to the engine.
    Cheap,
    Costly(Seen),
}

impl Costly {
    /// The request, if its expressions can cost too much.
    ///
    /// # Errors
    /// `ValidationException` for a long expression that is not understood.
    pub(crate) fn read(operation: Operation, body: &Bytes) -> Result<Option<Costly>, Error> {
        let actions = match operation {
            Operation::PutItem | Operation::UpdateItem | Operation::DeleteItem => {
                Action::read(None, body.clone())?.into_iter().collect()
            }
            Operation::TransactWriteItems => transaction(body)?,
            _ => return Ok(None),
        };
        let cost = actions.iter().fold(0_usize, |sum, action: &Action| sum.saturating_add(action.cost));
        // This many items can be too large together, whatever their expressions.
        let large = actions.len() > TRANSACTION / MAX_ITEM;
        let body = body.clone();
        Ok((cost > BUDGET || large).then_some(Costly { operation, body, actions }))
    }

    /// The original request.
    pub(crate) fn body(&self) -> &Bytes {
        &self.body
    }

    /// Whether the request was executed before, so that nothing is left to evaluate. Runs on the
    /// engine's thread.
    pub(crate) fn repeated(&self, engine: &Engine) -> bool {
        self.operation == Operation::TransactWriteItems && tokens::known(engine, &self.body)
    }

    /// Executes the rewritten request under the token of the original one. Runs on the engine's
    /// thread.
    pub(crate) fn act<A>(&self, engine: &Engine, act: impl FnOnce() -> A) -> A {
        if self.operation == Operation::TransactWriteItems {
            engine.original.replace(tokens::digest_of(&self.body));
        }
        let done = act();
        engine.original.take();
        done
    }

    /// Reads the stored items. Runs on the engine's thread.
    ///
    /// # Errors
    /// `ValidationException` when the items of a transaction are too large together.
    pub(crate) fn look(&self, engine: &Engine) -> Result<Look, Error> {
        let located: Vec<_> = self.actions.iter().map(|action| action.located(engine)).collect();
        let sizes: Vec<usize> =
            located.iter().map(|key| key.as_ref().map_or(0, |key| key.size(engine))).collect();
        let updated = self.actions.iter().zip(&sizes).filter(|(action, _)| action.kind == Some("Update"));
        if updated.map(|(_, size)| size).sum::<usize>() > TRANSACTION {
            return Err(Error::validation(
                "Collection size of items exceeded, which can also be caused by the aggregate size of the items in the transaction exceeding the 4MB limit",
            ));
        }
        let costs: Vec<usize> = self
            .actions
            .iter()
            .zip(&sizes)
            .map(|(action, size)| match action.cost {
                0 => 0,
                _ => action.cost_with(Extent::AtMost(*size)),
            })
            .collect();
        if costs.iter().fold(0_usize, |sum, cost| sum.saturating_add(*cost)) <= BUDGET {
            return Ok(Look::Cheap);
        }
        let share = BUDGET / self.actions.len().max(1);
        let seen = located
            .iter()
            .zip(costs)
            .map(|(key, cost)| if cost > share { key.as_ref()?.item(engine) } else { None });
        Ok(Look::Costly(seen.collect()))
    }

    /// Whether the items are unchanged since they were read. Runs on the engine's thread.
    pub(crate) fn unchanged(&self, engine: &Engine, seen: &Seen) -> bool {
        self.actions.iter().zip(seen).all(|(action, seen)| {
            seen.as_ref().is_none_or(|seen| {
                action.located(engine).and_then(|key| key.item(engine)).as_ref() == Some(seen)
            })
        })
    }

    /// A request with the same effect on these items and cheap expressions. Runs on the evaluator's
    /// thread.
    ///
    /// # Errors
    /// The one that the engine would give for an update that cannot be applied;
    /// `ValidationException` where a rewritten request would be longer than DynamoDB allows.
    pub(crate) fn rewritten(&self, seen: &Seen) -> Result<Bytes, Error> {
        let objects = self.actions.iter().zip(seen).enumerate().map(|(nth, (action, seen))| match seen {
            Some(seen) => action.rewritten(&read_item(seen.as_bytes())?).map_err(|why| self.failed(nth, why)),
            None => Ok(action.object.clone()),
        });
        let objects = objects.collect::<Result<Vec<Bytes>, Error>>()?;
        if self.operation != Operation::TransactWriteItems {
            return Ok(objects.into_iter().next().unwrap_or_else(|| self.body.clone()));
        }
        let mut all = Vec::from(*b"[");
        for (action, object) in self.actions.iter().zip(objects) {
            if all.len() > 1 {
                all.push(b',');
            }
            let mut element = json::Object::new();
            element.raw(action.kind.unwrap_or_default(), &object);
            all.extend(element.finish());
        }
        all.push(b']');
        Ok(json::splice_members(&self.body, &[("TransactItems", Some(&all))]).map_err(malformed)?.into())
    }

    /// An error of one action as the request's.
    fn failed(&self, nth: usize, why: Error) -> Error {
        if self.operation != Operation::TransactWriteItems || why.code != Code::ValidationException {
            return why;
        }
        let mut codes = vec!["None"; self.actions.len()];
        let mut reasons = vec![json!({"Code": "None"}); self.actions.len()];
        if let (Some(code), Some(reason)) = (codes.get_mut(nth), reasons.get_mut(nth)) {
            *code = "ValidationError";
            *reason = json!({"Code": "ValidationError", "Message": why.message});
        }
        let codes = codes.join(", ");
        Error::new(
            Code::TransactionCanceledException,
            format!(
                "Transaction cancelled, please refer cancellation reasons for specific reasons [{codes}]"
            ),
        )
        .with("CancellationReasons", reasons.into())
    }
}

/// The actions of a transaction; none where the engine will refuse it for its form.
fn transaction(body: &Bytes) -> Result<Vec<Action>, Error> {
    const KINDS: [&str; 4] = ["Put", "Update", "Delete", "ConditionCheck"];
    let Some(elements) =
        json::member(body, "TransactItems").ok().flatten().and_then(|list| json::elements(list).ok())
    else {
        return Ok(Vec::new());
    };
    let mut actions = Vec::with_capacity(elements.len());
    for element in elements {
        let Ok(found) = json::attributes_of(element, KINDS) else { return Ok(Vec::new()) };
        let mut there = KINDS.into_iter().zip(found).filter_map(|(kind, object)| Some((kind, object?)));
        let (Some((kind, object)), None) = (there.next(), there.next()) else { return Ok(Vec::new()) };
        let Some(action) = Action::read(Some(kind), body.slice_ref(object))? else { return Ok(Vec::new()) };
        actions.push(action);
    }
    Ok(actions)
}
