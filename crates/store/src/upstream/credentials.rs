//! Credentials from the standard AWS chain, as signing keys: cached, renewed before they expire.

use std::sync::{Arc, PoisonError, RwLock};

use aws_config::environment::EnvironmentVariableRegionProvider;
use aws_config::meta::region::RegionProviderChain;
use aws_config::profile::ProfileFileRegionProvider;
use aws_config::{BehaviorVersion, Region};
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};
use aws_smithy_http_client::tls;
use heatsink_dynamo::{Error, Outcome};

use super::signature::SigningKey;

/// Credentials are renewed this long before they expire.
const AHEAD_MILLIS: u64 = 300_000;
/// After a failed renewal the old credentials are used on, and the chain is asked again after this time.
const AGAIN_MILLIS: u64 = 10_000;

/// Hands out the signing key in force.
pub(super) struct Keys {
    region: String,
    chain: SharedCredentialsProvider,
    current: RwLock<Option<Arc<Current>>>,
    renewal: tokio::sync::Mutex<()>,
}

struct Current {
    key: Arc<SigningKey>,
    renew_at: u64,
    expires_at: u64,
}

impl Keys {
    pub(super) fn new(region: String, chain: SharedCredentialsProvider) -> Self {
        Keys { region, chain, current: RwLock::new(None), renewal: tokio::sync::Mutex::new(()) }
    }

    pub(super) fn region(&self) -> &str {
        &self.region
    }

    /// The key for requests sent now.
    pub(super) async fn at(&self, unix_millis: u64) -> Result<Arc<SigningKey>, Error> {
        if let Some(current) = self.current()
            && unix_millis < current.renew_at
            && current.key.holds_at(unix_millis)
        {
            return Ok(current.key.clone());
        }
        self.renew(unix_millis).await
    }

    async fn renew(&self, unix_millis: u64) -> Result<Arc<SigningKey>, Error> {
        let _one_at_a_time = self.renewal.lock().await;
        let before = self.current();
        if let Some(current) = &before
            && unix_millis < current.renew_at
            && current.key.holds_at(unix_millis)
        {
            return Ok(current.key.clone());
        }
        let next = match (self.chain.provide_credentials().await, before) {
            (Ok(found), _) => {
                let expires_at = found.expiry().map_or(u64::MAX, |at| {
                    let since = at.duration_since(std::time::UNIX_EPOCH).unwrap_or_default();
                    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
                });
                let key = SigningKey::derive(
                    found.access_key_id(),
                    found.secret_access_key(),
                    found.session_token(),
                    &self.region,
                    unix_millis,
                );
                // Credentials that are handed out close to their end must not be asked for on every request.
                let renew_at = expires_at.saturating_sub(AHEAD_MILLIS).max(unix_millis + AGAIN_MILLIS);
                Current { key: Arc::new(key), renew_at, expires_at }
            }
            (Err(error), Some(old)) if unix_millis < old.expires_at && old.key.holds_at(unix_millis) => {
                tracing::warn!(%error, "cannot renew the upstream credentials; the old ones hold for now");
                Current {
                    key: old.key.clone(),
                    renew_at: unix_millis + AGAIN_MILLIS,
                    expires_at: old.expires_at,
                }
            }
            (Err(error), _) => {
                let cause =
                    std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
                let message =
                    format!("No credentials for the upstream from the standard AWS chain: {error}{cause}");
                return Err(Error::unavailable(message, Outcome::NotDone));
            }
        };
        let key = next.key.clone();
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(next));
        Ok(key)
    }

    fn current(&self) -> Option<Arc<Current>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Region and credentials as every AWS SDK finds them: environment, profile files, single sign-on, web identity,
/// container, instance. With a `fallback` region the instance is not asked for its own.
pub(super) async fn standard_chain(
    fallback: Option<&'static str>,
) -> (Option<Region>, Option<SharedCredentialsProvider>) {
    let http = aws_smithy_http_client::Builder::new()
        .tls_provider(tls::Provider::Rustls(tls::rustls_provider::CryptoMode::Ring))
        .build_https();
    let mut loader = aws_config::defaults(BehaviorVersion::latest()).http_client(http);
    if let Some(fallback) = fallback {
        let profile = ProfileFileRegionProvider::builder().build();
        let environment = RegionProviderChain::first_try(EnvironmentVariableRegionProvider::new());
        loader = loader.region(environment.or_else(profile).or_else(Region::new(fallback)));
    }
    let config = loader.load().await;
    (config.region().cloned(), config.credentials_provider())
}
