//! Pages whose filters cost too much: the engine reads the page without the filter, and the rows are filtered here.

use bytes::Bytes;
use heatsink_dynamo::expression::{Bindings, Condition, Extent, Fresh, Kind, Projection};
use heatsink_dynamo::json;
use heatsink_dynamo::value::{read_item, write_item};
use heatsink_dynamo::{Error, Operation};

use super::{BUDGET, MENTIONED, SHORT, TOO_MUCH, refused};

/// The most bytes that a page evaluates.
const PAGE: usize = 1 << 20;

/// A page and its filter, apart.
pub(crate) struct Filtered {
    filter: Condition,
    projection: Option<Projection>,
    count: bool,
    /// The request whose answer holds every row, whole.
    pub(crate) body: Bytes,
}

impl Filtered {
    /// The request, if its filter can cost too much.
    ///
    /// # Errors
    /// `ValidationException` for a long filter that is not understood, and for requests that cannot be taken apart.
    pub(crate) fn read(operation: Operation, body: &Bytes) -> Result<Option<Filtered>, Error> {
        if !matches!(operation, Operation::Query | Operation::Scan) {
            return Ok(None);
        }
        let members = [
            "FilterExpression",
            "KeyConditionExpression",
            "ProjectionExpression",
            "ExpressionAttributeNames",
            "ExpressionAttributeValues",
            "Select",
            "IndexName",
        ];
        let Ok([filter, key, projection, names, values, select, index]) = json::attributes_of(body, members)
        else {
            return Ok(None);
        };
        let there = |raw: Option<&'_ [u8]>| raw.filter(|raw| *raw != b"null").map(|raw| body.slice_ref(raw));
        let text =
            |raw: Option<&[u8]>| raw.and_then(|raw| json::string(raw).ok()).map(|text| text.into_owned());
        let Some(text_of_filter) = text(filter) else { return Ok(None) };
        let (names, values) = (there(names), there(values));
        let (key, projected, select) = (text(key), text(projection), text(select));
        let bindings = Bindings::read(names.as_deref(), values.as_deref())?;
        if bindings.mentioned(&[&text_of_filter]) > MENTIONED {
            return Err(refused(TOO_MUCH));
        }
        let filter = match Condition::parse(Kind::Filter, &text_of_filter, &bindings) {
            Ok(filter) => filter,
            Err(why) if text_of_filter.len() > SHORT => return Err(why),
            Err(_) => return Ok(None),
        };
        if filter.cost(Extent::AtMost(PAGE)) <= BUDGET {
            return Ok(None);
        }
        let parsed = projected.as_ref().map(|text| Projection::parse(text, &bindings)).transpose()?;
        let texts: Vec<&str> = [Some(&text_of_filter), key.as_ref(), projected.as_ref()]
            .into_iter()
            .flatten()
            .map(String::as_str)
            .collect();
        bindings.check_unused(&texts)?;
        // An index that lacks attributes is read for what it has: asked for one that it lacks, the engine answers otherwise.
        if index.is_some() && projected.is_some() {
            return Err(refused("a filter this large together with an index and a projection"));
        }
        let mut fresh = Fresh::avoiding(&bindings);
        // Holds for every row, and mentions every path, so that the engine still refuses those that a filter may not have.
        let mut always = filter.paths().into_iter().cloned().map(Condition::Exists).collect::<Vec<_>>();
        let Some(Condition::Exists(first)) = always.first().cloned() else {
            return Err(refused("a filter that reads no attribute"));
        };
        always.insert(0, Condition::NotExists(first));
        let mut kept: Vec<Condition> = Vec::new();
        for one in always {
            if !kept.contains(&one) {
                kept.push(one);
            }
        }
        let always = Condition::Or(kept).render(&mut fresh);
        if always.len() > heatsink_dynamo::expression::MAX_EXPRESSION {
            return Err(refused("a filter of so many paths"));
        }
        let kept: Vec<&str> = std::iter::once(always.as_str()).chain(key.as_deref()).collect();
        let (names, values) = bindings.rewritten(&kept, &fresh);
        let mut text = Vec::new();
        json::write_string(&mut text, &always);
        let count = select.as_deref() == Some("COUNT");
        let mut changes = vec![
            ("FilterExpression", Some(text.as_slice())),
            ("ProjectionExpression", None),
            ("ExpressionAttributeNames", names.as_deref()),
            ("ExpressionAttributeValues", values.as_deref()),
        ];
        if count || select.as_deref() == Some("SPECIFIC_ATTRIBUTES") && projected.is_some() {
            changes.push(("Select", None));
        }
        let rewritten = json::splice_members(body, &changes)
            .map_err(|_| Error::serialization("Unexpected value type in payload"))?;
        Ok(Some(Filtered { filter, projection: parsed, count, body: rewritten.into() }))
    }

    /// The answer to the request, of the answer to [`Filtered::body`]. On the evaluator's thread.
    ///
    /// # Errors
    /// When the answer is no page.
    pub(crate) fn apply(&self, answer: &[u8]) -> Result<Bytes, Error> {
        let broken = |_| Error::internal("the engine's page cannot be read");
        let rows = json::member(answer, "Items").map_err(broken)?.unwrap_or(b"[]");
        let mut items = Vec::from(*b"[");
        let mut count = 0_usize;
        for row in json::elements(rows).map_err(broken)? {
            let item = read_item(row)?;
            if !self.filter.holds(&item) {
                continue;
            }
            count += 1;
            if count > 1 {
                items.push(b',');
            }
            match &self.projection {
                Some(projection) => write_item(&projection.apply(&item), &mut items),
                None => items.extend_from_slice(row),
            }
        }
        items.push(b']');
        let count = count.to_string();
        let items = (!self.count).then_some(items.as_slice());
        let changes = [("Count", Some(count.as_bytes())), ("Items", items)];
        Ok(json::splice_members(answer, &changes).map_err(broken)?.into())
    }
}
