//! Requests of every operation, with every way to name a table, and what each uses. What it uses is
//! written by hand here: nothing of it comes from the crate under test.

use heatsink_dynamo::Operation;
use serde_json::{Value as Json, json};

use crate::clients::ARN;

/// The keys that a request uses.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Keys {
    /// It has to do with none.
    None,
    /// These.
    These(Vec<&'static str>),
    /// All, as far as it says.
    All,
}

/// One use: an action, the table, its keys.
pub type Use = (&'static str, &'static str, Keys);

#[derive(Debug)]
pub struct Case {
    pub operation: Operation,
    pub body: String,
    pub uses: Vec<Use>,
    /// Whether it names a table of another account.
    pub is_elsewhere: bool,
}

pub const TABLES: [&str; 3] = ["OwnGames", "OwnChats", "Others"];
pub const KEYS: [&str; 3] = ["team1#a", "team1#b", "team2#a"];

/// Which kind of right an operation needs, by hand. `None`: those of its parts.
pub fn kind(operation: &str) -> Option<&'static str> {
    const READS: &str = "BatchGetItem GetItem GetRecords GetShardIterator Query Scan SearchVectors DescribeStream ListStreams";
    const WRITES: &str = "BatchWriteItem DeleteItem PutItem UpdateItem";
    const PARTS: &str =
        "BatchExecuteStatement ExecuteStatement ExecuteTransaction TransactGetItems TransactWriteItems";
    const ACCOUNT: &str = "DescribeEndpoints DescribeLimits ListTables";
    let among = |list: &str| list.split(' ').any(|one| one == operation);
    match () {
        () if among(PARTS) => None,
        () if among(READS) => Some("read"),
        () if among(WRITES) => Some("write"),
        () if among(ACCOUNT) => Some("account"),
        () => Some("admin"),
    }
}

/// The ways to name a table, and whether each names one of another account.
fn names(table: &str) -> [(String, bool); 3] {
    [
        (table.to_owned(), false),
        (format!("{ARN}:table/{table}"), false),
        (format!("arn:aws:dynamodb:eu-west-1:999999999999:table/{table}"), true),
    ]
}

fn of(operation: Operation, body: &Json, uses: Vec<Use>, is_elsewhere: bool) -> Case {
    Case { operation, body: body.to_string(), uses, is_elsewhere }
}

fn item(key: &str) -> Json {
    json!({ "pk": { "S": key }, "sk": { "S": "x" } })
}

fn these(keys: &[&'static str]) -> Keys {
    Keys::These(keys.to_vec())
}

/// All cases.
pub fn all() -> Vec<Case> {
    let mut cases = Vec::new();
    for operation in Operation::ALL {
        let before = cases.len();
        add(*operation, &mut cases);
        assert!(cases.len() > before, "no case of {}", operation.name());
    }
    cases
}

fn add(operation: Operation, cases: &mut Vec<Case>) {
    let own = operation.name();
    match own {
        "DescribeEndpoints" | "DescribeLimits" | "ListTables" => {
            cases.push(of(operation, &json!({}), vec![(own, "", Keys::None)], false));
        }
        "GetItem" | "DeleteItem" | "UpdateItem" | "PutItem" => one_item(operation, cases),
        "BatchGetItem" | "BatchWriteItem" => batches(operation, cases),
        "TransactGetItems" | "TransactWriteItems" => transactions(operation, cases),
        "Query" | "Scan" | "SearchVectors" => searches(operation, cases),
        "ExecuteStatement" | "BatchExecuteStatement" | "ExecuteTransaction" => statements(operation, cases),
        "DescribeStream" | "GetRecords" | "GetShardIterator" | "ListStreams" => streams(operation, cases),
        _ => settings(operation, cases),
    }
}

fn one_item(operation: Operation, cases: &mut Vec<Case>) {
    for table in TABLES {
        for (name, is_elsewhere) in names(table) {
            for key in KEYS {
                let member = if operation == Operation::PutItem { "Item" } else { "Key" };
                let body = json!({ "TableName": name, member: item(key) });
                cases.push(of(
                    operation,
                    &body,
                    vec![(operation.name(), table, these(&[key]))],
                    is_elsewhere,
                ));
            }
        }
    }
}

fn batches(operation: Operation, cases: &mut Vec<Case>) {
    let request = |keys: &[&str]| match operation {
        Operation::BatchGetItem => json!({ "Keys": keys.iter().map(|key| item(key)).collect::<Vec<_>>() }),
        _ => keys
            .iter()
            .enumerate()
            .map(|(at, key)| match at % 2 {
                0 => json!({ "PutRequest": { "Item": item(key) } }),
                _ => json!({ "DeleteRequest": { "Key": item(key) } }),
            })
            .collect(),
    };
    for keys in [vec![KEYS[0]], vec![KEYS[0], KEYS[1]], vec![KEYS[0], KEYS[2]], vec![KEYS[2]]] {
        for one in TABLES {
            for (name, is_elsewhere) in names(one) {
                let body = json!({ "RequestItems": { &name: request(&keys) } });
                let uses = vec![(operation.name(), one, these(&keys))];
                cases.push(of(operation, &body, uses.clone(), is_elsewhere));
                for other in TABLES.into_iter().filter(|other| *other != one) {
                    let body =
                        json!({ "RequestItems": { &name: request(&keys), other: request(&[KEYS[1]]) } });
                    let uses = [uses.clone(), vec![(operation.name(), other, these(&[KEYS[1]]))]].concat();
                    cases.push(of(operation, &body, uses, is_elsewhere));
                }
            }
        }
    }
}

fn transactions(operation: Operation, cases: &mut Vec<Case>) {
    let of_writes: &[(&str, &'static str)] = &[
        ("Put", "PutItem"),
        ("Update", "UpdateItem"),
        ("Delete", "DeleteItem"),
        ("ConditionCheck", "ConditionCheckItem"),
    ];
    let of_reads: &[(&str, &'static str)] = &[("Get", "GetItem")];
    let actions = if operation == Operation::TransactGetItems { of_reads } else { of_writes };
    let element = |action: &str, name: &str, key: &str| {
        let mut inner = json!({ "TableName": name });
        inner[if action == "Put" { "Item" } else { "Key" }] = item(key);
        match action {
            "Update" => inner["UpdateExpression"] = json!("REMOVE a"),
            "ConditionCheck" => inner["ConditionExpression"] = json!("attribute_exists(a)"),
            _ => {}
        }
        json!({ action: inner })
    };
    for (action, iam) in actions {
        for table in TABLES {
            for (name, is_elsewhere) in names(table) {
                for key in KEYS {
                    let elements = vec![element(action, &name, key)];
                    let uses = vec![(*iam, table, these(&[key]))];
                    cases.push(of(
                        operation,
                        &json!({ "TransactItems": elements }),
                        uses.clone(),
                        is_elsewhere,
                    ));
                    // Behind one that is harmless.
                    let (first, first_iam) = actions[0];
                    let both = [vec![element(first, "OwnGames", "team1#z")], elements].concat();
                    let uses = [vec![(first_iam, "OwnGames", these(&["team1#z"]))], uses].concat();
                    cases.push(of(operation, &json!({ "TransactItems": both }), uses, is_elsewhere));
                }
            }
        }
    }
}

fn searches(operation: Operation, cases: &mut Vec<Case>) {
    for table in TABLES {
        for (name, is_elsewhere) in names(table) {
            for index in [None, Some("by-day")] {
                let mut body = json!({ "TableName": name });
                if let Some(index) = index {
                    body["IndexName"] = json!(index);
                }
                if operation != Operation::Query {
                    cases.push(of(
                        operation,
                        &body,
                        vec![(operation.name(), table, Keys::All)],
                        is_elsewhere,
                    ));
                    continue;
                }
                for key in KEYS {
                    let keys = |keys| if index.is_some() { Keys::All } else { keys };
                    let mut push = |body: &Json, keys| {
                        cases.push(of(operation, body, vec![(operation.name(), table, keys)], is_elsewhere));
                    };
                    let mut query = body.clone();
                    query["KeyConditionExpression"] = json!("#p = :p AND sk > :s");
                    query["ExpressionAttributeNames"] = json!({ "#p": "pk" });
                    query["ExpressionAttributeValues"] = json!({ ":p": { "S": key }, ":s": { "S": "a" } });
                    push(&query, keys(these(&[key])));
                    query["ExclusiveStartKey"] = item(KEYS[2]);
                    push(&query, keys(these(&[key, KEYS[2]])));
                    let mut legacy = body.clone();
                    legacy["KeyConditions"] =
                        json!({ "pk": { "ComparisonOperator": "EQ", "AttributeValueList": [{ "S": key }] } });
                    push(&legacy, keys(these(&[key])));
                    let mut of_other = body.clone();
                    of_other["KeyConditionExpression"] = json!("other = :p");
                    of_other["ExpressionAttributeValues"] = json!({ ":p": { "S": key } });
                    push(&of_other, Keys::All);
                }
            }
        }
    }
}

/// Statements, and what each uses.
fn texts(name: &str, table: &'static str, key: &'static str) -> Vec<(String, Vec<Use>)> {
    let one = |text: String, action, keys| (text, vec![(action, table, keys)]);
    vec![
        one(format!("SELECT * FROM \"{name}\" WHERE pk = '{key}'"), "PartiQLSelect", these(&[key])),
        one(
            format!("select a from \"{name}\" -- c\n where \"pk\" IN ['{key}', 'team1#c'] and a > 1"),
            "PartiQLSelect",
            these(&[key, "team1#c"]),
        ),
        one(format!("SELECT * FROM \"{name}\" WHERE pk = '{key}' OR a = 1"), "PartiQLSelect", Keys::All),
        one(format!("SELECT * FROM \"{name}\""), "PartiQLSelect", Keys::All),
        one(format!("SELECT * FROM \"{name}\".\"by-day\" WHERE pk = '{key}'"), "PartiQLSelect", Keys::All),
        one(
            format!("INSERT INTO \"{name}\" VALUE {{'pk': '{key}', 'sk': 'x'}}"),
            "PartiQLInsert",
            these(&[key]),
        ),
        one(
            format!("UPDATE \"{name}\" SET a = 1 WHERE pk = '{key}' AND sk = 'x'"),
            "PartiQLUpdate",
            these(&[key]),
        ),
        one(
            format!("DELETE FROM \"{name}\" WHERE '{key}' = pk AND sk = 'x'"),
            "PartiQLDelete",
            these(&[key]),
        ),
        // What cannot be read may be anything.
        (
            format!("SELECT * FROM \"{name}\" WHERE pk = '{key}' UNION SELECT * FROM Others"),
            ["PartiQLSelect", "PartiQLInsert", "PartiQLUpdate", "PartiQLDelete"]
                .map(|action| (action, "", Keys::All))
                .to_vec(),
        ),
    ]
}

fn statements(operation: Operation, cases: &mut Vec<Case>) {
    let harmless =
        json!({ "Statement": "SELECT * FROM OwnGames WHERE pk = ?", "Parameters": [{ "S": "team1#z" }] });
    let of_harmless: Use = ("PartiQLSelect", "OwnGames", these(&["team1#z"]));
    for table in TABLES {
        for (name, is_elsewhere) in names(table) {
            for key in KEYS {
                for (text, uses) in texts(&name, table, key) {
                    // What cannot be read names nothing.
                    let is_elsewhere = is_elsewhere && uses.iter().all(|(_, table, _)| !table.is_empty());
                    let statement = json!({ "Statement": text });
                    let (body, uses) = match operation {
                        Operation::ExecuteStatement => (statement, uses),
                        Operation::BatchExecuteStatement => (
                            json!({ "Statements": [harmless.clone(), statement] }),
                            [vec![of_harmless.clone()], uses].concat(),
                        ),
                        _ => (
                            json!({ "TransactStatements": [harmless.clone(), statement] }),
                            [vec![of_harmless.clone()], uses].concat(),
                        ),
                    };
                    cases.push(of(operation, &body, uses, is_elsewhere));
                }
            }
        }
    }
}

fn streams(operation: Operation, cases: &mut Vec<Case>) {
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    const LABEL: &str = "2024-01-01T00:00:00.000";
    for table in TABLES {
        let mut push = |body: Json, is_elsewhere| {
            cases.push(of(operation, &body, vec![(operation.name(), table, Keys::All)], is_elsewhere));
        };
        for (name, is_elsewhere) in names(table) {
            if operation == Operation::ListStreams {
                push(json!({ "TableName": name }), is_elsewhere);
                continue;
            }
            let Some(stream) = name.starts_with("arn:").then(|| format!("{name}/stream/{LABEL}")) else {
                continue;
            };
            match operation {
                Operation::GetRecords => {
                    push(json!({ "ShardIterator": format!("{stream}|1|AAAA") }), is_elsewhere)
                }
                Operation::GetShardIterator => {
                    let shard = "shardId-00000000000000000000-00000000";
                    push(
                        json!({ "StreamArn": stream, "ShardId": shard, "ShardIteratorType": "LATEST" }),
                        is_elsewhere,
                    );
                }
                _ => push(json!({ "StreamArn": stream }), is_elsewhere),
            }
        }
        if operation == Operation::GetRecords {
            let position = format!(r#"{{"table_name":"{table}","shard_id":"0","position":0}}"#);
            push(json!({ "ShardIterator": STANDARD.encode(position) }), false);
        }
    }
}

/// The member by which an operation on settings names its table, and what stands behind its ARN.
fn member(operation: &str) -> (&'static str, &'static str) {
    match operation {
        "DescribeBackup" | "DeleteBackup" => ("BackupArn", "/backup/01489602797149-73d8d5bc"),
        "DescribeExport" => ("ExportArn", "/export/01489602797149-73d8d5bc"),
        "DescribeImport" => ("ImportArn", "/import/01489602797149-73d8d5bc"),
        "ListExports" | "ListImports" | "ExportTableToPointInTime" => ("TableArn", ""),
        "DeleteResourcePolicy"
        | "GetResourcePolicy"
        | "PutResourcePolicy"
        | "ListTagsOfResource"
        | "TagResource"
        | "UntagResource" => ("ResourceArn", ""),
        name if name.contains("GlobalTable") && name != "ListGlobalTables" => ("GlobalTableName", ""),
        _ => ("TableName", ""),
    }
}

fn settings(operation: Operation, cases: &mut Vec<Case>) {
    let own = operation.name();
    let reads = ["Describe", "Get", "List"].iter().any(|verb| own.starts_with(verb));
    let keys = if reads { Keys::None } else { Keys::All };
    // A list of what all tables have.
    if own.starts_with("List") && own != "ListTagsOfResource" {
        cases.push(of(operation, &json!({}), vec![(own, "", keys.clone())], false));
    }
    if own == "ListGlobalTables" {
        return;
    }
    let (member, behind) = member(own);
    for table in TABLES {
        for (name, is_elsewhere) in names(table) {
            let is_arn = name.starts_with("arn:");
            if member.ends_with("Arn") && !is_arn {
                continue;
            }
            let mut body = match own {
                "ImportTable" => json!({ "TableCreationParameters": { "TableName": name } }),
                "RestoreTableFromBackup" => {
                    json!({ "TargetTableName": name, "BackupArn": format!("{ARN}:table/OwnGames/backup/1-a") })
                }
                "RestoreTableToPointInTime" => {
                    json!({ "SourceTableName": "OwnGames", "TargetTableName": name })
                }
                _ => json!({ member: format!("{name}{behind}") }),
            };
            match own {
                "TagResource" => body["Tags"] = json!([{ "Key": "a", "Value": "b" }]),
                "UntagResource" => body["TagKeys"] = json!(["a"]),
                "UpdateTimeToLive" => {
                    body["TimeToLiveSpecification"] = json!({ "Enabled": true, "AttributeName": "ttl" });
                }
                "CreateTable" => {
                    body["KeySchema"] = json!([{ "AttributeName": "pk", "KeyType": "HASH" }]);
                    body["AttributeDefinitions"] = json!([{ "AttributeName": "pk", "AttributeType": "S" }]);
                    body["BillingMode"] = json!("PAY_PER_REQUEST");
                }
                _ => {}
            }
            let mut uses = vec![(own, table, keys.clone())];
            if own.starts_with("RestoreTable") {
                uses.push((own, "OwnGames", keys.clone()));
            }
            cases.push(of(operation, &body, uses, is_elsewhere));
        }
    }
}
