//! The clients that are known to a gateway.

use std::collections::HashMap;
use std::sync::Arc;

use heatsink_control::{ClientSettings, RulesError};
use heatsink_dynamo::Error;
use heatsink_signature::{BodyHash, Claim, Verifier};
use http::request::Parts;

use crate::caller::Caller;
use crate::certificates::{self, Certificates, Certified};
use crate::sections;

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
    certificates: Certificates,
    /// Whether any client has a secret to sign with.
    is_signing: bool,
}

/// What a head claims, before its body is read.
#[derive(Debug)]
pub enum Claimed<'a> {
    /// Nothing need be claimed: no client is known.
    Nothing,
    /// To be the client of the certificate that was shown, which need not sign.
    Certified(Caller),
    /// To be signed by a client.
    Signed(Claim<'a>),
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
        let (mut signing, mut callers) = (Vec::new(), HashMap::new());
        let mut certificates = Certificates::default();
        for one in settings {
            sections::access_key(one)?;
            let expires = sections::expires(one)?;
            if let Some(secret) = &one.secret {
                signing.push(sections::client(one, secret, expires)?);
            }
            let caller = Caller::new(&one.id, &shown, &Arc::new(sections::rights(one, region)?));
            let twice = |what: String| format!("two clients have the {what}");
            if callers.insert(one.id.clone(), caller.clone()).is_some() {
                return Err(one.fault("id", twice(format!("access key {}", one.id))));
            }
            let certified = Certified { caller, signs: one.secret.is_some(), expires };
            let added = certificates.add(&one.certificates, &certified);
            added.map_err(|name| one.fault("certificate", twice(format!("certificate {name}"))))?;
        }
        let is_signing = !signing.is_empty();
        let verifier =
            Verifier::new(region, signing).map_err(|unfit| first.fault("id", unfit.to_string()))?;
        Ok(Clients { known: Some(Known { verifier, callers, certificates, is_signing }) })
    }

    /// Checks the clients of a rules file, without their secrets.
    ///
    /// # Errors
    /// The first fault: its file, line and field, and what to do.
    pub fn check(settings: &[ClientSettings], region: &str) -> Result<(), RulesError> {
        settings.iter().try_for_each(|one| {
            sections::access_key(one)?;
            sections::expires(one)?;
            sections::rights(one, region).map(drop)
        })
    }

    /// Whether requests have to be of one of them.
    pub fn are_known(&self) -> bool {
        self.known.is_some()
    }

    /// The client with that access key, for whoever knows it by something else than a signature.
    pub fn caller(&self, id: &str) -> Option<&Caller> {
        self.known.as_ref()?.callers.get(id)
    }

    /// What a head claims that arrives at `unix_millis`, on a connection that has `shown` the
    /// certificate of that name. It reads no more than the head.
    ///
    /// # Errors
    /// The refusal of a head that breaks a rule of signatures, in DynamoDB's words, of a certificate
    /// that is of no client, and of one whose client has to sign where the head names another.
    pub fn claim<'a>(
        &self,
        head: &'a Parts,
        shown: Option<&str>,
        unix_millis: u64,
    ) -> Result<Claimed<'a>, Error> {
        let Some(known) = &self.known else { return Ok(Claimed::Nothing) };
        match known.certificates.client(shown) {
            Some(client) if !client.signs => client.in_time(unix_millis).map(Claimed::Certified),
            None if !known.is_signing => Err(certificates::unknown(shown)),
            certified => {
                let claim = known.verifier.claim(head, unix_millis)?;
                match certified.map(|client| client.caller.id()) {
                    // Whoever is named: that there is such a client is not told.
                    Some(id) if id != claim.access_key() => Err(certificates::of_two(id, claim.access_key())),
                    _ => Ok(Claimed::Signed(claim)),
                }
            }
        }
    }

    /// Whether there is a client with the access key of a claim, and the certificate that was shown
    /// does not contradict it. Otherwise nothing of the body that comes will be used.
    pub fn may_hold(&self, claim: &Claim<'_>, shown: Option<&str>) -> bool {
        self.known.as_ref().is_some_and(|known| {
            known.verifier.knows(claim) && known.certificates.admit(claim.access_key(), shown)
        })
    }

    /// Whether that certificate is of a client.
    pub fn know_certificate(&self, shown: Option<&str>) -> bool {
        self.known.as_ref().is_some_and(|known| known.certificates.client(shown).is_some())
    }

    /// How many they are.
    pub fn count(&self) -> usize {
        self.known.as_ref().map_or(0, |known| known.callers.len())
    }

    /// Who has signed the head that made the claim, with the body that came with it. `None` where
    /// no client is known.
    ///
    /// # Errors
    /// The refusal, in DynamoDB's words; and that of a signature and a certificate of two clients.
    pub fn authenticate(
        &self,
        claim: Claim<'_>,
        body: &BodyHash,
        shown: Option<&str>,
        unix_millis: u64,
    ) -> Result<Option<Caller>, Error> {
        let Some(Known { verifier, callers, certificates, .. }) = &self.known else { return Ok(None) };
        let principal = verifier.authenticate(claim, body, unix_millis).map_err(|error| match shown {
            Some(name) if certificates.client(shown).is_none() => certificates::neither(name, &error),
            _ => error,
        })?;
        // Both are made of the same sections.
        let caller = callers.get(principal.id()).cloned();
        let caller = caller.ok_or_else(|| Error::internal("A client has no rights on record"))?;
        certificates.check_signer(&caller, shown)?;
        Ok(Some(caller))
    }

    /// Whether a client that need not sign may send a request that names this access key: its own,
    /// or any that is no other client's, for SDKs always name one.
    ///
    /// # Errors
    /// The refusal of another client's.
    pub fn check_named(&self, caller: &Caller, access_key: &str) -> Result<(), Error> {
        let is_anothers = access_key != caller.id() && self.caller(access_key).is_some();
        if is_anothers { Err(certificates::of_two(caller.id(), access_key)) } else { Ok(()) }
    }
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
        let Claimed::Signed(claim) = clients.claim(&head, None, NOW).unwrap() else { return None };
        let caller = clients.authenticate(claim, &BodyHash::of(b"{}"), None, NOW).ok()??;
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
