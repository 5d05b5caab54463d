//! What a read wants of items: a filter and a projection, over items whose keys are logical.
//!
//! [`Expressions`] are those of a request, and say what to ask the store for. A [`Selection`] is
//! what is left to do with an item that the store gave; a [`Listing`] does it, item by item.

use std::borrow::Cow;
use std::collections::BTreeSet;

use heatsink_dynamo::expression::{
    Bindings, Checks, Condition, Fresh, Kind, MAX_EXPRESSION, Path, Projection, Step,
};
use heatsink_dynamo::json::{self, Malformed, Object};
use heatsink_dynamo::value::{read_attributes, read_item, write_item};
use heatsink_dynamo::{IndexSchema, Item, TableSchema, Value};

use super::keys::cursor_attributes;
use crate::capacity::{Capacity, Report};
use crate::projection;
use crate::refusal::Unplanned;
use crate::request::{Changes, Request, quoted};

/// The filter, the projection and `Select` of a Query or Scan without legacy parameters.
#[derive(Debug)]
pub(crate) struct Expressions<'a> {
    pub(crate) bindings: Bindings<'a>,
    /// The text of the filter, and what it means.
    pub(crate) filter: Option<(Cow<'a, str>, Condition)>,
    pub(crate) projection: Option<(Cow<'a, str>, Projection)>,
    /// `Select` is `COUNT`.
    pub(crate) count: bool,
}

impl<'a> Expressions<'a> {
    /// Reads them. `key_condition` is the Query's other expression. With [`Checks::Meaning`] they
    /// may be such as a store refuses.
    ///
    /// # Errors
    /// [`Unplanned::Invalid`] or [`Unplanned::Worded`] for what every DynamoDB refuses.
    pub(crate) fn read(
        request: &Request<'a>,
        table: &TableSchema,
        key_condition: Option<&str>,
        checks: Checks,
    ) -> Result<Self, Unplanned> {
        let string = |name| request.string(name).map_err(|_| Unplanned::Invalid);
        let [names, values] =
            ["ExpressionAttributeNames", "ExpressionAttributeValues"].map(|name| request.get(name));
        let bindings = Bindings::read(names, values).map_err(Unplanned::Worded)?;
        let filter = match string("FilterExpression")? {
            None => None,
            Some(text) => {
                let filter =
                    Condition::read(Kind::Filter, &text, &bindings, checks).map_err(Unplanned::Worded)?;
                Some((text, filter))
            }
        };
        let projection = match string("ProjectionExpression")? {
            None => None,
            Some(text) => {
                let projection =
                    projection::read(&text, &bindings, checks, table).map_err(Unplanned::Worded)?;
                Some((text, projection))
            }
        };
        let texts: Vec<&str> = key_condition
            .into_iter()
            .chain(filter.as_ref().map(|(text, _)| &**text))
            .chain(projection.as_ref().map(|(text, _)| &**text))
            .collect();
        let empty = |raw: &[u8]| json::members(raw).is_ok_and(|members| members.is_empty());
        if [names, values].into_iter().flatten().any(|raw| texts.is_empty() || empty(raw)) {
            return Err(Unplanned::Invalid);
        }
        if checks == Checks::All {
            bindings.check_unused(&texts).map_err(Unplanned::Worded)?;
        }
        let count = match string("Select")?.as_deref() {
            Some("COUNT") if projection.is_none() => true,
            Some("ALL_ATTRIBUTES") if projection.is_none() => false,
            // The index may be newer than what is known of the table.
            Some("ALL_PROJECTED_ATTRIBUTES")
                if projection.is_none() && request.get("IndexName").is_some() =>
            {
                false
            }
            Some("SPECIFIC_ATTRIBUTES") if projection.is_some() => false,
            None => false,
            Some(_) => return Err(Unplanned::Invalid),
        };
        Ok(Expressions { bindings, filter, projection, count })
    }

    /// Shows at most what an index holds, for a read of its items in the table.
    pub(crate) fn confine(&mut self, table: &TableSchema, index: &IndexSchema) {
        let keys = cursor_attributes(table, Some(index)).into_iter().map(|key| key.name.as_str());
        let held: BTreeSet<&str> = keys.chain(index.included.iter().map(String::as_str)).collect();
        match &mut self.projection {
            _ if self.count || index.projects_all => {}
            Some((_, projection)) => projection.paths.retain(|path| held.contains(&*path.root)),
            None => {
                let mut projection = Projection::default();
                for name in held {
                    projection.add_root(name);
                }
                self.projection = Some((Cow::Borrowed(""), projection));
            }
        }
    }

    /// The top-level attributes to ask the store for; `None` asks for all. Always with the keys,
    /// which merging and cursors need.
    pub(crate) fn wanted(&self, table: &TableSchema, index: Option<&IndexSchema>) -> Option<Projection> {
        let mut wanted = Projection::default();
        match &self.projection {
            Some((_, projection)) => projection.paths.iter().for_each(|path| {
                wanted.add_root(&path.root);
            }),
            None if self.count => {}
            None => return None,
        }
        for attribute in cursor_attributes(table, index) {
            wanted.add_root(&attribute.name);
        }
        if let Some((_, filter)) = &self.filter {
            // A global index refuses to give what it does not hold; to a filter such an attribute
            // is missing.
            let held = |name: &&str| index.is_none_or(|index| index.local || projects(index, name));
            for name in filter.roots().into_iter().filter(held) {
                wanted.add_root(name);
            }
        }
        Some(wanted)
    }

    /// The filter as the store is sent it, with a condition behind it that always holds: the store
    /// checks it and holds nothing back. `None` where that would be longer than an expression may
    /// be; then the store does not see the filter.
    pub(crate) fn unfiltering(
        &self,
        table: &TableSchema,
        index: Option<&IndexSchema>,
        fresh: &mut Fresh,
    ) -> Option<String> {
        let (text, filter) = self.filter.as_ref()?;
        let mut tried = fresh.clone();
        let any = tried.name(&mentioned(filter, table, index));
        // Without parentheses, since DynamoDB refuses redundant ones and OR binds least.
        let always = format!("{text} OR attribute_exists({any}) OR attribute_not_exists({any})");
        (always.len() <= MAX_EXPRESSION).then(|| {
            *fresh = tried;
            always
        })
    }

    /// What a Scan is sent in the place of its expressions.
    pub(crate) fn changes(&self, table: &TableSchema, index: Option<&IndexSchema>) -> Changes {
        let mut fresh = Fresh::avoiding(&self.bindings);
        let filter = self.unfiltering(table, index, &mut fresh);
        let mut changes: Changes = vec![("FilterExpression", filter.as_deref().map(quoted))];
        if let Some(wanted) = self.wanted(table, index) {
            changes.push(("ProjectionExpression", Some(quoted(&wanted.render(&mut fresh)))));
            changes.push(("Select", None));
        }
        let (names, values) = self.bindings.rewritten(filter.as_deref().as_slice(), &fresh);
        changes.push(("ExpressionAttributeNames", names));
        changes.push(("ExpressionAttributeValues", values));
        changes
    }

    /// What is left to do with the items that a store gives which is asked for what is
    /// [`wanted`](Self::wanted).
    pub(crate) fn selection(&self, table: &TableSchema, index: Option<&IndexSchema>) -> Selection {
        let shown = match &self.projection {
            _ if self.count => Shown::Count,
            None => Shown::Whole,
            Some((_, projection)) => {
                let wanted = self.wanted(table, index).unwrap_or_default();
                let exact = wanted.paths.len() == projection.paths.len()
                    && wanted.paths.iter().all(|path| projection.covers(&path.root));
                if exact { Shown::Whole } else { Shown::Projected(projection.clone()) }
            }
        };
        let filter = self.filter.as_ref().map(|(_, filter)| filter.clone());
        Selection { filter, seen: None, shown }
    }
}

/// Whether a non-key attribute is projected into an index.
pub(crate) fn projects(index: &IndexSchema, name: &str) -> bool {
    index.projects_all || index.included.iter().any(|included| included == name)
}

/// A name that a store takes in this filter: one that it does mention, which the index holds if the
/// store takes the filter at all. A filter of values alone gets a name that is no key, which a
/// Query's filter may not mention.
fn mentioned(filter: &Condition, table: &TableSchema, index: Option<&IndexSchema>) -> String {
    if let Some(mentioned) = filter.roots().into_iter().next() {
        return mentioned.to_owned();
    }
    let keys = cursor_attributes(table, index);
    let mut name = "heatsink".to_owned();
    while keys.iter().any(|key| key.name == name) {
        name.push('_');
    }
    name
}

/// What an answer shows of an item.
#[derive(Clone, Debug)]
pub(crate) enum Shown {
    /// That it is there.
    Count,
    /// All that was read of it.
    Whole,
    /// What a projection leaves.
    Projected(Projection),
    /// The values at these paths, each under the last name of its path: as PartiQL shows them.
    Named(Vec<Path>),
}

/// What to do with an item: whether it passes, and what is shown of it.
#[derive(Clone, Debug)]
pub(crate) struct Selection {
    pub(crate) filter: Option<Condition>,
    /// The attributes that the filter sees; `None` is all.
    pub(crate) seen: Option<BTreeSet<String>>,
    pub(crate) shown: Shown,
}

impl Selection {
    /// A list of items that pass, empty yet.
    pub(crate) fn list(&self) -> Listing<'_> {
        let mut roots = self.filter.as_ref().map(Condition::roots).unwrap_or_default();
        if let Some(seen) = &self.seen {
            roots.retain(|root| seen.contains(*root));
        }
        Listing { selection: self, roots, items: vec![b'['], evaluated: 0, passed: 0 }
    }
}

/// Room for what stands in an answer beside its items and its cursor, but for long reports of capacity.
const BESIDE: usize = 256;

/// The items of an answer, written one after the other.
pub(crate) struct Listing<'s> {
    selection: &'s Selection,
    /// The top-level attributes that the filter reads.
    roots: BTreeSet<&'s str>,
    items: Vec<u8>,
    evaluated: usize,
    passed: usize,
}

impl Listing<'_> {
    /// Makes room at once for items of so many bytes with their commas, if each is shown as it is: a
    /// list that grows step by step is copied again and again.
    pub(crate) fn reserve(&mut self, bytes: usize) {
        if matches!(self.selection.shown, Shown::Whole) && self.selection.filter.is_none() {
            self.items.reserve(bytes);
        }
    }

    /// Adds an item, whose keys are logical, if it passes.
    ///
    /// # Errors
    /// The item is not one of DynamoDB's.
    pub(crate) fn add(&mut self, item: &[u8]) -> Result<(), Malformed> {
        self.evaluated += 1;
        if let Some(filter) = &self.selection.filter
            && !filter.holds(&read_attributes(item, &self.roots).map_err(|_| Malformed)?)
        {
            return Ok(());
        }
        self.passed += 1;
        if !matches!(self.selection.shown, Shown::Count) && self.passed > 1 {
            self.items.push(b',');
        }
        match &self.selection.shown {
            Shown::Count => {}
            Shown::Whole => self.items.extend_from_slice(item),
            Shown::Projected(projection) => projection::project(projection, item, &mut self.items)?,
            Shown::Named(paths) => {
                write_item(&named(&read_item(item).map_err(|_| Malformed)?, paths), &mut self.items);
            }
        }
        Ok(())
    }

    /// The list.
    pub(crate) fn items(mut self) -> Vec<u8> {
        self.items.push(b']');
        self.items
    }

    /// The answer to a Query or Scan that ends with this list, and goes on behind the raw key
    /// `last`.
    pub(crate) fn answer(self, last: Option<&[u8]>, capacity: Option<&Capacity>, report: Report) -> Vec<u8> {
        let (passed, evaluated) = (self.passed.to_string(), self.evaluated.to_string());
        let mut answer = Object::with_capacity(self.items.len() + last.map_or(0, <[u8]>::len) + BESIDE);
        if !matches!(self.selection.shown, Shown::Count) {
            answer.raw("Items", &self.items());
        }
        answer.raw("Count", passed.as_bytes()).raw("ScannedCount", evaluated.as_bytes());
        if let Some(last) = last {
            answer.raw("LastEvaluatedKey", last);
        }
        if let Some(capacity) = capacity.and_then(|capacity| capacity.shown(report)) {
            answer.raw("ConsumedCapacity", &capacity);
        }
        answer.finish()
    }
}

/// Each path's value under the last name of the path and the indexes behind it, as DynamoDB names
/// them.
fn named(item: &Item, paths: &[Path]) -> Item {
    let mut left = Item::new();
    for path in paths {
        let mut name = path.root.clone();
        let mut found = item.get(&path.root);
        for step in &path.rest {
            match step {
                Step::Name(step) => name.clone_from(step),
                Step::Index(index) => name = format!("{name}[{index}]"),
            }
            found = match (step, found) {
                (Step::Name(step), Some(Value::M(map))) => map.get(step),
                (Step::Index(index), Some(Value::L(list))) => list.get(*index),
                _ => None,
            };
        }
        if let Some(value) = found {
            left.insert(name, value.clone());
        }
    }
    left
}

#[cfg(test)]
mod tests {
    use heatsink_dynamo::expression::{Bindings, Projection};
    use heatsink_dynamo::{AttributeDefinition, IndexKeySchema, KeySchema, KeyType};

    use super::*;

    #[test]
    fn what_an_index_does_not_hold_is_not_shown() {
        let key = |name: &str| AttributeDefinition { name: name.to_owned(), key_type: KeyType::S };
        let schema = KeySchema { partition: key("pk"), sort: None };
        let table =
            TableSchema { name: "T".to_owned(), id: "1".to_owned(), key: schema, indexes: Vec::new() };
        let index = |projects_all, included: &[&str]| IndexSchema {
            name: "i".to_owned(),
            key: IndexKeySchema { partition: vec![key("status")], sort: Vec::new() },
            local: false,
            projects_all,
            included: included.iter().map(|name| (*name).to_owned()).collect(),
        };
        let shown = |count, index: &IndexSchema| {
            let mut expressions =
                Expressions { bindings: Bindings::default(), filter: None, projection: None, count };
            expressions.confine(&table, index);
            expressions.projection.map(|(_, projection)| {
                projection.paths.into_iter().map(|path| path.root.to_string()).collect::<Vec<_>>()
            })
        };
        let held = ["pk", "status", "v"].map(str::to_owned).to_vec();
        assert_eq!(shown(false, &index(false, &["v"])), Some(held));
        assert_eq!(shown(false, &index(true, &[])), None, "an index of all attributes shows all");
        assert_eq!(shown(true, &index(false, &["v"])), None, "a count shows nothing");
    }

    #[test]
    fn paths_are_shown_under_their_last_names() {
        let item = read_item(br#"{"m":{"M":{"k":{"N":"1"},"l":{"L":[{"S":"x"},{"S":"y"}]}}},"v":{"S":"z"}}"#);
        let paths = Projection::parse("m.k, m.l[1], v, m.x", &Bindings::default()).unwrap().paths;
        let shown = named(&item.unwrap(), &paths);
        let expected = read_item(br#"{"k":{"N":"1"},"l[1]":{"S":"y"},"v":{"S":"z"}}"#).unwrap();
        assert_eq!(shown, expected);
    }
}
