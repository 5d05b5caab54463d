//! The `[webhook]` table of a rules file: who is told what is done about hot keys.
//!
//! A URL of such a service is often a secret itself, so nothing here displays more than its host.
//!
//! Not here: what is told (`heatsink_workers`), sending it (`heatsink_store`).

use std::fmt;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use http::Uri;
use schemars::JsonSchema;
use serde::Deserialize;
use toml::Spanned;

use super::RulesError;
use super::fault::Fault;

/// Who is told what is done about hot keys.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Section {
    /// Where each event is sent by POST, as JSON: "https://…", or "http://…" on this machine.
    #[schemars(with = "String", length(min = 1))]
    pub url: Spanned<String>,
    /// The file that holds the token for `authorization: Bearer`, which nobody else may read.
    /// Default: no such header.
    #[schemars(with = "Option<String>")]
    pub token_file: Option<Spanned<String>>,
}

/// Who is told. No token is in it.
#[derive(Clone, PartialEq, Eq)]
pub struct WebhookSettings {
    /// Where events are sent: a URL with a scheme and a host.
    pub url: Uri,
    /// The file that holds the token.
    pub token_file: Option<PathBuf>,
    /// What a fault of the token's file is without its words.
    unfit: RulesError,
}

impl WebhookSettings {
    /// A fault of the token's file, or of what is needed to send, which names file, line and field.
    pub fn fault(&self, problem: impl Into<String>) -> RulesError {
        RulesError { problem: problem.into(), ..self.unfit.clone() }
    }

    /// The files that it is made of beside the rules file.
    pub fn files(&self) -> impl Iterator<Item = &Path> {
        self.token_file.as_deref().into_iter()
    }
}

impl fmt::Display for WebhookSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let token = if self.token_file.is_some() { ", with a token" } else { "" };
        let host = self.url.host().unwrap_or_default();
        write!(f, "webhook: what is done about hot keys is sent to {host}{token}")
    }
}

impl fmt::Debug for WebhookSettings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// Checks the section of `file`; the token's file is looked for beside it.
pub(super) fn webhook(
    file: &str,
    raw: Option<Spanned<Section>>,
    fault: Fault<'_>,
) -> Result<Option<WebhookSettings>, RulesError> {
    let Some(raw) = raw else { return Ok(None) };
    let Section { url: written, token_file } = raw.into_inner();
    let span = written.span();
    let url = url(written.get_ref()).map_err(|problem| fault(span.clone(), problem.to_owned()))?;
    if let Some(empty) = token_file.as_ref().filter(|name| name.get_ref().trim().is_empty()) {
        return Err(fault(empty.span(), "expected a file's name, found an empty text".to_owned()));
    }
    let unfit = fault(token_file.as_ref().map_or(span, Spanned::span), String::new());
    let beside = Path::new(file).parent().unwrap_or(Path::new(""));
    let token_file = token_file.map(|name| beside.join(name.into_inner()));
    Ok(Some(WebhookSettings { url, token_file, unfit }))
}

/// A URL to which events can be sent, or what is wrong with it. What was written is not repeated.
fn url(text: &str) -> Result<Uri, &'static str> {
    const EXPECTED: &str = "expected a URL such as \"https://hooks.example/heatsink\"";
    let url: Uri = text.parse().map_err(|_| EXPECTED)?;
    let (Some(scheme), Some(authority)) = (url.scheme_str(), url.authority()) else {
        return Err(EXPECTED);
    };
    if authority.as_str().contains('@') {
        return Err(
            "credentials do not stand in this file: put a token into a file, and name that (token_file)",
        );
    }
    let host = authority.host().trim_matches(['[', ']']);
    let is_near = host == "localhost" || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback());
    match scheme {
        "https" => Ok(url),
        "http" if is_near => Ok(url),
        "http" => {
            Err("events name keys, and anyone on the way could read them: https:// beyond this machine")
        }
        _ => Err(EXPECTED),
    }
}

#[cfg(test)]
mod tests {
    use crate::rules::Rules;

    #[test]
    fn the_section_is_read_and_the_token_looked_for_beside_the_file() {
        let rules = Rules::read(
            "etc/heatsink.toml",
            "[webhook]\nurl = \"https://h.example/a?b\"\ntoken_file = \"t\"\n",
        );
        let rules = rules.unwrap();
        let webhook = rules.webhook().unwrap();
        assert_eq!(webhook.url.path_and_query().map(http::uri::PathAndQuery::as_str), Some("/a?b"));
        assert_eq!(webhook.files().collect::<Vec<_>>(), [std::path::Path::new("etc/t")]);
        assert_eq!(
            webhook.fault("it is gone").to_string(),
            "etc/heatsink.toml:3: webhook.token_file: it is gone"
        );
        assert!(Rules::read("f", "").unwrap().webhook().is_none());
        for near in ["http://127.0.0.1:9/x", "http://[::1]/", "http://localhost:80"] {
            assert!(Rules::read("f", &format!("[webhook]\nurl = \"{near}\"\n")).is_ok(), "{near}");
        }
    }

    #[test]
    fn a_wrong_section_is_refused_by_name_and_no_url_is_repeated() {
        for (text, said) in [
            ("url = \"hooks.example/canary\"", "f:2: webhook.url: expected a URL"),
            ("url = \"/canary\"", "f:2: webhook.url: expected a URL"),
            ("url = \"ftp://h/canary\"", "f:2: webhook.url: expected a URL"),
            ("url = \"https://u:canary@h/\"", "f:2: webhook.url: credentials do not stand in this file"),
            ("url = \"http://h.example/canary\"", "f:2: webhook.url: events name keys"),
            ("url = \"https://h/ canary\"", "f:2: webhook.url: expected a URL"),
            (
                "url = \"https://h/canary\"\ntoken_file = \" \"",
                "f:3: webhook.token_file: expected a file's name",
            ),
            ("url = \"https://h/canary\"\ntoken = \"t\"", "unknown field `token`"),
            ("token_file = \"t\"", "missing field `url`"),
        ] {
            let error = Rules::read("f", &format!("[webhook]\n{text}\n")).unwrap_err().to_string();
            assert!(error.contains(said) && !error.contains("canary"), "{text}: {error}");
        }
        let shown = Rules::read("f", "[webhook]\nurl = \"https://h.example/canary?canary\"\n").unwrap();
        assert!(!format!("{shown:?}{}", shown.webhook().unwrap()).contains("canary"));
    }
}
