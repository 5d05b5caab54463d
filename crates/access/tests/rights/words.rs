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

#[test]
fn a_statement_that_stores_could_read_otherwise_is_of_no_key() {
    let clients = one("tables = \"Games\"\nkeys = \"a*\"");
    for (statement, allowed) in [
        ("SELECT * FROM Games WHERE pk = 'a'", true),
        ("SELECT * FROM Games -- all of\\n WHERE pk = 'a'", true),
        ("SELECT * FROM Games WHERE pk = 'a' AND n = 1 AND pk = 'a2'", true),
        // Where a line ends, and whether comments nest, is not the same for all.
        ("SELECT * FROM Games WHERE pk = 'a' -- it is\\r OR pk = 'b'", false),
        ("SELECT * FROM Games WHERE pk = 'a' -- it is\\u2028 OR pk = 'b'", false),
        ("SELECT * FROM Games /* /* */ WHERE pk = 'a' --*/", false),
        // Which of two keys is the item's is the store's to choose.
        ("UPDATE Games SET n = 1 WHERE pk = 'a' AND pk = 'b'", false),
        ("SELECT * FROM Games WHERE pk IN ['a', 'a2'] AND pk IN ['a', 'b']", false),
    ] {
        let body = format!(r#"{{"Statement": "{statement}"}}"#);
        let judged = judge(&clients, "client", Operation::ExecuteStatement, &body);
        assert_eq!(judged.is_ok(), allowed, "{statement}");
    }
}

#[test]
fn an_iterator_names_one_stream() {
    let clients = one("tables = \"Games\"");
    let stream = |table: &str| format!("arn:aws:dynamodb:eu-west-1:123456789012:table/{table}/stream/1");
    let (own, other) = (stream("Games"), stream("Other"));
    for (iterator, allowed) in [
        (format!("{own}|1|AAAA"), true),
        (format!("000|{own}|AAAA"), true),
        (format!("{other}|1|AAAA"), false),
        (format!("{own}|{other}|AAAA"), false),
        (format!("000|{own}|{other}"), false),
    ] {
        let body = format!(r#"{{"ShardIterator": "{iterator}"}}"#);
        let judged = judge(&clients, "client", Operation::GetRecords, &body);
        assert_eq!(judged.is_ok(), allowed, "{iterator}");
    }
}

#[test]
fn a_list_is_narrowed_by_its_own_member_alone() {
    let clients = one("tables = \"Games\"");
    let table = "arn:aws:dynamodb:eu-west-1:123456789012:table/Games";
    let own = [
        (Operation::ListBackups, "TableName"),
        (Operation::ListContributorInsights, "TableName"),
        (Operation::ListStreams, "TableName"),
        (Operation::ListExports, "TableArn"),
        (Operation::ListImports, "TableArn"),
        (Operation::ListGlobalTables, ""),
    ];
    for (operation, narrows) in own {
        for member in [
            "TableName",
            "TableArn",
            "GlobalTableName",
            "ResourceArn",
            "StreamArn",
            "BackupArn",
            "ShardIterator",
        ] {
            let behind = match member {
                "StreamArn" | "ShardIterator" => "/stream/2024-01-01T00:00:00.000",
                "BackupArn" => "/backup/01489602797149-73d8d5bc",
                _ => "",
            };
            let body = format!(r#"{{"{member}": "{table}{behind}"}}"#);
            let judged = judge(&clients, "client", operation, &body);
            assert_eq!(judged.is_ok(), member == narrows, "{} {member}", operation.name());
        }
    }
}
