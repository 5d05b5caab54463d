//! Asks the store what a request costs, and takes that out of the answer again, so that a client
//! who did not ask sees what it would have seen.
//!
//! Not here: which requests are asked for (`counted`), what becomes of the figures (`accesses`).

use std::ops::Range;

use bytes::{Buf, Bytes, BytesMut};
use heatsink_dynamo::{Error, Operation, json};

const MEMBER: &str = "ReturnConsumedCapacity";
const ANSWERED: &str = "ConsumedCapacity";
/// The longest body that is asked for, in bytes: asking copies it, beside the memory that requests
/// are granted.
const LONGEST: usize = 1 << 20;
/// How far from the end of an answer the figures may begin that are found without reading all of
/// it.
const NEAR_END: usize = 16 << 10;

/// A request on its way to the store.
pub(crate) struct AskedRequest {
    /// What is sent.
    pub(crate) body: Bytes,
    asks: Asks,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Asks {
    /// Nobody.
    Nobody,
    /// The client, who sees the figures.
    Client,
    /// The gateway alone.
    Gateway,
}

impl AskedRequest {
    /// The request, which asks for what it costs if it can and the client does not. A body that is
    /// not well-formed, and one that has the member already, stays as it is.
    pub(crate) fn new(operation: Operation, body: Bytes) -> Self {
        let asked = match (detail(operation), json::member(&body, MEMBER)) {
            (Some(detail), Ok(None)) => with_member(&body, detail),
            (Some(_), Ok(Some(_))) => return AskedRequest { body, asks: Asks::Client },
            _ => None,
        };
        match asked {
            Some(body) => AskedRequest { body, asks: Asks::Gateway },
            None => AskedRequest { body, asks: Asks::Nobody },
        }
    }

    /// A request that asks for nothing, where the client does not.
    pub(crate) fn unasked(body: Bytes) -> Self {
        AskedRequest { body, asks: Asks::Nobody }
    }

    /// The answer as the client is to see it, and the figures in it: the value of
    /// `ConsumedCapacity`.
    pub(crate) fn answered(&self, answer: Result<Bytes, Error>) -> (Result<Bytes, Error>, Option<Bytes>) {
        let Ok(answer) = answer else { return (answer, None) };
        if self.asks == Asks::Nobody {
            return (Ok(answer), None);
        }
        let Some(value) = figures(&answer) else { return (Ok(answer), None) };
        // A copy, so that the answer is not held by two.
        let told = answer.get(value.clone()).map(Bytes::copy_from_slice);
        match self.asks {
            Asks::Gateway => (Ok(without(answer, &value)), told),
            _ => (Ok(answer), told),
        }
    }
}

/// How much a request asks for: of what may write to indexes, each of them apart.
fn detail(operation: Operation) -> Option<&'static str> {
    match operation {
        Operation::GetItem
        | Operation::Query
        | Operation::Scan
        | Operation::BatchGetItem
        | Operation::TransactGetItems => Some("TOTAL"),
        Operation::PutItem
        | Operation::UpdateItem
        | Operation::DeleteItem
        | Operation::BatchWriteItem
        | Operation::TransactWriteItems
        | Operation::ExecuteStatement
        | Operation::BatchExecuteStatement
        | Operation::ExecuteTransaction => Some("INDEXES"),
        _ => None,
    }
}

/// The object with the member behind its last one; `None` for an empty object and for a long one.
fn with_member(body: &[u8], detail: &str) -> Option<Bytes> {
    let end = body.iter().rposition(|byte| *byte == b'}').filter(|_| body.len() <= LONGEST)?;
    let (members, rest) = body.split_at_checked(end)?;
    if members.trim_ascii().ends_with(b"{") {
        return None;
    }
    let mut asked = Vec::with_capacity(body.len() + MEMBER.len() + detail.len() + 6);
    asked.extend_from_slice(members);
    for part in [",\"", MEMBER, "\":\"", detail, "\""] {
        asked.extend_from_slice(part.as_bytes());
    }
    asked.extend_from_slice(rest);
    Some(Bytes::from(asked))
}

/// Where the figures are in an answer.
fn figures(answer: &[u8]) -> Option<Range<usize>> {
    let place = |value: &[u8]| {
        let start = (value.as_ptr() as usize).checked_sub(answer.as_ptr() as usize)?;
        Some(start..start + value.len())
    };
    first(answer)
        .and_then(place)
        .or_else(|| near_end(answer))
        .or_else(|| place(json::member(answer, ANSWERED).ok()??))
}

/// The figures where they are the first member, as DynamoDB writes them: no item is read.
fn first(answer: &[u8]) -> Option<&[u8]> {
    answer.strip_prefix(b"{\"")?.strip_prefix(ANSWERED.as_bytes())?.strip_prefix(b"\":")?;
    json::first_member(answer).ok()?.map(|(_, value)| value)
}

/// The same where they are the last member: found from the end, without reading the items before.
/// In a well-formed answer nothing else looks so, because in a text quotes are escaped.
fn near_end(answer: &[u8]) -> Option<Range<usize>> {
    let end = answer.len().checked_sub(1).filter(|end| answer.get(*end) == Some(&b'}'))?;
    let mut open = 0_usize;
    let from = end.saturating_sub(NEAR_END);
    // Nothing else ends there: a number is a count, and all items stand before it.
    let near = answer.get(from..end).filter(|near| near.ends_with(b"}") || near.ends_with(b"]"))?;
    // Names of tables and indexes have no brackets.
    let start = from
        + near.iter().rposition(|byte| match byte {
            b'}' | b']' => {
                open += 1;
                false
            }
            b'{' | b'[' => {
                open = open.saturating_sub(1);
                open == 0
            }
            _ => false,
        })?;
    let before = answer.get(..start)?.strip_suffix(b"\":")?.strip_suffix(ANSWERED.as_bytes())?;
    let is_member = before.ends_with(b",\"") || before == b"{\"";
    let whole = json::trim(answer.get(start..end)?).is_ok();
    (is_member && whole).then_some(start..end)
}

/// The answer without the member that has this value.
fn without(answer: Bytes, value: &Range<usize>) -> Bytes {
    let Some(member) = member_of(&answer, value) else {
        // The name is written with escapes.
        return json::splice_members(&answer, &[(ANSWERED, None)]).map_or(answer, Bytes::from);
    };
    match answer.try_into_mut() {
        Ok(own) => cut(own, member).freeze(),
        Err(shared) => {
            let (before, after) = (shared.get(..member.start), shared.get(member.end..));
            Bytes::from([before.unwrap_or_default(), after.unwrap_or_default()].concat())
        }
    }
}

/// Where the member is that has this value, with one of the commas beside it.
fn member_of(answer: &[u8], value: &Range<usize>) -> Option<Range<usize>> {
    let (before, after) = (answer.get(..value.start)?.trim_ascii_end(), answer.get(value.end..)?);
    let before = before.strip_suffix(b":")?.trim_ascii_end().strip_suffix(b"\"")?;
    let before = before.strip_suffix(ANSWERED.as_bytes())?.strip_suffix(b"\"")?;
    if let Some(before) = before.trim_ascii_end().strip_suffix(b",") {
        return Some(before.len()..value.end);
    }
    let rest = after.trim_ascii_start();
    let rest = rest.strip_prefix(b",").unwrap_or(rest);
    Some(before.len()..answer.len() - rest.len())
}

/// The bytes without that range. What is moved is the shorter one of what is before and behind it:
/// of a long page the figures come first or last.
fn cut(mut bytes: BytesMut, gone: Range<usize>) -> BytesMut {
    let (before, after) = (gone.start, bytes.len() - gone.end);
    if before <= after {
        bytes.copy_within(..gone.start, gone.len());
        bytes.advance(gone.len());
    } else {
        bytes.copy_within(gone.end.., gone.start);
        bytes.truncate(before + after);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FIGURES: &str = r#"{"TableName":"a.b-c_d","CapacityUnits":2.5,"Table":{"CapacityUnits":2.0},"GlobalSecondaryIndexes":{"i":{"CapacityUnits":0.5}}}"#;

    fn taken(request: &AskedRequest, answer: &str) -> (String, Option<String>) {
        let text = |bytes: Bytes| String::from_utf8(bytes.into()).unwrap();
        let bytes = Bytes::copy_from_slice(answer.as_bytes());
        let held = bytes.clone();
        let (copied, _) = request.answered(Ok(bytes));
        assert_eq!(held, answer, "another one holds it");
        let (cut, told) = request.answered(Ok(Bytes::copy_from_slice(answer.as_bytes())));
        let (cut, copied) = (text(cut.unwrap()), text(copied.unwrap()));
        assert_eq!(cut, copied);
        (cut, told.map(text))
    }

    #[test]
    fn a_page_that_nobody_else_holds_is_not_copied() {
        let request = AskedRequest::new(Operation::Query, Bytes::from_static(br#"{"TableName":"t"}"#));
        let items = format!(r#""Items":[{}]"#, vec![r#"{"a":{"S":"b"}}"#; 1_000].join(","));
        for answer in [
            format!(r#"{{"ConsumedCapacity":{FIGURES},{items}}}"#),
            format!(r#"{{{items},"ConsumedCapacity":{FIGURES}}}"#),
        ] {
            let answer = Bytes::from(answer);
            let place = answer.as_ptr() as usize..answer.as_ptr() as usize + answer.len();
            let (kept, told) = request.answered(Ok(answer));
            let kept = kept.unwrap();
            assert_eq!(
                (&*kept, told.as_deref()),
                (format!("{{{items}}}").as_bytes(), Some(FIGURES.as_bytes()))
            );
            assert!(place.contains(&(kept.as_ptr() as usize)));
        }
    }

    #[test]
    fn only_well_formed_requests_without_the_member_are_asked_for() {
        let asked =
            |body: &str| AskedRequest::new(Operation::PutItem, Bytes::copy_from_slice(body.as_bytes()));
        assert_eq!(
            asked("{\"TableName\" : \"t\"} \n").body,
            "{\"TableName\" : \"t\",\"ReturnConsumedCapacity\":\"INDEXES\"} \n"
        );
        for body in [
            "",
            "{}",
            "{ }",
            "[1]",
            r#"{"a":1"#,
            r#"{"a":1}}"#,
            r#"{"a":}"#,
            r#"{"ReturnConsumedCapacity":"NONE"}"#,
            r#"{"a":{},"ReturnConsumedCapacity":null}"#,
            r#"{"\u0052eturnConsumedCapacity":7,"b":1}"#,
        ] {
            assert_eq!(asked(body).body, body);
        }
        let body = Bytes::from_static(br#"{"TableName":"t"}"#);
        assert_eq!(AskedRequest::new(Operation::DescribeTable, body.clone()).body, body);
    }

    #[test]
    fn a_client_that_asks_sees_the_figures_and_others_see_their_answer() {
        let own = AskedRequest::new(
            Operation::GetItem,
            Bytes::from_static(br#"{"TableName":"t","ReturnConsumedCapacity":"TOTAL"}"#),
        );
        let answer = format!(r#"{{"Item":{{}},"ConsumedCapacity":{FIGURES}}}"#);
        assert_eq!(taken(&own, &answer), (answer.clone(), Some(FIGURES.to_owned())));
        let ours = AskedRequest::new(Operation::GetItem, Bytes::from_static(br#"{"TableName":"t"}"#));
        for (with, without) in [
            (answer.as_str(), r#"{"Item":{}}"#),
            (&format!(r#"{{"ConsumedCapacity":{FIGURES}}}"#), "{}"),
            (&format!(r#"{{"ConsumedCapacity":{FIGURES},"Item":{{"}}":"{{"}}}}"#), r#"{"Item":{"}":"{"}}"#),
            (
                &format!("{{ \"a\": 1, \"ConsumedCapacity\" : {FIGURES} , \"b\": 2 }}"),
                "{ \"a\": 1 , \"b\": 2 }",
            ),
            (&format!(r#"{{"\u0043onsumedCapacity":{FIGURES}}}"#), "{}"),
        ] {
            assert_eq!(taken(&ours, with), (without.to_owned(), Some(FIGURES.to_owned())), "{with}");
        }
        for none in
            ["{}", "", "{", r#"{"a":{"ConsumedCapacity":{}}}"#, r#"{"a":"x,\"ConsumedCapacity\":{}"}"#]
        {
            assert_eq!(taken(&ours, none), (none.to_owned(), None));
        }
    }

    proptest! {
        /// Whatever the items hold, the answer is what it is without the figures, whether they come
        /// first, last, or between others.
        #[test]
        fn the_answer_is_that_of_a_client_alone(
            texts in prop::collection::vec(
                prop_oneof![any::<String>(), Just(r#","ConsumedCapacity":{}}"#.to_owned()), Just("}]{[\\".to_owned())],
                0..4,
            ),
            at in 0_usize..5, many: bool,
        ) {
            let mut members: Vec<String> = texts.iter().enumerate()
                .map(|(nth, text)| format!("\"m{nth}\":{}", serde_json::json!([{ "S": text }, { text: 1 }]))).collect();
            let alone = format!("{{{}}}", members.join(","));
            let value = if many { format!("[{FIGURES},{FIGURES}]") } else { FIGURES.to_owned() };
            members.insert(at.min(members.len()), format!("\"ConsumedCapacity\":{value}"));
            let request = AskedRequest::new(Operation::GetItem, Bytes::from_static(br#"{"TableName":"t"}"#));
            prop_assert_eq!(taken(&request, &format!("{{{}}}", members.join(","))), (alone, Some(value)));
        }
    }
}
