//! A Scan's filter that reads the partition key: evaluated here, on items whose keys are logical again.
//!
//! The store gets the filter too, with a condition behind it that always holds: so it still checks it, but holds nothing
//! back. What the client did not ask for is taken out again.
//!
//! How to use it: [`LocalFilter::new`] gives the filter and the members to change in the request; [`LocalFilter::answer`]
//! makes the client's answer of the store's, once its keys are logical. Query has its own way (`query::shape`), since it merges
//! pages before it filters.

use std::collections::BTreeSet;

use bytes::Bytes;
use heatsink_dynamo::expression::{
    Bindings, Checks, Condition, Fresh, Kind, MAX_EXPRESSION, Projection, may_mention,
};
use heatsink_dynamo::json::{self, Malformed, Object};
use heatsink_dynamo::value::read_attributes;
use heatsink_dynamo::{Error, IndexSchema, TableSchema, Value};
use heatsink_layout::Table;

use crate::projection;
use crate::projection::project;
use crate::refusal::Unplanned;
use crate::request::{Changes, Request, quoted};

/// A filter that is evaluated here, and what the client wants to see of what it leaves.
#[derive(Debug)]
pub(crate) struct LocalFilter {
    filter: Condition,
    /// What to leave of each item; `None` leaves all that the store gave.
    projection: Option<Projection>,
    /// Only counts are wanted.
    count: bool,
}

impl LocalFilter {
    /// The filter of a request, if it reads the value of a key that is stored with shard suffixes, and what to change in the request.
    ///
    /// # Errors
    /// [`Unplanned`]; refused are a filter that leaves no room in the 4 KB of an expression, and members of wrong types.
    pub(crate) fn new(
        request: &Request<'_>,
        schema: &Table,
        index: Option<&IndexSchema>,
        checks: Checks,
    ) -> Result<Option<(LocalFilter, Changes)>, Unplanned> {
        let partition = &schema.key.partition.name;
        let Some(text) = request.string("FilterExpression").map_err(Unplanned::Refused)? else {
            return Ok(None);
        };
        let names = request.get("ExpressionAttributeNames");
        if !schema.stored_otherwise().any(|name| may_mention(&text, names, name)) {
            return Ok(None);
        }
        let bindings = Bindings::read(names, request.get("ExpressionAttributeValues"))
            .map_err(|_| Unplanned::Invalid)?;
        let filter =
            Condition::read(Kind::Filter, &text, &bindings, checks).map_err(|_| Unplanned::Invalid)?;
        if schema.stored_otherwise().all(|name| filter.substitute(name, &Value::Null) == filter) {
            return Ok(None);
        }
        let projection_text = request.string("ProjectionExpression").map_err(Unplanned::Refused)?;
        let projection = projection_text
            .as_deref()
            .map(|text| projection::read(text, &bindings, checks, schema))
            .transpose()
            .map_err(|_| Unplanned::Invalid)?;
        let sent: Vec<&str> = std::iter::once(&*text).chain(projection_text.as_deref()).collect();
        if checks == Checks::All {
            bindings.check_unused(&sent).map_err(|_| Unplanned::Invalid)?;
        }

        let mut fresh = Fresh::avoiding(&bindings);
        // Without parentheses, since DynamoDB refuses redundant ones and OR binds least.
        let always = format!("{text} OR attribute_exists({})", fresh.name(partition));
        if always.len() > MAX_EXPRESSION {
            return Err(Unplanned::Refused(Error::gateway_rejection(format!(
                "Invalid FilterExpression: it mentions a key that a sharded table stores with shard suffixes, which takes {} of the \
                 {MAX_EXPRESSION} bytes that an expression may have",
                always.len() - text.len()
            ))));
        }
        let count = request.string("Select").map_err(Unplanned::Refused)?.as_deref() == Some("COUNT");
        let wanted =
            (count || projection.is_some()).then(|| wanted(projection.as_ref(), &filter, schema, index));
        let asked = wanted.as_ref().map(|wanted| quoted(&wanted.render(&mut fresh)));
        let (names, values) = bindings.rewritten(&[&text], &fresh);
        let mut changes: Changes = vec![
            ("FilterExpression", Some(quoted(&always))),
            ("ExpressionAttributeNames", names),
            ("ExpressionAttributeValues", values),
        ];
        if let Some(asked) = asked {
            changes.push(("ProjectionExpression", Some(asked)));
        }
        if count {
            changes.push(("Select", None));
        }
        let projection = projection.filter(|projection| wanted.as_ref() != Some(projection));
        Ok(Some((LocalFilter { filter, projection, count }, changes)))
    }

    /// The client's answer, from the store's with its keys made logical.
    pub(crate) fn answer(&self, body: &Bytes) -> Result<Bytes, Malformed> {
        let (mut items, mut kept, mut seen) = (vec![b'['], 0_usize, 0_usize);
        let roots = self.filter.roots();
        let mut answer = Object::new();
        let members = json::members(body)?;
        let member = |name: &str| members.iter().find(|(found, _)| found == name).map(|(_, value)| *value);
        for item in json::elements(member("Items").ok_or(Malformed)?)? {
            seen += 1;
            if !self.filter.holds(&read_attributes(item, &roots).map_err(|_| Malformed)?) {
                continue;
            }
            kept += 1;
            if self.count {
                continue;
            }
            if kept > 1 {
                items.push(b',');
            }
            self.show(item, &mut items)?;
        }
        items.push(b']');
        // The store must not have held anything back. It may count the item that did not fit into the page.
        let more = member("LastEvaluatedKey").is_some_and(|last| last != b"null");
        let scanned =
            member("ScannedCount").and_then(|raw| std::str::from_utf8(raw).ok()?.parse::<usize>().ok());
        if !scanned.is_some_and(|scanned| (seen..=seen + usize::from(more)).contains(&scanned)) {
            return Err(Malformed);
        }
        for (name, value) in &members {
            match &**name {
                "Items" if self.count => {}
                "Items" => {
                    answer.raw(name, &items);
                }
                "Count" => {
                    answer.raw(name, kept.to_string().as_bytes());
                }
                _ => {
                    answer.raw(name, value);
                }
            }
        }
        Ok(Bytes::from(answer.finish()))
    }

    /// Writes what the client wants of an item. Top-level attributes keep their bytes.
    fn show(&self, item: &[u8], out: &mut Vec<u8>) -> Result<(), Malformed> {
        match &self.projection {
            Some(projection) => project(projection, item, out),
            None => {
                out.extend_from_slice(item);
                Ok(())
            }
        }
    }
}

/// What to ask the store for: all of what the projection and the filter read, as whole top-level attributes.
fn wanted(
    projection: Option<&Projection>,
    filter: &Condition,
    schema: &TableSchema,
    index: Option<&IndexSchema>,
) -> Projection {
    let mut wanted = Projection::default();
    for path in projection.iter().flat_map(|projection| &projection.paths) {
        wanted.add_root(&path.root);
    }
    // A global index refuses to give what it does not hold; to a filter such an attribute is missing.
    let roots: BTreeSet<&str> = filter.roots();
    for root in
        roots.into_iter().filter(|root| index.is_none_or(|index| index.local || holds(schema, index, root)))
    {
        wanted.add_root(root);
    }
    // A projection cannot be empty, and every index holds the table's key.
    if wanted.paths.is_empty() {
        wanted.add_root(&schema.key.partition.name);
    }
    wanted
}

/// Whether an index holds an attribute: as a key, or projected.
fn holds(schema: &TableSchema, index: &IndexSchema, name: &str) -> bool {
    let is_key = [&schema.key, &index.key]
        .into_iter()
        .any(|key| key.partition.name == name || key.sort.as_ref().is_some_and(|sort| sort.name == name));
    is_key || index.projects_all || index.included.iter().any(|included| included == name)
}
