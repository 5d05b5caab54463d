//! Reads a `[[client]]` table.
//!
//! Not here: what comes of it (`client`).

use std::collections::BTreeMap;
use std::fmt;
use std::path::Path;

use schemars::JsonSchema;
use serde::de::{Deserializer, IgnoredAny, SeqAccess, Visitor, value::SeqAccessDeserializer};
use serde::{Deserialize, Serialize};
use toml::Spanned;

use super::RulesError;
use super::client::{ClientSettings, Places, RightsSettings, Secret, SecretSource};
use super::fault::{Fault, LineOf};

/// A client that may send requests. Where there is one, every request has to be of one: by its
/// signature, by the certificate that its connection has shown, or by both.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Section {
    /// Its access key.
    #[schemars(with = "String", length(min = 1))]
    pub id: Spanned<String>,
    /// The names of its certificate, as URIs such as "spiffe://example/orders" or DNS names. Without
    /// a secret it need not sign. Needs `serve --tls-client-ca`.
    #[schemars(with = "Option<Texts>")]
    pub certificate: Option<Spanned<Texts>>,
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
    #[schemars(with = "Option<Texts>")]
    pub tables: Option<Spanned<Texts>>,
    /// What it may do, as globs of IAM's action names, such as "GetItem" or "PartiQL*". Default:
    /// "*".
    #[schemars(with = "Option<Texts>")]
    pub actions: Option<Spanned<Texts>>,
    /// The logical partition keys it may use, as globs. Default: all.
    #[schemars(with = "Option<Texts>")]
    pub keys: Option<Spanned<Texts>>,
    /// The attributes it may name and get. Default: all.
    #[schemars(with = "Option<Texts>")]
    pub attributes: Option<Spanned<Texts>>,
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

/// One text, or a list of them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[serde(untagged)]
pub(crate) enum Texts {
    One(String),
    Many(Vec<String>),
}

/// By hand, because serde's error for an untagged enum does not say what was expected.
impl<'de> Deserialize<'de> for Texts {
    fn deserialize<D: Deserializer<'de>>(from: D) -> Result<Self, D::Error> {
        struct TextsVisitor;

        impl<'de> Visitor<'de> for TextsVisitor {
            type Value = Texts;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text such as \"team1*\", or a list of texts")
            }

            fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Texts, E> {
                Ok(Texts::One(text.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, list: A) -> Result<Texts, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(list)).map(Texts::Many)
            }
        }

        from.deserialize_any(TextsVisitor)
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
                    let source = SecretSource::File(base.join(file.into_inner()));
                    Ok(Some(Secret { field: names[0], source }))
                }
                (None, Some(variable)) => {
                    note(names[1], variable.span().start);
                    let is_name = |text: &str| text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
                    // What is no name may be the secret itself: it is not repeated.
                    if !is_name(variable.get_ref()) {
                        let problem = "expected the name of an environment variable: letters, digits and _";
                        return Err(fault(variable.span(), problem.to_owned()));
                    }
                    let source = SecretSource::Variable(variable.into_inner());
                    Ok(Some(Secret { field: names[1], source }))
                }
                (None, None) => Ok(None),
            }
        };
    let secret = source(raw.secret_file, raw.secret_env, ["secret_file", "secret_env"])?;
    let former_secret =
        source(raw.former_secret_file, raw.former_secret_env, ["former_secret_file", "former_secret_env"])?;
    let session_token =
        source(raw.session_token_file, raw.session_token_env, ["session_token_file", "session_token_env"])?;
    let certificates = match raw.certificate {
        Some(names) => {
            note("certificate", names.span().start);
            certificates(names, fault)?
        }
        None => Vec::new(),
    };
    if secret.is_none() && certificates.is_empty() {
        let problem = "a client needs secret_file, secret_env or certificate: where its secret is, or which certificate it shows";
        return Err(fault(whole, problem.to_owned()));
    }
    note("id", raw.id.span().start);
    let mut globs = |name: &'static str, globs: Option<Spanned<Texts>>| {
        let Some(globs) = globs else { return Ok(None) };
        let span = globs.span();
        note(name, span.start);
        let globs = match globs.into_inner() {
            Texts::One(glob) => vec![glob],
            Texts::Many(globs) => globs,
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
    let client = ClientSettings {
        id: raw.id.into_inner(),
        certificates,
        secret,
        former_secret,
        session_token,
        expires,
        rights,
        places,
    };
    match client.former_secret.as_ref().or(client.session_token.as_ref()) {
        Some(more) if client.secret.is_none() => {
            Err(client
                .fault(more.field, "needs secret_file or secret_env: without a secret nothing is signed"))
        }
        _ => Ok(client),
    }
}

/// The names of certificates, as they are compared: those of DNS in lower case.
fn certificates(names: Spanned<Texts>, fault: Fault<'_>) -> Result<Vec<String>, RulesError> {
    let span = names.span();
    let names = match names.into_inner() {
        Texts::One(name) => vec![name],
        Texts::Many(names) => names,
    };
    let is_uri = |name: &str| name.contains(':') && !name.contains('*');
    let is_dns = |name: &str| {
        !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b".-_".contains(&byte))
    };
    let wrong = names.iter().find(|name| !is_uri(name) && !is_dns(name));
    if wrong.is_some() || names.is_empty() {
        let found = wrong.map_or_else(|| "nothing".to_owned(), |name| format!("{name:?}"));
        let problem = format!(
            "expected a URI such as \"spiffe://example/orders\", or a DNS name, as it stands in the certificate, and no globs; found {found}"
        );
        return Err(fault(span, problem));
    }
    Ok(names.into_iter().map(|name| if is_dns(&name) { name.to_ascii_lowercase() } else { name }).collect())
}
