//! What a policy says, and what it cannot say.

use heatsink_dynamo::Operation;

use crate::clients::{allows, one, with_policy};

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
