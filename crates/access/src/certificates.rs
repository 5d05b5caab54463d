//! Clients that are known by the certificate that their connection has shown.
//!
//! Such a certificate belongs to one client, and what comes with it is of no other: whoever signs in
//! another's name is refused, and so is who signs rightly but shows no certificate of the client's.
//!
//! Not here: whether a certificate holds, and which name it has (the listener).

use std::collections::{HashMap, HashSet};

use heatsink_dynamo::{Code, Error};

use crate::caller::Caller;

/// The clients that have a certificate, by its name.
#[derive(Debug, Default)]
pub(crate) struct Certificates {
    clients: HashMap<String, Certified>,
    /// The access keys of these clients.
    ids: HashSet<String>,
}

/// The client of a certificate.
#[derive(Clone, Debug)]
pub(crate) struct Certified {
    pub(crate) caller: Caller,
    /// Whether it has to sign as well.
    pub(crate) signs: bool,
    /// Until when it is a client, in milliseconds since 1970.
    pub(crate) expires: Option<u64>,
}

impl Certificates {
    /// Adds a client.
    ///
    /// # Errors
    /// The name that another client has.
    pub(crate) fn add<'a>(&mut self, names: &'a [String], client: &Certified) -> Result<(), &'a str> {
        if !names.is_empty() {
            self.ids.insert(client.caller.id().to_owned());
        }
        names.iter().try_for_each(|name| match self.clients.insert(name.clone(), client.clone()) {
            Some(other) if other.caller.id() != client.caller.id() => Err(name.as_str()),
            _ => Ok(()),
        })
    }

    /// The client of the certificate that was shown.
    pub(crate) fn client(&self, shown: Option<&str>) -> Option<&Certified> {
        self.clients.get(shown?)
    }

    /// Whether a client with that access key may be the one that has shown the certificate.
    pub(crate) fn admit(&self, id: &str, shown: Option<&str>) -> bool {
        match self.client(shown) {
            Some(client) => client.caller.id() == id,
            None => !self.ids.contains(id),
        }
    }

    /// Whether who has signed may be the one that has shown the certificate.
    ///
    /// # Errors
    /// It is another client's, or this client has one and shows none of its own.
    pub(crate) fn check_signer(&self, signer: &Caller, shown: Option<&str>) -> Result<(), Error> {
        match self.client(shown) {
            Some(client) if client.caller.id() == signer.id() => Ok(()),
            Some(client) => Err(of_two(client.caller.id(), signer.id())),
            None if self.ids.contains(signer.id()) => {
                let shown = shown.map_or_else(|| "none was shown".to_owned(), |name| format!("not {name}"));
                Err(refusal(format!(
                    "The client {} has to show a certificate of its own, and {shown}",
                    signer.id()
                )))
            }
            None => Ok(()),
        }
    }
}

impl Certified {
    /// The client, if it still is one.
    ///
    /// # Errors
    /// `ExpiredTokenException`.
    pub(crate) fn in_time(&self, unix_millis: u64) -> Result<Caller, Error> {
        match self.expires {
            Some(expires) if expires <= unix_millis => {
                let message = format!("The time of the client {} is over", self.caller.id());
                Err(Error::new(Code::ExpiredTokenException, message))
            }
            _ => Ok(self.caller.clone()),
        }
    }
}

/// A certificate is of one client and an access key or a signature of another.
pub(crate) fn of_two(certified: &str, named: &str) -> Error {
    refusal(format!(
        "The certificate is of the client {certified}, and the request names the access key of {named}: a connection is of one client"
    ))
}

/// A certificate is of no client, where nobody signs.
pub(crate) fn unknown(shown: Option<&str>) -> Error {
    refusal(match shown {
        Some(name) => format!("The certificate {name} is of no client: name it in a [[client]] section"),
        None => "No certificate was shown, and clients are known by theirs".to_owned(),
    })
}

/// What is said of a signature that does not hold, where the certificate is of no client either.
pub(crate) fn neither(shown: &str, error: &Error) -> Error {
    let said = error.message.as_deref().unwrap_or_default();
    Error::new(error.code.clone(), format!("{said} Nor is the certificate {shown} of a client."))
}

fn refusal(message: String) -> Error {
    Error::new(Code::UnrecognizedClientException, message)
}

#[cfg(test)]
mod tests {
    use std::fs::{Permissions, set_permissions, write};
    use std::os::unix::fs::PermissionsExt;

    use heatsink_control::Rules;
    use heatsink_signature::{BodyHash, CONTENT_TYPE, SigningKey};
    use http::Request;

    use crate::clients::{Claimed, Clients};

    const NOW: u64 = 1_767_268_800_000;

    /// The clients of a text; `secret` is a file with that secret.
    fn clients(text: &str) -> Clients {
        let folder = tempfile::tempdir().unwrap();
        write(folder.path().join("secret"), "secret").unwrap();
        set_permissions(folder.path().join("secret"), Permissions::from_mode(0o600)).unwrap();
        let file = folder.path().join("heatsink.toml").display().to_string();
        Clients::load(Rules::read(&file, text).unwrap().clients(), "eu-west-1").unwrap()
    }

    /// Who asks, signed with that key, on a connection that has shown that certificate.
    fn asks(clients: &Clients, shown: Option<&str>, (id, secret): (&str, &str)) -> Result<String, String> {
        let key = SigningKey::derive(id, secret, None, "eu-west-1", NOW);
        let signed = key.sign("h", "DynamoDB_20120810.GetItem", b"{}", NOW);
        let head = Request::builder()
            .method("POST")
            .header("host", "h")
            .header("content-type", CONTENT_TYPE)
            .header("x-amz-target", "DynamoDB_20120810.GetItem")
            .header("x-amz-date", signed.date)
            .header("authorization", signed.authorization);
        let head = head.body(()).unwrap().into_parts().0;
        let caller = match clients.claim(&head, shown, NOW).map_err(|error| error.to_string())? {
            Claimed::Nothing => return Ok("anybody".to_owned()),
            Claimed::Certified(caller) => {
                clients.check_named(&caller, id).map_err(|error| error.to_string())?;
                caller
            }
            Claimed::Signed(claim) => {
                let caller = clients.authenticate(claim, &BodyHash::of(b"{}"), shown, NOW);
                caller.map_err(|error| error.to_string())?.unwrap()
            }
        };
        Ok(caller.id().to_owned())
    }

    const ALL: &str = "[[client]]\nid = \"jobs\"\ncertificate = [\"spiffe://a/jobs\", \"Jobs.example\"]\n\
        [[client]]\nid = \"both\"\ncertificate = \"spiffe://a/both\"\nsecret_file = \"secret\"\n\
        [[client]]\nid = \"keys\"\nsecret_file = \"secret\"\n";

    #[test]
    fn certificate_and_signature_are_of_one_client() {
        let clients = clients(ALL);
        let (keys, both, jobs) = (("keys", "secret"), ("both", "secret"), ("jobs", "any"));
        let (sdk, wrong) = (("AKIDOFAROLE", "any"), ("both", "wrong"));
        let (of_jobs, of_both, of_nobody) =
            (Some("spiffe://a/jobs"), Some("spiffe://a/both"), Some("spiffe://a/other"));
        for (shown, key, who) in [
            (of_jobs, jobs, "jobs"),
            (Some("jobs.example"), jobs, "jobs"),
            // Its SDK has credentials of a role, which mean nothing here.
            (of_jobs, sdk, "jobs"),
            (of_both, both, "both"),
            (None, keys, "keys"),
            (of_nobody, keys, "keys"),
        ] {
            assert_eq!(asks(&clients, shown, key).as_deref(), Ok(who), "{shown:?} {key:?}");
        }
        for (shown, key, said) in [
            (
                of_jobs,
                keys,
                "certificate is of the client jobs, and the request names the access key of keys",
            ),
            (
                of_jobs,
                both,
                "certificate is of the client jobs, and the request names the access key of both",
            ),
            (
                of_both,
                keys,
                "certificate is of the client both, and the request names the access key of keys",
            ),
            (of_both, wrong, "does not match the signature you provided"),
            (
                of_both,
                sdk,
                "certificate is of the client both, and the request names the access key of AKIDOFAROLE",
            ),
            (None, both, "The client both has to show a certificate of its own, and none was shown"),
            (of_nobody, both, "has to show a certificate of its own, and not spiffe://a/other"),
            (of_nobody, wrong, "Nor is the certificate spiffe://a/other of a client."),
            (of_nobody, jobs, "Nor is the certificate spiffe://a/other of a client."),
            (None, jobs, "UnrecognizedClientException"),
        ] {
            let error = asks(&clients, shown, key).expect_err(&format!("{shown:?} {key:?}"));
            assert!(error.contains(said), "{shown:?} {key:?}: {error}");
        }
        // Whether a client is there that signs with a certificate is not told to who has no secret.
        let (there, not) = (asks(&clients, None, wrong), asks(&clients, None, ("keys", "wrong")));
        assert_eq!(there, not);
        let said = |id: &'static str| asks(&clients, of_both, (id, "wrong")).unwrap_err().replace(id, "ID");
        assert_eq!(said("keys"), said("ghost"), "nor to who has a certificate of another");
    }

    #[test]
    fn where_nobody_signs_the_certificate_is_named() {
        let clients = clients(
            "[[client]]\nid = \"jobs\"\ncertificate = \"spiffe://a/jobs\"\nexpires = \"2026-01-01T12:00:01Z\"\n\
             [[client]]\nid = \"late\"\ncertificate = \"late.example\"\nexpires = \"2026-01-01T12:00:00Z\"\n",
        );
        let key = ("any", "any");
        assert_eq!(asks(&clients, Some("spiffe://a/jobs"), key).as_deref(), Ok("jobs"));
        for (shown, said) in [
            (Some("late.example"), "ExpiredTokenException: The time of the client late is over"),
            (
                Some("spiffe://a/job"),
                "UnrecognizedClientException: The certificate spiffe://a/job is of no client",
            ),
            (Some("SPIFFE://a/jobs"), "is of no client"),
            (None, "UnrecognizedClientException: No certificate was shown"),
        ] {
            let error = asks(&clients, shown, key).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
        assert_eq!(asks(&Clients::default(), Some("late.example"), key).as_deref(), Ok("anybody"));
    }
}
