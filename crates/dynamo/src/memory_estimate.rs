//! Estimates how much memory a request takes while its body is read, by the embedded engine or here.
//!
//! Beside the text and copies of it, objects take it, and texts in lists: readers give a node of a tree to each object, and a string to each text.
//! What they keep of them, and how often they copy it, depends on the member of the request. The figures were measured with the engine that is
//! embedded (`gateway/tests/peak.rs` holds them against it); an upstream store's requests take less.

use crate::Operation;
use crate::json::{self, Members};

/// Bytes for each object and each text.
#[derive(Clone, Copy)]
struct Rate {
    object: usize,
    text: usize,
}

const fn rate(object: usize, text: usize) -> Rate {
    Rate { object, text }
}

/// Of a list of items or actions, those that are not the largest: of these only the result is kept.
const KEPT: Rate = rate(250, 100);

/// The elements of a batch or a transaction; more are refused.
const ELEMENTS: usize = 100;

/// The bytes that a request takes in memory while it is read and carried out. Costs two passes over its body, about 3 ms for a megabyte.
pub fn memory_estimate(operation: Operation, body: &[u8]) -> usize {
    let objects = members(body, &mut |name, value| match (name, operation) {
        (b"\"RequestItems\"", Operation::BatchWriteItem) => {
            members(value, &mut |_, requests| elements(requests, rate(900, 350))).unwrap_or(0)
        }
        (b"\"TransactItems\"", _) => elements(value, rate(1_300, 350)),
        (b"\"TransactStatements\"" | b"\"Statements\"", _) => elements(value, rate(1_200, 100)),
        (b"\"Parameters\"", _) => count(value).bytes(rate(1_200, 100)),
        (b"\"ExpressionAttributeValues\"", _) => count(value).bytes(rate(1_300, 350)),
        (b"\"ExclusiveStartKey\"", _) => count(value).bytes(rate(2_000, 350)),
        (b"\"Item\"" | b"\"Key\"" | b"\"AttributeUpdates\"" | b"\"RequestItems\"", _) => {
            count(value).bytes(rate(1_000, 350))
        }
        _ => count(value).bytes(rate(1_500, 350)),
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
fn elements(list: &[u8], rate: Rate) -> usize {
    let Some(elements) = json::few_elements(list, ELEMENTS).ok().flatten() else { return 0 };
    let sizes = || elements.iter().map(|element| count(element));
    let kept: usize = sizes().map(|size| size.bytes(KEPT)).sum();
    let largest = sizes().map(|size| size.bytes(rate)).max().unwrap_or_default();
    kept.saturating_add(largest)
}

/// How many objects and texts there are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Count {
    objects: usize,
    /// Without the names of members.
    texts: usize,
}

impl Count {
    fn bytes(self, rate: Rate) -> usize {
        self.objects.saturating_mul(rate.object).saturating_add(self.texts.saturating_mul(rate.text))
    }
}

fn count(raw: &[u8]) -> Count {
    let (mut found, mut at) = (Count::default(), 0);
    while let Some(step) = raw.get(at..).and_then(|rest| memchr::memchr3(b'{', b'"', b':', rest)) {
        at += step + 1;
        match raw.get(at - 1) {
            Some(b'{') => found.objects += 1,
            // The text before it was a name.
            Some(b':') => found.texts = found.texts.saturating_sub(1),
            _ => {
                found.texts += 1;
                at = end_of_text(raw, at);
            }
        }
    }
    found
}

/// Where the text ends that begins here.
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
    fn objects_and_texts_are_counted_and_names_and_what_is_within_texts_are_not() {
        let raw = br#"{"a":{"S":"{\"x\":{"},"b" : {"SS":["x","y","\\"]},"c":{"NULL":true},"d":{"M":{}}}"#;
        assert_eq!(count(raw), Count { objects: 6, texts: 4 });
        assert_eq!(count(br#"["a","b"#), Count { objects: 0, texts: 2 });
        assert_eq!(count(br#""\"#), Count { objects: 0, texts: 1 });
    }

    #[test]
    fn the_members_of_a_request_count_by_what_is_made_of_them() {
        let put = |item: &str| format!(r#"{{"TableName":"game","Item":{item}}}"#);
        let estimate = |operation, body: &str| memory_estimate(operation, body.as_bytes()) - 2 * body.len();
        assert_eq!(estimate(Operation::PutItem, &put(r#"{"a":{"NULL":true}}"#)), 350 + 2 * 1_000);
        let items = [r#"{"PutRequest":{"Item":{}}}"#; 10].join(",");
        let batch = format!(r#"{{"RequestItems":{{"game":[{items}]}}}}"#);
        assert_eq!(estimate(Operation::BatchWriteItem, &batch), 10 * 3 * 250 + 3 * 900);
        assert_eq!(estimate(Operation::PutItem, "no JSON {{{{"), 0);
    }
}
