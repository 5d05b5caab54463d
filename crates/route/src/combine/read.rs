//! A write of one item as it goes to the store: which item it is of, and what it does, if that can
//! be combined.
//!
//! Strict: what DynamoDB might refuse before it looks at the item is not combined, so that its
//! error goes to whom it belongs.

use bytes::Bytes;
use heatsink_dynamo::expression::{Assigned, Bindings, Path, Update};
use heatsink_dynamo::key::{MAX_PARTITION_KEY, MAX_SORT_KEY};
use heatsink_dynamo::size::{MAX_ITEM, item_size};
use heatsink_dynamo::value::read_item;
use heatsink_dynamo::{
    AttributeDefinition, Item, KeyType, KeyValue, Number, Operation, TableSchema, Value, json,
};

use super::attribute::{Change, Start};
use crate::request::Request;

/// A write of one item.
#[derive(Clone, Debug)]
pub struct ItemWrite {
    pub(super) operation: Operation,
    pub(super) body: Bytes,
    item: Vec<u8>,
    pub(super) effect: Option<Effect>,
    pub(super) asks: Asks,
}

/// What a write does.
#[derive(Clone, Debug)]
pub(super) enum Effect {
    /// All of the item is replaced, or it is deleted.
    Replaces,
    /// Attributes are changed, each in one way.
    Updates(Vec<(String, Change)>),
}

/// What a write asks for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Asks {
    pub(super) values: Values,
    pub(super) capacity: Capacity,
}

/// `ReturnValues`, in the order of how much they are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Values {
    #[default]
    None,
    Updated,
    All,
}

/// `ReturnConsumedCapacity`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Capacity {
    #[default]
    None,
    Total,
    Indexes,
}

/// The largest number that is combined is below 10^18, and has at most 10 digits behind the point:
/// whatever is added up of a thousand of them has fewer than 38 digits.
const LARGEST: u64 = 1_000_000_000_000_000_000;
const FRACTION: usize = 10;

impl ItemWrite {
    /// Reads the body of a PutItem, UpdateItem or DeleteItem with physical keys; `None` where it
    /// does not say for certain which item it is of. `spreads`: whether values of keys of its
    /// indexes are stored otherwise than they were sent.
    pub fn read(operation: Operation, body: &Bytes, schema: &TableSchema, spreads: bool) -> Option<Self> {
        let request = Request::checked(operation, body).ok()?;
        let table = request.string("TableName").ok()??;
        let holder = request.get(if operation == Operation::PutItem { "Item" } else { "Key" })?;
        let mut item = table.into_owned().into_bytes();
        for (attribute, longest) in
            std::iter::once((&schema.key.partition, MAX_PARTITION_KEY)).chain(sort(schema))
        {
            let raw = json::member(holder, &attribute.name).ok()??;
            let value = KeyValue::read(raw, attribute).ok()?.canonical_bytes().into_owned();
            if value.is_empty() || value.len() > longest {
                return None;
            }
            item.push(0);
            item.extend_from_slice(&u32::try_from(value.len()).ok()?.to_be_bytes());
            item.extend_from_slice(&value);
        }
        let mut write =
            ItemWrite { operation, body: body.clone(), item, effect: None, asks: Asks::default() };
        if let Some((effect, asks)) = combinable(operation, &request, schema, spreads) {
            (write.effect, write.asks) = (Some(effect), asks);
        }
        Some(write)
    }

    /// Which item it is of: equal for equal physical keys, and no others.
    pub fn item(&self) -> &[u8] {
        &self.item
    }

    /// Whether it can be combined with others.
    pub fn can_combine(&self) -> bool {
        self.effect.is_some()
    }

    /// The request itself.
    pub fn request(&self) -> (Operation, Bytes) {
        (self.operation, self.body.clone())
    }
}

fn sort(schema: &TableSchema) -> impl Iterator<Item = (&AttributeDefinition, usize)> {
    schema.key.sort.iter().map(|attribute| (attribute, MAX_SORT_KEY))
}

/// What a write does and asks for, if it can be combined.
fn combinable(
    operation: Operation,
    request: &Request<'_>,
    schema: &TableSchema,
    spreads: bool,
) -> Option<(Effect, Asks)> {
    let own: &[&str] = match operation {
        Operation::PutItem => &["Item"],
        Operation::DeleteItem => &["Key"],
        Operation::UpdateItem => {
            &["Key", "UpdateExpression", "ExpressionAttributeNames", "ExpressionAttributeValues"]
        }
        _ => return None,
    };
    let any = ["TableName", "ReturnValues", "ReturnConsumedCapacity"];
    if !request.names().all(|name| own.contains(&name) || any.contains(&name)) {
        return None;
    }
    let values = match request.string("ReturnValues").ok()?.as_deref() {
        None | Some("NONE") => Values::None,
        Some("UPDATED_NEW") if operation == Operation::UpdateItem => Values::Updated,
        Some("ALL_NEW") if operation == Operation::UpdateItem => Values::All,
        Some(_) => return None,
    };
    let capacity = match request.string("ReturnConsumedCapacity").ok()?.as_deref() {
        None | Some("NONE") => Capacity::None,
        Some("TOTAL") => Capacity::Total,
        Some("INDEXES") => Capacity::Indexes,
        Some(_) => return None,
    };
    let asks = Asks { values, capacity };
    let effect = if operation == Operation::PutItem {
        is_storable(&read_item(request.get("Item")?).ok()?, schema).then_some(Effect::Replaces)?
    } else {
        let key = json::members(request.get("Key")?).ok()?;
        if key.len() != schema.key.names().count() {
            return None;
        }
        if operation == Operation::DeleteItem {
            Effect::Replaces
        } else {
            Effect::Updates(changes(request, schema, spreads)?)
        }
    };
    Some((effect, asks))
}

/// Whether the store takes that item whatever it has there.
fn is_storable(item: &Item, schema: &TableSchema) -> bool {
    let longest = usize::from(u16::MAX);
    let of_index = |attribute: &AttributeDefinition| {
        item.get(&attribute.name).is_none_or(|value| match (value, attribute.key_type) {
            (Value::S(text), KeyType::S) => (1..=MAX_SORT_KEY).contains(&text.len()),
            (Value::B(bytes), KeyType::B) => (1..=MAX_SORT_KEY).contains(&bytes.len()),
            (Value::N(_), KeyType::N) => true,
            _ => false,
        })
    };
    item_size(item) <= MAX_ITEM
        && item.keys().all(|name| (1..=longest).contains(&name.len()))
        && schema.indexes.iter().all(|index| index.key.partition.iter().chain(&index.key.sort).all(of_index))
}

/// The changes of an update, if it makes only such as can be combined.
fn changes(request: &Request<'_>, schema: &TableSchema, spreads: bool) -> Option<Vec<(String, Change)>> {
    let text = request.string("UpdateExpression").ok()??;
    let bindings =
        Bindings::read(request.get("ExpressionAttributeNames"), request.get("ExpressionAttributeValues"))
            .ok()?;
    bindings.check_unused(&[&text]).ok()?;
    let update = Update::parse(&text, &bindings).ok()?;
    if !update.remove.is_empty() || !update.delete.is_empty() {
        return None;
    }
    let mut changes = Vec::with_capacity(update.set.len() + update.add.len());
    for (path, value) in update.add {
        changes.push((top_level(path)?, Change::Add(small(&value)?, Start::Zero)));
    }
    for (path, value) in update.set {
        let name = top_level(path)?;
        let change = assigned(&name, value)?;
        changes.push((name, change));
    }
    changes.iter().all(|(name, change)| is_free(name, change, schema, spreads)).then_some(changes)
}

/// Whether an attribute takes such a change whatever the item has there, but for the type of what
/// is added to.
fn is_free(name: &str, change: &Change, schema: &TableSchema, spreads: bool) -> bool {
    let mut keys = schema.indexes.iter().flat_map(|index| index.key.partition.iter().chain(&index.key.sort));
    let numbers = match change {
        Change::Add(..) => true,
        Change::Set(value) => matches!(value, Value::N(_)),
    };
    !schema.key.has(name)
        && keys.all(|key| key.name != name || numbers && key.key_type == KeyType::N && !spreads)
}

fn top_level(path: Path) -> Option<String> {
    path.rest.is_empty().then_some(path.root)
}

/// What SET does to the attribute of that name.
fn assigned(name: &str, value: Assigned) -> Option<Change> {
    match value {
        Assigned::Value(value) => Some(Change::Set(canonical(value)?)),
        Assigned::Plus(left, right) => match (*left, *right) {
            (Assigned::Value(value), own) | (own, Assigned::Value(value)) => {
                Some(Change::Add(small(&value)?, start(name, own)?))
            }
            _ => None,
        },
        Assigned::Minus(left, right) => match (*left, *right) {
            (own, Assigned::Value(value)) => {
                Some(Change::Add(Number::ZERO.minus(small(&value)?).ok()?, start(name, own)?))
            }
            _ => None,
        },
        _ => None,
    }
}

/// What is added to, if it is that attribute itself.
fn start(name: &str, own: Assigned) -> Option<Start> {
    match own {
        Assigned::Path(path) if path.is_root(name) => Some(Start::Exists),
        Assigned::IfNotExists(path, default) if path.is_root(name) => match *default {
            Assigned::Value(value) => Some(Start::Or(small(&value)?)),
            _ => None,
        },
        _ => None,
    }
}

/// A number that a thousand can be added up of.
fn small(value: &Value) -> Option<Number> {
    let number = value.number()?;
    let largest = Number::from(LARGEST);
    let fraction = number.to_string().split_once('.').map_or(0, |(_, fraction)| fraction.len());
    let magnitude = if number < Number::ZERO { Number::ZERO.minus(number).ok()? } else { number };
    (magnitude < largest && fraction <= FRACTION).then_some(number)
}

/// A value as the store gives it back.
fn canonical(value: Value) -> Option<Value> {
    match value {
        Value::N(text) => Some(Value::N(Number::parse(&text).ok()?.to_string())),
        value => Some(value),
    }
}
