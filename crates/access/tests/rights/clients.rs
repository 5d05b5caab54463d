//! Clients of a test, from sections or policies.

use std::collections::HashMap;
use std::os::unix::fs::PermissionsExt;

use heatsink_access::{Clients, TableFacts};
use heatsink_control::Rules;
use heatsink_dynamo::{Code, Error, Operation};

pub const REGION: &str = "eu-west-1";
pub const ARN: &str = "arn:aws:dynamodb:eu-west-1:123456789012";

/// The clients of these sections; a section's secret is added. Policies lie beside it.
pub fn load(sections: &[String], policies: &[(&str, String)]) -> Result<Clients, String> {
    let folder = tempfile::tempdir().unwrap();
    for (name, text) in [("secret", "secret".to_owned())].iter().chain(policies) {
        let file = folder.path().join(name);
        std::fs::write(&file, text).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o600)).unwrap();
    }
    let text: String =
        sections.iter().map(|section| format!("[[client]]\nsecret_file = \"secret\"\n{section}\n")).collect();
    let rules = Rules::read(&folder.path().join("heatsink.toml").display().to_string(), &text);
    let rules = rules.map_err(|error| error.to_string())?;
    Clients::load(rules.clients(), REGION).map_err(|error| error.to_string())
}

/// One client with these lines in its section.
pub fn one(lines: &str) -> Clients {
    load(&[format!("id = \"client\"\n{lines}")], &[]).unwrap()
}

/// One client with that policy.
pub fn with_policy(policy: &str) -> Result<Clients, String> {
    load(&["id = \"client\"\npolicy = \"policy.json\"".to_owned()], &[("policy.json", policy.to_owned())])
}

/// What is known of each table.
pub fn facts(tables: &[String]) -> HashMap<String, TableFacts> {
    let of = |table: &String| {
        let arn = Some(format!("{ARN}:table/{table}"));
        let facts = TableFacts {
            partition_key: "pk".to_owned(),
            arn,
            keys: vec!["pk".to_owned(), "sk".to_owned()],
            index_keys: HashMap::from([("by-day".to_owned(), vec!["day".to_owned()])]),
        };
        (table.clone(), facts)
    };
    tables.iter().map(of).collect()
}

/// Judges a request of that client, as the gateway does.
pub fn judge(clients: &Clients, id: &str, operation: Operation, body: &str) -> Result<(), Error> {
    let caller = clients.caller(id).unwrap();
    if !caller.is_restricted() {
        return Ok(());
    }
    let request = caller.ask(operation, body.as_bytes())?;
    request.judge(&facts(request.tables()))
}

/// Whether it is allowed; anything but a denial fails the test.
pub fn allows(clients: &Clients, id: &str, operation: Operation, body: &str) -> bool {
    match judge(clients, id, operation, body) {
        Ok(()) => true,
        Err(error) if error.code == Code::AccessDeniedException => false,
        Err(error) => panic!("{}: {body}: {error}", operation.name()),
    }
}
