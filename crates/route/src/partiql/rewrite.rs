//! A statement about one item, its partition key made physical wherever the store would read it.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use heatsink_dynamo::expression::Comparator;
use heatsink_dynamo::partiql::{Action, Condition, Operand, Put, Span, Term, TermKind, Test, TestKind};
use heatsink_dynamo::{Error, Item, KeyValue, Value, json};
use heatsink_layout::{IndexKey, PrimaryKey, Table};

use super::keys::{Place, terms};
use super::statement::Written;
use crate::collection::keys::with_sort;
use crate::index_key::{self, Spread};
use crate::splice::Splice;

/// The body with its one statement made physical.
///
/// # Errors
/// `ValidationException` where the statement reads the partition key in a way that cannot be
/// rewritten.
pub(super) fn body(
    body: &Bytes,
    written: &Written<'_>,
    table: &Table,
    place: &Place,
) -> Result<Bytes, Error> {
    let mut splice = Splice::new(body);
    into(&mut splice, written, table, place)?;
    Ok(splice.finish(body))
}

/// Puts the changes that make a statement physical into `splice`.
///
/// # Errors
/// As [`body`].
pub(super) fn into(
    splice: &mut Splice<'_>,
    written: &Written<'_>,
    table: &Table,
    place: &Place,
) -> Result<(), Error> {
    let mut changes =
        Changes { text: BTreeMap::new(), parameters: BTreeMap::new(), dropped: BTreeSet::new() };
    index_keys(&mut changes, written, table, place)?;
    // A key in its shard 0 is its own physical key: all that reads it reads the logical one.
    if place.logical == place.physical {
        changes.apply(splice, written);
        return Ok(());
    }
    let partition = &table.key.partition.name;
    let keys = terms(written, partition, true);
    keys.iter().try_for_each(|term| changes.put(term, &place.physical))?;
    if let Action::Update { read, .. } = &written.statement.action
        && read.iter().any(|path| path.root == *partition)
    {
        return Err(cannot(&format!("SET with a value that is made of {partition}"), partition));
    }
    for test in further_tests(written, partition) {
        changes.decide(test, partition, &place.logical, &written.values)?;
    }
    changes.apply(splice, written);
    Ok(())
}

/// The tests of a statement that read the partition key, apart from the one that names it.
pub(super) fn further_tests<'a>(written: &'a Written<'_>, partition: &str) -> Vec<&'a Test> {
    let keys = terms(written, partition, true);
    let names = |test: &Test| {
        keys.iter().any(|term| test.span.start <= term.span.start && term.span.end <= test.span.end)
    };
    let tests = written.statement.condition.iter().flat_map(Condition::tests);
    tests.filter(|test| !names(test) && test.paths().iter().any(|path| path.root == *partition)).collect()
}

/// What a statement says of the spread keys of indexes, said of stored values.
fn index_keys(
    changes: &mut Changes,
    written: &Written<'_>,
    table: &Table,
    place: &Place,
) -> Result<(), Error> {
    if table.index_keys().is_empty() {
        return Ok(());
    }
    with_sort(Some(&place.logical), |partition| {
        with_sort(place.sort.as_ref(), |sort| {
            let Some(partition) = partition else { return Ok(()) };
            let spread = Spread { table, primary: PrimaryKey { partition, sort } };
            table.index_keys().iter().try_for_each(|key| of_index_key(changes, written, &spread, key))
        })
    })
}

/// What a statement says of one of them.
fn of_index_key(
    changes: &mut Changes,
    written: &Written<'_>,
    spread: &Spread<'_>,
    key: &IndexKey,
) -> Result<(), Error> {
    let name = &key.attribute().name;
    match &written.statement.action {
        Action::Insert { item } => {
            for (_, term) in item.iter().filter(|(found, _)| found == name) {
                changes.store(term, key, spread, written)?;
            }
        }
        Action::Update { written: paths, read } => {
            if read.iter().any(|path| path.root == *name) {
                return Err(index_key::cannot(&format!("a PartiQL UPDATE that copies {name}"), name));
            }
            for (_, put) in paths.iter().filter(|(path, _)| path.is_root(name)) {
                match put {
                    Put::Value(term) => changes.store(term, key, spread, written)?,
                    Put::Nothing => {}
                    Put::Made => {
                        let what = format!("SET {name} to what other attributes make, in PartiQL,");
                        return Err(index_key::cannot(&what, name));
                    }
                }
            }
        }
        Action::Select { .. } | Action::Exists | Action::Delete => {}
    }
    for test in written.statement.condition.iter().flat_map(Condition::tests) {
        if test.paths().iter().any(|path| path.is_root(name)) {
            changes.test(test, key, spread, written)?;
        }
    }
    Ok(())
}

struct Changes {
    /// New texts for parts of the statement, by where they start.
    text: BTreeMap<usize, (Span, String)>,
    parameters: BTreeMap<usize, Vec<u8>>,
    dropped: BTreeSet<usize>,
}

impl Changes {
    /// Puts the stored form of a value that is given to a spread attribute, or compared with it.
    fn store(
        &mut self,
        term: &Term,
        key: &IndexKey,
        spread: &Spread<'_>,
        written: &Written<'_>,
    ) -> Result<(), Error> {
        let Some(value) = term.value(&written.values) else { return Ok(()) };
        let stored = spread.checked(key, &value)?;
        match KeyValue::from_value(&stored) {
            Some(stored_key) if stored != value => self.put(term, &stored_key),
            _ => Ok(()),
        }
    }

    /// Says a test of a spread attribute of stored values.
    fn test(
        &mut self,
        test: &Test,
        key: &IndexKey,
        spread: &Spread<'_>,
        written: &Written<'_>,
    ) -> Result<(), Error> {
        let (compared, is_not) = match &test.kind {
            TestKind::Compare(Operand::Path(_), comparator, Operand::Term(term))
            | TestKind::Compare(Operand::Term(term), comparator, Operand::Path(_))
                if matches!(comparator, Comparator::Eq | Comparator::Ne) =>
            {
                (vec![term], *comparator == Comparator::Ne)
            }
            TestKind::In(Operand::Path(_), list) => {
                let terms = list.iter().map(|one| match one {
                    Operand::Term(term) => Ok(term),
                    _ => Err(unsaid(key)),
                });
                (terms.collect::<Result<_, _>>()?, false)
            }
            TestKind::Exists(_) | TestKind::Missing(_) | TestKind::Is(..) | TestKind::AttributeType(..) => {
                return Ok(());
            }
            _ => return Err(unsaid(key)),
        };
        if key.is_mixed() {
            return self.either(test, &compared, is_not, key, spread, written);
        }
        compared.into_iter().try_for_each(|term| self.store(term, key, spread, written))
    }

    /// Says a test of a spread attribute that migrates: a value may have two stored forms.
    fn either(
        &mut self,
        test: &Test,
        terms: &[&Term],
        is_not: bool,
        key: &IndexKey,
        spread: &Spread<'_>,
        written: &Written<'_>,
    ) -> Result<(), Error> {
        let mut forms = Vec::new();
        for term in terms {
            let Some(value) = term.value(&written.values) else { return Ok(()) };
            spread.refuse_shard(key, &value)?;
            for held in spread.held(key, &value) {
                // Other types than the key's equal no stored value, and binaries have no literal.
                let Value::S(text) = held else { return Err(unsaid(key)) };
                forms.push(quoted(&text));
            }
        }
        let name = format!("\"{}\"", key.attribute().name.replace('"', "\"\""));
        let each =
            |comparator: &str| forms.iter().map(|form| format!("{name} {comparator} {form}")).collect();
        let (each, joint): (Vec<String>, _) =
            if is_not { (each("<>"), " AND ") } else { (each("="), " OR ") };
        self.text.insert(test.span.start, (test.span.clone(), format!("({})", each.join(joint))));
        self.dropped.extend(test.parameters());
        Ok(())
    }

    fn put(&mut self, term: &Term, key: &KeyValue<'_>) -> Result<(), Error> {
        match (&term.kind, key) {
            (TermKind::Parameter(number), key) => {
                let mut raw = Vec::new();
                key.write(&mut raw);
                self.parameters.insert(*number, raw);
            }
            (TermKind::Value(_), KeyValue::S(text)) => {
                self.text.insert(term.span.start, (term.span.clone(), quoted(text)));
            }
            (TermKind::Value(_), KeyValue::N(number)) => {
                self.text.insert(term.span.start, (term.span.clone(), number.to_string()));
            }
            _ => return Err(Error::internal("A key stands in a statement in a form that no key has")),
        }
        Ok(())
    }

    /// A test of the partition key alone has one outcome, since the key is known: it is written in
    /// its place.
    fn decide(
        &mut self,
        test: &Test,
        partition: &str,
        logical: &KeyValue<'_>,
        values: &[Value],
    ) -> Result<(), Error> {
        // The store cannot refuse an operand of these for its type.
        let simple = match &test.kind {
            TestKind::Compare(_, comparator, _) => matches!(comparator.symbol(), "=" | "<>"),
            TestKind::In(..) | TestKind::Exists(_) | TestKind::Missing(_) | TestKind::Is(..) => true,
            _ => false,
        };
        let alone = test.paths().iter().all(|path| path.root == partition);
        let item = Item::from([(partition.to_owned(), logical.to_value())]);
        let Some(outcome) = (simple && alone).then(|| test.holds(values, &item)).flatten() else {
            return Err(cannot(
                &format!("a condition that reads {partition} beside the key's equality"),
                partition,
            ));
        };
        let text = if outcome { "1 = 1" } else { "1 = 0" };
        self.text.insert(test.span.start, (test.span.clone(), text.to_owned()));
        self.dropped.extend(test.parameters());
        Ok(())
    }

    fn apply(self, splice: &mut Splice<'_>, written: &Written<'_>) {
        let mut text = written.text.clone().into_owned();
        for (span, with) in self.text.into_values().rev() {
            text.replace_range(span, &with);
        }
        if text != *written.text {
            let mut raw = Vec::new();
            json::write_string(&mut raw, &text);
            splice.replace(written.raw_text, raw);
        }
        let Some(list) = written.raw_parameters else { return };
        if self.dropped.is_empty() {
            for (number, raw) in self.parameters {
                if let Some(old) = written.parameters.get(number) {
                    splice.replace(old, raw);
                }
            }
            return;
        }
        let kept = written.parameters.iter().enumerate().filter(|(number, _)| !self.dropped.contains(number));
        let kept: Vec<&[u8]> =
            kept.map(|(number, old)| self.parameters.get(&number).map_or(*old, Vec::as_slice)).collect();
        // DynamoDB refuses a list of none.
        let list_of =
            if kept.is_empty() { b"null".to_vec() } else { [b"[", &*kept.join(&b","[..]), b"]"].concat() };
        splice.replace(list, list_of);
    }
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

fn unsaid(key: &IndexKey) -> Error {
    let name = &key.attribute().name;
    index_key::cannot(&format!("a PartiQL condition on {name} other than =, <> and IN"), name)
}

fn cannot(what: &str, partition: &str) -> Error {
    Error::gateway_rejection(format!(
        "{what} is not supported on a sharded table: the stored value of {partition} has a shard suffix. Nothing was written"
    ))
}
