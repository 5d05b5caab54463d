//! What a client is told, and what it is not.

use heatsink_dynamo::{Code, Operation};

use crate::clients::{judge, one, with_policy};

#[test]
fn a_denial_says_who_what_and_why() {
    let clients = one("tables = \"Games\"\nactions = \"GetItem\"");
    let put = r#"{"TableName": "Games", "Item": {"pk": {"S": "canary"}}}"#;
    let error = judge(&clients, "client", Operation::PutItem, put).unwrap_err();
    assert_eq!(
        error.message.as_deref(),
        Some(
            "User: client is not authorized to perform: dynamodb:PutItem on resource: arn:aws:dynamodb:eu-west-1:*:table/Games \
             because no identity-based policy allows the dynamodb:PutItem action"
        )
    );
    let denying = with_policy(
        r#"{"Version": "2012-10-17", "Statement": [{"Effect": "Allow", "Action": "*", "Resource": "*"},
            {"Effect": "Deny", "Action": "dynamodb:Query", "Resource": "*"}]}"#,
    );
    let query = r#"{"TableName": "arn:aws:dynamodb:eu-west-1:123456789012:table/Games", "IndexName": "by-day",
        "KeyConditionExpression": "a = :a", "ExpressionAttributeValues": {":a": {"S": "canary"}}}"#;
    let error = judge(&denying.unwrap(), "client", Operation::Query, query).unwrap_err();
    assert_eq!(
        error.message.as_deref(),
        Some(
            "User: client is not authorized to perform: dynamodb:Query on resource: arn:aws:dynamodb:eu-west-1:123456789012:table/Games/index/by-day \
             with an explicit deny in an identity-based policy"
        )
    );
}

#[test]
fn who_has_no_right_to_a_table_is_not_told_of_it() {
    let clients = one("tables = \"Games\"\nkeys = \"a*\"");
    let caller = clients.caller("client").unwrap();
    // Nothing is looked up for it.
    let get = br#"{"TableName": "Other", "Key": {"pk": {"S": "a"}}}"#;
    assert_eq!(caller.ask(Operation::GetItem, get).unwrap_err().code, Code::AccessDeniedException);
    assert!(caller.may_see("Games") && !caller.may_see("Other") && !caller.may_see("Games2"));
}

#[test]
fn what_two_readers_could_read_in_two_ways_is_refused() {
    let clients = one("tables = \"Games\"\nkeys = \"a*\"");
    for body in [
        r#"{"TableName": "Games", "TableName": "Games", "Key": {"pk": {"S": "a"}}}"#,
        r#"{"TableName": "Games", "Key": {"pk": {"S": "a"}, "pk": {"S": "b"}}}"#,
        r#"{"TableName": "Games", "Key": {"pk": {"S": "a"}, "\u0070k": {"S": "b"}}}"#,
    ] {
        assert!(judge(&clients, "client", Operation::GetItem, body).is_err(), "{body}");
    }
    for statement in [
        "SELECT * FROM Games WHERE pk = 'a' /* FROM Other */",
        "SELECT * FROM \\\"Games\\\" WHERE pk = 'a'; DELETE FROM Other WHERE pk = 'a'",
        "SELECT * FROM Games g, Other o WHERE pk = 'a'",
        "SELECT * FROM Games.pk WHERE pk = 'a'",
        "INSERT INTO Games VALUE {'pk': 'a', 'pk': 'b'}",
        "",
    ] {
        let body = format!(r#"{{"Statement": "{statement}"}}"#);
        let judged = judge(&clients, "client", Operation::ExecuteStatement, &body);
        // A comment is none of the statement's tables.
        assert_eq!(judged.is_ok(), statement.contains("/*"), "{statement}");
    }
}
