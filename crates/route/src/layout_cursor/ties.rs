//! A Query of an index that goes on from a cursor of another layout. Layouts do not change the
//! order of index keys, only that of items with equal ones. So the rest is the same under both
//! layouts, unless other items have the cursor's own index key. The store is asked that first.

use bytes::Bytes;
use futures::future::BoxFuture;
use heatsink_dynamo::json::{self, Malformed, Object};
use heatsink_dynamo::{AttributeDefinition, Error, IndexSchema, Operation};
use heatsink_layout::Table;

use super::refused::of_another_layout;
use crate::answer::{rewrite, unreadable};
use crate::capacity::Capacity;
use crate::collection::keys::Key;
use crate::cursor::{Cursor, values};
use crate::plan::{Explanation, Plan, Planned};
use crate::request::Request;
use crate::{Answer, Calls};

/// The plan of a Query that goes on from `start`, after the look whether other items have the index
/// key there.
///
/// # Errors
/// Those of `plan`, for the look.
pub(super) fn none_before(
    query: Plan,
    start: &[u8],
    index: &IndexSchema,
    request: &Request<'_>,
    table: &Table,
    plan: &impl Fn(&Request<'_>) -> Result<Plan, Error>,
) -> Result<Plan, Error> {
    let members = json::members(start).unwrap_or_default();
    let primary: Vec<AttributeDefinition> =
        std::iter::once(&table.key.partition).chain(&table.key.sort).cloned().collect();
    let at = keys(&members, &primary).ok_or_else(|| of_another_layout(table))?;
    let look = plan(&Request::read(&look(&members, index, request, &primary))?)?;
    let refusal = of_another_layout(table);
    Ok(query.wrapped(|then| NoneBefore { look, then, primary, at, refusal }))
}

/// The Query for what has the index key of a cursor: two items, since one may be the cursor's own.
fn look(
    cursor: &[json::Member<'_>],
    index: &IndexSchema,
    request: &Request<'_>,
    primary: &[AttributeDefinition],
) -> Bytes {
    let (mut names, mut bound, mut condition) = (Object::new(), Object::new(), Vec::new());
    for (number, attribute) in index.key.attributes().all().enumerate() {
        if let Some((_, value)) = cursor.iter().find(|(name, _)| *name == attribute.name) {
            names.string(&format!("#i{number}"), &attribute.name);
            bound.raw(&format!(":i{number}"), value);
            condition.push(format!("#i{number} = :i{number}"));
        }
    }
    let mut shown = Vec::new();
    for (number, attribute) in primary.iter().enumerate() {
        names.string(&format!("#k{number}"), &attribute.name);
        shown.push(format!("#k{number}"));
    }
    let mut body = Object::new();
    for name in ["TableName", "IndexName", "ConsistentRead", "ReturnConsumedCapacity"] {
        if let Some(value) = request.get(name) {
            body.raw(name, value);
        }
    }
    body.raw("Limit", b"2")
        .string("KeyConditionExpression", &condition.join(" AND "))
        .string("ProjectionExpression", &shown.join(", "))
        .raw("ExpressionAttributeNames", &names.finish())
        .raw("ExpressionAttributeValues", &bound.finish());
    Bytes::from(body.finish())
}

fn keys(members: &[json::Member<'_>], primary: &[AttributeDefinition]) -> Option<Vec<Key>> {
    let found: Cursor<'_> = values(members, &primary.iter().collect::<Vec<_>>())?;
    Some(found.into_iter().map(|(key, _)| key).collect())
}

/// Such a Query.
struct NoneBefore {
    look: Plan,
    then: Box<dyn Planned>,
    /// The table's key, and the cursor's values of it.
    primary: Vec<AttributeDefinition>,
    at: Vec<Key>,
    refusal: Error,
}

impl Planned for NoneBefore {
    fn run<'a>(self: Box<Self>, calls: &'a mut dyn Calls) -> BoxFuture<'a, Result<Answer, Error>> {
        let NoneBefore { look, then, primary, at, refusal } = *self;
        Box::pin(async move {
            let found = look.run(calls).await?;
            let none = none_but(&found.body, &primary, &at).map_err(|_| unreadable(Operation::Query))?;
            if !none || !found.missing.is_empty() {
                return Err(refusal);
            }
            let answer = then.run(calls).await?;
            Ok(Answer { body: with_capacity(&answer.body, &found.body)?, ..answer })
        })
    }

    fn explain(&self) -> Explanation {
        let (look, mut explained) = (self.look.explain(), self.then.explain());
        explained.why.push_str("; before it, a look whether other items have the index key of the cursor, which is of another layout");
        explained.calls = [look.calls, explained.calls].concat();
        explained
    }
}

/// Whether a page that was read to its end holds no item but that with the key `at`.
fn none_but(answer: &[u8], primary: &[AttributeDefinition], at: &[Key]) -> Result<bool, Malformed> {
    let [items, last] = json::attributes_of(answer, ["Items", "LastEvaluatedKey"])?;
    if last.is_some_and(|last| last != b"null") {
        return Ok(false);
    }
    for item in json::elements(items.ok_or(Malformed)?)? {
        if keys(&json::members(item)?, primary).as_deref() != Some(at) {
            return Ok(false);
        }
    }
    Ok(true)
}

/// An answer whose capacity, if it says one, has that of the look in it.
fn with_capacity(answer: &Bytes, look: &Bytes) -> Result<Bytes, Error> {
    rewrite(Operation::Query, answer, |splice| {
        let of = |body| json::member(body, "ConsumedCapacity");
        if let (Some(raw), Some(more)) = (of(answer)?, of(look)?) {
            let read = |raw| serde_json::from_slice::<Capacity>(raw).map_err(|_| Malformed);
            let mut sum = read(raw)?;
            sum.add(&read(more)?);
            splice.replace(raw, sum.all());
        }
        Ok(())
    })
}
