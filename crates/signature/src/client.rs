//! A client that is known: its access key, its secrets, until when they hold.

use std::fmt;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use subtle::ConstantTimeEq;

use crate::scope::SERVICE;
use crate::secret::{DayKey, Secret};

/// Who has sent a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Principal(Arc<str>);

impl Principal {
    /// The access key of the client, which is no secret.
    pub fn id(&self) -> &str {
        &self.0
    }
}

/// Why a client cannot be known.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum UnfitClient {
    /// A sign that would end an access key in a header, or could be read as another part of a scope.
    AccessKey(char),
    /// No access key, or an empty secret.
    Empty,
    /// Two clients have this access key.
    Twice(String),
}

impl fmt::Display for UnfitClient {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            UnfitClient::AccessKey(sign) => {
                write!(f, "an access key has letters, digits, and the signs _ - . of ASCII; found {sign:?}")
            }
            UnfitClient::Empty => f.write_str("access keys, secrets and session tokens are not empty"),
            UnfitClient::Twice(id) => write!(f, "two clients have the access key {id}"),
        }
    }
}

impl std::error::Error for UnfitClient {}

/// A client that is known. Its secrets are never shown, not by `Debug` either.
pub struct Client {
    principal: Principal,
    /// The present secret, and the one that is valid besides while secrets are rotated. Without one
    /// both are the same, so that a wrong signature takes the same time for every client.
    secrets: [Secret; 2],
    token: Option<Box<[u8]>>,
    /// Milliseconds since 1970.
    expires: Option<u64>,
    /// The keys of the day that was last asked for.
    of_day: ArcSwapOption<DayKeys>,
}

struct DayKeys {
    date: Box<str>,
    keys: [DayKey; 2],
}

impl Client {
    /// The client with that access key and secret.
    ///
    /// # Errors
    /// [`UnfitClient`], for an access key that a scope cannot name, and for empty texts.
    pub fn new(access_key: &str, secret: &str) -> Result<Self, UnfitClient> {
        check_access_key(access_key)?;
        match secret.is_empty() {
            true => Err(UnfitClient::Empty),
            false => Ok(Client::with(access_key, secret)),
        }
    }

    /// Who takes the place of a client that is not known. No text signs in its name.
    pub(crate) fn nobody() -> Self {
        Client::with("", "")
    }

    fn with(access_key: &str, secret: &str) -> Self {
        let secret = Secret::new(secret);
        Client {
            principal: Principal(access_key.into()),
            secrets: [secret.clone(), secret],
            token: None,
            expires: None,
            of_day: ArcSwapOption::empty(),
        }
    }

    /// The same client, which may also sign with the secret that it had before.
    ///
    /// # Errors
    /// [`UnfitClient::Empty`].
    pub fn with_former_secret(self, secret: &str) -> Result<Self, UnfitClient> {
        let [present, _] = self.secrets;
        let secrets =
            [present, Secret::new(Some(secret).filter(|text| !text.is_empty()).ok_or(UnfitClient::Empty)?)];
        Ok(Client { secrets, ..self })
    }

    /// The same client, whose requests carry this session token.
    ///
    /// # Errors
    /// [`UnfitClient::Empty`].
    pub fn with_token(self, token: &str) -> Result<Self, UnfitClient> {
        if token.is_empty() {
            return Err(UnfitClient::Empty);
        }
        Ok(Client { token: Some(token.as_bytes().into()), ..self })
    }

    /// The same client, whose credentials hold until then, in milliseconds since 1970.
    #[must_use]
    pub fn expiring(self, unix_millis: u64) -> Self {
        Client { expires: Some(unix_millis), ..self }
    }

    /// Who it is.
    pub fn principal(&self) -> &Principal {
        &self.principal
    }

    /// Whether one of its secrets has signed the text for that day. It takes the same time for each
    /// wrong signature.
    pub(crate) fn has_signed(&self, text: &str, signature: &[u8; 32], date: &str, region: &str) -> bool {
        let known = self.of_day.load();
        match known.as_deref().filter(|known| *known.date == *date) {
            Some(known) => known.verify(text, signature),
            None => {
                let keys = self.secrets.each_ref().map(|secret| secret.day_key(date, region, SERVICE));
                let known = Arc::new(DayKeys { date: date.into(), keys });
                let has_signed = known.verify(text, signature);
                self.of_day.store(Some(known));
                has_signed
            }
        }
    }

    /// Whether a request with this session token, or without one, is of its credentials.
    pub(crate) fn has_token(&self, given: Option<&[u8]>) -> bool {
        match (&self.token, given) {
            (None, None) => true,
            (Some(own), Some(given)) => own.ct_eq(given).into(),
            _ => false,
        }
    }

    pub(crate) fn has_expired(&self, unix_millis: u64) -> bool {
        self.expires.is_some_and(|expires| expires <= unix_millis)
    }
}

/// Whether a text can be an access key.
///
/// # Errors
/// [`UnfitClient`]: it is empty, or a scope cannot name it.
pub fn check_access_key(text: &str) -> Result<(), UnfitClient> {
    let known = |sign: &char| sign.is_ascii_alphanumeric() || "_-.".contains(*sign);
    match text.chars().find(|sign| !known(sign)) {
        Some(sign) => Err(UnfitClient::AccessKey(sign)),
        None if text.is_empty() => Err(UnfitClient::Empty),
        None => Ok(()),
    }
}

impl DayKeys {
    fn verify(&self, text: &str, signature: &[u8; 32]) -> bool {
        self.keys.iter().any(|key| key.verify(text, signature))
    }
}

impl fmt::Debug for Client {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Client").field(&self.principal.id()).finish()
    }
}
