//! Which primary key a statement names, and where its item lies.

use bytes::Bytes;
use heatsink_dynamo::expression::Comparator;
use heatsink_dynamo::key::KeyPart;
use heatsink_dynamo::partiql::{Action, Condition, Operand, Term, TestKind};
use heatsink_dynamo::{AttributeDefinition, Error, Value};
use heatsink_layout::{Placement, Slot, Table};

use super::statement::Written;
use crate::collection::keys::{Key, key_value, physical, stable, with_sort};
use crate::context::{ItemLocation, PlanContext};
use crate::counter::statement::{self, Concerned};
use crate::{fragments, identity};

/// Where the item of a statement lies.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) logical: Key,
    pub(super) physical: Key,
    pub(super) slot: Slot,
    pub(super) sort: Option<Key>,
    /// The raw physical keys of a counter's fragments that the statement deletes.
    pub(super) deleted: Vec<Bytes>,
}

/// What is known of the item of a statement.
#[derive(Debug)]
pub(super) enum Target {
    /// It lies there.
    At(Place),
    /// The statement names a key that no item can have: every store refuses it.
    Invalid,
    /// The statement does not name one primary key, or one that cannot be sharded.
    Nowhere(Error),
    /// It is a counter's, and no fragment can carry it out.
    Counter(Error),
}

/// Where the item of a statement lies. `lists`: a list of one value names it too (`pk IN ['a']`).
pub(super) fn target(written: &Written<'_>, table: &Table, context: &PlanContext<'_>, lists: bool) -> Target {
    let key = |attribute: &AttributeDefinition, part| {
        let terms = terms(written, &attribute.name, lists);
        named(written, attribute, part, &terms)
    };
    let partition = match key(&table.key.partition, KeyPart::Partition) {
        Ok(Some(partition)) => partition,
        Ok(None) => return Target::Invalid,
        Err(error) => return Target::Nowhere(error),
    };
    let sort = match table.key.sort.as_ref().map(|sort| key(sort, KeyPart::Sort)).transpose() {
        Ok(Some(None)) => return Target::Invalid,
        Ok(sort) => sort.flatten(),
        Err(error) => return Target::Nowhere(error),
    };
    let layout = stable(context, table, &partition);
    let location =
        with_sort(sort.as_ref(), |sort| context.locate(table, &layout, &partition.canonical_bytes(), sort));
    let mut deleted = Vec::new();
    if let Ok(ItemLocation { placement: placement @ Placement::SumOf { attributes, .. }, .. }) = &location {
        let others = || {
            let key =
                with_sort(sort.as_ref(), |sort| identity::raw(table, &partition.canonical_bytes(), sort));
            fragments::keys(table, &layout, placement, &key).map(|keys| keys.into_iter().skip(1).collect())
        };
        let Written { statement, values, shows_old, .. } = written;
        let concerned = statement::concerned(statement, values, attributes, *shows_old);
        match concerned.and_then(|all| if all == Concerned::All { others() } else { Ok(Vec::new()) }) {
            Ok(others) => deleted = others,
            Err(error) => return Target::Counter(error),
        }
    }
    let placed = location
        .and_then(|location| Ok((physical(table, &layout, &partition, location.slot)?, location.slot)));
    // What only SELECTs name in lists is read; a bucket needs its entry before the first write.
    if let (Ok((_, Slot { bucket: Some(bucket), .. })), false) = (&placed, lists) {
        context.learn_bucket(table, &partition.canonical_bytes(), *bucket);
    }
    match placed {
        Ok((physical, slot)) => Target::At(Place { logical: partition, physical, slot, sort, deleted }),
        Err(unplaced) => Target::Nowhere(Error::validation(unplaced.to_string())),
    }
}

/// Whether a statement names a partition key whose shards other writers assign.
pub(super) fn names_assigned(written: &Written<'_>, table: &Table, context: &PlanContext<'_>) -> bool {
    let partition = &table.key.partition;
    table.has_externally_assigned()
        && match named(written, partition, KeyPart::Partition, &terms(written, &partition.name, true)) {
            Ok(Some(key)) => stable(context, table, &key).is_externally_assigned(),
            _ => false,
        }
}

/// Whether a statement names a partition key whose items can lie in two places.
pub(super) fn names_moving(written: &Written<'_>, table: &Table, context: &PlanContext<'_>) -> bool {
    let partition = &table.key.partition;
    table.key_layouts().any_moves()
        && match named(written, partition, KeyPart::Partition, &terms(written, &partition.name, true)) {
            Ok(Some(key)) => context.moves(table, &key.canonical_bytes()),
            _ => false,
        }
}

/// The one key that `terms` say; `None` if it is one that the store refuses.
fn named(
    written: &Written<'_>,
    attribute: &AttributeDefinition,
    part: KeyPart,
    terms: &[&Term],
) -> Result<Option<Key>, Error> {
    let inserts = matches!(written.statement.action, Action::Insert { .. });
    let values: Option<Vec<Value>> = terms.iter().map(|term| term.value(&written.values)).collect();
    let values = values.unwrap_or_default();
    let Some((first, rest)) = values.split_first() else {
        // An INSERT without a key is refused by every store.
        return if inserts { Ok(None) } else { Err(no_key()) };
    };
    if inserts && !rest.is_empty() {
        return Err(Error::validation(format!(
            "The attribute {} occurs more than once in the item",
            attribute.name
        )));
    }
    // The checks in the store's order: of each value its type, then whether it is the one before.
    let differs = rest.iter().find_map(|value| match mistyped(value, attribute) {
        Some(error) => Some(Some(error)),
        None => (!value.same(first)).then_some(None),
    });
    if let (None, Some(Some(error))) = (mistyped(first, attribute), &differs) {
        return Err(error.clone());
    }
    if mistyped(first, attribute).is_none() && differs.is_some() {
        return Err(Error::validation(format!(
            "Multiple conditions on same key {}. Only single item Update/Insert/Delete are supported",
            attribute.name
        )));
    }
    Ok(key_value(first, attribute, part))
}

/// DynamoDB's refusal of a value for its type.
fn mistyped(value: &Value, attribute: &AttributeDefinition) -> Option<Error> {
    let (name, kind) = (&attribute.name, value.type_name());
    if kind == attribute.key_type.name() {
        None
    } else if matches!(value, Value::S(_) | Value::N(_) | Value::B(_)) {
        Some(Error::validation(format!(
            "Key attribute's data type should match its data type in table's schema: Key {name}"
        )))
    } else {
        Some(Error::validation(format!(
            "Key value must be of type S, N, or B. Key name: {name}, Key type: {kind}"
        )))
    }
}

fn no_key() -> Error {
    Error::validation("Where clause does not contain a mandatory equality on all key attributes")
}

/// The values that a statement gives a key attribute: in the item of an INSERT, in the equalities
/// that all must hold of another statement.
pub(super) fn terms<'a>(written: &'a Written<'_>, name: &str, lists: bool) -> Vec<&'a Term> {
    if let Action::Insert { item } = &written.statement.action {
        return item.iter().filter(|(found, _)| found == name).map(|(_, term)| term).collect();
    }
    let parts = written.statement.condition.iter().flat_map(Condition::conjuncts);
    parts.filter_map(|part| equality(part, name, lists)).collect()
}

fn equality<'a>(part: &'a Condition, name: &str, lists: bool) -> Option<&'a Term> {
    let Condition::Test(test) = part else { return None };
    match &test.kind {
        TestKind::Compare(Operand::Path(path), Comparator::Eq, Operand::Term(term))
        | TestKind::Compare(Operand::Term(term), Comparator::Eq, Operand::Path(path))
            if path.is(name) =>
        {
            Some(term)
        }
        TestKind::In(Operand::Path(path), list) if lists && path.is(name) => match list.as_slice() {
            [Operand::Term(term)] => Some(term),
            _ => None,
        },
        _ => None,
    }
}
