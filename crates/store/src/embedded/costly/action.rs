//! One item that is written or checked, and its expressions: their cost, and equivalent cheap ones.
//!
//! Not here: requests and transactions ([`super::write`]).

use bytes::Bytes;
use dynoxide::types::AttributeValue;
use heatsink_dynamo::expression::{Bindings, Condition, Extent, Fresh, Kind, Measured, Update};
use heatsink_dynamo::json::{self, Malformed};
use heatsink_dynamo::size::MAX_ITEM;
use heatsink_dynamo::{Error, Item};

use super::super::engine::{Engine, table_name};
use super::{BUDGET, MENTIONED, SHORT, TOO_MUCH, decided, legacy, refused};

/// One item that is written or checked.
pub(super) struct Action {
    /// The member of the transaction's element that contains it; `None` for a write of one item.
    pub(super) kind: Option<&'static str>,
    pub(super) object: Bytes,
    table: String,
    /// `Key`, or the `Item` of a put.
    keyed: Bytes,
    condition: Option<String>,
    update: Option<String>,
    /// `AttributeUpdates`.
    legacy: Option<Bytes>,
    names: Option<Bytes>,
    values: Option<Bytes>,
    /// The cost of its expressions for the largest possible item.
    pub(super) cost: usize,
}

impl Action {
    /// The action, unless the engine will refuse its form.
    pub(super) fn read(kind: Option<&'static str>, object: Bytes) -> Result<Option<Action>, Error> {
        let names = [
            "TableName",
            "Key",
            "Item",
            "ConditionExpression",
            "UpdateExpression",
            "ExpressionAttributeNames",
            "ExpressionAttributeValues",
            "AttributeUpdates",
        ];
        let Ok([table, key, item, condition, update, names, values, legacy]) =
            json::attributes_of(&object, names)
        else {
            return Ok(None);
        };
        let text =
            |raw: Option<&[u8]>| raw.and_then(|raw| json::string(raw).ok()).map(|text| text.into_owned());
        let (Some(table), Some(keyed)) = (text(table), key.or(item)) else { return Ok(None) };
        let there = |raw: Option<&[u8]>| raw.filter(|raw| *raw != b"null").map(|raw| object.slice_ref(raw));
        let mut action = Action {
            kind,
            table,
            keyed: object.slice_ref(keyed),
            condition: text(condition),
            update: text(update),
            legacy: there(legacy),
            names: there(names),
            values: there(values),
            object: object.clone(),
            cost: 0,
        };
        if action.condition.is_some() || action.update.is_some() || action.legacy.is_some() {
            match action.parsed() {
                Ok(parsed) => action.cost = parsed.cost(Extent::AtMost(MAX_ITEM)),
                Err(why) if action.length() > SHORT || too_much(&why) => return Err(why),
                Err(_) => {}
            }
        }
        Ok(Some(action))
    }

    fn length(&self) -> usize {
        self.condition.as_ref().map_or(0, String::len) + self.update.as_ref().map_or(0, String::len)
    }

    fn texts(&self) -> Vec<&str> {
        [&self.condition, &self.update].into_iter().flatten().map(String::as_str).collect()
    }

    fn bindings(&self) -> Result<Bindings<'_>, Error> {
        Bindings::read(self.names.as_deref(), self.values.as_deref())
    }

    fn parsed(&self) -> Result<Parsed, Error> {
        let bindings = self.bindings()?;
        let texts = self.texts();
        if bindings.mentioned(&texts) > MENTIONED {
            return Err(refused(TOO_MUCH));
        }
        let condition = self
            .condition
            .as_ref()
            .map(|text| Condition::parse(Kind::Condition, text, &bindings))
            .transpose()?;
        let update = match &self.legacy {
            Some(legacy) => Update::of_attribute_updates(legacy),
            None => self.update.as_ref().map(|text| Update::parse(text, &bindings)).transpose()?,
        };
        bindings.check_unused(&texts)?;
        Ok(Parsed { condition, update })
    }

    pub(super) fn cost_with(&self, extent: Extent<'_>) -> usize {
        self.parsed().map_or(0, |parsed| parsed.cost(extent))
    }

    pub(super) fn rewritten(&self, item: &Item) -> Result<Bytes, Error> {
        let parsed = self.parsed()?;
        if parsed.cost(Extent::Of(&Measured::new(item))) <= BUDGET {
            return Ok(self.object.clone());
        }
        let bindings = self.bindings()?;
        let mut fresh = Fresh::avoiding(&bindings);
        let (mut condition, mut update) = (self.condition.clone(), self.update.clone());
        let mut holds = true;
        if let Some(tree) = &parsed.condition {
            holds = tree.holds(item);
            condition = Some(
                decided(tree, holds, &mut fresh)
                    .ok_or_else(|| refused("a condition that reads no attribute"))?,
            );
        }
        let mut attributes = None;
        if let Some(tree) = &parsed.update
            && holds
        {
            let resolved = tree.resolved(item)?;
            match &self.legacy {
                Some(_) => attributes = Some(legacy::written(&resolved)),
                None => update = Some(resolved.render(&mut fresh)),
            }
        }
        let kept: Vec<&str> = [&condition, &update].into_iter().flatten().map(String::as_str).collect();
        if kept.iter().any(|text| text.len() > heatsink_dynamo::expression::MAX_EXPRESSION) {
            return Err(refused("an update of so many paths on an item this large"));
        }
        let (names, values) = bindings.rewritten(&kept, &fresh);
        let (condition, update) = (condition.map(quoted), update.map(quoted));
        if let Some(attributes) = attributes {
            let changes = [("AttributeUpdates", Some(attributes.as_slice()))];
            return Ok(json::splice_members(&self.object, &changes).map_err(malformed)?.into());
        }
        let changes = [
            ("ConditionExpression", condition.as_deref()),
            ("UpdateExpression", update.as_deref()),
            ("ExpressionAttributeNames", names.as_deref()),
            ("ExpressionAttributeValues", values.as_deref()),
        ];
        Ok(json::splice_members(&self.object, &changes).map_err(malformed)?.into())
    }

    pub(super) fn located(&self, engine: &Engine) -> Option<Located> {
        let table = table_name(&self.table);
        let [partition, sort] = engine.key_names(table)?;
        let text = |name: &str| {
            let raw = json::member(&self.keyed, name).ok()??;
            serde_json::from_slice::<AttributeValue>(raw).ok()?.to_key_string()
        };
        let sort = match sort {
            Some(sort) => text(&sort)?,
            None => String::new(),
        };
        Some(Located { table: table.to_owned(), partition: text(&partition?)?, sort })
    }
}

/// Whether it was not read for its values.
fn too_much(why: &Error) -> bool {
    why.message.as_deref().is_some_and(|message| message.contains(TOO_MUCH))
}

struct Parsed {
    condition: Option<Condition>,
    update: Option<Update>,
}

impl Parsed {
    fn cost(&self, extent: Extent<'_>) -> usize {
        let condition = self.condition.as_ref().map_or(0, |condition| condition.cost(extent));
        condition.saturating_add(self.update.as_ref().map_or(0, |update| update.cost(extent)))
    }
}

/// The key of an item, as the engine stores it.
pub(super) struct Located {
    table: String,
    partition: String,
    sort: String,
}

impl Located {
    pub(super) fn item(&self, engine: &Engine) -> Option<String> {
        engine.storage.get_item(&self.table, &self.partition, &self.sort).ok().flatten()
    }

    pub(super) fn size(&self, engine: &Engine) -> usize {
        engine.stored_size(&self.table, &self.partition, &self.sort)
    }
}

fn quoted(text: String) -> Vec<u8> {
    let mut out = Vec::with_capacity(text.len() + 2);
    json::write_string(&mut out, &text);
    out
}

pub(super) fn malformed(_: Malformed) -> Error {
    Error::serialization("Unexpected value type in payload")
}
