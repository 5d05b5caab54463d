//! The `[[client]]` tables of a rules file: who may send requests, where the secrets are, and what
//! each client may do. Secrets themselves never stand in the file.
//!
//! Not here: reading secrets and policies, signatures, what a right allows (`heatsink-access`).

use std::collections::BTreeMap;
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use schemars::JsonSchema;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor, value::SeqAccessDeserializer};
use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::RulesError;
use super::fault::{Fault, LineOf};

/// A client that may send requests. Where there is one, every request has to be signed by one.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Section {
    /// Its access key.
    #[schemars(with = "String", length(min = 1))]
    pub id: Spanned<String>,
    /// The file that holds its secret, which nobody else may read. Or `secret_env`.
    #[schemars(with = "Option<String>")]
    pub secret_file: Option<Spanned<String>>,
    /// The environment variable that holds its secret.
    #[schemars(with = "Option<String>")]
    pub secret_env: Option<Spanned<String>>,
    /// The file that holds the secret that it had before, which is valid besides.
    #[schemars(with = "Option<String>")]
    pub former_secret_file: Option<Spanned<String>>,
    /// The environment variable that holds the secret that it had before.
    #[schemars(with = "Option<String>")]
    pub former_secret_env: Option<Spanned<String>>,
    /// The file that holds the session token that its requests have to carry.
    #[schemars(with = "Option<String>")]
    pub session_token_file: Option<Spanned<String>>,
    /// The environment variable that holds the session token that its requests have to carry.
    #[schemars(with = "Option<String>")]
    pub session_token_env: Option<Spanned<String>>,
    /// Until when it is a client, such as "2027-01-31T00:00:00Z". Default: for good.
    #[schemars(with = "Option<String>")]
    pub expires: Option<Spanned<String>>,
    /// The tables it may use, as globs. Default: "*".
    #[schemars(with = "Option<Globs>")]
    pub tables: Option<Spanned<Globs>>,
    /// What it may do, as globs of IAM's action names, such as "GetItem" or "PartiQL*". Default:
    /// "*".
    #[schemars(with = "Option<Globs>")]
    pub actions: Option<Spanned<Globs>>,
    /// The logical partition keys it may use, as globs. Default: all.
    #[schemars(with = "Option<Globs>")]
    pub keys: Option<Spanned<Globs>>,
    /// The attributes it may name and get. Default: all.
    #[schemars(with = "Option<Globs>")]
    pub attributes: Option<Spanned<Globs>>,
    /// A file with an IAM policy that says what it may do, in place of the four above.
    #[schemars(with = "Option<String>")]
    pub policy: Option<Spanned<String>>,
    /// Refused: secrets do not stand here.
    #[schemars(skip)]
    pub secret: Option<Spanned<IgnoredAny>>,
    /// Refused: secrets do not stand here.
    #[schemars(skip)]
    pub session_token: Option<Spanned<IgnoredAny>>,
}

/// One glob, or a list of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Globs {
    One(String),
    Many(Vec<String>),
}

/// By hand, because serde's error for an untagged enum does not say what was expected.
impl<'de> Deserialize<'de> for Globs {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct GlobsVisitor;

        impl<'de> Visitor<'de> for GlobsVisitor {
            type Value = Globs;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a glob such as \"team1*\", or a list of globs")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Globs, E> {
                Ok(Globs::One(text.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Globs, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(Globs::Many)
            }
        }

        from.deserialize_any(GlobsVisitor)
    }
}

/// Where a secret is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SecretSource {
    /// In this file.
    File(PathBuf),
    /// In the environment variable of that name.
    Variable(String),
}

/// A client as the file has it. No secret is in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClientSettings {
    /// Its access key.
    pub id: String,
    /// Its secret.
    pub secret: SecretSource,
    /// The secret that is valid besides.
    pub former_secret: Option<SecretSource>,
    /// The token that its requests carry.
    pub session_token: Option<SecretSource>,
    /// Until when it is a client, as written.
    pub expires: Option<String>,
    /// What it may do.
    pub rights: RightsSettings,
    places: Places,
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
struct Places {
    file: Arc<str>,
    number: usize,
    line: usize,
    fields: BTreeMap<&'static str, usize>,
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

    /// The files that it is made of beside the rules file.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        let secrets = [Some(&self.secret), self.former_secret.as_ref(), self.session_token.as_ref()];
        let secrets = secrets.into_iter().flatten().filter_map(|source| match source {
            SecretSource::File(file) => Some(file.as_path()),
            SecretSource::Variable(_) => None,
        });
        secrets.chain(match &self.rights {
            RightsSettings::Policy(file) => Some(file.as_path()),
            RightsSettings::Globs { .. } => None,
        })
    }

    /// The field that says where its secret is.
    pub fn secret_field(&self) -> &'static str {
        field(&self.secret, "secret_file", "secret_env")
    }

    /// The field that says where its former secret is.
    pub fn former_secret_field(&self) -> &'static str {
        let source = self.former_secret.as_ref().unwrap_or(&self.secret);
        field(source, "former_secret_file", "former_secret_env")
    }

    /// The field that says where its session token is.
    pub fn session_token_field(&self) -> &'static str {
        let source = self.session_token.as_ref().unwrap_or(&self.secret);
        field(source, "session_token_file", "session_token_env")
    }
}

fn field(source: &SecretSource, file: &'static str, variable: &'static str) -> &'static str {
    match source {
        SecretSource::File(_) => file,
        SecretSource::Variable(_) => variable,
    }
}

impl fmt::Display for ClientSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "client {}: ", self.id)?;
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

/// Checks one section of `file`; other files are looked for beside it.
pub(super) fn client(
    number: usize,
    file: &str,
    raw: Spanned<Section>,
    line_of: LineOf<'_>,
    fault: Fault<'_>,
) -> Result<ClientSettings, RulesError> {
    let whole = raw.span().start..raw.span().start;
    let raw = raw.into_inner();
    // Where it stands is named, not what stands there.
    if let Some(given) = raw.secret.as_ref().or(raw.session_token.as_ref()) {
        let problem = "secrets do not stand in this file: put it into a file that only this user can read, \
                       or into a variable, and name that (secret_file, secret_env, session_token_file, session_token_env)";
        return Err(fault(given.span(), problem.to_owned()));
    }
    let line = line_of(whole.start);
    let mut places = Places { file: file.into(), number, line, fields: BTreeMap::new() };
    let mut note = |name: &'static str, start: usize| {
        places.fields.insert(name, line_of(start));
    };
    let base = Path::new(file).parent().unwrap_or(Path::new(""));
    let mut source =
        |file: Option<Spanned<String>>, variable: Option<Spanned<String>>, names: [&'static str; 2]| {
            match (file, variable) {
                (Some(file), Some(_)) => {
                    let problem =
                        format!("{} and {} name two places for one secret; remove one", names[0], names[1]);
                    Err(fault(file.span(), problem))
                }
                (Some(named), None) | (None, Some(named)) if named.get_ref().trim().is_empty() => {
                    Err(fault(named.span(), "expected a name, found an empty text".to_owned()))
                }
                (Some(file), None) => {
                    note(names[0], file.span().start);
                    Ok(Some(SecretSource::File(base.join(file.into_inner()))))
                }
                (None, Some(variable)) => {
                    note(names[1], variable.span().start);
                    let is_name = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
                    // What is no name may be the secret itself: it is not repeated.
                    if !is_name(variable.get_ref()) {
                        let problem = "expected the name of an environment variable: letters, digits and _";
                        return Err(fault(variable.span(), problem.to_owned()));
                    }
                    Ok(Some(SecretSource::Variable(variable.into_inner())))
                }
                (None, None) => Ok(None),
            }
        };
    let secret = source(raw.secret_file, raw.secret_env, ["secret_file", "secret_env"])?;
    let former_secret =
        source(raw.former_secret_file, raw.former_secret_env, ["former_secret_file", "former_secret_env"])?;
    let session_token =
        source(raw.session_token_file, raw.session_token_env, ["session_token_file", "session_token_env"])?;
    let Some(secret) = secret else {
        let problem = "a client needs secret_file or secret_env, which says where its secret is";
        return Err(fault(whole, problem.to_owned()));
    };
    note("id", raw.id.span().start);
    let mut globs = |name: &'static str, globs: Option<Spanned<Globs>>| {
        let Some(globs) = globs else { return Ok(None) };
        let span = globs.span();
        note(name, span.start);
        let globs = match globs.into_inner() {
            Globs::One(glob) => vec![glob],
            Globs::Many(globs) => globs,
        };
        if globs.is_empty() || globs.iter().any(String::is_empty) {
            let problem = "expected a glob, found nothing; a client that may do nothing needs no section";
            return Err(fault(span, problem.to_owned()));
        }
        Ok(Some(globs))
    };
    let of_globs = [&raw.tables, &raw.actions, &raw.keys, &raw.attributes].into_iter().any(Option::is_some);
    let (tables, actions) = (globs("tables", raw.tables)?, globs("actions", raw.actions)?);
    let (keys, attributes) = (globs("keys", raw.keys)?, globs("attributes", raw.attributes)?);
    let rights = match raw.policy {
        Some(policy) if of_globs => {
            let problem = "a policy says all that a client may do: remove tables, actions, keys and attributes, or the policy";
            return Err(fault(policy.span(), problem.to_owned()));
        }
        Some(policy) => {
            note("policy", policy.span().start);
            RightsSettings::Policy(base.join(policy.into_inner()))
        }
        None => RightsSettings::Globs { tables, actions, keys, attributes },
    };
    let expires = raw.expires.map(|expires| {
        note("expires", expires.span().start);
        expires.into_inner()
    });
    Ok(ClientSettings {
        id: raw.id.into_inner(),
        secret,
        former_secret,
        session_token,
        expires,
        rights,
        places,
    })
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
        assert_eq!(clients[0].secret, SecretSource::File("conf/orders.secret".into()));
        assert_eq!(clients[0].former_secret, Some(SecretSource::Variable("FORMER".to_owned())));
        assert_eq!(clients[0].session_token, Some(SecretSource::File("/run/token".into())));
        assert_eq!(
            clients[0].to_string(),
            "client orders: actions like GetItem, Query of tables like Orders*, keys like team1#*; until 2027-01-31T00:00:00Z"
        );
        assert_eq!(clients[1].to_string(), "client all: all actions of all tables");
        let fault = clients[0].fault("former_secret_env", "no").to_string();
        assert_eq!(fault, "conf/heatsink.toml:4: client[1].former_secret_env: no");
    }

    #[test]
    fn faults_are_said_and_secrets_are_not() {
        let canary = "canary/+secret";
        for (text, said) in [
            ("id = \"a\"\n".to_owned(), "needs secret_file or secret_env"),
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
            ("id = \"a\"\nsecret_env = \"A\"\nkeys = 5\n".to_owned(), "or a list of globs"),
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
