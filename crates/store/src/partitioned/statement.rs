//! A PartiQL statement as the operation on items that it equals: which partitions it asks, and for
//! what.
//!
//! Not here: admitting and executing it (`partiql`).

use std::sync::Arc;

use heatsink_dynamo::expression::{Comparator, Path, Step};
use heatsink_dynamo::json::{self, Object};
use heatsink_dynamo::partiql::{self, Action, Condition, Operand, Put, Statement, TestKind};
use heatsink_dynamo::value::Value;
use heatsink_physics::{Access, Demand, KeyRange, ResourceId, Units};

use super::catalogue::{Key, TableInfo};
use super::item_write::ItemWrite;
use super::locate;

/// A statement on a known table.
pub(super) struct Stated {
    pub table: Arc<TableInfo>,
    asks: Asks,
}

enum Asks {
    /// It reads these places of the table or of an index.
    Read(ResourceId, Vec<KeyRange>),
    /// It writes as this action of a `TransactWriteItems` does.
    Write(&'static str, Vec<u8>),
}

impl Stated {
    /// Reads the statement of a request, or of an element of one, with its parameters; `None` where
    /// the store has to say what is wrong with it.
    pub(super) fn read(holder: &[u8], table: impl Fn(&str) -> Option<Arc<TableInfo>>) -> Option<Stated> {
        let [text, parameters] = json::attributes_of(holder, ["Statement", "Parameters"]).ok()?;
        let statement = partiql::parse(&json::string(text?).ok()?).ok()?;
        let parameters = parameters.filter(|raw| *raw != b"null").unwrap_or(b"[]");
        let values: Option<Vec<Value>> =
            json::elements(parameters).ok()?.into_iter().map(|raw| Value::read(raw).ok()).collect();
        let (table, values) = (table(&statement.table.name)?, values?);
        let asks = match &statement.action {
            Action::Select { .. } => reads(&statement, &values, &table),
            Action::Insert { item } => {
                let mut written = Object::new();
                for (name, term) in item {
                    written.raw(name, &term.value(&values)?.to_json());
                }
                Asks::Write("Put", action(&[("Item", &written.finish())]))
            }
            Action::Exists => {
                Asks::Write("ConditionCheck", action(&[("Key", &key(&statement, &values, &table.key)?)]))
            }
            Action::Delete => {
                Asks::Write("Delete", action(&[("Key", &key(&statement, &values, &table.key)?)]))
            }
            Action::Update { written, .. } => {
                let key = key(&statement, &values, &table.key)?;
                Asks::Write("Update", update(&key, written, &values))
            }
        };
        Some(Stated { table, asks })
    }

    /// What a SELECT demands, each place so many units at least.
    pub(super) fn reads(&self, access: Access, units: Units) -> Vec<Demand> {
        match &self.asks {
            Asks::Read(on, places) => {
                places.iter().map(|place| Demand { on: *on, access, place: *place, units }).collect()
            }
            Asks::Write(..) => Vec::new(),
        }
    }

    /// The write of an item; `None` for a SELECT.
    pub(super) fn write(&self, times: u64) -> Option<ItemWrite<'_>> {
        match &self.asks {
            Asks::Read(..) => None,
            Asks::Write(action, request) => ItemWrite::read(action, request, Arc::clone(&self.table), times),
        }
    }
}

/// What a SELECT reads: an item, the item collections that it names, or all. A local index lives in
/// its table's partitions.
fn reads(statement: &Statement, values: &[Value], table: &TableInfo) -> Asks {
    let index = statement.index.as_ref().and_then(|index| table.index(&index.name));
    let (on, of) = index.map_or((table.id, &table.key), |index| (index.id, &index.key));
    let Some(condition) = &statement.condition else { return Asks::Read(on, vec![KeyRange::All]) };
    if statement.index.is_none()
        && let Some(key) = key(statement, values, of)
    {
        return Asks::Read(on, vec![locate::primary_key(Some(&key), of)]);
    }
    let named = match &*of.partition {
        [partition] => partitions(condition, &partition.name, values)
            .map(|all| all.iter().map(|value| object(&[(&partition.name, value)])).collect()),
        several => equal_to(condition, several.iter().map(|one| &*one.name), values).map(|one| vec![one]),
    };
    let places = named.unwrap_or_else(Vec::new);
    let places: Vec<KeyRange> = places.iter().map(|named| locate::collection(named, of)).collect();
    Asks::Read(on, if places.is_empty() { vec![KeyRange::All] } else { places })
}

/// The primary key that a clause sets equal to values, as an object.
fn key(statement: &Statement, values: &[Value], key: &Key) -> Option<Vec<u8>> {
    let names = key.partition.iter().chain(&key.sort).map(|attribute| &*attribute.name);
    equal_to(statement.condition.as_ref()?, names, values)
}

/// The values that a clause sets each of these attributes equal to, as an object.
fn equal_to<'a>(
    condition: &Condition,
    names: impl Iterator<Item = &'a str>,
    values: &[Value],
) -> Option<Vec<u8>> {
    let mut found = Object::new();
    for name in names {
        let value = condition.conjuncts().into_iter().find_map(|part| match part {
            Condition::Test(test) => equal(&test.kind, name, values),
            _ => None,
        })?;
        found.raw(name, &value.to_json());
    }
    Some(found.finish())
}

fn equal(test: &TestKind, name: &str, values: &[Value]) -> Option<Value> {
    match test {
        TestKind::Compare(Operand::Path(place), Comparator::Eq, Operand::Term(term))
        | TestKind::Compare(Operand::Term(term), Comparator::Eq, Operand::Path(place))
            if place.path.is_root(name) =>
        {
            term.value(values)
        }
        _ => None,
    }
}

/// The partition keys that a clause confines items to; `None` if it leaves them open.
fn partitions(condition: &Condition, name: &str, values: &[Value]) -> Option<Vec<Value>> {
    match condition {
        Condition::And(parts) => parts.iter().find_map(|part| partitions(part, name, values)),
        Condition::Or(parts) => {
            let all: Option<Vec<_>> = parts.iter().map(|part| partitions(part, name, values)).collect();
            all.map(|all| all.concat())
        }
        Condition::Not(_) => None,
        Condition::Test(test) => match &test.kind {
            TestKind::In(Operand::Path(place), list) if place.path.is_root(name) => {
                let value = |one: &Operand| match one {
                    Operand::Term(term) => term.value(values),
                    _ => None,
                };
                list.iter().map(value).collect()
            }
            kind => equal(kind, name, values).map(|value| vec![value]),
        },
    }
}

fn object(members: &[(&str, &Value)]) -> Vec<u8> {
    let mut object = Object::new();
    for (name, value) in members {
        object.raw(name, &value.to_json());
    }
    object.finish()
}

fn action(members: &[(&str, &[u8])]) -> Vec<u8> {
    let mut action = Object::new();
    for (name, raw) in members {
        action.raw(name, raw);
    }
    action.finish()
}

/// An update in the words of `UpdateItem`. One that computes what it puts has no expression here:
/// what it changes is not known.
fn update(key: &[u8], written: &[(Path, Put)], parameters: &[Value]) -> Vec<u8> {
    let (mut names, mut values) = (Object::new(), Object::new());
    let (mut sets, mut removes) = (Vec::new(), Vec::new());
    let mut named = 0;
    for (nth, (path, put)) in written.iter().enumerate() {
        let mut text = String::new();
        let mut name = |name: &str, text: &mut String| {
            names.string(&format!("#n{named}"), name);
            text.push_str(&format!("#n{named}"));
            named += 1;
        };
        name(&path.root, &mut text);
        for step in &path.rest {
            match step {
                Step::Index(at) => text.push_str(&format!("[{at}]")),
                Step::Name(one) => {
                    text.push('.');
                    name(one, &mut text);
                }
            }
        }
        let value = match put {
            Put::Nothing => None,
            Put::Made => return action(&[("Key", key)]),
            Put::Value(term) => match term.value(parameters) {
                Some(value) => Some(value),
                None => return action(&[("Key", key)]),
            },
        };
        match value {
            Some(value) => {
                values.raw(&format!(":v{nth}"), &value.to_json());
                sets.push(format!("{text} = :v{nth}"));
            }
            None => removes.push(text),
        }
    }
    let clause = |word: &str, parts: &[String]| match parts {
        [] => String::new(),
        parts => format!("{word} {} ", parts.join(", ")),
    };
    let mut update = Object::new();
    update.raw("Key", key);
    update.string("UpdateExpression", (clause("SET", &sets) + &clause("REMOVE", &removes)).trim_end());
    update.raw("ExpressionAttributeNames", &names.finish());
    if !sets.is_empty() {
        update.raw("ExpressionAttributeValues", &values.finish());
    }
    update.finish()
}
