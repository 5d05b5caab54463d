//! The accesses of PartiQL statements. Names and values of keys stand in the text or among the
//! parameters.

use std::sync::Arc;

use heatsink_dynamo::capacity::{Consistency, read_units};
use heatsink_dynamo::expression::Comparator;
use heatsink_dynamo::partiql::{self, Action, Condition, Operand, Statement, TestKind};
use heatsink_dynamo::size::scan_item;
use heatsink_dynamo::value::Value;
use heatsink_dynamo::{KeyType, KeyValue, Operation, json};
use heatsink_heat::costs::{Cost, CostOf, RequestKind};
use heatsink_heat::detect::{Outcome, PartId};
use heatsink_trace as trace;

use super::costing::{Halves, Known, Member, shares};
use super::fate::is_throttle;
use super::items::{Finder, Found, text};
use super::key_text::{KeyText, key_text};
use super::told::TableCapacity;
use crate::heat::tables::TableKeys;
use crate::heat::units::thousandths;

/// A statement of a request.
struct Stated {
    at: usize,
    table: Arc<TableKeys>,
    /// The global index that it reads, by its place.
    index: Option<usize>,
    key: Option<KeyText<'static>>,
    kind: RequestKind,
    halves: Halves,
    part: PartId,
    is_throttled: bool,
    member: Member,
}

/// Adds the access of each statement of a request.
pub(super) fn find(finder: &mut Finder<'_, '_>, operation: Operation, body: &[u8]) -> Option<()> {
    let answer = finder.fate.answer();
    let (statements, responses) = match operation {
        Operation::ExecuteStatement => (vec![body], Vec::new()),
        _ => {
            let list = match operation {
                Operation::ExecuteTransaction => "TransactStatements",
                _ => "Statements",
            };
            let responses = json::member(answer, "Responses").ok().flatten();
            let responses = responses.and_then(|list| json::elements(list).ok()).unwrap_or_default();
            (json::elements(json::member(body, list).ok()??).ok()?, responses)
        }
    };
    let in_transaction = operation == Operation::ExecuteTransaction;
    let stated: Vec<Stated> = (statements.into_iter().enumerate())
        .filter_map(|(at, statement)| read(finder, statement, at, in_transaction, responses.get(at).copied()))
        .collect();
    let known = known(finder, &stated);
    let chosen = finder.chosen;
    for (one, known) in stated.into_iter().zip(known).filter(|(one, _)| chosen.has(one.at)) {
        add(finder, one, known);
    }
    Some(())
}

/// Reads a statement; `None` for one that cannot be read, or was wrong. `response`: to this one of
/// several.
fn read(
    finder: &Finder<'_, '_>,
    request: &[u8],
    at: usize,
    in_transaction: bool,
    response: Option<&[u8]>,
) -> Option<Stated> {
    let [text_raw, parameters, consistent] =
        json::attributes_of(request, ["Statement", "Parameters", "ConsistentRead"]).ok()?;
    let [item, error] = json::attributes_of(response.unwrap_or(b"{}"), ["Item", "Error"]).ok()?;
    let code = error.and_then(|error| json::member(error, "Code").ok()?).map(json::string);
    let is_throttled = match code {
        None => false,
        Some(Ok(code)) if is_throttle(&code) => true,
        Some(Ok(code)) if matches!(&*code, "ConditionalCheckFailed" | "DuplicateItem") => false,
        Some(_) => return None,
    };
    let statement = partiql::parse(&json::string(text_raw?).ok()?).ok()?;
    let table = finder.named(&statement.table.name)?;
    let parameters = parameters.and_then(|list| json::elements(list).ok()).unwrap_or_default();
    let parameters: Vec<Value> = parameters.into_iter().filter_map(|raw| Value::read(raw).ok()).collect();
    let reads = matches!(statement.action, Action::Select { .. } | Action::Exists);
    let index = match &statement.index {
        Some(named) => {
            table.index(&named.name)?;
            table.indexes.iter().position(|index| index.name == named.name)
        }
        None => None,
    };
    let of_index = index.and_then(|index| table.indexes.get(index));
    let parts = of_index.map_or(table.parts, |index| index.parts);
    let attribute = of_index.map_or(Some(&table.partition), |index| index.partition.as_ref());
    let key = attribute.and_then(|attribute| key(&statement, &parameters, attribute));
    let consistency = match in_transaction {
        true => Consistency::Transactional,
        false => Consistency::of(consistent == Some(b"true")),
    };
    let (part, kind, halves) = match reads {
        true => (parts.read, RequestKind::Select, Halves::of(consistency)),
        false if in_transaction => (parts.write, RequestKind::Change, Halves::TRANSACTION),
        false => (parts.write, RequestKind::Change, Halves::PLAIN),
    };
    let size = item.filter(|_| reads).and_then(|item| scan_item(item, []).ok()).map(|item| item.bytes);
    let units = size.map_or_else(
        || finder.thought(part, kind, text(key.as_ref()), halves),
        |size| thousandths(read_units(size, consistency)),
    );
    let member = Member { units, is_sized: size.is_some(), is_refused: is_throttled };
    Some(Stated { at, table, index, key, kind, halves, part, is_throttled, member })
}

/// What is known of the cost of each: those of a table share what the store tells of it.
fn known(finder: &Finder<'_, '_>, stated: &[Stated]) -> Vec<Known> {
    let mut known = vec![Known::Nothing; stated.len()];
    for first in 0..stated.len() {
        let same = |one: &Stated| stated.get(first).is_some_and(|first| first.table.name == one.table.name);
        let places: Vec<usize> =
            stated.iter().enumerate().filter(|(_, one)| same(one)).map(|(at, _)| at).collect();
        if places.first() != Some(&first) {
            continue;
        }
        let of_table: Vec<&Stated> = places.iter().filter_map(|at| stated.get(*at)).collect();
        let reads = of_table.iter().all(|one| one.kind == RequestKind::Select);
        let told = of_table.first().and_then(|one| finder.told.table(&one.table.name));
        let told = told.map(if reads { TableCapacity::total } else { TableCapacity::own });
        let members: Vec<Member> = of_table.iter().map(|one| one.member).collect();
        for (at, share) in places.iter().zip(shares(told, &members)) {
            if let Some(known) = known.get_mut(*at) {
                *known = share;
            }
        }
    }
    known
}

fn add(finder: &mut Finder<'_, '_>, one: Stated, known: Known) {
    let Stated { at, table, index, key, kind, halves, part, is_throttled, member } = one;
    let sized = member.is_sized.then_some(member.units);
    let outcome = finder.outcome(at, is_throttled, &table, index.and_then(|index| table.indexes.get(index)));
    let cost = finder.price(CostOf { part, kind, key: text(key.as_ref()) }, halves, outcome, known, sized);
    let reads = kind == RequestKind::Select;
    let found = Found {
        part,
        key,
        cost,
        outcome,
        adds: None,
        sort: None,
        page: None,
        item: 0,
        operation: if reads { trace::Operation::Get } else { trace::Operation::Update },
        is_page: reads,
        strong: reads && halves != Halves::of(Consistency::Eventual),
        items: (0, 0),
    };
    let told = finder.told.table(&table.name).filter(|_| !reads && outcome == Outcome::Done);
    // Which values of indexes a statement changes is not read: they count for the index alone.
    for index in table.indexes.iter().filter(|index| !index.local) {
        let units = told.map_or(0, |told| told.index(&index.name));
        if units > 0 && at == 0 {
            let cost = Cost { units, deviation: 0 };
            finder.found.push(Found { part: index.parts.write, key: None, cost, ..found.clone() });
        }
    }
    finder.found.push(found);
}

/// The value that a statement gives the attribute.
fn key(statement: &Statement, parameters: &[Value], attribute: &str) -> Option<KeyText<'static>> {
    if let Action::Insert { item } = &statement.action {
        let (_, term) = item.iter().find(|(name, _)| name == attribute)?;
        return of_value(&term.value(parameters)?);
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
        Operand::Term(term) => of_value(&term.value(parameters)?),
        _ => None,
    }
}

fn of_value(value: &Value) -> Option<KeyText<'static>> {
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
