//! A Query, read: which keys it wants, and what it wants of them.
//!
//! Not here: what that means for shards (`mod`), and the wording of refusals, which is the store's.

use std::sync::Arc;

use heatsink_dynamo::expression::{Bindings, Checks, Fresh, KeyCondition, SortTest};
use heatsink_dynamo::key::KeyPart;
use heatsink_dynamo::{AttributeDefinition, IndexSchema, KeyAttributes, KeyValue, Value, json};
use heatsink_layout::{Layout, Slot, Table};

use crate::capacity::Report;
use crate::collection::keys::{Key, cursor_attributes};
use crate::collection::position::Position;
use crate::collection::range::Condition;
use crate::collection::selection::Expressions;
use crate::collection::template::Queried;
use crate::counter::pages::Fold;
use crate::cursor::{self, Cursor};
use crate::refusal::Unplanned;
use crate::request::Request;

/// A valid Query.
#[derive(Debug)]
pub(crate) struct Query<'a> {
    pub(crate) request: &'a Request<'a>,
    pub(crate) schema: &'a Arc<Table>,
    pub(crate) index: Option<&'a IndexSchema>,
    /// The partition key attribute by which the collection is spread, and its value. Of several it
    /// is the first that is stored with shard suffixes.
    pub(crate) spread: &'a AttributeDefinition,
    pub(crate) partition: Key,
    /// The other partition key attributes of an index, and their values.
    pub(crate) fixed: Vec<(&'a AttributeDefinition, Key)>,
    /// What is tested of the first sort attributes; all but the last are `=`.
    pub(crate) conditions: Vec<Condition>,
    pub(crate) expressions: Expressions<'a>,
    pub(crate) limit: Option<usize>,
    pub(crate) descending: bool,
    pub(crate) consistent: bool,
    /// The raw `ExclusiveStartKey`.
    pub(crate) start: Option<&'a [u8]>,
    pub(crate) report: Report,
    /// Where the item of the cursor lies, as far as that is known and matters.
    pub(crate) home: Option<Slot>,
    /// What completes the counters among its items.
    pub(crate) fold: Option<Arc<Fold>>,
    /// Whether equal sort keys of the table can lie in several shards.
    pub(crate) assigned: bool,
    /// Whether a range of the key may fill the page.
    pub(crate) in_ranges: bool,
    /// The layout of a key that moves: what lies elsewhere than it says is left out.
    pub(crate) homes: Option<Arc<Layout>>,
    /// The raw members that every physical call keeps.
    pub(crate) kept: Vec<(&'static str, &'a [u8])>,
}

impl<'a> Query<'a> {
    /// Reads a Query without legacy parameters. With [`Checks::Meaning`] it may be one that a store
    /// refuses.
    pub(crate) fn read(
        request: &'a Request<'a>,
        schema: &'a Arc<Table>,
        checks: Checks,
    ) -> Result<Self, Unplanned> {
        let string = |name| request.string(name).map_err(|_| Unplanned::Invalid);
        let index = match string("IndexName")? {
            None => None,
            Some(name) => {
                Some(schema.indexes.iter().find(|index| index.name == name).ok_or(Unplanned::Invalid)?)
            }
        };
        let key = index.map_or_else(|| KeyAttributes::from(&schema.key), |index| index.key.attributes());
        let key_text = string("KeyConditionExpression")?.ok_or(Unplanned::Invalid)?;
        let expressions = Expressions::read(request, schema, Some(&key_text), checks)?;
        let (mut values, conditions) = key_condition(&key_text, &expressions.bindings, key, checks)?;
        let at = spread(schema, key.partition);
        let spread = key.partition.get(at).ok_or(Unplanned::Invalid)?;
        let partition = values.remove(at);
        let others = key.partition.iter().filter(|attribute| attribute.name != spread.name);
        let flag = |name| match request.get(name) {
            None => Ok(None),
            Some(b"true") => Ok(Some(true)),
            Some(b"false") => Ok(Some(false)),
            Some(_) => Err(Unplanned::Invalid),
        };
        let consistent = flag("ConsistentRead")?.unwrap_or(false);
        if consistent && index.is_some_and(|index| !index.local) {
            return Err(Unplanned::Invalid);
        }
        // With COUNT only the keys are asked for, so it is not sent on.
        let names = [
            "TableName",
            "IndexName",
            "ConsistentRead",
            "ScanIndexForward",
            if expressions.count { "" } else { "Select" },
        ];
        let kept = names.into_iter().filter_map(|name| Some((name, request.get(name)?))).collect();
        Ok(Query {
            request,
            schema,
            index,
            spread,
            partition,
            fixed: others.zip(values).collect(),
            conditions,
            expressions,
            limit: request.limit()?,
            descending: flag("ScanIndexForward")? == Some(false),
            consistent,
            start: request.get("ExclusiveStartKey"),
            report: Report::read(request)?,
            home: None,
            fold: None,
            assigned: false,
            in_ranges: false,
            homes: None,
            kept,
        })
    }

    /// Asks for consistent reads, whatever the client asked for.
    pub(crate) fn consistently(&mut self) {
        self.consistent = true;
        self.kept.retain(|(name, _)| *name != "ConsistentRead");
        self.kept.push(("ConsistentRead", b"true"));
    }

    /// The attributes by which the table or the index is sorted.
    pub(crate) fn sort(&self) -> &'a [AttributeDefinition] {
        self.index.map_or(self.schema.key.sort.as_slice(), |index| &index.key.sort)
    }

    /// The key that is queried: the table's or the index's.
    pub(crate) fn queried(&self) -> Queried<'_> {
        Queried { partition: self.spread, fixed: &self.fixed, sort: self.sort() }
    }

    /// The attributes of a cursor: the table's key, and the index's.
    pub(crate) fn cursor_attributes(&self) -> Vec<&'a AttributeDefinition> {
        cursor_attributes(self.schema, self.index)
    }

    /// The cursor's values in the order of [`cursor_attributes`](Self::cursor_attributes), each
    /// also raw.
    pub(crate) fn cursor(&self) -> Result<Option<Cursor<'a>>, Unplanned> {
        let Some(start) = self.start else { return Ok(None) };
        let members = json::members(start)?;
        let attributes = self.cursor_attributes();
        if members.len() != attributes.len() {
            return Err(Unplanned::Invalid);
        }
        let cursor = cursor::values(&members, &attributes).ok_or(Unplanned::Invalid)?;
        if !self.fixed.iter().all(|(other, value)| self.value_of(&cursor, &other.name) == Some(value)) {
            return Err(Unplanned::Invalid);
        }
        Ok(Some(cursor))
    }

    /// A cursor's value of one attribute.
    pub(crate) fn value_of<'c>(&self, cursor: &'c Cursor<'_>, name: &str) -> Option<&'c Key> {
        let at = self.cursor_attributes().iter().position(|attribute| attribute.name == name)?;
        cursor.get(at).map(|(value, _)| value)
    }

    /// Where a cursor stands in the order of the collection.
    pub(crate) fn position_of(&self, cursor: &Cursor<'_>) -> Position {
        self.sort().iter().filter_map(|sort| self.value_of(cursor, &sort.name)).cloned().collect()
    }

    /// The sort key behind which a Query of the table finds nothing and takes no cursor
    /// ([`Condition::inclusive_end`]). An index has none: there several items can have the last
    /// sort key.
    pub(crate) fn end(&self) -> Option<&Key> {
        let condition = self.conditions.first().filter(|_| self.index.is_none())?;
        condition.inclusive_end(self.descending)
    }

    /// Whether the cursor is of the partition key that is queried, and stands on the
    /// [`end`](Self::end).
    pub(crate) fn starts_at_end(&self) -> Result<bool, Unplanned> {
        let Some(end) = self.end() else { return Ok(false) };
        let cursor = self.cursor()?;
        Ok(
            matches!(cursor.as_deref(), Some([(partition, _), (sort, _)]) if *partition == self.partition && sort == end),
        )
    }

    /// The sort key of a cursor that does not say in which of several shards its item lies.
    pub(crate) fn passed(&self) -> Option<Key> {
        let cursor = if self.assigned && self.index.is_none() && self.home.is_none() {
            self.cursor().ok()?
        } else {
            None
        };
        cursor?.into_iter().nth(1).map(|(sort, _)| sort)
    }

    /// Placeholders that the request does not use.
    pub(crate) fn fresh(&self) -> Fresh {
        Fresh::avoiding(&self.expressions.bindings)
    }

    /// The name under which item sizes are learned.
    pub(crate) fn learned_as(&self) -> String {
        match self.index {
            None => self.schema.name.clone(),
            Some(index) => format!("{}/{}", self.schema.name, index.name),
        }
    }
}

/// Which of the partition key attributes spreads a collection: the first that is stored with shard
/// suffixes; else the table's partition key, or the first.
fn spread(schema: &Table, partition: &[AttributeDefinition]) -> usize {
    let at = |is: &dyn Fn(&str) -> bool| partition.iter().position(|attribute| is(&attribute.name));
    at(&|name| schema.is_suffixed(name))
        .or_else(|| at(&|name| name == schema.key.partition.name))
        .unwrap_or(0)
}

/// What a key condition asks for: the values of the partition key's attributes, and what is tested
/// of the first sort attributes.
fn key_condition(
    text: &str,
    bindings: &Bindings<'_>,
    key: KeyAttributes<'_>,
    checks: Checks,
) -> Result<(Vec<Key>, Vec<Condition>), Unplanned> {
    let read = KeyCondition::read(text, bindings, key, checks).map_err(Unplanned::Worded)?;
    let owned = |value: &Value, part, name: &str| {
        let value = KeyValue::from_value(value).map(KeyValue::into_owned).ok_or(Unplanned::Invalid)?;
        value.check(part, name).map_err(Unplanned::Worded)?;
        Ok::<Key, Unplanned>(value)
    };
    let partition = read.partition.iter().map(|(name, value)| owned(value, KeyPart::Partition, name));
    let tested = |(name, test): &(String, SortTest)| {
        let sort = |value| owned(value, KeyPart::Sort, name);
        Ok::<Condition, Unplanned>(match test {
            SortTest::Eq(value) => Condition::Eq(sort(value)?),
            SortTest::Lt(value) => Condition::Lt(sort(value)?),
            SortTest::Le(value) => Condition::Le(sort(value)?),
            SortTest::Gt(value) => Condition::Gt(sort(value)?),
            SortTest::Ge(value) => Condition::Ge(sort(value)?),
            SortTest::BeginsWith(value) => Condition::BeginsWith(sort(value)?),
            SortTest::Between(low, high) => {
                let (low, high) = (sort(low)?, sort(high)?);
                if low > high {
                    return Err(Unplanned::Invalid);
                }
                Condition::Between(low, high)
            }
        })
    };
    Ok((partition.collect::<Result<_, _>>()?, read.sort.iter().map(tested).collect::<Result<_, _>>()?))
}
