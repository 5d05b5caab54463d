//! Credentials from the standard AWS chain, as signing keys: cached, renewed before they expire.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use aws_config::ecs::EcsCredentialsProvider;
use aws_config::environment::{EnvironmentVariableCredentialsProvider, EnvironmentVariableRegionProvider};
use aws_config::imds::{self, credentials::ImdsCredentialsProvider, region::ImdsRegionProvider};
use aws_config::meta::credentials::CredentialsProviderChain;
use aws_config::meta::region::RegionProviderChain;
use aws_config::profile::{ProfileFileCredentialsProvider, ProfileFileRegionProvider};
use aws_config::provider_config::ProviderConfig;
use aws_config::web_identity_token::WebIdentityTokenCredentialsProvider;
use aws_config::{BehaviorVersion, Region};
use aws_credential_types::provider::error::CredentialsError;
use aws_credential_types::provider::{ProvideCredentials, SharedCredentialsProvider};
use heatsink_dynamo::{Error, Outcome};
use heatsink_signature::SigningKey;

use super::network::Network;
use super::sdk_http::sdk_http_client;

/// Credentials are renewed this long before they expire.
const AHEAD_MILLIS: u64 = 300_000;
/// After a failed renewal the old credentials stay in use, and the chain is asked again after this
/// time.
const AGAIN_MILLIS: u64 = 10_000;

/// Provides the current signing key.
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
                // Credentials that are handed out close to their end must not be asked for on every
                // request.
                let renew_at = expires_at.saturating_sub(AHEAD_MILLIS).max(unix_millis + AGAIN_MILLIS);
                Current { key: Arc::new(key), renew_at, expires_at }
            }
            (Err(error), Some(old)) if unix_millis < old.expires_at && old.key.holds_at(unix_millis) => {
                tracing::warn!(
                    error = in_words(&error),
                    "cannot renew the upstream credentials; the old ones hold for now"
                );
                Current {
                    key: old.key.clone(),
                    renew_at: unix_millis + AGAIN_MILLIS,
                    expires_at: old.expires_at,
                }
            }
            (Err(error), _) => return Err(Error::unavailable(in_words(&error), Outcome::NotDone)),
        };
        let key = next.key.clone();
        *self.current.write().unwrap_or_else(PoisonError::into_inner) = Some(Arc::new(next));
        Ok(key)
    }

    fn current(&self) -> Option<Arc<Current>> {
        self.current.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// How long the machine's own metadata service (EC2) may take to answer. It is a hop away where
/// there is one; elsewhere nothing answers, and nobody waits for it longer than this.
const INSTANCE: Duration = Duration::from_millis(500);

/// Region and credentials as every AWS SDK finds them: environment, profile files with single
/// sign-on, web identity, container, instance. An endpoint on this machine has a `local` region,
/// and the instance is not asked for anything.
pub(super) async fn standard_chain(
    local: Option<&'static str>,
    network: &Network,
) -> (Option<Region>, SharedCredentialsProvider) {
    let config = ProviderConfig::without_region()
        .with_behavior_version(Some(BehaviorVersion::latest()))
        .with_http_client(sdk_http_client(network));
    let instance = imds::Client::builder()
        .configure(&config)
        .max_attempts(1)
        .connect_timeout(INSTANCE)
        .read_timeout(INSTANCE)
        .build();
    let profile = ProfileFileRegionProvider::builder().configure(&config).build();
    let region = RegionProviderChain::first_try(EnvironmentVariableRegionProvider::new()).or_else(profile);
    let region = match local {
        Some(local) => region.or_else(Region::new(local)),
        None => region
            .or_else(ImdsRegionProvider::builder().configure(&config).imds_client(instance.clone()).build()),
    };
    let region = region.region().await;
    let config = config.with_region(region.clone());
    let chain =
        CredentialsProviderChain::first_try("environment", EnvironmentVariableCredentialsProvider::new())
            .or_else("profile", ProfileFileCredentialsProvider::builder().configure(&config).build())
            .or_else(
                "web identity",
                WebIdentityTokenCredentialsProvider::builder().configure(&config).build(),
            )
            .or_else("container", EcsCredentialsProvider::builder().configure(&config).build());
    let chain = match local {
        Some(_) => chain,
        None => {
            let provider = ImdsCredentialsProvider::builder().configure(&config).imds_client(instance);
            chain.or_else("instance", provider.build())
        }
    };
    (region, SharedCredentialsProvider::new(chain))
}

/// A failure of the chain in words: what to set, and what went wrong where something is set
/// already. The error's own text lists Rust types and providers that nobody configured.
fn in_words(error: &CredentialsError) -> String {
    if let CredentialsError::CredentialsNotLoaded(_) = error {
        let profile = std::env::var("AWS_PROFILE").ok().filter(|profile| !profile.is_empty());
        let found = match profile {
            Some(profile) => format!("the profile {profile} (AWS_PROFILE) has no usable credentials"),
            None => "no AWS credentials were found".to_owned(),
        };
        return format!(
            "{found}. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_PROFILE to a profile that has credentials. An endpoint on this \
             machine takes any values, such as AWS_ACCESS_KEY_ID=local AWS_SECRET_ACCESS_KEY=local"
        );
    }
    let mut causes = Vec::new();
    let mut next = std::error::Error::source(error);
    while let Some(cause) = next {
        let text = cause.to_string();
        if causes.last() != Some(&text) {
            causes.push(text);
        }
        next = cause.source();
    }
    let what = match error {
        CredentialsError::ProviderTimedOut(_) => "the AWS credentials did not come in time",
        CredentialsError::InvalidConfiguration(_) => "the AWS credentials are not configured right",
        _ => "the AWS credentials could not be loaded",
    };
    if causes.is_empty() { what.to_owned() } else { format!("{what}: {}", causes.join(": ")) }
}
