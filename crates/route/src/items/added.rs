//! Actions of transactions on items that lie in several slots. The action itself goes to the first
//! slot and stays at its place; what the other slots need is added behind the client's actions, and
//! the answers to that are taken off again.

use std::collections::BTreeMap;
use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::json::{self, Malformed, Object};
use heatsink_dynamo::{Error, Operation};
use heatsink_layout::{Placement, Table};
use serde_json::Value as Json;

use super::fetch::Parts;
use super::fold;
use super::shown::Shown;
use crate::fragments::transaction;
use crate::key::Located;
use crate::refusal::Unsent;
use crate::request::{Request, set_members};
use crate::{fragments, identity};

/// The most actions of a transaction (AWS Developer Guide, "Amazon DynamoDB Transactions").
const MOST_ACTIONS: usize = 100;

/// What the client's actions add to a transaction.
#[derive(Debug, Default)]
pub(crate) struct Added {
    /// The elements that are appended.
    added: Vec<Vec<u8>>,
    /// Whose each of them is, by the place of the client's action.
    owners: Vec<usize>,
    /// The reads, by the same.
    reads: BTreeMap<usize, Read>,
    /// Whether it has a projection that DynamoDB is known to refuse: the store is to be asked
    /// first.
    pub(crate) doubtful: bool,
}

#[derive(Debug)]
struct Read {
    table: Arc<Table>,
    shown: Shown,
    placement: Placement,
}

impl Added {
    /// Takes the client's action at `place`: `request` as it came, `body` for the first slot of the
    /// item. Gives the body to send.
    ///
    /// # Errors
    /// [`Unsent`].
    pub(crate) fn take(
        &mut self,
        place: usize,
        action: &str,
        request: &Request<'_>,
        body: Bytes,
        table: &Arc<Table>,
        located: &Located<'_>,
    ) -> Result<Bytes, Unsent> {
        let placement = &located.location.placement;
        let object = request.get(if action == "Put" { "Item" } else { "Key" }).unwrap_or_default();
        if matches!(placement, Placement::One(_)) || action != "Put" && !identity::is_key(table, object) {
            // A key with more than the key attributes is the store's to refuse.
            return Ok(body);
        }
        let name = request.get("TableName").unwrap_or(b"null");
        let others = |placement: &Placement| {
            let keys = fragments::keys(table, &located.layout, placement, object)?;
            Ok::<_, Error>(keys.into_iter().skip(1))
        };
        if action == "Get" {
            let (shown, valid) = Shown::leniently(request, table).map_err(Unsent::Meaningless)?;
            self.doubtful |= !valid;
            let others = others(&shown.needs(placement))?;
            if others.len() == 0 {
                return Ok(body);
            }
            for key in others {
                let mut get = Object::new();
                get.raw("TableName", name).raw("Key", &key);
                for (name, value) in &shown.asked {
                    get.raw(name, value);
                }
                let mut element = Object::new();
                element.raw("Get", &get.finish());
                self.add(place, element.finish());
            }
            let changes = shown.asked.iter().map(|(name, value)| (*name, Some(value.clone()))).collect();
            let read = Read { table: Arc::clone(table), shown, placement: placement.clone() };
            self.reads.insert(place, read);
            return Ok(set_members(&body, &changes)?);
        }
        if let Placement::SumOf { attributes, .. } = placement {
            for action in transaction::actions(action, request, attributes, others(placement)?)? {
                self.add(place, action);
            }
        }
        Ok(body)
    }

    /// Appends an element for the client's action at `owner`.
    pub(crate) fn add(&mut self, owner: usize, element: Vec<u8>) {
        self.added.push(element);
        self.owners.push(owner);
    }

    /// Whether nothing is added.
    pub(crate) fn is_empty(&self) -> bool {
        self.added.is_empty()
    }

    /// Whether the answer to the action at `place` is made here.
    pub(crate) fn reads(&self, place: usize) -> bool {
        self.reads.contains_key(&place)
    }

    /// What to put behind the last of `actions` client's actions.
    ///
    /// # Errors
    /// `ValidationException` where that is too much for a transaction.
    pub(crate) fn tail(&self, actions: usize) -> Result<Vec<u8>, Error> {
        let all = actions + self.added.len();
        if all > MOST_ACTIONS {
            return Err(Error::gateway_rejection(format!(
                "The transaction has {actions} actions; those on counters, and reads of items whose shard other writers assign, need {} \
                 actions more, and a transaction has at most {MOST_ACTIONS} actions. Nothing was read or written; use fewer actions, or fewer shards",
                self.added.len()
            )));
        }
        let mut tail = Vec::new();
        for element in &self.added {
            tail.push(b',');
            tail.extend_from_slice(element);
        }
        Ok(tail)
    }

    /// The store's answer with the client's responses alone.
    ///
    /// # Errors
    /// [`Malformed`] for an answer that cannot be read, or the error of a sum.
    pub(crate) fn answer(&self, actions: usize, body: &Bytes) -> Result<Bytes, Error> {
        let broken = |Malformed| malformed_answer();
        let Some(responses) = json::member(body, "Responses").map_err(broken)?.filter(|raw| *raw != b"null")
        else {
            return Ok(body.clone());
        };
        let all: Vec<Bytes> = json::elements(responses)
            .map_err(broken)?
            .into_iter()
            .map(|response| body.slice_ref(response))
            .collect();
        let item = |response: &Bytes| {
            if &**response == b"null" {
                return Ok(None);
            }
            let item = json::member(response, "Item").map_err(broken)?;
            Ok::<_, Error>(item.filter(|item| *item != b"null").map(|item| response.slice_ref(item)))
        };
        let mut list = b"[".to_vec();
        for (place, response) in all.iter().take(actions).enumerate() {
            if place > 0 {
                list.push(b',');
            }
            let Some(read) = self.reads.get(&place) else {
                list.extend_from_slice(response);
                continue;
            };
            let mut parts = Parts::default();
            let others = self.owners.iter().zip(all.iter().skip(actions));
            let others = others.filter(|(owner, _)| **owner == place).map(|(_, response)| response);
            for response in std::iter::once(response).chain(others) {
                if let Some(item) = item(response)? {
                    let (_, slot) = identity::stored(&read.table, &item).map_err(broken)?;
                    parts.found.push((slot, item));
                }
            }
            let mut shown = Object::new();
            // Of an item that has nothing of a projection the store shows nothing.
            let item = fold::shown(&read.table, &read.placement, &parts, &read.shown)?;
            if let Some(item) = item.filter(|item| item != b"{}") {
                shown.raw("Item", &item);
            }
            list.extend_from_slice(&shown.finish());
        }
        list.push(b']');
        json::splice_members(body, &[("Responses", Some(&list))]).map(Bytes::from).map_err(broken)
    }

    /// The store's error with the client's reasons alone: what failed for another slot failed for
    /// its action.
    pub(crate) fn error(&self, actions: usize, mut error: Error) -> Error {
        let Some(Json::Array(mut reasons)) = error.members.get("CancellationReasons").cloned() else {
            return error;
        };
        let added = reasons.split_off(actions.min(reasons.len()));
        for (owner, reason) in self.owners.iter().zip(added) {
            if let Some(own) = reasons.get_mut(*owner).filter(|own| own["Code"] == "None") {
                *own = reason;
            }
        }
        let codes: Vec<&str> =
            reasons.iter().map(|reason| reason["Code"].as_str().unwrap_or("None")).collect();
        error.message = error.message.map(|message| match message.split_once('[') {
            Some((words, _)) => format!("{words}[{}]", codes.join(", ")),
            None => message,
        });
        error.with("CancellationReasons", Json::Array(reasons))
    }
}

fn malformed_answer() -> Error {
    crate::answer::unreadable(Operation::TransactGetItems)
}
