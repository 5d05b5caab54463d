//! Batches, scans, hidden tables, and what is refused.
#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

use std::collections::BTreeSet;

use crate::common::{Fixed, answered, json, plan, run, sent};
use bytes::Bytes;
use heatsink_dynamo::{Code, Error, Operation};
use heatsink_route::{Explanation, Kind, Router};
use proptest::prelude::*;

#[test]
fn every_key_of_a_batch_write_is_rewritten() {
    let body = r#"{"RequestItems":{"Tab":[{"PutRequest":{"Item":{"pk":{"S":"game"},"sk":{"S":"0000123#player_7"},"a":{"S":"b"}}}},{"DeleteRequest":{"Key":{"sk":{"S":"0000123#player_7"},"pk":{"S":"other"}}}}],"Other":[{"PutRequest":{"Item":{"pk":{"S":"game"}}}}]}}"#;
    let physical = r#"{"RequestItems":{"Tab":[{"PutRequest":{"Item":{"pk":{"S":"game#~1"},"sk":{"S":"0000123#player_7"},"a":{"S":"b"}}}},{"DeleteRequest":{"Key":{"sk":{"S":"0000123#player_7"},"pk":{"S":"other#~1"}}}}],"Other":[{"PutRequest":{"Item":{"pk":{"S":"game"}}}}]}}"#;
    assert_eq!(sent(Operation::BatchWriteItem, body), physical);
    let unprocessed = physical.replace("RequestItems", "UnprocessedItems");
    let unprocessed = unprocessed.replace(
        "[{\"PutRequest\":{\"Item\":{\"pk\":{\"S\":\"game\"}}}}]",
        "[{\"PutRequest\":{\"Item\":{\"pk\":{\"S\":\"g#~1\"}}}}]",
    );
    let logical = unprocessed.replace("game#~1", "game").replace("other#~1", "other");
    // A key of an unsharded table keeps what looks like a suffix.
    assert!(logical.contains("g#~1"));
    assert_eq!(answered(Operation::BatchWriteItem, body, &unprocessed).unwrap(), logical);
    let metrics = r#"{"ItemCollectionMetrics":{"Tab":[{"ItemCollectionKey":{"pk":{"S":"game#~1"}}}]}}"#;
    assert_eq!(answered(Operation::BatchWriteItem, body, metrics).unwrap(), metrics.replace("#~1", ""));
    let shards = metrics.replace("}]}", r##"},{"ItemCollectionKey":{"pk":{"S":"game#~4"}}}]}"##);
    assert_eq!(answered(Operation::BatchWriteItem, body, &shards).unwrap(), metrics.replace("#~1", ""));
}

#[test]
fn every_key_of_a_batch_get_is_rewritten() {
    let body = r#"{"RequestItems":{"Tab":{"Keys":[{"pk":{"S":"game"},"sk":{"S":"0000123#player_7"}}],"ProjectionExpression":"a"}}}"#;
    assert_eq!(sent(Operation::BatchGetItem, body), body.replace("game", "game#~1"));
    let answer = r#"{"Responses":{"Tab":[{"a":{"S":"game#~1"}},{"pk":{"S":"game#~1"}}]},"UnprocessedKeys":{"Tab":{"Keys":[{"pk":{"S":"x#~2"},"sk":{"S":"1"}}]}}}"#;
    let logical = r#"{"Responses":{"Tab":[{"a":{"S":"game#~1"}},{"pk":{"S":"game"}}]},"UnprocessedKeys":{"Tab":{"Keys":[{"pk":{"S":"x"},"sk":{"S":"1"}}]}}}"#;
    assert_eq!(answered(Operation::BatchGetItem, body, answer).unwrap(), logical);
    let wrong = body.replace(r#""pk":{"S":"game"},"#, "");
    assert_eq!(sent(Operation::BatchGetItem, &wrong), wrong);
}

#[test]
fn a_repeated_member_of_a_batch_is_rewritten_every_time() {
    let key = |pk: &str| format!(r#"{{"pk":{{"S":"{pk}"}},"sk":{{"S":"0000123#player_7"}}}}"#);
    let delete = format!(
        r#"{{"RequestItems":{{"Tab":[{{"DeleteRequest":{{"Key":{},"Key":{}}}}}]}}}}"#,
        key("a"),
        key("b")
    );
    let get = format!(
        r#"{{"RequestItems":{{"Tab":{{"Keys":[{}]}},"Tab":{{"Keys":[{}],"Keys":[{}]}}}}}}"#,
        key("a"),
        key("a"),
        key("b")
    );
    for (operation, body) in [(Operation::BatchWriteItem, delete), (Operation::BatchGetItem, get)] {
        let physical = body.replace(&key("a"), &key("a#~1")).replace(&key("b"), &key("b#~1"));
        assert_eq!(sent(operation, &body), physical);
    }
}

#[test]
fn a_scan_goes_on_where_it_stopped() {
    let body = r#"{"TableName":"Tab","Segment":1,"TotalSegments":4,"ExclusiveStartKey":{"pk":{"S":"game"},"sk":{"S":"0000123#player_7"}}}"#;
    assert_eq!(sent(Operation::Scan, body), body.replace("game", "game#~1"));
    let page = r#"{"Items":[{"sk":{"S":"1"},"pk":{"S":"a#~1#~0#~3"}},{"pk":{"S":"b"}}],"Count":2,"LastEvaluatedKey":{"pk":{"S":"game#~1"},"sk":{"S":"0000123#player_7"}}}"#;
    let answer = answered(Operation::Scan, body, page).unwrap();
    assert_eq!(answer, page.replace("a#~1#~0#~3", "a#~1").replace("game#~1", "game"));
    let wrong = r#"{"TableName":"Tab","ExclusiveStartKey":{"pk":{"S":"a"}}}"#;
    assert_eq!(sent(Operation::Scan, wrong), wrong, "the store refuses it");
}

#[test]
fn hidden_tables_do_not_exist() {
    for operation in [Operation::GetItem, Operation::DescribeTable, Operation::DeleteTable, Operation::Scan] {
        let error = plan(operation, r#"{"TableName":"hidden"}"#).unwrap_err();
        assert_eq!(error.code, Code::ResourceNotFoundException);
    }
    let error = plan(Operation::CreateTable, r#"{"TableName":"hidden"}"#).unwrap_err();
    assert_eq!(error.code, Code::ResourceInUseException);
    let statement = r#"{"Statement":"SELECT * FROM \"hidden\""}"#;
    assert_eq!(
        plan(Operation::ExecuteStatement, statement).unwrap_err().code,
        Code::ResourceNotFoundException
    );
}

#[test]
fn hidden_tables_have_no_backups_exports_imports_or_copies() {
    const ARN: &str = "arn:aws:dynamodb:eu-west-1:1:table/hidden";
    let requests = [
        (Operation::CreateBackup, r#"{"TableName":"hidden","BackupName":"b"}"#.to_owned()),
        (Operation::CreateGlobalTable, r#"{"GlobalTableName":"hidden","ReplicationGroup":[]}"#.to_owned()),
        (Operation::DescribeGlobalTable, r#"{"GlobalTableName":"hidden"}"#.to_owned()),
        (Operation::UpdateGlobalTableSettings, r#"{"GlobalTableName":"hidden"}"#.to_owned()),
        (Operation::DescribeBackup, format!(r#"{{"BackupArn":"{ARN}/backup/0148-1"}}"#)),
        (Operation::DeleteBackup, format!(r#"{{"BackupArn":"{ARN}/backup/0148-1"}}"#)),
        (
            Operation::RestoreTableFromBackup,
            format!(r#"{{"TargetTableName":"a","BackupArn":"{ARN}/backup/0148-1"}}"#),
        ),
        (
            Operation::RestoreTableToPointInTime,
            format!(r#"{{"TargetTableName":"a","SourceTableArn":"{ARN}"}}"#),
        ),
        (
            Operation::RestoreTableToPointInTime,
            r#"{"TargetTableName":"hidden","SourceTableName":"a"}"#.to_owned(),
        ),
        (Operation::ExportTableToPointInTime, format!(r#"{{"TableArn":"{ARN}","S3Bucket":"b"}}"#)),
        (Operation::DescribeExport, format!(r#"{{"ExportArn":"{ARN}/export/0148-1"}}"#)),
        (Operation::DescribeImport, format!(r#"{{"ImportArn":"{ARN}/import/0148-1"}}"#)),
        (Operation::ImportTable, r#"{"TableCreationParameters":{"TableName":"hidden"}}"#.to_owned()),
        (Operation::ListBackups, r#"{"TableName":"hidden"}"#.to_owned()),
        (Operation::GetResourcePolicy, format!(r#"{{"ResourceArn":"{ARN}"}}"#)),
    ];
    for (operation, body) in requests {
        let error = plan(operation, &body).map(|_| ()).expect_err(&body);
        let expected = match operation {
            Operation::ImportTable => Code::ResourceInUseException,
            _ => Code::ResourceNotFoundException,
        };
        assert_eq!(error.code, expected, "{operation:?} {body}");
    }
}

#[test]
fn lists_leave_out_what_belongs_to_hidden_tables() {
    let arn = |table: &str| format!("arn:aws:dynamodb:eu-west-1:1:table/{table}");
    let lists = [
        (Operation::ListBackups, "BackupSummaries", "TableName", ""),
        (Operation::ListContributorInsights, "ContributorInsightsSummaries", "TableName", ""),
        (Operation::ListGlobalTables, "GlobalTables", "GlobalTableName", ""),
        (Operation::ListExports, "ExportSummaries", "ExportArn", "/export/1"),
        (Operation::ListImports, "ImportSummaryList", "TableArn", ""),
        (Operation::ListStreams, "Streams", "StreamArn", "/stream/2024-01-01T00:00:00.000"),
    ];
    for (operation, list, member, part) in lists {
        let entry = |table: &str| {
            let named = if member.ends_with("Arn") { arn(table) + part } else { table.to_owned() };
            serde_json::json!({ member: named, "Other": 1 })
        };
        let page = |entries: Vec<serde_json::Value>| serde_json::json!({ list: entries, "NextToken": "t" });
        let whole = page(vec![entry("a"), entry("hidden"), entry("hidden2"), entry("hidden")]);
        let shown = |stored: &serde_json::Value| {
            let stored = Bytes::from(stored.to_string());
            run(plan(operation, "{}").unwrap(), move |_, _| Ok(stored.clone())).unwrap()
        };
        assert_eq!(json(&shown(&whole)), page(vec![entry("a"), entry("hidden2")]), "{operation:?}");
        let untouched = page(vec![entry("b")]);
        assert_eq!(shown(&untouched), untouched.to_string());
        let refused = run(plan(operation, "{}").unwrap(), |_, _| Err(Error::internal("down")));
        assert_eq!(refused.unwrap_err().message.as_deref(), Some("down"));
    }
}

/// A store with these tables.
fn list(tables: &[&str], body: &Bytes) -> Bytes {
    let request = json(body);
    let start = request["ExclusiveStartTableName"].as_str().unwrap_or("");
    let limit = usize::try_from(request["Limit"].as_u64().unwrap_or(100)).unwrap();
    let after: Vec<&&str> = tables.iter().filter(|name| **name > start).collect();
    let page = &after[..limit.min(after.len())];
    let mut answer = serde_json::json!({ "TableNames": page });
    if after.len() > limit {
        answer["LastEvaluatedTableName"] = serde_json::json!(page.last());
    }
    Bytes::from(answer.to_string())
}

#[test]
fn listing_tables_leaves_hidden_ones_out_whatever_the_page() {
    let stored = ["alpha", "hidden", "omega", "zeta"];
    for limit in 1..6 {
        let (mut seen, mut start) = (Vec::new(), String::new());
        loop {
            let body = format!(r#"{{"Limit":{limit}{start}}}"#);
            let answer =
                run(plan(Operation::ListTables, &body).unwrap(), |_, body| Ok(list(&stored, body))).unwrap();
            let page = json(&answer);
            seen.extend(
                page["TableNames"].as_array().unwrap().iter().map(|name| name.as_str().unwrap().to_owned()),
            );
            match page["LastEvaluatedTableName"].as_str() {
                Some(last) => start = format!(r#","ExclusiveStartTableName":"{last}""#),
                None => break,
            }
        }
        assert_eq!(seen, ["alpha", "omega", "zeta"], "limit {limit}");
    }
    for stored in [["alpha", "hidden"], ["hidden", "omega"]] {
        let only = plan(Operation::ListTables, r#"{"Limit":1}"#).unwrap();
        let answer = run(only, |_, body| Ok(list(&stored, body))).unwrap();
        assert_eq!(json(&answer)["LastEvaluatedTableName"], serde_json::Value::Null);
    }
    let failed = run(plan(Operation::ListTables, "{}").unwrap(), |_, _| Err(Error::internal("down")));
    assert_eq!(failed.unwrap_err().message.as_deref(), Some("down"));
    assert_eq!(sent(Operation::ListTables, r#"{"Limit":0}"#), r#"{"Limit":0}"#);
}

/// Names of tables, the one of them that is hidden, and those that somebody sees.
fn seen_tables() -> impl Strategy<Value = (BTreeSet<String>, Option<String>, BTreeSet<String>)> {
    let name = |number: usize| format!("table{number:03}");
    (0_usize..260, 0.0..=1.0)
        .prop_flat_map(move |(count, seen)| {
            (prop::collection::vec(prop::bool::weighted(seen), count), prop::option::of(0..count.max(1)))
        })
        .prop_map(move |(seen, hidden)| {
            let all = (0..seen.len()).map(name).collect();
            let shown = (0..seen.len()).filter(|number| seen[*number]).map(name).collect();
            (all, hidden.map(name), shown)
        })
}

proptest! {
    #[test]
    fn listing_tables_shows_each_that_someone_sees_once_whatever_the_page(
        (stored, hidden, seen) in seen_tables(),
        limit in prop::option::of(prop_oneof![1_usize..8, 8_usize..=100]),
        start in prop::option::of(0_usize..300),
    ) {
        let stored: Vec<&str> = stored.iter().map(String::as_str).collect();
        let router = Router::new().hiding(hidden.iter().cloned().collect());
        let start = start.map(|number| format!("table{number:03}"));
        let wanted: Vec<&String> = seen
            .iter()
            .filter(|name| Some(*name) != hidden.as_ref() && start.as_ref().is_none_or(|start| *name > start))
            .collect();
        let (mut shown, mut cursor) = (Vec::<String>::new(), start);
        loop {
            let mut request = serde_json::Map::new();
            request.extend(limit.map(|limit| ("Limit".to_owned(), limit.into())));
            request.extend(cursor.take().map(|name| ("ExclusiveStartTableName".to_owned(), name.into())));
            let body = Bytes::from(serde_json::Value::Object(request).to_string());
            let sees = seen.clone();
            let plan = router.list_tables(&body, move |name| sees.contains(name)).unwrap();
            let page = json(&run(plan, |_, body| Ok(list(&stored, body))).unwrap());
            let names = page["TableNames"].as_array().unwrap();
            shown.extend(names.iter().map(|name| name.as_str().unwrap().to_owned()));
            let Some(last) = page.get("LastEvaluatedTableName") else {
                prop_assert!(names.len() <= limit.unwrap_or(100));
                break;
            };
            // A page that is followed by another one is full, and a name follows it.
            prop_assert_eq!(names.len(), limit.unwrap_or(100));
            prop_assert_eq!(Some(last), names.last());
            prop_assert!(shown.len() < wanted.len());
            cursor = shown.last().cloned();
        }
        prop_assert_eq!(shown.iter().collect::<Vec<_>>(), wanted);
    }
}

#[test]
fn what_is_not_supported_is_refused_by_name() {
    let vector = r#"{"TableName":"Tab","IndexName":"v","SearchVector":[],"TopK":1}"#;
    let cases = [(Operation::SearchVectors, vector.to_owned())];
    for (operation, body) in cases {
        let error = plan(operation, &body).unwrap_err();
        assert_eq!(error.code, Code::ValidationException, "{operation:?} {error}");
        let message = error.message.clone().unwrap();
        assert!(
            message.contains("not supported on a sharded table yet") && message.contains("Tab"),
            "{message}"
        );
        assert_eq!(Explanation::refused(&error).plan, Kind::Refused);
        let unsharded = body.replace("Tab", "Unknown").replace("UnknownleName", "TableName");
        assert_eq!(sent(operation, &unsharded), unsharded);
    }
}

#[test]
fn table_operations_go_on() {
    for operation in [
        Operation::DescribeTable,
        Operation::UpdateTable,
        Operation::DeleteTable,
        Operation::UpdateTimeToLive,
    ] {
        assert_eq!(sent(operation, r#"{ "TableName":"Tab"}"#), r#"{ "TableName":"Tab"}"#);
    }
    assert_eq!(sent(Operation::DescribeLimits, "{}"), "{}");
}

fn any_operation() -> impl Strategy<Value = Operation> {
    proptest::sample::select(Operation::ALL.to_vec())
}

/// JSON made of what requests are made of.
fn any_request() -> impl Strategy<Value = String> {
    let names = [
        "TableName",
        "Key",
        "Item",
        "RequestItems",
        "Tab",
        "Keys",
        "pk",
        "sk",
        "S",
        "N",
        "B",
        "Expected",
        "Limit",
        "FilterExpression",
        "ConditionExpression",
        "UpdateExpression",
        "ExpressionAttributeNames",
        "ExpressionAttributeValues",
        "ExclusiveStartKey",
        "TransactItems",
        "Put",
        "PutRequest",
        "Statement",
        "ProjectionExpression",
        ":v",
        "#p",
        "KeyConditionExpression",
    ];
    let leaf = prop_oneof![
        Just("null".to_owned()),
        Just("1".to_owned()),
        Just("{\"S\":\"a\"}".to_owned()),
        Just("\"Tab\"".to_owned()),
        Just("\"pk = :v\"".to_owned()),
        Just("\"SET a = pk\"".to_owned()),
        ".{0,6}".prop_map(|text| serde_json::to_string(&text).unwrap()),
    ];
    leaf.prop_recursive(5, 40, 6, move |inner| {
        let member = (proptest::sample::select(names.to_vec()), inner.clone());
        prop_oneof![
            proptest::collection::vec(member, 0..6).prop_map(|members| {
                let members: Vec<String> =
                    members.into_iter().map(|(name, value)| format!("\"{name}\":{value}")).collect();
                format!("{{{}}}", members.join(","))
            }),
            proptest::collection::vec(inner, 0..4).prop_map(|all| format!("[{}]", all.join(","))),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn no_bytes_make_it_panic(operation in any_operation(), body in proptest::collection::vec(any::<u8>(), 0..60)) {
        let _ = Router::new().plan(operation, &Bytes::from(body), &Fixed { shards: 10 });
    }

    #[test]
    fn no_request_and_no_answer_make_it_panic(operation in any_operation(), members in any_request(), answer in any_request()) {
        let body = match members.strip_prefix('{') {
            Some(rest) if rest != "}" => format!("{{\"TableName\":\"Tab\",{rest}"),
            _ => members,
        };
        if let Ok(plan) = plan(operation, &body) {
            let _ = plan.explain();
            let _ = run(plan, |_, _| Ok(Bytes::from(answer.clone())));
        }
    }

    #[test]
    fn what_is_planned_is_decoded_again(pk in "[a-z#~0-9\"\\\\é]{1,12}", sk in ".{1,8}", shards in 1..40_u16) {
        let key = serde_json::json!({ "pk": { "S": pk }, "sk": { "S": sk }, "a": { "S": "x#~1" } });
        let body = Bytes::from(serde_json::json!({ "TableName": "Tab", "Item": key }).to_string());
        let plan = Router::new().plan(Operation::PutItem, &body, &Fixed { shards }).unwrap();
        let answer = run(plan, |_, sent| {
            let sent = json(sent);
            assert_eq!((&sent["Item"]["sk"]["S"], &sent["Item"]["a"]["S"]), (&sk.clone().into(), &"x#~1".into()));
            Ok(Bytes::from(serde_json::json!({ "Attributes": sent["Item"] }).to_string()))
        });
        prop_assert_eq!(&json(&answer.unwrap())["Attributes"], &key);
    }
}
