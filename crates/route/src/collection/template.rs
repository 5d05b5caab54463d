//! Physical Query bodies: what all calls of one plan share, and what differs from shard to shard.

use bytes::Bytes;
use heatsink_dynamo::expression::{Bindings, Fresh};
use heatsink_dynamo::json::{Object, write_string};
use heatsink_dynamo::{AttributeDefinition, KeySchema, Value};

use super::keys::Key;
use super::range::Condition;

/// What one call asks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Ask<'a> {
    pub(crate) partition: &'a Key,
    /// The values of the other partition key attributes, where they are not the template's.
    pub(crate) others: &'a [Key],
    /// What is tested of the first sort attributes.
    pub(crate) conditions: &'a [Condition],
    /// A raw physical key.
    pub(crate) start: Option<&'a [u8]>,
    pub(crate) limit: Option<usize>,
}

/// The part that all calls share, and the placeholders for the rest.
#[derive(Debug)]
pub(crate) struct Template {
    /// An open JSON object with the members that never differ.
    head: Vec<u8>,
    /// `ExpressionAttributeNames` and `ExpressionAttributeValues`, still open.
    names: Vec<u8>,
    values: Vec<u8>,
    /// The condition on the partition key, but for the value that differs.
    partition: String,
    /// The placeholders and values of the other partition key attributes.
    others: Vec<(String, Key)>,
    sort: Vec<Sort>,
    /// The placeholder of that value, and those of the sort conditions.
    value: String,
    operands: Vec<String>,
}

#[derive(Debug)]
struct Sort {
    placeholder: String,
    /// The member to add to the names where a call uses it and they do not have it yet.
    missing: Option<String>,
}

/// The key that is queried.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Queried<'a> {
    /// The partition key attribute whose value differs from call to call.
    pub(crate) partition: &'a AttributeDefinition,
    /// The other ones of an index, and their values.
    pub(crate) fixed: &'a [(&'a AttributeDefinition, Key)],
    pub(crate) sort: &'a [AttributeDefinition],
}

impl<'a> From<&'a KeySchema> for Queried<'a> {
    fn from(key: &'a KeySchema) -> Self {
        Queried { partition: &key.partition, fixed: &[], sort: key.sort.as_slice() }
    }
}

/// The expressions that go with every call.
#[derive(Debug, Default)]
pub(crate) struct Expressions<'a> {
    /// Members that stay as the client sent them: `TableName`, `IndexName`, `Select`.
    pub(crate) members: Vec<(&'a str, &'a [u8])>,
    pub(crate) filter: Option<String>,
    /// The client's projection, or one of these top-level attributes.
    pub(crate) projection: Option<String>,
    pub(crate) attributes: Option<Vec<String>>,
}

impl Template {
    /// `fresh` may hold placeholders that the filter uses already.
    pub(crate) fn new(
        key: Queried<'_>,
        expressions: &Expressions<'_>,
        bindings: &Bindings<'_>,
        mut fresh: Fresh,
    ) -> Self {
        let mut head = Object::new();
        for (name, value) in &expressions.members {
            head.raw(name, value);
        }
        if let Some(filter) = &expressions.filter {
            head.string("FilterExpression", filter);
        }
        if let Some(attributes) = &expressions.attributes {
            let listed: Vec<String> = attributes.iter().map(|name| fresh.name(name)).collect();
            head.string("ProjectionExpression", &listed.join(", "));
        } else if let Some(projection) = &expressions.projection {
            head.string("ProjectionExpression", projection);
        }
        let mut partition = String::new();
        let mut spare = fresh.clone();
        let mut others = Vec::new();
        for (attribute, value) in key.fixed {
            let placeholder = spare.value(Value::Null);
            partition.push_str(&format!("{} = {placeholder} AND ", fresh.name(&attribute.name)));
            others.push((placeholder, value.clone()));
        }
        partition.push_str(&format!("{} = ", fresh.name(&key.partition.name)));
        let listed = |name: &str| expressions.attributes.iter().flatten().any(|listed| listed == name);
        let mut names_too = fresh.clone();
        let sort = key.sort.iter().map(|sort| Sort {
            placeholder: names_too.name(&sort.name),
            missing: (!listed(&sort.name)).then(|| sort.name.clone()),
        });
        let sort: Vec<Sort> = sort.collect();
        let kept: Vec<&str> = [&expressions.filter, &expressions.projection]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect();
        let (names, values) = bindings.rewritten(&kept, &fresh);
        let value = spare.value(Value::Null);
        // BETWEEN takes two.
        let operands = (0..=sort.len()).map(|_| spare.value(Value::Null)).collect();
        Template {
            head: open(Some(head.finish())),
            names: open(names),
            values: open(values),
            partition,
            others,
            sort,
            value,
            operands,
        }
    }

    /// The body of one call.
    pub(crate) fn body(&self, ask: Ask<'_>) -> Bytes {
        let mut names = copy(&self.names, 0);
        let mut values = copy(&self.values, 0);
        add_value(&mut values, &self.value, ask.partition);
        for (at, (placeholder, value)) in self.others.iter().enumerate() {
            add_value(&mut values, placeholder, ask.others.get(at).unwrap_or(value));
        }
        let mut condition = format!("{}{}", self.partition, self.value);
        let mut operands = self.operands.iter();
        for (sort, tested) in self.sort.iter().zip(ask.conditions) {
            let (Some(a), b) = (operands.next(), operands.clone().next().map_or("", String::as_str)) else {
                continue;
            };
            if let Some(missing) = &sort.missing {
                add(&mut names, &sort.placeholder);
                write_string(&mut names, missing);
            }
            let name = &sort.placeholder;
            let (text, first, second) = match tested {
                Condition::Eq(key) => (format!("{name} = {a}"), key, None),
                Condition::Lt(key) => (format!("{name} < {a}"), key, None),
                Condition::Le(key) => (format!("{name} <= {a}"), key, None),
                Condition::Gt(key) => (format!("{name} > {a}"), key, None),
                Condition::Ge(key) => (format!("{name} >= {a}"), key, None),
                Condition::BeginsWith(key) => (format!("begins_with({name}, {a})"), key, None),
                Condition::Between(low, high) => (format!("{name} BETWEEN {a} AND {b}"), low, Some(high)),
            };
            condition.push_str(" AND ");
            condition.push_str(&text);
            add_value(&mut values, a, first);
            if let Some(second) = second {
                add_value(&mut values, b, second);
            }
        }
        let mut body = copy(&self.head, names.len() + values.len() + condition.len());
        add(&mut body, "KeyConditionExpression");
        write_string(&mut body, &condition);
        for (member, object) in [("ExpressionAttributeNames", names), ("ExpressionAttributeValues", values)] {
            add(&mut body, member);
            body.extend_from_slice(&object);
            body.push(b'}');
        }
        if let Some(limit) = ask.limit {
            add(&mut body, "Limit");
            body.extend_from_slice(limit.to_string().as_bytes());
        }
        if let Some(start) = ask.start {
            add(&mut body, "ExclusiveStartKey");
            body.extend_from_slice(start);
        }
        body.push(b'}');
        Bytes::from(body)
    }
}

/// A copy to which so many bytes, and some small members, are added. A large one would double its
/// room for them.
fn copy(object: &[u8], more: usize) -> Vec<u8> {
    let length = object.len() + more;
    let mut copy = Vec::with_capacity(length + length / 64 + 256);
    copy.extend_from_slice(object);
    copy
}

/// A JSON object without its closing brace.
fn open(object: Option<Vec<u8>>) -> Vec<u8> {
    let mut object = object.unwrap_or_else(|| b"{}".to_vec());
    object.pop();
    object
}

/// Adds a member's name to an open object.
fn add(object: &mut Vec<u8>, name: &str) {
    if object.len() > 1 {
        object.push(b',');
    }
    write_string(object, name);
    object.push(b':');
}

fn add_value(object: &mut Vec<u8>, placeholder: &str, value: &Key) {
    add(object, placeholder);
    value.write(object);
}
