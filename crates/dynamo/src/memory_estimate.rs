//! Estimates how much memory a request takes while its body is read, by the embedded engine or
//! here.
//!
//! Beside the text and copies of it, objects take it, and texts in lists: readers give a node of a
//! tree to each object, and a string to each text. What they keep of them, and how often they copy
//! it, depends on the member of the request. The figures were measured with the engine that is
//! embedded (`gateway/tests/peak.rs` holds them against it); an upstream store's requests take
//! less.

use crate::Operation;
use crate::json::{self, Members};

/// Bytes for each object, and for each text that is not a member's name.
#[derive(Clone, Copy)]
struct Rate {
    object: usize,
    text: usize,
}

const fn rate(object: usize, text: usize) -> Rate {
    Rate { object, text }
}

/// Of a list of items or actions, those that are not the largest: of these only the result is kept.
const KEPT: Rate = rate(150, 80);

/// The elements of a batch or a transaction; more are refused.
const ELEMENTS: usize = 100;

/// The bytes that a request takes in memory while it is read and carried out. Costs two passes over
/// its body, about 3 ms for a megabyte.
pub fn memory_estimate(operation: Operation, body: &[u8]) -> usize {
    let objects = members(body, &mut |name, value| match (name, operation) {
        (b"\"RequestItems\"", Operation::BatchWriteItem) => {
            members(value, &mut |_, requests| elements(requests, rate(1_000, 350), 3)).unwrap_or(0)
        }
        (b"\"TransactItems\"", _) => elements(value, rate(1_300, 350), 3),
        (b"\"TransactStatements\"" | b"\"Statements\"", _) => elements(value, rate(1_200, 100), 1),
        (b"\"Parameters\"", _) => nested(value, rate(1_200, 100), 0),
        (b"\"ExpressionAttributeValues\"", _) => nested(value, rate(1_300, 350), 1),
        (b"\"ExclusiveStartKey\"", _) => nested(value, rate(2_500, 350), 1),
        (b"\"Item\"" | b"\"Key\"", _) => nested(value, rate(1_000, 350), 1),
        (b"\"AttributeUpdates\"", _) => nested(value, rate(1_000, 350), 2),
        (b"\"RequestItems\"", _) => nested(value, rate(1_000, 350), 3),
        _ => nested(value, rate(1_500, 350), 2),
    });
    // What is no JSON object is refused before anything is kept of it.
    body.len().saturating_mul(2).saturating_add(objects.unwrap_or(0))
}

/// The sum of what is said of each member of an object.
fn members(object: &[u8], each: &mut dyn FnMut(&[u8], &[u8]) -> usize) -> Option<usize> {
    let mut walk = Members::open(object, json::space(object, 0)).ok()?;
    let mut sum = 0_usize;
    while let Some((name, value)) = walk.next().ok()? {
        sum = sum.saturating_add(each(name, value));
    }
    Some(sum)
}

/// The elements of a list, of which one is read at a time.
fn elements(list: &[u8], rate: Rate, around: usize) -> usize {
    let Some(elements) = json::few_elements(list, ELEMENTS).ok().flatten() else { return 0 };
    let kept: usize = elements.iter().map(|element| nested(element, KEPT, usize::MAX)).sum();
    let largest = elements.iter().map(|element| nested(element, rate, around)).max().unwrap_or_default();
    kept.saturating_add(largest)
}

/// An object that is open.
struct Open {
    /// What came before it.
    before: usize,
    /// The most of what is in it.
    most: usize,
    /// Whether it is an attribute value.
    is_value: bool,
}

/// The bytes of all objects and texts, and again of those of a value in a value, and so on inwards:
/// a reader copies each before it reads what is in it. So many objects `around` the values are no
/// values themselves.
fn nested(raw: &[u8], rate: Rate, around: usize) -> usize {
    let (mut all, mut most, mut at) = (0_usize, 0, 0);
    let mut open: Vec<Open> = Vec::new();
    // The last text, and whether it was the name `M`, whose object is a map of values.
    let (mut text, mut is_map) = (&b""[..], false);
    while let Some(byte) = raw.get(at) {
        at += 1;
        match byte {
            b'{' => {
                let in_value = open.last().is_some_and(|around| around.is_value);
                let is_value = open.len() >= around && !(in_value && is_map);
                open.push(Open { before: all, most: 0, is_value });
                all = all.saturating_add(rate.object);
            }
            b'}' => {
                let Some(closed) = open.pop() else { return all };
                let own = all.saturating_sub(closed.before);
                let bytes =
                    if closed.is_value { own.saturating_add(closed.most) } else { own.max(closed.most) };
                let outer = open.last_mut().map_or(&mut most, |around| &mut around.most);
                *outer = bytes.max(*outer);
            }
            // The text before it was a name.
            b':' => {
                all = all.saturating_sub(rate.text);
                is_map = text == b"M";
                continue;
            }
            b'"' => {
                let end = end_of_text(raw, at);
                text = raw.get(at..end.saturating_sub(1)).unwrap_or_default();
                all = all.saturating_add(rate.text);
                at = end;
            }
            b' ' | b'\n' | b'\t' | b'\r' => continue,
            _ => {}
        }
        is_map = false;
    }
    all.max(most)
}

/// Where the text ends that begins here, behind its last quote.
fn end_of_text(raw: &[u8], mut at: usize) -> usize {
    while let Some(step) = raw.get(at..).and_then(|rest| memchr::memchr2(b'"', b'\\', rest)) {
        at += step + 1;
        match raw.get(at - 1) {
            Some(b'\\') => at += 1,
            _ => return at,
        }
    }
    raw.len()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn objects_and_texts_count_and_names_and_what_is_within_texts_do_not() {
        let flat = |raw: &str| nested(raw.as_bytes(), rate(1_000, 1), usize::MAX);
        assert_eq!(
            flat(r#"{"a":{"S":"{\"x\":{"},"b" : {"SS":["x","y","\\"]},"c":{"NULL":true},"d":{"M":{}}}"#),
            6_004
        );
        assert_eq!([flat(r#"["a","b"#), flat(r#""\"#), flat("}}{")], [2, 1, 0]);
    }

    #[test]
    fn a_value_in_a_value_counts_once_for_each_around_it() {
        let item = |value: &str| nested(format!(r#"{{"a":{value}}}"#).as_bytes(), rate(1, 0), 1);
        assert_eq!(item(r#"{"NULL":true}"#), 2);
        assert_eq!(item(r#"{"L":[{"NULL":true},{"NULL":true}]}"#), 4);
        // The item and the outer list have four, the inner list three of them.
        assert_eq!(item(r#"{"L":[{"L":[{"NULL":true},{"NULL":true}]}]}"#), 4 + 3 + 1);
        // A map of values is no value, whatever the names in it.
        assert_eq!(item(r#"{"M":{"M":{"NULL":true}}}"#), 3 + 2);
        assert_eq!(item(r#"{"M":{"M":{"M":{"M":{"NULL":true}}}}}"#), 5 + 3 + 2);
        let deep =
            format!("{}{}{}", r#"{"L":["#.repeat(30), [r#"{"NULL":true}"#; 1_000].join(","), "]}".repeat(30));
        assert!((30_000..32_000).contains(&item(&deep)), "{}", item(&deep));
    }

    #[test]
    fn the_members_of_a_request_count_by_what_is_made_of_them() {
        let put = |item: &str| format!(r#"{{"TableName":"game","Item":{item}}}"#);
        let estimate = |operation, body: &str| memory_estimate(operation, body.as_bytes()) - 2 * body.len();
        assert_eq!(estimate(Operation::PutItem, &put(r#"{"a":{"NULL":true}}"#)), 350 + 2 * 1_000);
        let items = [r#"{"PutRequest":{"Item":{}}}"#; 10].join(",");
        let batch = format!(r#"{{"RequestItems":{{"game":[{items}]}}}}"#);
        assert_eq!(estimate(Operation::BatchWriteItem, &batch), 10 * 3 * 150 + 3 * 1_000);
        assert_eq!(estimate(Operation::PutItem, "no JSON {{{{"), 0);
    }
}
