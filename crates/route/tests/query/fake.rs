//! A table in memory that answers Query as DynamoDB does, with pages as short as it is told.
//!
//! On the table, where sort keys are unique, DynamoDB gives no cursor on the inclusive end of `<=`,
//! `>=` and `BETWEEN`, and refuses one: nothing can follow it. On an index it does both. (`=` and
//! `begins_with` have no such end.) Tried on DynamoDB Local 1.11.478.

use std::cell::Cell;
use std::collections::BTreeMap;

use bytes::Bytes;
use heatsink_dynamo::expression::{Bindings, Condition, KeyCondition, Kind, Projection, SortTest};
use heatsink_dynamo::value::{read_item, write_item};
use heatsink_dynamo::{
    AttributeDefinition, Error, IndexSchema, Item, KeySchema, KeyType, KeyValue, TableSchema, Value, json,
};

/// What is said of a cursor on the inclusive end.
pub const AT_END: &str = "The provided starting key does not match the range key predicate";

pub fn attribute(name: &str, key_type: KeyType) -> AttributeDefinition {
    AttributeDefinition { name: name.into(), key_type }
}

fn index(name: &str, partition: &str, sort: Option<AttributeDefinition>, local: bool) -> IndexSchema {
    let key = KeySchema { partition: attribute(partition, KeyType::S), sort };
    IndexSchema { name: name.into(), key: key.into(), local, projects_all: true, included: Vec::new() }
}

/// pk, sk; a local index and a global one by score, a global one without sort key, one on another
/// attribute, an inverted one, one on both.
pub fn schema() -> TableSchema {
    let score = || Some(attribute("score", KeyType::N));
    let mut both = index("both", "team", score(), false);
    both.key.partition.push(attribute("pk", KeyType::S));
    TableSchema {
        name: "Games".into(),
        id: "1".into(),
        key: KeySchema { partition: attribute("pk", KeyType::S), sort: Some(attribute("sk", KeyType::S)) },
        indexes: vec![
            index("local", "pk", score(), true),
            index("names", "pk", Some(attribute("name", KeyType::S)), false),
            index("global", "pk", score(), false),
            index("bare", "pk", None, false),
            index("team", "team", score(), false),
            index("inverted", "team", Some(attribute("pk", KeyType::S)), false),
            both,
        ],
    }
}

#[derive(Debug, Default)]
pub struct Fake {
    pub items: Vec<Item>,
    /// The most rows of a page, one after another, over and over; empty for pages bounded by 1 MB
    /// alone.
    pub pages: Vec<usize>,
    pub calls: Cell<usize>,
    pub units: Cell<f64>,
    /// Whether to leave out what a filter does not let through; a sharded table's filters must let
    /// all through.
    pub filters: bool,
}

fn key<'a>(item: &'a Item, name: &str) -> Option<KeyValue<'a>> {
    item.get(name).and_then(KeyValue::from_value)
}

fn passes(test: &SortTest, item: &Item, name: &str) -> bool {
    let Some(found) = key(item, name) else { return false };
    let of = |value: &Value| KeyValue::from_value(value).unwrap().into_owned();
    match test {
        SortTest::Eq(value) => found == of(value),
        SortTest::Lt(value) => found < of(value),
        SortTest::Le(value) => found <= of(value),
        SortTest::Gt(value) => found > of(value),
        SortTest::Ge(value) => found >= of(value),
        SortTest::Between(low, high) => {
            assert!(of(low) <= of(high), "a store refuses such a BETWEEN");
            found >= of(low) && found <= of(high)
        }
        SortTest::BeginsWith(Value::S(prefix)) => {
            matches!(found, KeyValue::S(text) if text.starts_with(prefix))
        }
        SortTest::BeginsWith(_) => false,
    }
}

/// Whether a key stands on the inclusive end of a condition, in the direction of reading.
pub fn is_at_end(item: &Item, condition: &KeyCondition, descending: bool) -> bool {
    let [(name, test)] = &condition.sort[..] else { return false };
    test.inclusive_end(descending).is_some_and(|end| key(item, name) == KeyValue::from_value(end))
}

fn weight(item: &Item) -> usize {
    item.iter().map(|(name, value)| name.len() + value.to_json().len() - 8).sum()
}

impl Fake {
    /// Rows of one index key, or a table's, in order. Ties lie in no order that anyone could guess.
    fn collection(&self, schema: &KeySchema, condition: &KeyCondition, descending: bool) -> Vec<&Item> {
        let [(name, value)] = &condition.partition[..] else { panic!("{condition:?}") };
        let matching = |item: &&Item| {
            item.get(name) == Some(value)
                && schema.sort.as_ref().is_none_or(|sort| item.contains_key(&sort.name))
                && condition.sort.iter().all(|(name, test)| passes(test, item, name))
        };
        let mut rows: Vec<&Item> = self.items.iter().filter(matching).collect();
        let scrambled = |item: &Item| match &item["sk"] {
            Value::S(text) => text.bytes().rev().map(|byte| byte ^ 0x55).collect::<Vec<u8>>(),
            other => panic!("{other:?}"),
        };
        rows.sort_by_key(|item| {
            (schema.sort.as_ref().and_then(|sort| key(item, &sort.name)), scrambled(item))
        });
        if descending {
            rows.reverse();
        }
        rows
    }

    pub fn query(&self, body: &Bytes) -> Result<Bytes, Error> {
        let table = schema();
        let members: BTreeMap<String, Vec<u8>> = json::members(body)
            .unwrap()
            .into_iter()
            .map(|(name, value)| (name.into_owned(), value.to_vec()))
            .collect();
        let get = |name: &str| members.get(name).map(Vec::as_slice);
        let text = |name: &str| get(name).map(|raw| json::string(raw).unwrap().into_owned());
        let index = text("IndexName").map(|name| {
            table
                .indexes
                .iter()
                .find(|index| index.name == name)
                .ok_or_else(|| Error::validation("no such index"))
        });
        let index = index.transpose()?;
        let schema = &index.map_or(Some(table.key.clone()), |index| index.key.single()).unwrap();
        let bindings = Bindings::read(get("ExpressionAttributeNames"), get("ExpressionAttributeValues"))?;
        let condition_text =
            text("KeyConditionExpression").ok_or_else(|| Error::validation("no key condition"))?;
        let condition = KeyCondition::parse(&condition_text, &bindings, schema)?;
        let descending = get("ScanIndexForward") == Some(b"false");
        let rows = self.collection(schema, &condition, descending);
        let cursor: Vec<&str> = {
            let mut names = vec!["pk", "sk"];
            for attribute in std::iter::once(&schema.partition).chain(&schema.sort) {
                if !names.contains(&attribute.name.as_str()) {
                    names.push(&attribute.name);
                }
            }
            names
        };
        let from = match get("ExclusiveStartKey") {
            None => 0,
            Some(raw) => {
                self.resume(&rows, &read_item(raw)?, index.is_some(), &cursor, &condition, descending)?
            }
        };
        let filter_text = text("FilterExpression");
        let filter =
            filter_text.as_ref().map(|text| Condition::parse(Kind::Filter, text, &bindings)).transpose()?;
        if let Some(filter) = &filter {
            let keys = std::iter::once(&schema.partition).chain(&schema.sort);
            if let Some(key) = keys.into_iter().find(|key| filter.mentions(&key.name)) {
                return Err(Error::validation(format!("Primary key attribute: {}", key.name)));
            }
        }
        let projection_text = text("ProjectionExpression");
        let projection =
            projection_text.as_ref().map(|text| Projection::parse(text, &bindings)).transpose()?;
        let used = [Some(&condition_text), filter_text.as_ref(), projection_text.as_ref()];
        bindings.check_unused(&used.into_iter().flatten().map(String::as_str).collect::<Vec<_>>())?;
        let calls = self.calls.replace(self.calls.get() + 1);
        let limit: usize =
            get("Limit").map_or(usize::MAX, |raw| std::str::from_utf8(raw).unwrap().parse().unwrap());
        assert!(limit > 0);
        let short = self.pages.get(calls % self.pages.len().max(1)).copied().unwrap_or(usize::MAX);
        let (mut bytes, mut evaluated, mut items, mut ended) = (0, 0, Vec::new(), true);
        for item in &rows[from..] {
            if evaluated == limit || evaluated == short || bytes >= 1 << 20 {
                ended = false;
                break;
            }
            bytes += weight(item);
            evaluated += 1;
            if filter.as_ref().is_none_or(|filter| filter.holds(item)) {
                items.push((*item).clone());
            } else {
                assert!(self.filters, "a shard must not hold rows back: {filter_text:?}");
            }
        }
        let last = if ended && evaluated < limit {
            None
        } else {
            evaluated.checked_sub(1).map(|at| rows[from + at])
        };
        let last = last.filter(|last| index.is_some() || !is_at_end(last, &condition, descending));
        let units = bytes.div_ceil(4096).max(1) as f64
            * if get("ConsistentRead") == Some(b"true") { 1.0 } else { 0.5 };
        self.units.set(self.units.get() + units);
        let mut answer = json::Object::new();
        if text("Select").as_deref() != Some("COUNT") {
            let list = answer.name("Items");
            list.push(b'[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    list.push(b',');
                }
                write_item(
                    &projection.as_ref().map_or_else(|| item.clone(), |projection| projection.apply(item)),
                    list,
                );
            }
            list.push(b']');
        }
        answer
            .raw("Count", items.len().to_string().as_bytes())
            .raw("ScannedCount", evaluated.to_string().as_bytes());
        if let Some(last) = last {
            let key: Item = cursor.iter().map(|name| ((*name).to_owned(), last[*name].clone())).collect();
            write_item(&key, answer.name("LastEvaluatedKey"));
        }
        if get("ReturnConsumedCapacity").is_some_and(|raw| raw != b"\"NONE\"") {
            answer.raw("ConsumedCapacity", format!(r#"{{"TableName":"Games","CapacityUnits":{units:?},"Table":{{"CapacityUnits":{units:?}}}}}"#).as_bytes());
        }
        Ok(Bytes::from(answer.finish()))
    }

    /// The table goes on after any sort key. An index goes on after an item that it holds, and
    /// knows no other cursor.
    fn resume(
        &self,
        rows: &[&Item],
        start: &Item,
        index: bool,
        cursor: &[&str],
        condition: &KeyCondition,
        descending: bool,
    ) -> Result<usize, Error> {
        let outside = || {
            Error::validation(
                "The provided starting key is outside query boundaries based on provided conditions",
            )
        };
        if start.len() != cursor.len() || cursor.iter().any(|name| !start.contains_key(*name)) {
            return Err(Error::validation("The provided starting key is invalid"));
        }
        let [(name, value)] = &condition.partition[..] else { panic!("{condition:?}") };
        let within = condition.sort.iter().all(|(name, test)| passes(test, start, name));
        if start.get(name) != Some(value) || !within {
            return Err(outside());
        }
        if index {
            let at = rows.iter().position(|row| cursor.iter().all(|name| row[*name] == start[*name]));
            return Ok(at.expect("an index resumes only after an item that it holds") + 1);
        }
        if is_at_end(start, condition, descending) {
            return Err(Error::validation(AT_END));
        }
        let sort = key(start, "sk").unwrap();
        let passed = |row: &&Item| {
            key(row, "sk").is_some_and(|found| if descending { found >= sort } else { found <= sort })
        };
        Ok(rows.partition_point(passed))
    }
}
