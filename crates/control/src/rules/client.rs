//! The `[[client]]` tables of a rules file: who may send requests, where the secrets are, and what
//! each client may do. Secrets themselves never stand in the file.
//!
//! Not here: how a table is read (`client_section`), reading secrets and policies, signatures, what a
//! right allows (`heatsink-access`).

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::RulesError;

/// Where a secret is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretSource {
    /// In this file.
    File(PathBuf),
    /// In the environment variable of that name.
    Variable(String),
}

/// A secret, and the field that says where it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Secret {
    /// The field's name.
    pub field: &'static str,
    /// Where the secret is.
    pub source: SecretSource,
}

/// A client as the file has it. No secret is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientSettings {
    /// Its access key.
    pub id: String,
    /// The names of its certificate, DNS names in lower case; none where it is not known by one.
    pub certificates: Vec<String>,
    /// Its secret. One that has none is known by its certificate.
    pub secret: Option<Secret>,
    /// The secret that is valid besides.
    pub former_secret: Option<Secret>,
    /// The token that its requests carry.
    pub session_token: Option<Secret>,
    /// Until when it is a client, as written.
    pub expires: Option<String>,
    /// What it may do.
    pub rights: RightsSettings,
    pub(super) places: Places,
}

/// What a client may do, as written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RightsSettings {
    /// Globs; `None` where there are none, which leaves all open.
    Globs {
        /// Of names of tables.
        tables: Option<Vec<String>>,
        /// Of IAM's names of actions.
        actions: Option<Vec<String>>,
        /// Of logical partition keys.
        keys: Option<Vec<String>>,
        /// Of names of attributes.
        attributes: Option<Vec<String>>,
    },
    /// A file with an IAM policy.
    Policy(PathBuf),
}

/// Where the fields of a client stand.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Places {
    pub(super) file: Arc<str>,
    pub(super) number: usize,
    pub(super) line: usize,
    pub(super) fields: BTreeMap<&'static str, usize>,
}

impl ClientSettings {
    /// A fault in one of its fields, which names file, line and field.
    pub fn fault(&self, field: &str, problem: impl Into<String>) -> RulesError {
        let Places { file, number, line, fields } = &self.places;
        RulesError {
            file: file.to_string(),
            line: fields.get(field).copied().unwrap_or(*line),
            field: Some(format!("client[{number}].{field}")),
            problem: problem.into(),
        }
    }

    /// What it has in common with another client, so that nobody could tell the two apart.
    pub(super) fn clash(&self, other: &ClientSettings) -> Option<RulesError> {
        let (field, what) = if self.id == other.id {
            ("id", format!("access key {}", self.id))
        } else {
            let same = self.certificates.iter().find(|name| other.certificates.contains(name))?;
            ("certificate", format!("certificate {same}"))
        };
        let line = other.fault(field, "").line;
        Some(self.fault(field, format!("two clients have the {what}: the other one stands in line {line}")))
    }

    /// The files that it is made of beside the rules file.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let secrets = [&self.secret, &self.former_secret, &self.session_token];
        let secrets = secrets.into_iter().flatten().filter_map(|secret| match &secret.source {
            SecretSource::File(file) => Some(file.as_path()),
            SecretSource::Variable(_) => None,
        });
        secrets.chain(match &self.rights {
            RightsSettings::Policy(file) => Some(file.as_path()),
            RightsSettings::Globs { .. } => None,
        })
    }
}

impl fmt::Display for ClientSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "client {}", self.id)?;
        if !self.certificates.is_empty() {
            let signs = if self.secret.is_some() { ", and its signature" } else { "" };
            write!(f, " (certificate {}{signs})", self.certificates.join(" or "))?;
        }
        f.write_str(": ")?;
        let all = |globs: &Option<Vec<String>>, what: &str| match globs {
            None => format!("all {what}"),
            Some(globs) => format!("{what} like {}", globs.join(", ")),
        };
        match &self.rights {
            RightsSettings::Policy(file) => write!(f, "what the policy in {} allows", file.display())?,
            RightsSettings::Globs { tables, actions, keys, attributes } => {
                write!(f, "{} of {}", all(actions, "actions"), all(tables, "tables"))?;
                if keys.is_some() {
                    write!(f, ", {}", all(keys, "keys"))?;
                }
                if attributes.is_some() {
                    write!(f, ", {}", all(attributes, "attributes"))?;
                }
            }
        }
        match &self.expires {
            Some(expires) => write!(f, "; until {expires}"),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::Rules;

    fn read(text: &str) -> Result<Vec<ClientSettings>, String> {
        Rules::read("conf/heatsink.toml", text)
            .map(|rules| rules.clients().to_vec())
            .map_err(|error| error.to_string())
    }

    #[test]
    fn a_client_has_an_access_key_and_names_its_secrets() {
        let clients = read(
            "[[client]]\nid = \"orders\"\nsecret_file = \"orders.secret\"\nformer_secret_env = \"FORMER\"\n\
             session_token_file = \"/run/token\"\nexpires = \"2027-01-31T00:00:00Z\"\ntables = \"Orders*\"\n\
             actions = [\"GetItem\", \"Query\"]\nkeys = \"team1#*\"\n[[client]]\nid = \"all\"\nsecret_env = \"ALL\"\n",
        )
        .unwrap();
        let secret = |field, source| Some(Secret { field, source });
        let file = |name: &str| SecretSource::File(name.into());
        assert_eq!(clients[0].secret, secret("secret_file", file("conf/orders.secret")));
        let former = SecretSource::Variable("FORMER".to_owned());
        assert_eq!(clients[0].former_secret, secret("former_secret_env", former));
        assert_eq!(clients[0].session_token, secret("session_token_file", file("/run/token")));
        assert_eq!(
            clients[0].to_string(),
            "client orders: actions like GetItem, Query of tables like Orders*, keys like team1#*; until 2027-01-31T00:00:00Z"
        );
        assert_eq!(clients[1].to_string(), "client all: all actions of all tables");
        let fault = clients[0].fault("former_secret_env", "no").to_string();
        assert_eq!(fault, "conf/heatsink.toml:4: client[1].former_secret_env: no");
    }

    #[test]
    fn a_client_is_known_by_certificates_too() {
        let clients = read(
            "[[client]]\nid = \"jobs\"\ncertificate = [\"spiffe://A/jobs\", \"Jobs.Example\"]\n\
             [[client]]\nid = \"both\"\ncertificate = \"both.example\"\nsecret_env = \"A\"\n",
        )
        .unwrap();
        assert_eq!(clients[0].certificates, ["spiffe://A/jobs", "jobs.example"]);
        assert_eq!(clients[0].secret, None);
        assert_eq!(
            clients[0].to_string(),
            "client jobs (certificate spiffe://A/jobs or jobs.example): all actions of all tables"
        );
        assert!(
            clients[1].to_string().starts_with("client both (certificate both.example, and its signature): ")
        );
        let one = "[[client]]\nid = \"a\"\ncertificate = \"a.example\"\n";
        let two =
            "[[client]]\nid = \"b\"\nsecret_env = \"B\"\ncertificate = [\"b.example\", \"A.example\"]\n";
        let error = read(&format!("{one}{two}")).unwrap_err();
        assert!(
            error.contains(
                "heatsink.toml:7: client[2].certificate: two clients have the certificate a.example: the other one stands in line 3"
            ),
            "{error}"
        );
    }

    #[test]
    fn faults_are_said_and_secrets_are_not() {
        let canary = "canary/+secret";
        for (text, said) in [
            ("id = \"a\"\n".to_owned(), "needs secret_file, secret_env or certificate"),
            (
                "id = \"a\"\ncertificate = \"a.example\"\nformer_secret_env = \"A\"\n".to_owned(),
                "client[1].former_secret_env: needs secret_file or secret_env",
            ),
            (
                "id = \"a\"\ncertificate = \"a.example\"\nsession_token_file = \"t\"\n".to_owned(),
                "client[1].session_token_file: needs secret_file or secret_env",
            ),
            ("id = \"a\"\ncertificate = []\n".to_owned(), "client[1].certificate: expected a URI"),
            ("id = \"a\"\ncertificate = \"\"\n".to_owned(), "client[1].certificate: expected a URI"),
            ("id = \"a\"\ncertificate = \"spiffe://a/*\"\n".to_owned(), "no globs; found \"spiffe://a/*\""),
            ("id = \"a\"\ncertificate = \"CN=a\"\n".to_owned(), "no globs; found \"CN=a\""),
            ("secret_env = \"A\"\n".to_owned(), "missing field `id`"),
            (format!("id = \"a\"\nsecret = \"{canary}\"\n"), "secrets do not stand in this file"),
            (format!("id = \"a\"\nsecret = [\"{canary}\"]\n"), "secrets do not stand in this file"),
            (
                format!("id = \"a\"\nsecret_env = \"A\"\nsession_token = \"{canary}\"\n"),
                "secrets do not stand",
            ),
            (
                format!("id = \"a\"\nsecret_env = \"{canary}\"\n"),
                "expected the name of an environment variable",
            ),
            ("id = \"a\"\nsecret_env = \"A\"\nsecret_file = \"f\"\n".to_owned(), "two places for one secret"),
            ("id = \"a\"\nsecret_env = \"\"\n".to_owned(), "found an empty text"),
            ("id = \"a\"\nsecret_env = \"A\"\nkeys = []\n".to_owned(), "expected a glob, found nothing"),
            ("id = \"a\"\nsecret_env = \"A\"\nkeys = 5\n".to_owned(), "or a list of texts"),
            ("id = \"a\"\nsecret_env = \"A\"\ntable = \"x\"\n".to_owned(), "unknown field `table`"),
            (
                "id = \"a\"\nsecret_env = \"A\"\nkeys = \"x\"\npolicy = \"p.json\"\n".to_owned(),
                "a policy says all that a client may do",
            ),
            (
                "id = \"a\"\nsecret_env = \"A\"\n[[client]]\nid = \"a\"\nsecret_env = \"B\"\n".to_owned(),
                "heatsink.toml:5: client[2].id: two clients have the access key a: the other one stands in line 2",
            ),
        ] {
            let error = read(&format!("[[client]]\n{text}")).unwrap_err();
            assert!(error.contains(said), "{error}");
            assert!(!error.contains(canary), "{error}");
        }
    }
}
