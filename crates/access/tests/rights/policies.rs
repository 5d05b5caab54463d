//! What a policy says, and what it cannot say.

use heatsink_dynamo::Operation;

use crate::clients::{allows, judge, one, with_policy};

fn policy(statements: &str) -> String {
    format!(r#"{{"Version": "2012-10-17", "Id": "x", "Statement": [{statements}]}}"#)
}

const TABLE: &str = "arn:aws:dynamodb:eu-west-1:123456789012:table/Games";

#[test]
fn what_cannot_be_kept_is_refused_by_name() {
    let statement = |more: &str| {
        policy(&format!(r#"{{"Effect": "Allow", "Action": "dynamodb:GetItem", "Resource": "*"{more}}}"#))
    };
    let condition = |text: &str| statement(&format!(r#", "Condition": {text}"#));
    for (text, said) in [
        ("{".to_owned(), "it is no JSON"),
        (policy("").replace("\"Id\"", "\"Version\""), "has a member twice"),
        (policy(""), "there is none, so nothing would be allowed"),
        (policy("5"), "statement 1: expected an object"),
        (statement("").replace("2012-10-17", "2011-01-01"), "Version: expected"),
        (statement("").replace("\"Id\"", "\"Ident\""), "Ident: there is no such element"),
        (statement("").replace("Allow", "allow"), "Effect: expected"),
        (
            statement("").replace("dynamodb:GetItem", "dynamodb:GetItems"),
            "Action dynamodb:GetItems: DynamoDB has no such action",
        ),
        (statement("").replace("dynamodb:GetItem", "s3:GetObject"), "Action s3:GetObject"),
        (statement("").replace("dynamodb:GetItem", "dynamodb:TransactGetItems"), "no such action"),
        (statement("").replace("\"Action\"", "\"NotAction\""), "NotAction is not kept here"),
        (statement(r#", "NotResource": "*""#), "NotResource is not kept here"),
        (statement(r#", "Principal": "*""#), "Principal is not kept here"),
        (statement(r#", "Extra": 1"#), "Extra: there is no such element"),
        (statement("").replace("\"*\"", "\"Games\""), "Resource Games: expected an ARN"),
        (
            statement("").replace("\"*\"", "\"arn:aws:s3:eu-west-1:1:table/Games\""),
            "expected an ARN of DynamoDB",
        ),
        (
            statement("").replace("\"*\"", "\"arn:aws:dynamodb:eu-west-1:1:table/${aws:username}\""),
            "variables are not filled in",
        ),
        (
            statement("")
                .replace("\"*\"", &format!(r#"["{TABLE}", "arn:aws:dynamodb:eu-west-1:2:table/Games"]"#)),
            "of another account",
        ),
        (statement("").replace("\"*\"", "[]"), "Resource: expected an ARN"),
        (condition(r#"{"IpAddress": {"aws:SourceIp": "10.0.0.0/8"}}"#), "Condition IpAddress, aws:SourceIp"),
        (
            condition(r#"{"StringEquals": {"dynamodb:EnclosingOperation": "Query"}}"#),
            "dynamodb:EnclosingOperation",
        ),
        (condition(r#"{"StringEquals": {"dynamodb:LeadingKeys": "a"}}"#), "say ForAllValues:StringEquals"),
        (condition(r#"{"ForAnyValue:StringLike": {"dynamodb:LeadingKeys": "a"}}"#), "no such operator"),
        (condition(r#"{"ForAllValues:StringNotEquals": {"dynamodb:LeadingKeys": "a"}}"#), "no such operator"),
        (
            condition(
                r#"{"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": "${www.amazon.com:user_id}"}}"#,
            ),
            "variables",
        ),
        (condition(r#"{"ForAllValues:StringEquals": {"dynamodb:LeadingKeys": 5}}"#), "expected a text"),
        (condition("[]"), "Condition: expected an object"),
    ] {
        let error = with_policy(&text).err().unwrap_or_else(|| panic!("it was taken: {text}"));
        assert!(error.contains(":4: client[1].policy: "), "{error}");
        assert!(error.contains(said), "{said}: {error}");
    }
    let error = crate::clients::load(&["id = \"a\"\nactions = \"GetItems\"".to_owned()], &[]).unwrap_err();
    assert!(error.contains("client[1].actions: \"GetItems\" names no action"), "{error}");
}

#[test]
fn the_policy_of_awss_guide_is_kept() {
    // "Using conditions: example policies", DynamoDB Developer Guide, but for the variable.
    let text = policy(&format!(
        r#"{{"Sid": "LimitAccessToSpecificAttributes", "Effect": "Allow",
            "Action": ["dynamodb:GetItem", "dynamodb:BatchGetItem", "dynamodb:Query", "dynamodb:UpdateItem"],
            "Resource": ["{TABLE}"],
            "Condition": {{"ForAllValues:StringEquals": {{"dynamodb:LeadingKeys": ["alice"], "dynamodb:Attributes": ["pk", "sk", "score"]}},
                "StringEqualsIfExists": {{"dynamodb:Select": "SPECIFIC_ATTRIBUTES", "dynamodb:ReturnValues": ["NONE", "UPDATED_OLD", "UPDATED_NEW"]}}}}}}"#
    ));
    let clients = with_policy(&text).unwrap();
    let key = r#""TableName": "Games", "Key": {"pk": {"S": "alice"}, "sk": {"S": "x"}}"#;
    for (operation, body, allowed) in [
        (
            Operation::GetItem,
            format!(
                r##"{{{key}, "ProjectionExpression": "score, #s.a[0]", "ExpressionAttributeNames": {{"#s": "sk"}}}}"##
            ),
            true,
        ),
        (Operation::GetItem, format!(r#"{{{key}, "AttributesToGet": ["score"]}}"#), true),
        (Operation::GetItem, format!(r#"{{{key}, "ProjectionExpression": "secret"}}"#), false),
        (Operation::GetItem, format!(r#"{{{key}, "AttributesToGet": ["secret"]}}"#), false),
        (
            Operation::GetItem,
            format!(
                r##"{{{key}, "ProjectionExpression": "#s", "ExpressionAttributeNames": {{"#s": "secret"}}}}"##
            ),
            false,
        ),
        (Operation::GetItem, format!("{{{key}}}"), false),
        (
            Operation::GetItem,
            format!(r#"{{{key}, "ProjectionExpression": "score"}}"#).replace("alice", "bob"),
            false,
        ),
        (Operation::UpdateItem, format!(r#"{{{key}, "UpdateExpression": "REMOVE score"}}"#), true),
        (Operation::UpdateItem, format!(r#"{{{key}, "UpdateExpression": "SET score = secret"}}"#), false),
        (
            Operation::UpdateItem,
            format!(r#"{{{key}, "UpdateExpression": "SET score = if_not_exists(secret, score)"}}"#),
            false,
        ),
        (
            Operation::UpdateItem,
            format!(
                r#"{{{key}, "UpdateExpression": "REMOVE score", "ConditionExpression": "attribute_exists(secret)"}}"#
            ),
            false,
        ),
        (
            Operation::UpdateItem,
            format!(r#"{{{key}, "UpdateExpression": "REMOVE score", "ReturnValues": "ALL_OLD"}}"#),
            false,
        ),
        (
            Operation::UpdateItem,
            format!(r#"{{{key}, "UpdateExpression": "REMOVE score", "ReturnValues": "UPDATED_OLD"}}"#),
            true,
        ),
        (
            Operation::UpdateItem,
            format!(
                r#"{{{key}, "UpdateExpression": "REMOVE score", "ReturnValuesOnConditionCheckFailure": "ALL_OLD"}}"#
            ),
            false,
        ),
        (
            Operation::UpdateItem,
            format!(r#"{{{key}, "AttributeUpdates": {{"secret": {{"Action": "DELETE"}}}}}}"#),
            false,
        ),
        (
            Operation::UpdateItem,
            format!(r#"{{{key}, "Expected": {{"secret": {{"Exists": false}}}}}}"#),
            false,
        ),
        (Operation::PutItem, r#"{"TableName": "Games", "Item": {"pk": {"S": "alice"}}}"#.to_owned(), false),
        (Operation::Scan, r#"{"TableName": "Games", "ProjectionExpression": "score"}"#.to_owned(), false),
    ] {
        assert_eq!(allows(&clients, "client", operation, &body), allowed, "{body}");
    }
    let query = |more: &str| {
        format!(
            r#"{{"TableName": "Games", "KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": {{":p": {{"S": "alice"}}, ":s": {{"N": "1"}}}}{more}}}"#
        )
        .replace(r#", ":s": {"N": "1"}"#, if more.contains(":s") { r#", ":s": {"N": "1"}"# } else { "" })
    };
    for (more, allowed) in [
        (r#", "ProjectionExpression": "score""#, true),
        ("", false),
        (r#", "Select": "COUNT""#, false),
        (r#", "ProjectionExpression": "score", "FilterExpression": "secret = :s""#, false),
        (r#", "ProjectionExpression": "score", "FilterExpression": "score = :s""#, true),
        (r#", "AttributesToGet": ["score"], "IndexName": "by-day""#, false),
    ] {
        assert_eq!(allows(&clients, "client", Operation::Query, &query(more)), allowed, "{more}");
    }
}

#[test]
fn a_deny_holds_before_every_allow_and_for_what_may_be_meant() {
    let text = policy(&format!(
        r#"{{"Effect": "Allow", "Action": "*", "Resource": "*"}},
        {{"Effect": "Deny", "Action": "dynamodb:Delete*", "Resource": "*"}},
        {{"Effect": "Deny", "Action": "dynamodb:*", "Resource": "{TABLE}*",
            "Condition": {{"ForAllValues:StringLike": {{"dynamodb:LeadingKeys": "secret#*"}}}}}}"#
    ));
    let clients = with_policy(&text).unwrap();
    let get = |table: &str, keys: &[&str]| {
        let keys: Vec<String> = keys.iter().map(|key| format!(r#"{{"pk": {{"S": "{key}"}}}}"#)).collect();
        format!(r#"{{"RequestItems": {{"{table}": {{"Keys": [{}]}}}}}}"#, keys.join(","))
    };
    for (operation, body, allowed) in [
        (Operation::BatchGetItem, get("Games", &["a", "b"]), true),
        (Operation::BatchGetItem, get("Games", &["a", "secret#b"]), false),
        (Operation::BatchGetItem, get("Chats", &["a", "secret#b"]), true),
        (Operation::Scan, r#"{"TableName": "Games"}"#.to_owned(), false),
        (Operation::Scan, r#"{"TableName": "Chats"}"#.to_owned(), true),
        (Operation::DeleteItem, r#"{"TableName": "Chats", "Key": {"pk": {"S": "a"}}}"#.to_owned(), false),
        (Operation::DeleteTable, r#"{"TableName": "Chats"}"#.to_owned(), false),
        (Operation::ListTables, "{}".to_owned(), true),
    ] {
        assert_eq!(allows(&clients, "client", operation, &body), allowed, "{body}");
    }
}

#[test]
fn keys_of_every_type_are_matched_as_rules_match_them() {
    let clients = one("keys = [\"42\", \"ab*\"]");
    let get = |key: &str| format!(r#"{{"TableName": "Games", "Key": {{"pk": {key}}}}}"#);
    for (key, allowed) in [
        (r#"{"N": "42"}"#, true),
        (r#"{"N": "4.20e1"}"#, true),
        (r#"{"N": "43"}"#, false),
        (r#"{"B": "YWJj"}"#, true),
        (r#"{"B": "YWNj"}"#, false),
        (r#"{"S": "a\u0062c"}"#, true),
        (r#"{"S": "Ab"}"#, false),
    ] {
        assert_eq!(allows(&clients, "client", Operation::GetItem, &get(key)), allowed, "{key}");
    }
}

#[test]
fn a_region_that_is_not_here_gives_nothing() {
    let text = policy(&format!(
        r#"{{"Effect": "Allow", "Action": "dynamodb:GetItem", "Resource": "{}"}}"#,
        TABLE.replace("eu-west-1", "us-east-1")
    ));
    let clients = with_policy(&text).unwrap();
    let get = r#"{"TableName": "Games", "Key": {"pk": {"S": "a"}}}"#;
    assert!(!allows(&clients, "client", Operation::GetItem, get));
}

#[test]
fn a_table_is_not_had_under_the_name_of_a_part_of_it() {
    let denying = with_policy(&policy(&format!(
        r#"{{"Effect": "Allow", "Action": "*", "Resource": "*"}},
        {{"Effect": "Deny", "Action": "dynamodb:*", "Resource": "{TABLE}"}}"#
    )))
    .unwrap();
    let of_index = with_policy(&policy(&format!(
        r#"{{"Effect": "Allow", "Action": "*", "Resource": ["{TABLE}/index/by-day", "{TABLE}/stream/*"]}}"#
    )))
    .unwrap();
    let key = r#""Key": {"pk": {"S": "a"}}"#;
    for part in ["", "/", "/index/by-day", "/stream/1", "/backup/1", "|1", "/index/by-day/index/by-day"] {
        let name = format!("{TABLE}{part}");
        for (operation, body) in [
            (Operation::GetItem, format!(r#"{{"TableName": "{name}", {key}}}"#)),
            (Operation::Scan, format!(r#"{{"TableName": "{name}"}}"#)),
            (
                Operation::BatchGetItem,
                format!(r#"{{"RequestItems": {{"{name}": {{"Keys": [{{"pk": {{"S": "a"}}}}]}}}}}}"#),
            ),
            (
                Operation::BatchWriteItem,
                format!(r#"{{"RequestItems": {{"{name}": [{{"DeleteRequest": {{{key}}}}}]}}}}"#),
            ),
            (
                Operation::TransactWriteItems,
                format!(r#"{{"TransactItems": [{{"Delete": {{"TableName": "{name}", {key}}}}}]}}"#),
            ),
            (
                Operation::ExecuteStatement,
                format!(r#"{{"Statement": "DELETE FROM \"{name}\" WHERE pk = 'a'"}}"#),
            ),
            (Operation::DescribeTable, format!(r#"{{"TableName": "{name}"}}"#)),
            (Operation::DeleteTable, format!(r#"{{"TableName": "{name}"}}"#)),
            (
                Operation::ExportTableToPointInTime,
                format!(r#"{{"TableArn": "{name}", "S3Bucket": "bucket"}}"#),
            ),
        ] {
            for (policy, clients) in [("denying", &denying), ("of an index", &of_index)] {
                let allowed = judge(clients, "client", operation, &body).is_ok();
                assert!(!allowed, "{policy}: {} {body}", operation.name());
            }
        }
    }
    let scan = |more: &str| format!(r#"{{"TableName": "{TABLE}"{more}}}"#);
    assert!(allows(&of_index, "client", Operation::Scan, &scan(r#", "IndexName": "by-day""#)));
    assert!(!allows(&of_index, "client", Operation::Scan, &scan(r#", "IndexName": "by-week""#)));
    let stream = |arn: &str| format!(r#"{{"StreamArn": "{arn}"}}"#);
    assert!(allows(&of_index, "client", Operation::DescribeStream, &stream(&format!("{TABLE}/stream/1"))));
    for none in [
        TABLE.to_owned(),
        format!("{TABLE}/index/by-day"),
        format!("{TABLE}/stream"),
        format!("{TABLE}/stream/1/2"),
    ] {
        assert!(!allows(&of_index, "client", Operation::DescribeStream, &stream(&none)), "{none}");
    }
}

#[test]
fn a_deny_of_a_table_holds_for_what_may_be_of_any() {
    let clients = with_policy(&policy(&format!(
        r#"{{"Effect": "Allow", "Action": "*", "Resource": "*"}},
        {{"Effect": "Deny", "Action": "dynamodb:*", "Resource": "{TABLE}*"}}"#
    )))
    .unwrap();
    for (operation, body, allowed) in [
        // The reader of rights does not take these, a store may.
        (
            Operation::ExecuteStatement,
            r#"{"Statement": "SELECT * FROM Games WHERE pk = 'a' AND update IS MISSING"}"#,
            false,
        ),
        (Operation::ExecuteStatement, r#"{"Statement": "SELECT VALUE pk FROM Games"}"#, false),
        (
            Operation::ExecuteTransaction,
            r#"{"TransactStatements": [{"Statement": "UPSERT INTO Games"}]}"#,
            false,
        ),
        (Operation::GetRecords, r#"{"ShardIterator": "opaque"}"#, false),
        (
            Operation::DescribeStream,
            r#"{"StreamArn": "some-arn/Games/stream/2024-01-01T00:00:00.000"}"#,
            false,
        ),
        (Operation::ListBackups, "{}", false),
        (Operation::ExecuteStatement, r#"{"Statement": "SELECT * FROM Chats WHERE pk = 'a'"}"#, true),
        (Operation::ListTables, "{}", true),
        (Operation::DescribeLimits, "{}", true),
    ] {
        assert_eq!(allows(&clients, "client", operation, body), allowed, "{} {body}", operation.name());
    }
}

#[test]
fn what_a_statement_returns_is_named_as_it_is_by_operations() {
    let clients = with_policy(&policy(
        r#"{"Effect": "Allow", "Action": "*", "Resource": "*"},
        {"Effect": "Deny", "Action": "dynamodb:*", "Resource": "*",
            "Condition": {"StringEquals": {"dynamodb:ReturnValues": ["ALL_OLD", "UPDATED_OLD"]}}}"#,
    ))
    .unwrap();
    for (statement, allowed) in [
        ("DELETE FROM Games WHERE pk = 'a'", true),
        ("DELETE FROM Games WHERE pk = 'a' RETURNING ALL OLD *", false),
        ("UPDATE Games SET n = 1 WHERE pk = 'a' RETURNING MODIFIED OLD *", false),
        ("UPDATE Games SET n = 1 WHERE pk = 'a' RETURNING MODIFIED NEW *", true),
        ("UPDATE Games SET n = 1 WHERE pk = 'a' RETURNING ALL NEW *", true),
    ] {
        let body = format!(r#"{{"Statement": "{statement}"}}"#);
        assert_eq!(allows(&clients, "client", Operation::ExecuteStatement, &body), allowed, "{statement}");
    }
}

#[test]
fn a_position_shows_the_keys_of_its_item() {
    let [table, whole, index] = [r#""pk", "n""#, r#""pk", "sk", "n""#, r#""pk", "sk", "n", "day""#]
        .map(|names| one(&format!("tables = \"Games\"\nattributes = [{names}]")));
    let statement = |text: &str| format!(r#"{{"Statement": "{text}"}}"#);
    let query = r#"{"TableName": "Games", "ProjectionExpression": "n", "KeyConditionExpression": "pk = :p",
        "ExpressionAttributeValues": {":p": {"S": "a"}}}"#;
    for (operation, body, allowed) in [
        (
            Operation::GetItem,
            r#"{"TableName": "Games", "Key": {"pk": {"S": "a"}}, "ProjectionExpression": "n"}"#.to_owned(),
            [true, true, true],
        ),
        (Operation::Query, query.to_owned(), [false, true, true]),
        (Operation::Scan, r#"{"TableName": "Games", "Select": "COUNT"}"#.to_owned(), [false, true, true]),
        (
            Operation::Scan,
            r#"{"TableName": "Games", "IndexName": "by-day", "Select": "COUNT"}"#.to_owned(),
            [false, false, true],
        ),
        (
            Operation::Scan,
            r#"{"TableName": "Games", "IndexName": "by-week", "Select": "COUNT"}"#.to_owned(),
            [false, false, false],
        ),
        (Operation::ExecuteStatement, statement("SELECT n FROM Games WHERE pk = 'a'"), [false, true, true]),
        (
            Operation::ExecuteStatement,
            statement(r#"SELECT n FROM Games.\"by-day\" WHERE pk = 'a'"#),
            [false, false, true],
        ),
        (Operation::ExecuteStatement, statement("UPDATE Games SET n = 1 WHERE pk = 'a'"), [true, true, true]),
    ] {
        let judged = [&table, &whole, &index].map(|clients| allows(clients, "client", operation, &body));
        assert_eq!(judged, allowed, "{} {body}", operation.name());
    }
}
