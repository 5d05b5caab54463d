//! The inclusive end of a Query of a table, where DynamoDB gives no cursor and accepts none.
//!
//! Sort keys of a table are unique, so no item can follow the one at the end of `<=`, `>=` or
//! `BETWEEN`. There DynamoDB gives no `LastEvaluatedKey`, even if `Limit` is reached with it, and
//! refuses that key as `ExclusiveStartKey`. With the other conditions, and on indexes, it does
//! both. In a table without sort keys no item can follow any item: DynamoDB gives no
//! `LastEvaluatedKey`, and accepts one. The engine gives and accepts cursors everywhere, and pages
//! that work only here would hide a defect. Source: tried with each operator in both directions on
//! DynamoDB Local 1.11.478 (docs/develop/testing.md).

use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use heatsink_dynamo::expression::{Bindings, Checks, KeyCondition};
use heatsink_dynamo::{AttributeDefinition, Error, KeySchema, KeyType, KeyValue, json};

use super::key_condition;

/// Corrects the engine's answer to a Query.
pub(super) fn hold(
    body: Bytes,
    answer: BoxFuture<'_, Result<Bytes, Error>>,
) -> BoxFuture<'_, Result<Bytes, Error>> {
    async move {
        let answer = answer.await?;
        key_condition::check(&body)?;
        let Some(end) = End::of(&body) else { return Ok(answer) };
        // The engine has found nothing else wrong.
        if member(&body, "ExclusiveStartKey").is_some_and(|start| end.is(start)) {
            return Err(Error::validation(
                "The provided starting key does not match the range key predicate",
            ));
        }
        let last = member(&answer, "LastEvaluatedKey");
        let at_end = last.is_some_and(|last| has_no_sort_key(last) || end.is(last));
        let mut changes: Vec<(&str, Option<&[u8]>)> = Vec::new();
        if at_end {
            changes.push(("LastEvaluatedKey", None));
        }
        if member(&body, "ExclusiveStartKey").is_some_and(has_no_sort_key) {
            // The engine begins again with the one item, which is behind the cursor.
            changes.extend(member(&answer, "Items").map(|_| ("Items", Some(&b"[]"[..]))));
            changes.extend([("Count", Some(&b"0"[..])), ("ScannedCount", Some(&b"0"[..]))]);
        }
        if changes.is_empty() {
            return Ok(answer);
        }
        let changed = json::splice_members(&answer, &changes);
        changed
            .map(Bytes::from)
            .map_err(|_| Error::internal("The engine's answer to Query could not be read"))
    }
    .boxed()
}

fn member<'a>(object: &'a [u8], name: &str) -> Option<&'a [u8]> {
    json::member(object, name).ok()?.filter(|value| *value != b"null")
}

/// Whether a key of the table is of one attribute.
fn has_no_sort_key(key: &[u8]) -> bool {
    json::members(key).is_ok_and(|members| members.len() == 1)
}

/// The members of a Query that hold its conditions and direction.
struct End<'a> {
    body: &'a [u8],
    descending: bool,
}

impl<'a> End<'a> {
    /// Of a Query of a table.
    fn of(body: &'a [u8]) -> Option<Self> {
        if member(body, "IndexName").is_some() {
            return None;
        }
        Some(End { body, descending: member(body, "ScanIndexForward") == Some(b"false") })
    }

    /// Whether a key of the table is the last that the condition includes.
    fn is(&self, key: &[u8]) -> bool {
        let Ok(members) = json::members(key) else { return false };
        let [(a, a_value), (b, b_value)] = &members[..] else { return false };
        // Which of the two is the sort key follows from the condition.
        [(a, a_value, b, b_value), (b, b_value, a, a_value)].into_iter().any(
            |(partition, partition_value, sort, sort_value)| {
                self.is_at(partition, partition_value, sort, sort_value).unwrap_or_default()
            },
        )
    }

    fn is_at(&self, partition: &str, partition_value: &[u8], sort: &str, value: &[u8]) -> Option<bool> {
        let sort = attribute(sort, value)?;
        let found = KeyValue::read(value, &sort).ok()?;
        if let Some(conditions) = member(self.body, "KeyConditions") {
            let condition = member(conditions, &sort.name)?;
            let operator = json::string(member(condition, "ComparisonOperator")?).ok()?;
            let values = json::elements(member(condition, "AttributeValueList")?).ok()?;
            let end = match (&*operator, self.descending) {
                ("LE", false) | ("GE" | "BETWEEN", true) => values.first(),
                ("BETWEEN", false) => values.get(1),
                _ => None,
            };
            return Some(KeyValue::read(end?, &sort).is_ok_and(|end| end == found));
        }
        let key = KeySchema { partition: attribute(partition, partition_value)?, sort: Some(sort) };
        let names = member(self.body, "ExpressionAttributeNames");
        let bindings = Bindings::read(names, member(self.body, "ExpressionAttributeValues")).ok()?;
        let text = json::string(member(self.body, "KeyConditionExpression")?).ok()?;
        let condition = KeyCondition::read(&text, &bindings, &key, Checks::Meaning).ok()?;
        let end = condition.sort.first()?.1.inclusive_end(self.descending)?;
        Some(KeyValue::from_value(end).is_some_and(|end| end == found))
    }
}

fn attribute(name: &str, value: &[u8]) -> Option<AttributeDefinition> {
    let members = json::members(value).ok()?;
    let [(kind, _)] = &members[..] else { return None };
    let key_type = match &**kind {
        "S" => KeyType::S,
        "N" => KeyType::N,
        "B" => KeyType::B,
        _ => return None,
    };
    Some(AttributeDefinition { name: name.to_owned(), key_type })
}
