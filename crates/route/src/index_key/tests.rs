//! That what is said of stored values is true exactly where it was said of logical ones.

use std::sync::Arc;

use heatsink_dynamo::Item;
use heatsink_dynamo::expression::{Bindings, Kind};
use heatsink_dynamo::{AttributeDefinition, KeySchema, TableSchema};
use heatsink_layout::{
    By, Glob, Hash, KeyLayout, Layout, MigrationPhase, OfIndex, SortKey, Strategy as Spreading, TableLayouts,
    ValueLayout, ValueMigration,
};
use proptest::prelude::*;

use super::*;

fn layouts(shards: u16) -> TableLayouts {
    let attribute = |name: &str| AttributeDefinition { name: name.to_owned(), key_type: KeyType::S };
    let index = OfIndex { name: "i".to_owned(), attribute: attribute("t") };
    let strategy = Spreading::calculated(By::PrimaryKey);
    let layout = Layout { strategy, shards, hash: Hash::JumpXxh3, version: 1 };
    // Values of which only some are spread: a bound's shard is not a value's.
    TableLayouts::new(vec![KeyLayout::of_index(index, Glob::new("*a*"), layout)])
}

fn table(shards: u16) -> Table {
    let partition = AttributeDefinition { name: "pk".to_owned(), key_type: KeyType::S };
    let key = KeySchema { partition, sort: None };
    let schema = TableSchema { name: "T".to_owned(), id: "1".to_owned(), key, indexes: Vec::new() };
    Table::new(schema, Arc::new(layouts(shards)))
}

/// On its way from so many shards, or plain values for 0, to so many, or to plain values.
fn on_its_way(from: u16, to: u16, writes_new: bool) -> Table {
    let of = |shards| if shards == 0 { TableLayouts::default() } else { layouts(shards) };
    let attributes = vec!["t".to_owned()];
    table(from.max(to)).migrating(&MigrationPhase { attributes, from: of(from), to: of(to), writes_new })
}

fn on_record(value: &str, shards: u16, to: Option<(u16, bool)>) -> ValueLayout {
    let attribute = AttributeDefinition { name: "t".to_owned(), key_type: KeyType::S };
    let index = OfIndex { name: "i".to_owned(), attribute };
    let migration = to.map(|(to, writes_new)| ValueMigration { to, writes_new, run: 1 });
    // Two that it had, in which items may still be stored.
    ValueLayout {
        index,
        value: value.as_bytes().to_vec(),
        shards,
        migration,
        former: vec![1, 5],
        reserved: 6,
    }
}

fn with_values(values: &[ValueLayout]) -> Table {
    let partition = AttributeDefinition { name: "pk".to_owned(), key_type: KeyType::S };
    let key = KeySchema { partition, sort: None };
    let schema = TableSchema { name: "T".to_owned(), id: "1".to_owned(), key, indexes: Vec::new() };
    Table::new(schema, Arc::default()).with_value_layouts(values)
}

fn item(value: Option<&Value>) -> Item {
    value.map(|value| ("t".to_owned(), value.clone())).into_iter().collect()
}

fn conditions(low: &str, high: &str) -> Vec<Condition> {
    let t = || Operand::Path(Path::root("t"));
    let value = |text: &str| Operand::Value(Value::S(text.to_owned()));
    let comparators =
        [Comparator::Eq, Comparator::Ne, Comparator::Lt, Comparator::Le, Comparator::Gt, Comparator::Ge];
    let mut all: Vec<Condition> = comparators
        .into_iter()
        .flat_map(|by| [Condition::Compare(t(), by, value(low)), Condition::Compare(value(low), by, t())])
        .collect();
    all.push(Condition::Between(t(), value(low), value(high)));
    all.push(Condition::In(t(), vec![value(low), value(high)]));
    all.push(Condition::BeginsWith(t(), value(low)));
    all.push(Condition::Contains(t(), value(low)));
    all.push(Condition::Exists(Path::root("t")));
    let negated: Vec<Condition> = all.iter().map(|one| Condition::Not(Box::new(one.clone()))).collect();
    all.into_iter().chain(negated).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(600))]

    #[test]
    fn conditions_hold_for_stored_values_as_for_logical_ones(
        value in proptest::option::of("[!#~a0-4]{1,6}"), low in "[!#~a0-4]{1,6}", high in "[!#~a0-4]{1,6}",
        item_key in "[a-z]{1,4}", shards in 1_u16..6, from in proptest::option::of((0_u16..6, any::<bool>())), second in 0_usize..4,
        back in any::<bool>(), by_value in any::<bool>(),
    ) {
        let table = match from {
            _ if by_value => {
                let on_record = |value: &str, to: Option<(u16, bool)>| on_record(value, shards, to);
                // Values of which some begin with others.
                with_values(&[on_record("a", from.filter(|(to, _)| *to > 0)), on_record("a#", None), on_record("!", None)])
            }
            None => table(shards),
            Some((from, writes_new)) if back => on_its_way(shards, from, writes_new),
            Some((from, writes_new)) => on_its_way(from, shards, writes_new),
        };
        let spread = Spread { table: &table, primary: PrimaryKey { partition: SortKey::S(&item_key), sort: None } };
        let key = table.index_key("t").unwrap();
        // Nobody writes a value that is a shard of one on record.
        let logical = value.filter(|value| key.refuse_shard(value.as_bytes()).is_ok()).map(Value::S);
        // While the attribute migrates, in one form or the other.
        let stored = logical.as_ref().and_then(|value| {
            let held = spread.held(key, value);
            held.get(second).or(held.first()).cloned()
        });
        for condition in conditions(&low, &high) {
            // What cannot be said is refused.
            let Ok(said) = spread.condition(&condition) else { continue };
            prop_assert_eq!(condition.holds(&item(logical.as_ref())), said.holds(&item(stored.as_ref())), "{:?} {:?}", condition, said);
        }
    }
}

#[test]
fn what_cannot_be_said_is_refused_by_name() {
    let table = table(4);
    let spread = Spread { table: &table, primary: PrimaryKey { partition: SortKey::S("p"), sort: None } };
    let t = || Operand::Path(Path::root("t"));
    let size = Condition::Compare(
        Operand::Size(Box::new(t())),
        Comparator::Gt,
        Operand::Value(Value::N("1".into())),
    );
    let other = Condition::Compare(t(), Comparator::Eq, Operand::Path(Path::root("x")));
    let part = Condition::Contains(t(), Operand::Value(Value::S("x#".into())));
    for condition in [size, other, part] {
        let refused = spread.condition(&condition).unwrap_err().message.unwrap();
        assert!(refused.contains("the stored value of t has a shard suffix"), "{refused}");
    }
    let value = |text: &str| Operand::Value(Value::S(text.into()));
    let length = || Operand::Size(Box::new(t()));
    for condition in [
        Condition::In(length(), vec![value("a")]),
        Condition::Between(length(), value("a"), value("b")),
        Condition::BeginsWith(length(), value("a")),
        Condition::Contains(length(), value("a")),
    ] {
        assert!(spread.condition(&condition).is_err(), "{condition:?}");
    }
    for (target, from) in [("t", "x"), ("x", "t")] {
        let set = vec![(Path::root(target), Assigned::Path(Path::root(from)))];
        assert!(spread.update(&Update { set, ..Update::default() }).is_err());
    }
    // What the attribute is assigned of itself is stored as it should be.
    let same = vec![(Path::root("t"), Assigned::Path(Path::root("t")))];
    assert_eq!(spread.update(&Update { set: same.clone(), ..Update::default() }).unwrap().set, same);
    let kept = Assigned::IfNotExists(Path::root("t"), Box::new(Assigned::Value(Value::S("a".into()))));
    let update = Update { set: vec![(Path::root("t"), kept)], ..Update::default() };
    let stored = spread.update(&update).unwrap();
    let Some((_, Assigned::IfNotExists(_, default))) = stored.set.first() else { panic!("{stored:?}") };
    let key = table.index_key("t").unwrap();
    assert_eq!(**default, Assigned::Value(spread.stored(key, &Value::S("a".into()))));
}

/// A value with several stored forms is none of them, and orders are of logical values.
#[test]
fn expected_without_a_form_of_its_own_becomes_an_expression() {
    let table = with_values(&[on_record("open", 4, None)]);
    let key = table.index_key("t").unwrap();
    let of = |item| Spread { table: &table, primary: PrimaryKey { partition: SortKey::S(item), sort: None } };
    let held = |spread: &Spread<'_>| spread.held(key, &Value::S("open".into()));
    let spread = ["a", "b", "c", "d", "e"].map(of).into_iter().find(|spread| held(spread).len() > 1).unwrap();
    let forms = held(&spread);
    for (operator, of_open, of_other) in [("NE", false, true), ("GT", false, true), ("LE", true, false)] {
        let expected =
            format!(r#"{{"t":{{"ComparisonOperator":"{operator}","AttributeValueList":[{{"S":"open"}}]}}}}"#);
        let stored = legacy::expected(expected.as_bytes(), &spread).unwrap();
        assert!(matches!(stored, legacy::Stored::NoForm), "{operator}");
        let update = r#"{"n":{"Action":"ADD","Value":{"N":"1"}}}"#;
        let body = format!(r#"{{"Expected":{expected},"AttributeUpdates":{update}}}"#).into();
        let request = crate::request::Request::read(&body).unwrap();
        let changes = crate::legacy::expressed::expressions(&request, expected.as_bytes(), &spread);
        let body = crate::request::set_members(&body, &changes.unwrap().unwrap()).unwrap();
        let member = |name: &str| heatsink_dynamo::json::member(&body, name).unwrap();
        assert!(member("Expected").is_none() && member("AttributeUpdates").is_none());
        let names = member("ExpressionAttributeNames");
        let bindings = Bindings::read(names, member("ExpressionAttributeValues")).unwrap();
        let text = |name: &str| heatsink_dynamo::json::string(member(name).unwrap()).unwrap();
        let condition = Condition::parse(Kind::Condition, &text("ConditionExpression"), &bindings).unwrap();
        for form in &forms {
            assert_eq!(condition.holds(&item(Some(form))), of_open, "{operator} {form:?}");
        }
        assert_eq!(condition.holds(&item(Some(&Value::S("pending".into())))), of_other, "{operator}");
        assert_eq!(Update::parse(&text("UpdateExpression"), &bindings).unwrap().add.len(), 1);
    }
}
