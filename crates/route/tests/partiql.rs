//! PartiQL: where keys change in statements and parameters, what is read how, what is refused.

#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking, its helper functions included"
)]

use crate::common::{Fixed, answered, json, plan, run, sent};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use heatsink_dynamo::{Code, Error, Operation};
use heatsink_route::Router;
use proptest::prelude::*;
use serde_json::{Value as Json, json};

fn statement(text: &str, parameters: &[Json]) -> String {
    let mut body = json!({ "Statement": text });
    if !parameters.is_empty() {
        body["Parameters"] = json!(parameters);
    }
    body.to_string()
}

/// The shard suffix of the item, out of what a PutItem sends.
fn suffix(pk: &str, sk: &str) -> String {
    let item = json!({"TableName": "Tab", "Item": {"pk": {"S": pk}, "sk": {"S": sk}}});
    let put = json(sent(Operation::PutItem, &item.to_string()).as_bytes());
    put["Item"]["pk"]["S"].as_str().unwrap().strip_prefix(pk).unwrap().to_owned()
}

/// A sort key whose item is not in shard 0.
fn elsewhere(pk: &str) -> (String, String) {
    let sort = (0..).map(|number| format!("s{number}")).find(|sk| !suffix(pk, sk).is_empty()).unwrap();
    (sort.clone(), suffix(pk, &sort))
}

#[test]
fn the_key_of_a_statement_is_made_physical_where_it_stands() {
    let (sk, suffix) = elsewhere("it's");
    let literal = format!("it''s{suffix}");
    for (text, expected) in [
        (format!("INSERT INTO Tab VALUE {{'pk': 'it''s', 'sk': '{sk}', 'a': 'it''s'}}"), 1),
        (format!("UPDATE Tab SET a = 'it''s' WHERE pk = 'it''s' AND sk = '{sk}'"), 1),
        (format!("DELETE FROM \"Tab\" WHERE 'it''s' = pk AND (sk = '{sk}') AND a = 'it''s'"), 1),
        (format!("SELECT a FROM Tab WHERE pk IN ['it''s'] AND sk = '{sk}'"), 1),
        (format!("DELETE FROM Tab WHERE pk = 'it''s' AND sk = '{sk}' AND pk = 'it''s'"), 2),
    ] {
        let sent = json(sent(Operation::ExecuteStatement, &statement(&text, &[])).as_bytes());
        let sent = sent["Statement"].as_str().unwrap();
        assert_eq!(sent.matches(&literal).count(), expected, "{sent}");
        assert_eq!(sent.replace(&literal, "it''s"), text);
    }
    let text = "UPDATE Tab SET a = ? WHERE sk = ? AND pk = ?";
    let value = |text: &str| json!({ "S": text });
    let body = statement(text, &[value("it's"), value(&sk), value("it's")]);
    let sent = json(sent(Operation::ExecuteStatement, &body).as_bytes());
    assert_eq!(sent["Parameters"], json!([value("it's"), value(&sk), value(&format!("it's{suffix}"))]));
    assert_eq!(sent["Statement"], text);
}

/// A store with the items `a`/`b` and `a`/`c`, which refuses cursors on the last sort key as
/// DynamoDB does.
fn two_items(body: &Bytes) -> Result<Bytes, Error> {
    let asked = json(body);
    let condition = asked["KeyConditionExpression"].as_str().unwrap();
    let inclusive = condition.contains("<=") || condition.contains("BETWEEN");
    if inclusive && asked["ExclusiveStartKey"]["sk"]["S"] == "c" {
        return Err(Error::validation("The provided starting key does not match the range key predicate"));
    }
    let from = asked["ExclusiveStartKey"]["sk"]["S"].as_str().unwrap_or_default();
    let values = asked["ExpressionAttributeValues"].to_string();
    let items =
        ["b", "c"].into_iter().filter(|sk| *sk > from).map(|sk| (format!("a{}", suffix("a", sk)), sk));
    let here = items.filter(|(pk, _)| values.contains(&format!("\"{pk}\"")));
    let items: Vec<Json> = here.map(|(pk, sk)| json!({"pk": {"S": pk}, "sk": {"S": sk}})).collect();
    let answer = json!({"Count": items.len(), "ScannedCount": items.len(), "Items": items});
    Ok(Bytes::from(answer.to_string()))
}

#[test]
fn a_full_page_at_the_end_of_the_condition_is_gone_on_from() {
    for (keys, last) in [("pk = 'a'", 2), ("pk IN ['a', 'other']", 2)] {
        for clause in ["sk <= 'c'", "sk BETWEEN 'a' AND 'c'", "sk > 'a'"] {
            let text = format!("SELECT * FROM Tab WHERE {keys} AND {clause}");
            let page = |token: Option<&Json>| {
                let mut body = json!({"Statement": text, "Limit": 2});
                token.into_iter().for_each(|token| body["NextToken"] = token.clone());
                let statement = |operation, body: &Bytes| match operation {
                    Operation::Query => two_items(body),
                    // The store takes the statement, which is all that it is asked.
                    _ => Ok(Bytes::from_static(b"{}")),
                };
                json(&run(plan(Operation::ExecuteStatement, &body.to_string()).unwrap(), statement).unwrap())
            };
            let first = page(None);
            assert_eq!(first["Items"].as_array().unwrap().len(), last, "{text}");
            let second = page(Some(&first["NextToken"]));
            assert_eq!((&second["Items"], &second["NextToken"]), (&json!([]), &Json::Null), "{text}");
        }
    }
}

#[test]
fn a_select_that_the_store_is_certain_to_take_is_not_shown_to_it_first() {
    let is_shown = |text: &str| {
        let body = json!({ "Statement": text, "Limit": 10 }).to_string();
        let mut shown = false;
        let answer = run(plan(Operation::ExecuteStatement, &body).unwrap(), |operation, _| {
            shown |= operation == Operation::ExecuteStatement;
            Ok(Bytes::from_static(br#"{"Items":[],"Count":0,"ScannedCount":0}"#))
        });
        assert!(answer.is_ok(), "{text}: {answer:?}");
        shown
    };
    for text in ["SELECT a FROM Tab WHERE pk = 'a'", "SELECT * FROM Tab WHERE pk = 'a' AND sk > 'b'"] {
        assert!(!is_shown(text), "{text}");
    }
    for text in ["SELECT a, b FROM Tab WHERE pk = 'a'", "SELECT * FROM Tab WHERE pk = 'a' AND b = 1"] {
        assert!(is_shown(text), "{text}");
    }
}

#[test]
fn a_table_may_be_named_by_its_arn() {
    let (sk, suffix) = elsewhere("a");
    let arn = "arn:aws:dynamodb:eu-west-1:123456789012:table/Tab";
    let text = format!("DELETE FROM \"{arn}\" WHERE pk = 'a' AND sk = '{sk}'");
    let physical = text.replace("'a'", &format!("'a{suffix}'"));
    let one = json(sent(Operation::ExecuteStatement, &statement(&text, &[])).as_bytes());
    assert_eq!(one["Statement"], physical);
    let batch = json!({"Statements": [{"Statement": text}]}).to_string();
    let batch = json(sent(Operation::BatchExecuteStatement, &batch).as_bytes());
    assert_eq!(batch["Statements"][0]["Statement"], physical);
}

#[test]
fn a_test_of_the_key_is_decided_here_and_its_parameters_dropped() {
    let (sk, suffix) = elsewhere("a");
    let text = "DELETE FROM Tab WHERE pk = ? AND sk = ? AND NOT (pk = ? OR pk <> 'a') AND b = ?";
    let value = |text: &str| json!({ "S": text });
    let body = statement(text, &[value("a"), value(&sk), value("z"), value("v")]);
    let sent = json(sent(Operation::ExecuteStatement, &body).as_bytes());
    assert_eq!(
        sent["Statement"],
        "DELETE FROM Tab WHERE pk = ? AND sk = ? AND NOT (1 = 0 OR 1 = 0) AND b = ?"
    );
    assert_eq!(sent["Parameters"], json!([value(&format!("a{suffix}")), value(&sk), value("v")]));
    for refused in ["begins_with(pk, 'a')", "pk = b", "pk > 'a'"] {
        let text = format!("DELETE FROM Tab WHERE pk = 'a' AND sk = '{sk}' AND {refused}");
        let error = plan(Operation::ExecuteStatement, &statement(&text, &[])).unwrap_err();
        assert!(error.message.unwrap().contains("not supported on a sharded table"), "{refused}");
    }
    let text = format!("UPDATE Tab SET b = pk WHERE pk = 'a' AND sk = '{sk}'");
    assert!(plan(Operation::ExecuteStatement, &statement(&text, &[])).is_err());
}

#[test]
fn answers_and_failed_conditions_hold_logical_keys() {
    let (sk, suffix) = elsewhere("a");
    let text = format!("DELETE FROM Tab WHERE pk = 'a' AND sk = '{sk}' RETURNING ALL OLD *");
    let item = json!({"pk": {"S": format!("a{suffix}")}, "sk": {"S": sk}});
    let answer = json!({ "Items": [item] }).to_string();
    let logical =
        json(answered(Operation::ExecuteStatement, &statement(&text, &[]), &answer).unwrap().as_bytes());
    assert_eq!(logical["Items"][0]["pk"]["S"], "a");
    let failed = run(plan(Operation::ExecuteStatement, &statement(&text, &[])).unwrap(), |_, _| {
        Err(Error::new(Code::ConditionalCheckFailedException, "failed").with("Item", item.clone()))
    });
    assert_eq!(failed.unwrap_err().members["Item"]["pk"]["S"], "a");

    let list = json!([{"Statement": text}, {"Statement": "DELETE FROM Other WHERE pk = 'a#~3'"}]);
    let batch = json!({ "Statements": list }).to_string();
    let answer = json!({"Responses": [
        {"TableName": "Tab", "Error": {"Code": "ConditionalCheckFailed", "Item": item}},
        {"TableName": "Other", "Item": {"pk": {"S": "a#~3"}}},
    ]});
    let got =
        json(answered(Operation::BatchExecuteStatement, &batch, &answer.to_string()).unwrap().as_bytes());
    assert_eq!(got["Responses"][0]["Error"]["Item"]["pk"]["S"], "a");
    assert_eq!(got["Responses"][1]["Item"]["pk"]["S"], "a#~3", "not a sharded table");

    let transaction = json!({"TransactStatements": list, "ClientRequestToken": "t"}).to_string();
    assert_eq!(json(sent(Operation::ExecuteTransaction, &transaction).as_bytes())["ClientRequestToken"], "t");
    let error = run(plan(Operation::ExecuteTransaction, &transaction).unwrap(), |_, _| {
        let reasons = json!([{"Code": "ConditionalCheckFailed", "Item": item}, {"Code": "None"}]);
        Err(Error::new(Code::TransactionCanceledException, "cancelled").with("CancellationReasons", reasons))
    });
    assert_eq!(error.unwrap_err().members["CancellationReasons"][0]["Item"]["pk"]["S"], "a");
}

#[test]
fn what_must_not_be_written_goes_under_the_name_of_no_table() {
    for text in [
        "UPDATE Tab SET a = 1 WHERE pk = 'a'",
        "DELETE FROM \"Tab\" WHERE pk = 'a' OR sk = 'b'",
        "DELETE FROM Tab WHERE pk = 'a' AND sk = 'b' AND pk = 'c'",
        "UPDATE Tab SOMETHING ELSE",
        "INSERT INTO 'Tab' VALUE ?",
        "/* SELECT */ DELETE FROM Tab WHERE pk IN ('a', 'b') AND sk = 'c'",
        "INSERT INTO Tab VALUE {'pk': 'a', 'sk': 'b', 'pk': 'c'}",
        "DELETE FROM Tab WHERE pk = ? AND sk = 'b'",
    ] {
        let body = statement(text, &[]);
        let sent = json(sent(Operation::ExecuteStatement, &body).as_bytes());
        assert!(sent["Statement"].as_str().unwrap().contains("\"!Tab\""), "{sent}");
        let refused = |code: Code, message: &'static str| {
            run(plan(Operation::ExecuteStatement, &body).unwrap(), |_, _| {
                Err(Error::new(Code::clone(&code), message))
            })
            .unwrap_err()
        };
        assert_eq!(
            refused(Code::ValidationException, "Statement wasn't well formed").message.unwrap(),
            "Statement wasn't well formed"
        );
        assert_eq!(refused(Code::ResourceNotFoundException, "no table").code, Code::ValidationException);
        let batch = json!({"Statements": [{"Statement": text}]}).to_string();
        let answer = r#"{"Responses":[{"Error":{"Code":"ResourceNotFound","Message":"no table"}}]}"#;
        let got = json(answered(Operation::BatchExecuteStatement, &batch, answer).unwrap().as_bytes());
        assert_eq!(got["Responses"][0]["Error"]["Code"], "ValidationError");
    }
}

/// Twenty items of a key, in their shards.
fn shard(body: &Bytes) -> Result<Bytes, Error> {
    let request = json(body);
    let key = request["ExpressionAttributeValues"]
        .as_object()
        .unwrap()
        .values()
        .find_map(|value| value["S"].as_str().filter(|text| text.starts_with("game")));
    let key = key.unwrap();
    let start = request["ExclusiveStartKey"]["sk"]["S"].as_str().unwrap_or("");
    let limit = usize::try_from(request["Limit"].as_u64().unwrap_or(100)).unwrap();
    let items: Vec<Json> = (0..20)
        .map(|number| (number, format!("{number:02}")))
        .filter(|(_, sk)| format!("game{}", suffix("game", sk)) == key && sk.as_str() > start)
        .map(|(number, sk)| json!({"pk": {"S": key}, "v": {"N": number.to_string()}, "sk": {"S": sk}}))
        .collect();
    let page = &items[..limit.min(items.len())];
    let mut answer = json!({"Items": page, "Count": page.len(), "ScannedCount": page.len()});
    if items.len() > page.len() || page.len() == limit {
        let last = page.last().unwrap();
        answer["LastEvaluatedKey"] = json!({"pk": last["pk"], "sk": last["sk"]});
    }
    Ok(Bytes::from(answer.to_string()))
}

fn select(body: &Json) -> Result<Json, Error> {
    let answer =
        run(plan(Operation::ExecuteStatement, &body.to_string())?, |operation, body| match operation {
            Operation::Query => shard(body),
            _ => Ok(Bytes::from_static(b"{\"Items\":[]}")),
        });
    answer.map(|answer| json(&answer))
}

/// Every shard is asked for the index that the statement names, in the order of that index's sort
/// key.
#[test]
fn a_select_of_an_index_reads_that_index() {
    for (index, sort) in [("by_at", "at"), ("by_player", "player")] {
        let text = format!(
            "SELECT * FROM \"Indexed\".\"{index}\" WHERE pk = 'game' AND {sort} > '5' ORDER BY {sort} DESC"
        );
        let mut queries = Vec::new();
        let answer =
            run(plan(Operation::ExecuteStatement, &statement(&text, &[])).unwrap(), |operation, body| {
                assert!(matches!(operation, Operation::Query | Operation::ExecuteStatement), "{operation:?}");
                if operation == Operation::Query {
                    queries.push(json(body));
                }
                Ok(Bytes::from_static(b"{\"Items\":[],\"Count\":0,\"ScannedCount\":0}"))
            });
        assert_eq!(json(&answer.unwrap())["Items"], json!([]));
        assert_eq!(queries.len(), 10);
        for query in &queries {
            assert_eq!(query["IndexName"], index);
            assert_eq!(query["ScanIndexForward"], false);
            let named = query["ExpressionAttributeNames"].to_string();
            let condition = query["KeyConditionExpression"].to_string();
            assert!(named.contains(sort) || condition.contains(sort), "{query}");
        }
    }
}

#[test]
fn a_select_is_read_page_by_page_in_order() {
    let text = "SELECT sk FROM Tab WHERE pk = 'game' AND v <> 7";
    for limit in 1..25 {
        let mut body = json!({"Statement": text, "Limit": limit});
        let mut seen = Vec::new();
        for _ in 0..30 {
            let page = select(&body).unwrap();
            let items = page["Items"].as_array().unwrap();
            assert!(items.len() <= limit);
            seen.extend(items.iter().map(|item| item["sk"]["S"].as_str().unwrap().to_owned()));
            match page.get("NextToken") {
                Some(token) => body["NextToken"] = token.clone(),
                None => break,
            }
        }
        let expected: Vec<String> =
            (0..20).filter(|number| *number != 7).map(|number| format!("{number:02}")).collect();
        assert_eq!(seen, expected, "limit {limit}");
    }
}

/// The pages of a SELECT of three keys, each with so many items of so many bytes.
fn pages_of_three_keys(items: usize, bytes: usize) -> Vec<Vec<String>> {
    let query = |body: &Bytes| {
        let request = json(body);
        let values = request["ExpressionAttributeValues"].as_object().unwrap().values();
        let physical = values.filter_map(|value| value["S"].as_str()).find(|text| text.starts_with("key_"));
        let (physical, start) =
            (physical.unwrap(), request["ExclusiveStartKey"]["sk"]["S"].as_str().unwrap_or(""));
        let logical = physical.split('#').next().unwrap();
        let lies =
            |sk: &String| format!("{logical}{}", suffix(logical, sk)) == physical && sk.as_str() > start;
        let item = |sk: String| json!({ "pk": { "S": physical }, "sk": { "S": sk }, "v": { "S": "x".repeat(bytes) } });
        let found: Vec<Json> = (0..items).map(|at| format!("{at:02}")).filter(lies).map(item).collect();
        Ok(Bytes::from(
            json!({ "Items": found, "Count": found.len(), "ScannedCount": found.len() }).to_string(),
        ))
    };
    let mut body = json!({ "Statement": "SELECT pk, sk FROM Tab WHERE pk IN ['key_a', 'key_b', 'key_c']" });
    let mut pages = Vec::new();
    loop {
        let planned = plan(Operation::ExecuteStatement, &body.to_string()).unwrap();
        let page = run(planned, |operation, body| match operation {
            Operation::Query => query(body),
            _ => Ok(Bytes::from_static(b"{\"Items\":[]}")),
        });
        let page = json(&page.unwrap());
        let name = |item: &Json| {
            format!("{}/{}", item["pk"]["S"].as_str().unwrap(), item["sk"]["S"].as_str().unwrap())
        };
        pages.push(page["Items"].as_array().unwrap().iter().map(name).collect());
        match page.get("NextToken") {
            Some(token) => body["NextToken"] = token.clone(),
            None => return pages,
        }
    }
}

#[test]
fn a_page_of_several_keys_holds_a_megabyte() {
    for (items, bytes) in [(12, 60_000), (2, 350_000), (17, 30_000), (3, 1_000)] {
        let pages = pages_of_three_keys(items, bytes);
        let sizes: Vec<usize> = pages.iter().map(|page| page.len() * bytes).collect();
        assert!(sizes.iter().all(|size| *size <= 1 << 20), "{bytes} bytes: {sizes:?}");
        assert!(
            sizes.iter().rev().skip(1).all(|size| *size > (1 << 20) - 2 * bytes),
            "{bytes} bytes: {sizes:?}"
        );
        let shown: Vec<String> = pages.into_iter().flatten().collect();
        let all = ["key_a", "key_b", "key_c"].map(|key| (0..items).map(move |at| format!("{key}/{at:02}")));
        assert_eq!(shown, all.into_iter().flatten().collect::<Vec<_>>(), "{bytes} bytes");
    }
}

#[test]
fn a_statement_names_ten_thousand_shards_at_most() {
    let planned = |keys: usize, shards| {
        let listed: Vec<String> = (0..keys).map(|at| format!("'k{at}'")).collect();
        let body = statement(&format!("SELECT * FROM Tab WHERE pk IN [{}]", listed.join(", ")), &[]);
        Router::new().plan(Operation::ExecuteStatement, &Bytes::from(body), &Fixed { shards })
    };
    assert!(planned(10, 1000).is_ok() && planned(100, 100).is_ok());
    let error = planned(100, 1000).unwrap_err();
    assert_eq!((error.code.clone(), error.retryable()), (Code::ValidationException, false));
    assert!(error.to_string().contains("100 values of pk, whose shards are 100000 together"), "{error}");
}

#[test]
fn a_token_is_bound_to_its_statement() {
    let body =
        json!({"Statement": "SELECT * FROM Tab WHERE pk = ?", "Parameters": [{"S": "game"}], "Limit": 2});
    let token = select(&body).unwrap()["NextToken"].clone();
    let message = |change: &dyn Fn(&mut Json)| {
        let mut body = body.clone();
        body["NextToken"] = token.clone();
        change(&mut body);
        select(&body).unwrap_err().message.unwrap()
    };
    assert_eq!(
        message(&|body| body["Parameters"][0]["S"] = json!("gamer")),
        "NextToken does not match request"
    );
    assert_eq!(
        message(&|body| body["Statement"] = json!("SELECT *  FROM Tab WHERE pk = ?")),
        "NextToken does not match request"
    );
    assert_eq!(message(&|body| body["NextToken"] = json!("?")), "Invalid NextToken");
    let decoded = STANDARD.decode(token.as_str().unwrap()).unwrap();
    for (from, to) in [("\"part\":0", "\"part\":1"), ("\"sk\"", "\"xx\""), ("{\"S\"", "{\"N\"")] {
        let changed = STANDARD.encode(String::from_utf8(decoded.clone()).unwrap().replace(from, to));
        assert_eq!(message(&|body| body["NextToken"] = json!(changed)), "Invalid NextToken", "{from}");
    }
}

proptest! {
    /// Whatever the request: a plan or an error, never a panic; and a write to the table goes to a
    /// physical key or nowhere.
    #[test]
    fn any_statement_is_planned_or_refused(
        verb in prop::sample::select(vec!["SELECT * FROM Tab", "DELETE FROM Tab", "UPDATE Tab SET a = 1", "INSERT INTO Tab VALUE"]),
        rest in "( WHERE| AND| pk| sk| =| 'a'| 'b'| \\?| OR| NOT| \\(| \\)| IN| \\{'pk'| :| ,| 'sk'| \\}|.){0,14}",
        token in proptest::option::of(".{0,8}"),
    ) {
        let mut body = json!({"Statement": format!("{verb}{rest}"), "Parameters": [{"S": "a"}]});
        if let Some(token) = token {
            body["NextToken"] = json!(token);
        }
        let body = Bytes::from(body.to_string());
        for operation in [Operation::ExecuteStatement, Operation::BatchExecuteStatement] {
            let body = match operation {
                Operation::BatchExecuteStatement => Bytes::from(format!("{{\"Statements\":[{}]}}", String::from_utf8_lossy(&body))),
                _ => body.clone(),
            };
            if let Ok(plan) = Router::new().plan(operation, &body, &Fixed { shards: 10 }) {
                plan.explain();
                let _ = run(plan, |_, _| Ok(Bytes::from_static(b"{\"Items\":[]}")));
            }
        }
    }
}
