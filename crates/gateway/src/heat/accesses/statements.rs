//! The accesses of PartiQL statements. Names and values of keys stand in the text or among the
//! parameters.

use heatsink_dynamo::capacity::Consistency;
use heatsink_dynamo::expression::Comparator;
use heatsink_dynamo::partiql::{self, Action, Condition, Operand, Statement, TestKind};
use heatsink_dynamo::value::Value;
use heatsink_dynamo::{KeyType, KeyValue, Operation, json};
use heatsink_trace as trace;

use super::items::{Finder, Found};
use super::key_text::{KeyText, key_text};

/// Adds the access of each statement of a request.
pub(super) fn find(finder: &mut Finder<'_, '_>, operation: Operation, body: &[u8]) -> Option<()> {
    let (list, times) = match operation {
        Operation::ExecuteStatement => {
            add(finder, body, 0, 1);
            return Some(());
        }
        Operation::ExecuteTransaction => ("TransactStatements", 2),
        _ => ("Statements", 1),
    };
    let statements = json::elements(json::member(body, list).ok()??).ok()?;
    let chosen = finder.chosen;
    for (at, statement) in statements.into_iter().enumerate().filter(|(at, _)| chosen.has(*at)) {
        add(finder, statement, at, times);
    }
    Some(())
}

/// A statement that costs so many times what it would cost alone. Of what it reads only the least
/// is known: half a unit, or one that is written.
fn add(finder: &mut Finder<'_, '_>, request: &[u8], at: usize, times: u64) -> Option<()> {
    let [text, parameters, consistent] =
        json::attributes_of(request, ["Statement", "Parameters", "ConsistentRead"]).ok()?;
    let statement = partiql::parse(&json::string(text?).ok()?).ok()?;
    let table = finder.named(&statement.table.name)?;
    let parameters = parameters.and_then(|list| json::elements(list).ok()).unwrap_or_default();
    let parameters: Vec<Value> = parameters.into_iter().filter_map(|raw| Value::read(raw).ok()).collect();
    let reads = matches!(statement.action, Action::Select { .. } | Action::Exists);
    let index = match &statement.index {
        Some(index) => Some(table.index(&index.name)?),
        None => None,
    };
    let parts = index.map_or(table.parts, |index| index.parts);
    let attribute = index.map_or(Some(&table.partition), |index| index.partition.as_ref());
    let consistent = Consistency::of(consistent == Some(b"true"));
    let units = if reads { table.ratio.read(0, consistent).1 } else { 1_000 };
    let of_index = index.filter(|index| !index.local).map(|index| &*index.name);
    let outcome = finder.fate.outcome(at, (&table.name, of_index));
    finder.found.push(Found {
        part: if reads { parts.read } else { parts.write },
        key: attribute.and_then(|attribute| key(&statement, &parameters, attribute)),
        units: units * times,
        outcome,
        sort: None,
        page: None,
        item: 0,
        operation: if reads { trace::Operation::Get } else { trace::Operation::Update },
        strong: consistent != Consistency::Eventual,
        items: (0, 0),
    });
    Some(())
}

/// The value that a statement gives the attribute.
fn key(statement: &Statement, parameters: &[Value], attribute: &str) -> Option<KeyText<'static>> {
    if let Action::Insert { item } = &statement.action {
        let (_, term) = item.iter().find(|(name, _)| name == attribute)?;
        return text(&term.value(parameters)?);
    }
    let is = |side: &Operand| side.path().is_some_and(|path| path.is_root(attribute));
    let value = |test: &Condition| match test {
        Condition::Test(test) => match &test.kind {
            TestKind::Compare(left, Comparator::Eq, right) if is(left) => value_of(right, parameters),
            TestKind::Compare(left, Comparator::Eq, right) if is(right) => value_of(left, parameters),
            _ => None,
        },
        _ => None,
    };
    statement.condition.as_ref()?.conjuncts().into_iter().find_map(value)
}

fn value_of(operand: &Operand, parameters: &[Value]) -> Option<KeyText<'static>> {
    match operand {
        Operand::Term(term) => text(&term.value(parameters)?),
        _ => None,
    }
}

fn text(value: &Value) -> Option<KeyText<'static>> {
    match KeyValue::from_value(value)? {
        KeyValue::S(text) => Some((KeyType::S, text.into_owned().into())),
        KeyValue::N(number) => Some((KeyType::N, number.to_string().into())),
        binary @ KeyValue::B(_) => {
            let mut out = Vec::new();
            binary.write(&mut out);
            let (kind, text) = key_text(&out)?;
            Some((kind, text.into_owned().into()))
        }
    }
}
