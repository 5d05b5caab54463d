//! Query and Scan.

use heatsink_dynamo::expression::{Condition, KeyCondition, Kind, SortTest};
use heatsink_dynamo::{Error, Item, KeySchema, KeyValue, Value};
use serde_json::{Value as Json, json};

use super::{Store, Words, item, key, shown};

/// What a query, or a scan, sorts by: the sort key, and what tells items of one sort key apart.
type Order = (Option<KeyValue<'static>>, Vec<u8>);

fn passes(test: &SortTest, found: &KeyValue<'_>) -> bool {
    let of = |value: &Value| KeyValue::from_value(value).unwrap().into_owned();
    match test {
        SortTest::Eq(value) => *found == of(value),
        SortTest::Lt(value) => *found < of(value),
        SortTest::Le(value) => *found <= of(value),
        SortTest::Gt(value) => *found > of(value),
        SortTest::Ge(value) => *found >= of(value),
        SortTest::Between(low, high) => *found >= of(low) && *found <= of(high),
        SortTest::BeginsWith(Value::S(prefix)) => {
            matches!(found, KeyValue::S(text) if text.starts_with(prefix))
        }
        SortTest::BeginsWith(_) => false,
    }
}

impl Store {
    pub(super) fn query(&mut self, body: &Json) -> Result<Json, Error> {
        let index = body["IndexName"].as_str();
        let schema = match index {
            None => self.schema.key.clone(),
            Some(name) => {
                let found = self.schema.indexes.iter().find(|index| index.name == name);
                found.ok_or_else(|| Error::validation("no such index"))?.key.single().unwrap()
            }
        };
        let words = Words::of(body);
        let text = body["KeyConditionExpression"].as_str().unwrap();
        let condition = KeyCondition::parse(text, &words.bindings()?, &schema)?;
        let descending = body["ScanIndexForward"] == false;
        let [(partition, value)] = &condition.partition[..] else { panic!("{condition:?}") };
        let matches = |item: &Item| {
            item.get(partition) == Some(value)
                && schema.sort.as_ref().is_none_or(|sort| key(item, &sort.name).is_some())
                && condition
                    .sort
                    .iter()
                    .all(|(name, test)| key(item, name).is_some_and(|found| passes(test, &found)))
        };
        let is_end = |item: &Item| {
            let [(name, test)] = &condition.sort[..] else { return false };
            let end = test.inclusive_end(descending).filter(|_| index.is_none());
            end.is_some_and(|end| key(item, name) == KeyValue::from_value(end))
        };
        if let Some(start) = body.get("ExclusiveStartKey") {
            let start = item(start);
            if !matches(&start) {
                return Err(Error::validation(
                    "The provided starting key is outside query boundaries based on provided conditions",
                ));
            }
            if is_end(&start) {
                return Err(Error::validation(
                    "The provided starting key does not match the range key predicate",
                ));
            }
        }
        let rows: Vec<Item> = self.items.values().filter(|item| matches(item)).cloned().collect();
        self.gather(body, &schema, rows, descending, &is_end)
    }

    pub(super) fn scan(&mut self, body: &Json) -> Result<Json, Error> {
        let schema = match body["IndexName"].as_str() {
            None => KeySchema { sort: None, ..self.schema.key.clone() },
            Some(name) => {
                let found = self.schema.indexes.iter().find(|index| index.name == name);
                found.ok_or_else(|| Error::validation("no such index"))?.key.single().unwrap()
            }
        };
        let segment = body["Segment"].as_u64().zip(body["TotalSegments"].as_u64());
        let names: Vec<&String> =
            std::iter::once(&schema.partition).chain(&schema.sort).map(|key| &key.name).collect();
        let here = |item: &&Item| {
            let is_in = |(segment, total)| scattered(&self.key(item).unwrap())[0] as u64 % total == segment;
            names.iter().all(|name| item.contains_key(*name)) && segment.is_none_or(is_in)
        };
        let rows: Vec<Item> = self.items.values().filter(here).cloned().collect();
        self.gather(body, &KeySchema { sort: None, ..schema }, rows, false, &|_| false)
    }

    /// A page of these rows.
    fn gather(
        &mut self,
        body: &Json,
        schema: &KeySchema,
        mut rows: Vec<Item>,
        descending: bool,
        is_end: &dyn Fn(&Item) -> bool,
    ) -> Result<Json, Error> {
        let order = |row: &Item| -> Order {
            let sort = schema.sort.as_ref().and_then(|sort| key(row, &sort.name)).map(KeyValue::into_owned);
            (sort, scattered(&self.key(row).unwrap()))
        };
        rows.sort_by_key(order);
        if descending {
            rows.reverse();
        }
        if let Some(start) = body.get("ExclusiveStartKey") {
            let start = order(&item(start));
            rows.retain(|row| if descending { order(row) < start } else { order(row) > start });
        }
        let words = Words::of(body);
        let bindings = words.bindings()?;
        let filter = body["FilterExpression"].as_str();
        let filter = filter.map(|text| Condition::parse(Kind::Filter, text, &bindings)).transpose()?;
        let limit = body["Limit"].as_u64().map_or(usize::MAX, |limit| limit as usize);
        assert!(limit > 0, "{body}");
        let read = rows.len().min(limit).min(self.page);
        let more = read < rows.len() || read == limit;
        rows.truncate(read);
        let mut names: Vec<&String> =
            std::iter::once(&schema.partition).chain(&schema.sort).map(|key| &key.name).collect();
        if let Some(index) = body["IndexName"].as_str() {
            let index = self.schema.indexes.iter().find(|one| one.name == index).unwrap();
            names.extend(index.key.sort.iter().map(|sort| &sort.name));
        }
        names.extend(
            std::iter::once(&self.schema.key.partition).chain(&self.schema.key.sort).map(|key| &key.name),
        );
        let last = rows.last().filter(|last| more && !is_end(last));
        let last = last
            .map(|last| names.iter().map(|name| ((*name).clone(), last[*name].clone())).collect::<Item>());
        let units = 1.0 + rows.len() as f64 / 10.0;
        let scanned = rows.len();
        rows.retain(|row| filter.as_ref().is_none_or(|filter| filter.holds(row)));
        let mut answer = json!({ "Count": rows.len(), "ScannedCount": scanned });
        if body["Select"] != "COUNT" {
            answer["Items"] =
                rows.iter().map(|row| self.projected(body, row)).collect::<Result<Vec<_>, _>>()?.into();
        }
        if let Some(last) = last {
            answer["LastEvaluatedKey"] = shown(&last);
        }
        Ok(self.costing(body, answer, units, false))
    }
}

/// The bytes of a key in an order that says nothing of the key.
fn scattered(key: &[u8]) -> Vec<u8> {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    for byte in key {
        hash = (hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
    }
    let mut scattered = (hash ^ hash >> 32).to_le_bytes().to_vec();
    scattered.extend_from_slice(key);
    scattered
}
