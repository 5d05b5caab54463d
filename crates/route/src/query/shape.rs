//! What a gathered Query sends to every shard, and what it makes of the answers: filter, projection, count.

use std::sync::Arc;

use heatsink_dynamo::IndexSchema;

use super::answer::{Logical, Marks, Shape};
use super::page::Reader;
use super::request::Query;
use super::template::{Expressions, Template};

/// What a filter may hold at most when it is sent on with a condition that is always true behind it (AWS, "Constraints").
const MAX_FILTER: usize = heatsink_dynamo::expression::MAX_EXPRESSION;

/// The three parts that do not depend on shards.
#[derive(Debug)]
pub(crate) struct Gathering {
    pub(crate) template: Template,
    pub(crate) reader: Reader,
    pub(crate) shape: Shape,
}

impl Gathering {
    /// Of a valid Query whose rows all have the logical key `logical`.
    pub(crate) fn new(query: &Query<'_>, logical: Logical) -> Self {
        let key = query.key();
        let attributes = attributes(query);
        let mut fresh = query.fresh();
        // The store checks the filter, but holds nothing back: what is evaluated, and where a page ends, is decided here.
        // Without parentheses, since DynamoDB refuses redundant ones and OR binds least.
        let filter = query.filter.as_ref().and_then(|(text, _)| {
            let any = fresh.name(&mentioned(query));
            let always = format!("{text} OR attribute_exists({any}) OR attribute_not_exists({any})");
            (always.len() <= MAX_FILTER).then_some(always)
        });
        if query.filter.is_some() && filter.is_none() {
            fresh = query.fresh();
        }
        let mut members = query.kept.clone();
        members.push(("ReturnConsumedCapacity", b"\"INDEXES\""));
        let projection = query.projection.as_ref().map(|(_, projection)| projection);
        let exact = projection.is_some_and(|projection| {
            attributes.iter().flatten().count() == projection.paths.len()
                && attributes.iter().flatten().all(|name| projection.covers(name))
        });
        let expressions = Expressions { members, filter, projection: None, attributes };
        let template = Template::new(&key.partition, key.sort.as_ref(), &expressions, &query.bindings, fresh);
        let reader = Reader {
            partition: query.schema.key.partition.clone(),
            sort: key.sort.clone(),
            index: query.index.map(|index| index.name.clone()),
            consistent: query.consistent,
        };
        let shape = Shape {
            filter: query.filter.as_ref().map(|(_, filter)| filter.clone()),
            projection: projection.filter(|_| !exact).cloned(),
            count: query.count,
            report: query.report,
            table: Arc::clone(query.schema),
            logical,
            marks: match query.index {
                _ if !query.schema.has_drawn() => Marks::Never,
                None => Marks::Ties,
                Some(_) => Marks::Always,
            },
            from: query.home.and_then(|_| query.cursor().ok()??.into_iter().nth(1)).map(|(sort, _)| sort),
            cursor: query.cursor_attributes().into_iter().map(|attribute| attribute.name.clone()).collect(),
            end: query.end().cloned(),
            unique: query.index.is_none() && query.schema.key.sort.is_none(),
        };
        Gathering { template, reader, shape }
    }
}

/// The top-level attributes to ask for; `None` asks for all. Always with the keys, which merging and cursors need.
pub(super) fn attributes(query: &Query<'_>) -> Option<Vec<String>> {
    let mut names: Vec<String> = Vec::new();
    let mut add = |name: &str| {
        if !names.iter().any(|known| known == name) {
            names.push(name.to_owned());
        }
    };
    match &query.projection {
        Some((_, projection)) => projection.paths.iter().for_each(|path| add(&path.root)),
        None if query.count => {}
        None => return None,
    }
    query.cursor_attributes().into_iter().for_each(|attribute| add(&attribute.name));
    if let Some((_, filter)) = &query.filter {
        // A global index refuses to give what it does not hold; to a filter such an attribute is missing.
        let held = |name: &&str| query.index.is_none_or(|index| index.local || holds(index, name));
        filter.roots().into_iter().filter(held).for_each(&mut add);
    }
    Some(names)
}

/// Whether a non-key attribute is projected into an index.
fn holds(index: &IndexSchema, name: &str) -> bool {
    index.projects_all || index.included.iter().any(|included| included == name)
}

/// A name that the filter may mention: one that it does mention, which is no key, and which the index holds if the store takes the filter at
/// all. A filter of values alone gets a name that is no key.
fn mentioned(query: &Query<'_>) -> String {
    let mentioned = query.filter.as_ref().and_then(|(_, filter)| filter.roots().into_iter().next());
    if let Some(mentioned) = mentioned {
        return mentioned.to_owned();
    }
    let keys = query.cursor_attributes();
    let mut name = "heatsink".to_owned();
    while keys.iter().any(|key| key.name == name) {
        name.push('_');
    }
    name
}
