//! Requests with mistakes: which of the answers to them are equal enough.
//!
//! DynamoDB reads the whole of every expression before it does anything, and so do the embedded
//! store and sharding. Which of several mistakes is told can differ. This file says of a request by
//! itself, not of its answers, whether its placeholders are in order.

use std::collections::BTreeSet;

use heatsink_dynamo::Number;
use serde_json::Value as Json;

use crate::compare::Answer;
use crate::generate::Step;
use crate::judge::Judge;
use crate::lacking;

/// How the two answers to one request stand to each other.
#[derive(Debug, PartialEq, Eq)]
pub enum Comparison {
    /// To be compared.
    Comparable,
    /// Both refuse, each for another of several mistakes.
    EitherMistake,
    /// Both refuse the same, each in words of its own (`lacking`); or what only a cursor that
    /// nobody was given meets.
    OtherWords,
}

/// What `plain` and `sharded` are to each other. Only a request that DynamoDB is known to refuse is
/// ever anything but comparable.
pub fn compared(judge: Judge, step: &Step, plain: &Answer, sharded: &Answer) -> Comparison {
    let message = |answer: &Answer| answer.error.as_ref().and_then(|(_, message, _)| message.clone());
    let code = |answer: &Answer| answer.error.as_ref().map(|(code, _, _)| code.clone());
    if plain.error == sharded.error {
        return Comparison::Comparable;
    }
    if let (Judge::DynamoDbLocal, Some(server), Some(ours)) = (judge, message(plain), message(sharded))
        && code(plain) == code(sharded)
        && lacking::same_refusal(step, &server, &ours)
    {
        return Comparison::OtherWords;
    }
    if starts_at_end(step) && sharded.error.is_none() && message(plain).as_deref() == Some(AT_END) {
        return Comparison::OtherWords;
    }
    let refused = code(sharded).as_deref() == Some("ValidationException");
    let disorder = disorder(&step.body);
    // The tables of a batch and the attributes of a legacy condition are members of a JSON object,
    // which has no order.
    let several = ["RequestItems", "Expected", "KeyConditions", "QueryFilter", "ScanFilter"]
        .iter()
        .any(|name| step.body[*name].as_object().is_some_and(|members| members.len() > 1));
    match (code(plain), code(sharded)) {
        // The token of another transaction, and a table that is not there: items that other writers
        // place are looked for first.
        (Some(plain), Some(sharded))
            if plain == "IdempotentParameterMismatchException" && sharded == "ResourceNotFoundException" =>
        {
            Comparison::EitherMistake
        }
        // Of several tables of a batch one is not there, and another has a mistake of its own.
        (Some(plain), Some(sharded))
            if several
                && [&plain, &sharded].iter().all(|code| {
                    ["ResourceNotFoundException", "ValidationException"].contains(&code.as_str())
                }) =>
        {
            Comparison::EitherMistake
        }
        (Some(plain), Some(sharded)) if (several || disorder.unused) && plain == sharded => {
            Comparison::EitherMistake
        }
        // An index that is not there, and a position in it that nobody was given.
        (Some(plain), Some(sharded))
            if plain == sharded
                && step.body["IndexName"] == "no-such-index"
                && step.body.get("ExclusiveStartKey").is_some() =>
        {
            Comparison::EitherMistake
        }
        (Some(_), _) if disorder.undefined && refused => Comparison::EitherMistake,
        _ => Comparison::Comparable,
    }
}

/// What DynamoDB says of a cursor on the inclusive end of a Query's condition.
const AT_END: &str = "The provided starting key does not match the range key predicate";

/// Whether a Query of a table begins on the end that its condition includes, behind which nothing
/// can be. No page gives such a cursor; a request that comes with one gets an empty page of a table
/// with rules, since earlier builds gave them out, where DynamoDB refuses it.
fn starts_at_end(step: &Step) -> bool {
    let body = &step.body;
    if step.operation != "Query" || body.get("IndexName").is_some() {
        return false;
    }
    let Some(start) = body["ExclusiveStartKey"].get("sk") else { return false };
    let number = |value: &Json| value["N"].as_str().and_then(|text| Number::parse(text).ok());
    let is_start = |value: &Json| {
        value == start || matches!((number(value), number(start)), (Some(a), Some(b)) if a == b)
    };
    let text = body["KeyConditionExpression"].as_str().unwrap_or_default();
    let mut operands: Vec<&Json> =
        placeholders(text).filter_map(|name| body["ExpressionAttributeValues"].get(name)).collect();
    operands.extend(body["KeyConditions"]["sk"]["AttributeValueList"].as_array().into_iter().flatten());
    let operator = body["KeyConditions"]["sk"]["ComparisonOperator"].as_str().unwrap_or_default();
    let inclusive = ["<=", ">=", "BETWEEN"].iter().any(|name| text.contains(name))
        || ["LE", "GE", "BETWEEN"].contains(&operator);
    inclusive && operands.into_iter().any(is_start)
}

/// What is wrong with a request's placeholders.
#[derive(Debug, Default, PartialEq, Eq)]
struct Disorder {
    /// An expression uses one that is not defined beside it.
    undefined: bool,
    /// One is defined that no expression beside it uses.
    unused: bool,
}

fn disorder(body: &Json) -> Disorder {
    let mut found = Disorder::default();
    walk(body, &mut found);
    found
}

fn walk(value: &Json, found: &mut Disorder) {
    match value {
        Json::Object(members) => {
            let mut used = BTreeSet::new();
            for (name, text) in members {
                if let (true, Json::String(text)) = (name.ends_with("Expression"), text) {
                    used.extend(placeholders(text));
                }
            }
            let defined: BTreeSet<&str> = ["ExpressionAttributeNames", "ExpressionAttributeValues"]
                .into_iter()
                .filter_map(|name| members.get(name)?.as_object())
                .flat_map(|defined| defined.keys().map(String::as_str))
                .collect();
            found.undefined |= !used.is_subset(&defined);
            found.unused |= !defined.is_subset(&used);
            members.values().for_each(|member| walk(member, found));
        }
        Json::Array(elements) => elements.iter().for_each(|element| walk(element, found)),
        _ => {}
    }
}

/// The `#name`s and `:value`s of an expression, which has no other use for these signs.
pub(crate) fn placeholders(text: &str) -> impl Iterator<Item = &str> {
    text.match_indices(['#', ':']).map(|(at, sign)| {
        let rest = &text[at + sign.len()..];
        let end = rest.find(|letter: char| !letter.is_alphanumeric() && letter != '_').unwrap_or(rest.len());
        &text[at..at + sign.len() + end]
    })
}

#[test]
fn a_requests_placeholders_are_in_order_or_not() {
    let of = |body: Json| disorder(&body);
    let fine = serde_json::json!({"FilterExpression": "#a = :b AND a < :b", "ExpressionAttributeNames": {"#a": "x"},
        "ExpressionAttributeValues": {":b": {"S": "#c :d"}}});
    assert_eq!(of(fine.clone()), Disorder::default());
    let mut undefined = fine.clone();
    undefined["ProjectionExpression"] = serde_json::json!("y.#z[0]");
    assert_eq!(of(undefined.clone()), Disorder { undefined: true, unused: false });
    let mut unused = fine.clone();
    unused["ExpressionAttributeValues"][":u"] = serde_json::json!({"S": ""});
    assert_eq!(of(unused), Disorder { undefined: false, unused: true });
    // Each action of a transaction has its own.
    let nested = serde_json::json!({"TransactItems": [{"Update": fine}, {"Update": undefined}]});
    assert_eq!(of(nested), Disorder { undefined: true, unused: false });
}
