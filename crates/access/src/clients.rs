//! The clients that are known to a gateway.

use std::collections::HashMap;
use std::env;
use std::sync::Arc;

use heatsink_control::{ClientSettings, RightsSettings, RulesError, SecretSource};
use heatsink_dynamo::Error;
use heatsink_signature::{BodyHash, Claim, Client, UnfitClient, Verifier};
use http::request::Parts;
use jiff::Timestamp;

use crate::caller::Caller;
use crate::globs::{self, Globs};
use crate::policy;
use crate::rights::Rights;
use crate::secret_file::{self, Unfit};

/// The clients of one gateway. Without any, everyone who reaches it is served.
#[derive(Debug, Default)]
pub struct Clients {
    known: Option<Known>,
}

#[derive(Debug)]
struct Known {
    verifier: Verifier,
    /// By access key.
    callers: HashMap<String, Caller>,
}

impl Clients {
    /// The clients of a rules file, at a gateway that stands for `region`. Reads the files and the
    /// variables that it names.
    ///
    /// # Errors
    /// The first fault: its file, line and field, and what to do. It never says a secret.
    pub fn load(settings: &[ClientSettings], region: &str) -> Result<Clients, RulesError> {
        let Some(first) = settings.first() else { return Ok(Clients::default()) };
        let shown: Arc<str> = region.into();
        let (mut clients, mut callers) = (Vec::new(), HashMap::new());
        for one in settings {
            let client = client(one)?;
            let caller = Caller::new(&one.id, &shown, &Arc::new(rights(one, region)?));
            callers.insert(one.id.clone(), caller);
            clients.push(client);
        }
        // No client may be there twice. Of one file that is said, with the line, when it is read.
        let verifier =
            Verifier::new(region, clients).map_err(|unfit| first.fault("id", unfit.to_string()))?;
        Ok(Clients { known: Some(Known { verifier, callers }) })
    }

    /// Checks what the clients of a rules file may do, without their secrets.
    ///
    /// # Errors
    /// The first fault: its file, line and field, and what to do.
    pub fn check_rights(settings: &[ClientSettings], region: &str) -> Result<(), RulesError> {
        settings.iter().try_for_each(|one| rights(one, region).map(drop))
    }

    /// Whether requests have to be signed by one of them.
    pub fn are_known(&self) -> bool {
        self.known.is_some()
    }

    /// The client with that access key, for whoever knows it by something else than a signature.
    pub fn caller(&self, id: &str) -> Option<&Caller> {
        self.known.as_ref()?.callers.get(id)
    }

    /// What a head claims that arrives at `unix_millis`; `None` where no client is known. It reads
    /// no more than the head.
    ///
    /// # Errors
    /// The refusal, in DynamoDB's words, of a head that breaks a rule.
    pub fn claim<'a>(&self, head: &'a Parts, unix_millis: u64) -> Result<Option<Claim<'a>>, Error> {
        self.known.as_ref().map(|known| known.verifier.claim(head, unix_millis)).transpose()
    }

    /// Whether there is a client with the access key of a claim. If there is none, nothing of the body
    /// that comes will be used.
    pub fn knows(&self, claim: &Claim<'_>) -> bool {
        self.known.as_ref().is_some_and(|known| known.verifier.knows(claim))
    }

    /// Who has signed the head that made the claim, with the body that came with it. `None` where
    /// no client is known.
    ///
    /// # Errors
    /// The refusal, in DynamoDB's words.
    pub fn authenticate(
        &self,
        claim: Claim<'_>,
        body: &BodyHash,
        unix_millis: u64,
    ) -> Result<Option<Caller>, Error> {
        let Some(Known { verifier, callers }) = &self.known else { return Ok(None) };
        let principal = verifier.authenticate(claim, body, unix_millis)?;
        // Both are made of the same sections.
        let caller = callers.get(principal.id()).cloned();
        caller.map(Some).ok_or_else(|| Error::internal("A client has no rights on record"))
    }
}

/// What a client may do.
fn rights(settings: &ClientSettings, region: &str) -> Result<Rights, RulesError> {
    match &settings.rights {
        RightsSettings::Globs { tables, actions, keys, attributes } => {
            let globs = Globs {
                tables: tables.as_deref(),
                actions: actions.as_deref(),
                keys: keys.as_deref(),
                attributes: attributes.as_deref(),
            };
            globs::rights(settings, &globs)
        }
        RightsSettings::Policy(file) => {
            let fault = |problem: String| settings.fault("policy", format!("{}: {problem}", file.display()));
            let text = secret_file::read_unchanged(file).map_err(|unfit| fault(unfit.to_string()))?;
            policy::read(text.as_bytes(), region).map_err(fault)
        }
    }
}

/// The client of a section.
fn client(settings: &ClientSettings) -> Result<Client, RulesError> {
    let id_field = settings.secret_field();
    let secret = text(settings, id_field, &settings.secret)?;
    let unfit = |field: &'static str| {
        move |unfit: UnfitClient| match unfit {
            UnfitClient::Empty => settings.fault(field, "what it names is empty"),
            unfit => settings.fault("id", unfit.to_string()),
        }
    };
    if settings.id.is_empty() {
        return Err(settings.fault("id", "expected an access key, found an empty text"));
    }
    let mut client = Client::new(&settings.id, &secret).map_err(unfit(id_field))?;
    if let Some(source) = &settings.former_secret {
        let field = settings.former_secret_field();
        client = client.with_former_secret(&text(settings, field, source)?).map_err(unfit(field))?;
    }
    if let Some(source) = &settings.session_token {
        let field = settings.session_token_field();
        client = client.with_token(&text(settings, field, source)?).map_err(unfit(field))?;
    }
    if let Some(expires) = &settings.expires {
        let moment: Timestamp = expires.parse().map_err(|_| {
            let problem = format!("expected a moment such as \"2027-01-31T00:00:00Z\", found {expires:?}");
            settings.fault("expires", problem)
        })?;
        client = client.expiring(u64::try_from(moment.as_millisecond()).unwrap_or_default());
    }
    Ok(client)
}

/// The secret that a field names. What the field holds may be a secret by mistake: it is repeated
/// only where it is the name of a file that is there.
fn text(settings: &ClientSettings, field: &str, source: &SecretSource) -> Result<String, RulesError> {
    let text = match source {
        SecretSource::File(file) => secret_file::read(file).map_err(|unfit| match unfit {
            Unfit::Unreadable(error) => {
                settings.fault(field, format!("the file that it names cannot be read: {}", error.kind()))
            }
            unfit => settings.fault(field, format!("{}: {unfit}", file.display())),
        })?,
        SecretSource::Variable(name) => env::var(name).map_err(|_| {
            settings.fault(field, "the environment variable that it names is not set, or is no text")
        })?,
    };
    // The line end of its file is none of it.
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, set_permissions, write};
    use std::os::unix::fs::PermissionsExt;

    use heatsink_control::Rules;
    use heatsink_signature::SigningKey;
    use http::Request;

    use super::*;

    const NOW: u64 = 1_767_268_800_000;
    const CANARIES: [&str; 3] = ["canary-secret", "canary-former", "canary-token"];

    fn load(text: &str, mode: u32) -> Result<Clients, String> {
        load_all(&[text], mode)
    }

    /// The clients of several files.
    fn load_all(texts: &[&str], mode: u32) -> Result<Clients, String> {
        let folder = tempfile::tempdir().unwrap();
        for (name, canary) in ["secret", "former", "token"].into_iter().zip(CANARIES) {
            write(folder.path().join(name), format!("{canary}\n")).unwrap();
            set_permissions(folder.path().join(name), Permissions::from_mode(mode)).unwrap();
        }
        write(folder.path().join("empty"), "\n").unwrap();
        set_permissions(folder.path().join("empty"), Permissions::from_mode(0o600)).unwrap();
        let file = folder.path().join("heatsink.toml").display().to_string();
        let mut settings = Vec::new();
        for text in texts {
            let rules = Rules::read(&file, text).map_err(|error| error.to_string())?;
            settings.extend_from_slice(rules.clients());
        }
        Clients::load(&settings, "eu-west-1").map_err(|error| error.to_string())
    }

    fn head(secret: &str, token: Option<&str>) -> Parts {
        let key = SigningKey::derive("orders", secret, token, "eu-west-1", NOW);
        let signed = key.sign("h", "DynamoDB_20120810.GetItem", b"{}", NOW);
        let request = Request::builder()
            .method("POST")
            .uri("/")
            .header("host", "h")
            .header("content-type", heatsink_signature::CONTENT_TYPE)
            .header("x-amz-target", "DynamoDB_20120810.GetItem")
            .header("x-amz-date", signed.date)
            .header("authorization", signed.authorization);
        let request = match token {
            Some(token) => request.header("x-amz-security-token", token),
            None => request,
        };
        request.body(()).unwrap().into_parts().0
    }

    fn caller(clients: &Clients, secret: &str, token: Option<&str>) -> Option<String> {
        let head = head(secret, token);
        let claim = clients.claim(&head, NOW).unwrap()?;
        let caller = clients.authenticate(claim, &BodyHash::of(b"{}"), NOW).ok()??;
        Some(caller.id().to_owned())
    }

    #[test]
    fn a_client_signs_with_either_of_its_secrets_and_its_token() {
        let clients = load(
            "[[client]]\nid = \"orders\"\nsecret_file = \"secret\"\nformer_secret_file = \"former\"\n",
            0o600,
        );
        let clients = clients.unwrap();
        assert!(clients.are_known());
        for (secret, known) in [("canary-secret", true), ("canary-former", true), ("other", false)] {
            assert_eq!(caller(&clients, secret, None).is_some(), known, "{secret}");
        }
        let text = "[[client]]\nid = \"orders\"\nsecret_file = \"secret\"\nsession_token_file = \"token\"\n";
        let clients = load(text, 0o600).unwrap();
        assert_eq!(caller(&clients, "canary-secret", Some("canary-token")).as_deref(), Some("orders"));
        assert_eq!(caller(&clients, "canary-secret", None), None);
        let expired = format!("{text}expires = \"2026-01-01T11:59:59Z\"\n");
        assert_eq!(caller(&load(&expired, 0o600).unwrap(), "canary-secret", Some("canary-token")), None);
        let later = format!("{text}expires = \"2026-01-01T14:00:01+02:00\"\n");
        assert!(caller(&load(&later, 0o600).unwrap(), "canary-secret", Some("canary-token")).is_some());
        assert!(!load("", 0o600).unwrap().are_known());
    }

    #[test]
    fn what_cannot_be_loaded_is_said_with_its_line_and_without_its_secret() {
        let client = |more: &str| format!("[[client]]\nid = \"orders\"\n{more}\n");
        for (text, mode, said) in [
            (client("secret_file = \"secret\""), 0o644, ":3: client[1].secret_file: "),
            (client("secret_file = \"secret\""), 0o644, "mode 0644"),
            (client("secret_file = \"none\""), 0o600, "secret_file: the file that it names cannot be read"),
            (client("secret_file = \"empty\""), 0o600, "secret_file: what it names is empty"),
            (client("secret_env = \"HEATSINK_NO_SUCH\""), 0o600, "secret_env: the environment variable"),
            (
                client("secret_file = \"secret\"\nformer_secret_file = \"empty\""),
                0o600,
                ":4: client[1].former_secret_file: what it names is empty",
            ),
            (
                client("secret_file = \"secret\"\nexpires = \"tomorrow\""),
                0o600,
                "client[1].expires: expected a moment",
            ),
            (
                client("secret_file = \"secret\"").replace("orders", "orders/20260101"),
                0o600,
                ":2: client[1].id: an access key has letters",
            ),
            (client("secret_file = \"secret\"").replace("orders", ""), 0o600, "client[1].id: expected"),
        ] {
            let error = load(&text, mode).expect_err(&text);
            assert!(error.contains(said), "{error}");
            assert!(CANARIES.iter().all(|canary| !error.contains(canary)), "{error}");
        }
    }

    #[test]
    fn an_access_key_is_of_one_client() {
        let client = "[[client]]\nid = \"orders\"\nsecret_file = \"secret\"\n";
        let error = load(&client.repeat(2), 0o600).unwrap_err();
        assert!(error.contains(":5: client[2].id: two clients have the access key orders"), "{error}");
        // Nor does it take two of several files, each of which is right.
        let error = load_all(&[client, client], 0o600).unwrap_err();
        assert!(error.contains("two clients have the access key orders"), "{error}");
    }

    #[test]
    fn nothing_shown_of_the_clients_is_secret() {
        let text = client_with_all();
        let shown = format!("{:?}", load(&text, 0o600).unwrap());
        assert!(shown.contains("orders"), "{shown}");
        assert!(CANARIES.iter().all(|canary| !shown.contains(canary)), "{shown}");
    }

    fn client_with_all() -> String {
        "[[client]]\nid = \"orders\"\nsecret_file = \"secret\"\nformer_secret_file = \"former\"\nsession_token_file = \"token\"\n"
            .to_owned()
    }
}
