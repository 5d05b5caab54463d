//! What a PartiQL statement asks for.

use heatsink_dynamo::Value;
use heatsink_dynamo::expression::Comparator;
use heatsink_dynamo::partiql::{self, Action, Operand, Returned, Statement, Term, TestKind};
use serde_json::Value as Json;

use super::attributes::Attributes;
use super::keys::{self, Facts};
use super::names;
use crate::access::{Access, Asked, Resource};
use crate::actions::{DELETE, INSERT, SELECT, UPDATE};

/// What an element with a statement asks for. One that cannot be read may do anything with any
/// table.
pub(super) fn accesses(element: &Json, facts: Facts<'_>) -> Vec<Access> {
    read(element, facts).map_or_else(
        || [SELECT, INSERT, UPDATE, DELETE].map(|action| Access::whole(action, Resource::Account)).to_vec(),
        |access| vec![access],
    )
}

fn read(element: &Json, facts: Facts<'_>) -> Option<Access> {
    let text = element.get("Statement")?.as_str()?;
    let parameters: Vec<Value> = match element.get("Parameters") {
        None | Some(Json::Null) => Vec::new(),
        Some(list) => list.as_array()?.iter().map(keys::value).collect::<Option<_>>()?,
    };
    let statement =
        Some(text).filter(|text| has_one_reading(text)).and_then(|text| partiql::parse(text).ok())?;
    // Both readers have to see the same table, and no other.
    let tables = partiql::tables(text);
    if tables.len() != 1 || tables.first() != Some(&statement.table.name) {
        return None;
    }
    let table = &statement.table.name;
    let resource = match &statement.index {
        None => names::table(table),
        Some(index) => names::part(table, "index", &index.name),
    };
    if resource == Resource::Account {
        return None;
    }
    let keys = match &statement.index {
        Some(_) => Asked::All,
        None => keys::of(facts, &resource, |name| demanded(&statement, name, &parameters)),
    };
    let mut attributes = Attributes::default();
    name_attributes(&statement, &mut attributes);
    let (action, select, returned) = match &statement.action {
        Action::Select { shown, .. } => {
            let select = if shown.is_empty() { "ALL_ATTRIBUTES" } else { "SPECIFIC_ATTRIBUTES" };
            (SELECT, Some(select), None)
        }
        Action::Exists => (SELECT, Some("SPECIFIC_ATTRIBUTES"), None),
        Action::Insert { .. } => (INSERT, None, Some("NONE")),
        Action::Update { .. } => (UPDATE, None, Some(of(&statement))),
        Action::Delete => (DELETE, None, Some(of(&statement))),
    };
    if let Some(Json::String(text)) = element.get("ReturnValuesOnConditionCheckFailure")
        && text != "NONE"
    {
        attributes.add_all();
    }
    let index = statement.index.as_ref().map(|index| index.name.as_str());
    let attributes = match statement.action {
        Action::Select { .. } => attributes.with_position(facts, &resource, index),
        _ => attributes.asked(),
    };
    Some(Access {
        action,
        resource,
        keys,
        attributes,
        select: select.map(str::to_owned),
        returned: returned.map(str::to_owned),
    })
}

/// Whether every store sees the same words: they differ in what ends a line, and with it a comment,
/// and in whether comments nest.
fn has_one_reading(text: &str) -> bool {
    let ends_lines_for_some = |sign: char| sign.is_control() && sign != '\n' && sign != '\t';
    let is_plain = |sign: char| !ends_lines_for_some(sign) && !matches!(sign, '\u{2028}' | '\u{2029}');
    text.replace("\r\n", "\n").chars().all(is_plain) && text.matches("/*").count() < 2
}

/// What `RETURNING` shows, in the words of `ReturnValues`.
const fn of(statement: &Statement) -> &'static str {
    match (statement.returned, statement.shows_former) {
        (Returned::Nothing, _) => "NONE",
        (Returned::Changes, true) => "UPDATED_OLD",
        (Returned::Changes, false) => "UPDATED_NEW",
        (Returned::Item, true) => "ALL_OLD",
        (Returned::Item, false) => "ALL_NEW",
    }
}

/// The partition keys that the statement is narrowed to: all that it names where it does so more
/// than once, for which of them is the item's is the store's to choose.
fn demanded(statement: &Statement, name: &str, parameters: &[Value]) -> Option<Vec<Vec<u8>>> {
    let key = |term: &Term| keys::bytes(&term.value(parameters)?);
    if let Action::Insert { item } = &statement.action {
        let mut given = item.iter().filter(|(attribute, _)| attribute == name);
        return match (given.next(), given.next()) {
            (Some((_, term)), None) => Some(vec![key(term)?]),
            _ => None,
        };
    }
    let is_key = |operand: &Operand| matches!(operand, Operand::Path(place) if place.path.is_root(name));
    let conditions = statement.condition.as_ref()?.conjuncts();
    let named = conditions.into_iter().filter_map(|condition| {
        let partiql::Condition::Test(test) = condition else { return None };
        match &test.kind {
            TestKind::Compare(one, Comparator::Eq, Operand::Term(term))
            | TestKind::Compare(Operand::Term(term), Comparator::Eq, one)
                if is_key(one) =>
            {
                Some(vec![key(term)?])
            }
            TestKind::In(one, list) if is_key(one) => list
                .iter()
                .map(|operand| match operand {
                    Operand::Term(term) => key(term),
                    _ => None,
                })
                .collect::<Option<_>>(),
            _ => None,
        }
    });
    let named: Vec<Vec<Vec<u8>>> = named.collect();
    (!named.is_empty()).then(|| named.concat())
}

fn name_attributes(statement: &Statement, attributes: &mut Attributes) {
    match &statement.action {
        Action::Select { shown, order } => {
            if shown.is_empty() {
                attributes.add_all();
            }
            shown
                .iter()
                .chain(order.iter().map(|order| &order.path))
                .for_each(|path| attributes.add_path(path));
        }
        Action::Exists | Action::Delete => {}
        Action::Insert { item } => item.iter().for_each(|(name, _)| attributes.add(name)),
        Action::Update { written, read } => {
            let written = written.iter().map(|(path, _)| path);
            written.chain(read).for_each(|path| attributes.add_path(path));
        }
    }
    for test in statement.condition.iter().flat_map(partiql::Condition::tests) {
        test.paths().into_iter().for_each(|path| attributes.add_path(path));
    }
    if statement.returned == Returned::Item {
        attributes.add_all();
    }
}
