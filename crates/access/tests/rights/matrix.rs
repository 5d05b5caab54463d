//! Every operation × every way to name a table × clients that read, write, administer, or have keys
//! of their own, by globs and by policies, against a plain evaluator.

use crate::cases::{Case, Keys, kind};
use crate::clients::{allows, load};

/// A client as the plain evaluator knows it.
struct Client {
    id: &'static str,
    /// `None`: all kinds.
    kinds: Option<&'static [&'static str]>,
    /// `None`: all tables.
    tables: Option<&'static str>,
    keys: Option<&'static str>,
}

const CLIENTS: [Client; 8] = [
    Client { id: "all", kinds: None, tables: None, keys: None },
    Client { id: "reader", kinds: Some(&["read"]), tables: Some("Own"), keys: None },
    Client { id: "writer", kinds: Some(&["write"]), tables: Some("Own"), keys: None },
    Client { id: "both", kinds: Some(&["read", "write"]), tables: Some("Own"), keys: Some("team1#") },
    Client { id: "admin", kinds: Some(&["admin"]), tables: Some("Own"), keys: None },
    Client { id: "owner", kinds: None, tables: Some("Own"), keys: None },
    Client { id: "team", kinds: None, tables: Some("Own"), keys: Some("team1#") },
    Client { id: "reads-all", kinds: Some(&["read", "account"]), tables: None, keys: None },
];

/// The kind of an action: of an operation, or of a part of one.
fn kind_of(action: &str) -> &'static str {
    match action {
        "PartiQLSelect" | "ConditionCheckItem" => "read",
        "PartiQLInsert" | "PartiQLUpdate" | "PartiQLDelete" => "write",
        operation => kind(operation).unwrap(),
    }
}

/// The plain evaluator. `harmless`: whether account operations need no right to all tables.
fn expected(client: &Client, case: &Case, harmless: bool) -> bool {
    if case.is_elsewhere && client.id != "all" {
        return false;
    }
    case.uses.iter().all(|(action, table, keys)| {
        let kind = kind_of(action);
        let of_kind = client.kinds.is_none_or(|kinds| kinds.contains(&kind));
        let of_table = match (client.tables, *table) {
            (None, _) => true,
            (Some(_), "") => kind == "account" && harmless,
            (Some(prefix), table) => table.starts_with(prefix),
        };
        let of_keys = match (client.keys, keys) {
            (None, _) | (Some(_), Keys::None) => true,
            (Some(_), Keys::All) => false,
            (Some(prefix), Keys::These(keys)) => keys.iter().all(|key| key.starts_with(prefix)),
        };
        of_kind && of_table && of_keys
    })
}

fn actions(kinds: &[&str], prefix: &str) -> String {
    let own = heatsink_dynamo::Operation::ALL.iter().map(|operation| operation.name());
    let own = own.filter(|name| kind(name).is_some());
    let all =
        own.chain(["ConditionCheckItem", "PartiQLSelect", "PartiQLInsert", "PartiQLUpdate", "PartiQLDelete"]);
    let of = all.filter(|action| kinds.contains(&kind_of(action)));
    of.map(|action| format!("\"{prefix}{action}\"")).collect::<Vec<_>>().join(", ")
}

fn section(client: &Client) -> String {
    let mut text = format!("id = \"{}\"\n", client.id);
    if let Some(kinds) = client.kinds {
        text += &format!("actions = [{}]\n", actions(kinds, ""));
    }
    if let Some(prefix) = client.tables {
        text += &format!("tables = \"{prefix}*\"\n");
    }
    if let Some(prefix) = client.keys {
        text += &format!("keys = [\"{prefix}*\"]\n");
    }
    text
}

fn policy(client: &Client) -> String {
    let actions = client.kinds.map_or("\"dynamodb:*\"".to_owned(), |kinds| actions(kinds, "dynamodb:"));
    let resource = client
        .tables
        .map_or("\"*\"".to_owned(), |prefix| format!("\"arn:aws:dynamodb:*:123456789012:table/{prefix}*\""));
    let condition = client.keys.map_or(String::new(), |prefix| {
        format!(r#", "Condition": {{"ForAllValues:StringLike": {{"dynamodb:LeadingKeys": ["{prefix}*"]}}}}"#)
    });
    format!(
        r#"{{"Version": "2012-10-17", "Statement": [{{"Effect": "Allow", "Action": [{actions}], "Resource": [{resource}]{condition}}}]}}"#
    )
}

#[test]
fn every_operation_is_judged_as_the_plain_evaluator_does() {
    let cases = crate::cases::all();
    assert!(cases.len() > 1_500, "{} cases", cases.len());
    let by_globs = load(&CLIENTS.each_ref().map(section), &[]).unwrap();
    let policies = CLIENTS.each_ref().map(|client| (client.id, policy(client)));
    let sections = CLIENTS.each_ref().map(|client| format!("id = \"{0}\"\npolicy = \"{0}\"", client.id));
    let by_policies = load(&sections, &policies).unwrap();
    let mut counts = [0_usize; 2];
    for case in &cases {
        for client in &CLIENTS {
            for (clients, harmless) in [(&by_globs, true), (&by_policies, false)] {
                let expected = expected(client, case, harmless);
                let found = allows(clients, client.id, case.operation, &case.body);
                assert_eq!(
                    found,
                    expected,
                    "{} {} by {}: {case:?}",
                    client.id,
                    case.operation.name(),
                    if harmless { "globs" } else { "a policy" }
                );
                counts[usize::from(found)] += 1;
            }
        }
    }
    println!("{} cases, {} allowed, {} denied", cases.len(), counts[1], counts[0]);
    assert!(counts.iter().all(|count| *count > 2_000), "{counts:?}");
}
