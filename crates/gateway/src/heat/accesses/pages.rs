//! The access of a page: a Query of one key, or a Scan.

use heatsink_dynamo::capacity::Consistency;
use heatsink_dynamo::{Operation, json};
use heatsink_heat::costs::{Cost, CostOf, RequestKind};
use heatsink_trace as trace;

use super::condition;
use super::costing::{Halves, Known, consistency};
use super::items::{Finder, Found, text};
use super::key_text::key_text;

/// Adds the access of a Query or a Scan.
pub(super) fn find<'a>(finder: &mut Finder<'_, 'a>, operation: Operation, body: &'a [u8]) -> Option<()> {
    let names = [
        "TableName",
        "IndexName",
        "ConsistentRead",
        "FilterExpression",
        "KeyConditionExpression",
        "ExpressionAttributeNames",
        "ExpressionAttributeValues",
        "KeyConditions",
    ];
    let [table, index, consistent, filter, condition, names, values, legacy] =
        json::attributes_of(body, names).ok()?;
    let table = finder.table(table?)?;
    let index = match index {
        Some(index) => Some(table.index(&json::string(index).ok()?)?),
        None => None,
    };
    let attribute = index.map_or(Some(&table.partition), |index| index.partition.as_ref());
    let key = match (operation, attribute) {
        (Operation::Query, Some(attribute)) => match (condition, legacy) {
            (Some(text), _) => condition::partition(&json::string(text).ok()?, names, values, attribute),
            (None, Some(legacy)) => {
                let test = json::member(legacy, attribute).ok().flatten()?;
                let list = json::member(test, "AttributeValueList").ok().flatten()?;
                json::elements(list).ok()?.into_iter().next()
            }
            (None, None) => None,
        },
        _ => None,
    };
    let answer = finder.fate.answer();
    let consistency = consistency(consistent);
    let (bytes, units) = table.ratio.read(evaluated(filter, answer), consistency);
    let part = index.map_or(table.parts, |index| index.parts).read;
    let (kind, operation) = match operation {
        Operation::Query => (RequestKind::Query, trace::Operation::Query),
        _ => (RequestKind::Scan, trace::Operation::Scan),
    };
    let key = key.and_then(key_text);
    let outcome = finder.outcome(0, false, &table, index);
    let sized = finder.fate.is_done().then_some(units);
    let known = match finder.told.table(&table.name) {
        Some(told) => Known::Told(Cost { units: told.total(), deviation: 0 }),
        None => Known::sized(sized),
    };
    let of = CostOf { part, kind, key: text(key.as_ref()) };
    let cost = finder.price(of, Halves::of(consistency), outcome, known, sized);
    finder.found.push(Found {
        part,
        key,
        cost,
        outcome,
        adds: None,
        sort: None,
        page: Some(body),
        item: 0,
        operation,
        is_page: true,
        strong: consistency != Consistency::Eventual,
        items: if finder.recorded { (scanned(answer), bytes) } else { (0, 0) },
    });
    Some(())
}

/// The length of the items that a page was made of: with a filter, more than it shows.
fn evaluated(filter: Option<&[u8]>, answer: &[u8]) -> usize {
    if filter.is_none() {
        return answer.len();
    }
    let whole = |raw: Option<&[u8]>| raw.and_then(|raw| std::str::from_utf8(raw).ok()?.parse::<usize>().ok());
    let [shown, read] = json::attributes_of(answer, ["Count", "ScannedCount"]).unwrap_or_default();
    match (whole(shown), whole(read)) {
        (Some(shown), Some(read)) if shown > 0 => answer.len() * read.max(shown) / shown,
        _ => answer.len(),
    }
}

/// Items that a page is made of; 0 where the answer does not say.
fn scanned(answer: &[u8]) -> u32 {
    let count = json::member(answer, "ScannedCount").ok().flatten();
    count.and_then(|raw| std::str::from_utf8(raw).ok()?.parse().ok()).unwrap_or_default()
}
