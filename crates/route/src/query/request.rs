//! A Query, read: which keys it wants, and what it wants of them.
//!
//! Not here: what that means for shards (`mod`), and the wording of refusals, which is the store's.

use std::borrow::Cow;
use std::sync::Arc;

use heatsink_dynamo::expression::{
    Bindings, Checks, Condition as Filter, Fresh, KeyCondition, Kind, Projection, SortTest,
};
use heatsink_dynamo::key::KeyPart;
use heatsink_dynamo::{AttributeDefinition, IndexSchema, KeySchema, KeyValue, Value, json};
use heatsink_layout::{Slot, Table};

use super::Key;
use super::range::Condition;
use crate::projection;
use crate::refusal::Unplanned;
use crate::request::Request;

/// The values of a cursor, each also raw.
pub(crate) type Cursor<'a> = Vec<(Key, &'a [u8])>;

/// How much of the consumed capacity the client wants to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    None,
    Total,
    Indexes,
}

/// A valid Query.
#[derive(Debug)]
pub(crate) struct Query<'a> {
    pub(crate) request: &'a Request<'a>,
    pub(crate) schema: &'a Arc<Table>,
    pub(crate) index: Option<&'a IndexSchema>,
    pub(crate) partition: Key,
    pub(crate) condition: Option<Condition>,
    /// The text of the filter, and what it means.
    pub(crate) filter: Option<(Cow<'a, str>, Filter)>,
    pub(crate) projection: Option<(Cow<'a, str>, Projection)>,
    pub(crate) bindings: Bindings<'a>,
    pub(crate) limit: Option<usize>,
    pub(crate) descending: bool,
    pub(crate) consistent: bool,
    /// `Select` is `COUNT`.
    pub(crate) count: bool,
    /// The raw `ExclusiveStartKey`.
    pub(crate) start: Option<&'a [u8]>,
    pub(crate) report: Report,
    /// Where the item of the cursor lies, as far as that is known and matters.
    pub(crate) home: Option<Slot>,
    /// Whether equal sort keys of the table can lie in several shards.
    pub(crate) drawn: bool,
    /// The raw members that every physical call keeps.
    pub(crate) kept: Vec<(&'static str, &'a [u8])>,
}

impl<'a> Query<'a> {
    /// Reads a Query without legacy parameters. With [`Checks::Meaning`] it may be one that a store refuses.
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
        let key = index.map_or(&schema.key, |index| &index.key);
        let bound = [request.get("ExpressionAttributeNames"), request.get("ExpressionAttributeValues")];
        if bound
            .into_iter()
            .flatten()
            .any(|bound| json::members(bound).is_ok_and(|members| members.is_empty()))
        {
            return Err(Unplanned::Invalid);
        }
        let bindings = Bindings::read(bound[0], bound[1]).map_err(|_| Unplanned::Invalid)?;
        let key_text = string("KeyConditionExpression")?.ok_or(Unplanned::Invalid)?;
        let (partition, condition) = key_condition(&key_text, &bindings, key, checks)?;
        let filter = match string("FilterExpression")? {
            None => None,
            Some(text) => {
                let filter =
                    Filter::read(Kind::Filter, &text, &bindings, checks).map_err(|_| Unplanned::Invalid)?;
                Some((text, filter))
            }
        };
        let projection = match string("ProjectionExpression")? {
            None => None,
            Some(text) => {
                let projection =
                    projection::read(&text, &bindings, checks, schema).map_err(|_| Unplanned::Invalid)?;
                Some((text, projection))
            }
        };
        let texts: Vec<&str> = [
            Some(&key_text),
            filter.as_ref().map(|(text, _)| text),
            projection.as_ref().map(|(text, _)| text),
        ]
        .into_iter()
        .flatten()
        .map(|text| &**text)
        .collect();
        if checks == Checks::All {
            bindings.check_unused(&texts).map_err(|_| Unplanned::Invalid)?;
        }
        let count = match string("Select")?.as_deref() {
            Some("COUNT") if projection.is_none() => true,
            Some("ALL_ATTRIBUTES") if projection.is_none() => false,
            Some("ALL_PROJECTED_ATTRIBUTES") if projection.is_none() && index.is_some() => false,
            Some("SPECIFIC_ATTRIBUTES") if projection.is_some() => false,
            None => false,
            Some(_) => return Err(Unplanned::Invalid),
        };
        let report = match string("ReturnConsumedCapacity")?.as_deref() {
            None | Some("NONE") => Report::None,
            Some("TOTAL") => Report::Total,
            Some("INDEXES") => Report::Indexes,
            Some(_) => return Err(Unplanned::Invalid),
        };
        let limit = match request.get("Limit") {
            None => None,
            Some(raw) => {
                let limit = std::str::from_utf8(raw).ok().and_then(|text| text.parse::<i32>().ok());
                Some(
                    limit
                        .and_then(|limit| usize::try_from(limit).ok())
                        .filter(|limit| *limit > 0)
                        .ok_or(Unplanned::Invalid)?,
                )
            }
        };
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
            if count { "" } else { "Select" },
        ];
        let kept = names.into_iter().filter_map(|name| Some((name, request.get(name)?))).collect();
        Ok(Query {
            request,
            schema,
            index,
            partition,
            condition,
            filter,
            projection,
            bindings,
            limit,
            descending: flag("ScanIndexForward")? == Some(false),
            consistent,
            count,
            start: request.get("ExclusiveStartKey"),
            report,
            home: None,
            drawn: false,
            kept,
        })
    }

    /// Asks for consistent reads, whatever the client asked for.
    pub(crate) fn consistently(&mut self) {
        self.consistent = true;
        self.kept.retain(|(name, _)| *name != "ConsistentRead");
        self.kept.push(("ConsistentRead", b"true"));
    }

    /// The key that is queried: the table's or the index's.
    pub(crate) fn key(&self) -> &'a KeySchema {
        self.index.map_or(&self.schema.key, |index| &index.key)
    }

    /// The attributes of a cursor: the table's key, and the index's.
    pub(crate) fn cursor_attributes(&self) -> Vec<&'a AttributeDefinition> {
        let mut attributes: Vec<&AttributeDefinition> = Vec::with_capacity(4);
        for key in [Some(&self.schema.key), self.index.map(|index| &index.key)].into_iter().flatten() {
            for attribute in std::iter::once(&key.partition).chain(&key.sort) {
                if !attributes.contains(&attribute) {
                    attributes.push(attribute);
                }
            }
        }
        attributes
    }

    /// The cursor's values in the order of [`cursor_attributes`](Self::cursor_attributes), each also raw.
    pub(crate) fn cursor(&self) -> Result<Option<Cursor<'a>>, Unplanned> {
        let Some(start) = self.start else { return Ok(None) };
        let members = json::members(start)?;
        let attributes = self.cursor_attributes();
        if members.len() != attributes.len() {
            return Err(Unplanned::Invalid);
        }
        let mut values = Vec::with_capacity(attributes.len());
        for attribute in attributes {
            let (_, raw) =
                members.iter().find(|(name, _)| *name == attribute.name).ok_or(Unplanned::Invalid)?;
            let value = KeyValue::read(raw, attribute).map_err(|_| Unplanned::Invalid)?;
            values.push((value.into_owned(), *raw));
        }
        Ok(Some(values))
    }

    /// The sort key behind which a Query of the table finds nothing and takes no cursor ([`Condition::inclusive_end`]). An index has none:
    /// there several items can have the last sort key.
    pub(crate) fn end(&self) -> Option<&Key> {
        let condition = self.condition.as_ref().filter(|_| self.index.is_none())?;
        condition.inclusive_end(self.descending)
    }

    /// Whether the cursor is of the partition key that is queried, and stands on the [`end`](Self::end).
    pub(crate) fn starts_at_end(&self) -> Result<bool, Unplanned> {
        let Some(end) = self.end() else { return Ok(false) };
        let cursor = self.cursor()?;
        Ok(
            matches!(cursor.as_deref(), Some([(partition, _), (sort, _)]) if *partition == self.partition && sort == end),
        )
    }

    /// The sort key of a cursor that does not say in which of several shards its item lies.
    pub(crate) fn passed(&self) -> Option<Key> {
        let cursor = if self.drawn && self.index.is_none() && self.home.is_none() {
            self.cursor().ok()?
        } else {
            None
        };
        cursor?.into_iter().nth(1).map(|(sort, _)| sort)
    }

    /// Placeholders that the request does not use.
    pub(crate) fn fresh(&self) -> Fresh {
        Fresh::avoiding(&self.bindings)
    }

    /// The name under which item sizes are learned.
    pub(crate) fn learned_as(&self) -> String {
        match self.index {
            None => self.schema.name.clone(),
            Some(index) => format!("{}/{}", self.schema.name, index.name),
        }
    }
}

/// What a key condition asks for.
fn key_condition(
    text: &str,
    bindings: &Bindings<'_>,
    key: &KeySchema,
    checks: Checks,
) -> Result<(Key, Option<Condition>), Unplanned> {
    let read = KeyCondition::read(text, bindings, key, checks).map_err(|_| Unplanned::Invalid)?;
    let owned = |value: &Value, part, name: &str| {
        let value = KeyValue::from_value(value).map(KeyValue::into_owned).ok_or(Unplanned::Invalid)?;
        value.check(part, name).map_err(|_| Unplanned::Invalid)?;
        Ok::<Key, Unplanned>(value)
    };
    let (name, value) = &read.partition;
    let partition = owned(value, KeyPart::Partition, name)?;
    let Some((name, test)) = &read.sort else { return Ok((partition, None)) };
    let sort = |value| owned(value, KeyPart::Sort, name);
    let condition = match test {
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
    };
    Ok((partition, Some(condition)))
}
