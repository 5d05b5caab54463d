//! The webhook of a server: who is told what is done about hot keys, as the configuration in force
//! says.
//!
//! Not here: which events there are, and when one is sent again (`heatsink_workers`).

use std::sync::Arc;

use arc_swap::ArcSwapOption;
use bytes::Bytes;
use futures::FutureExt;
use futures::future::BoxFuture;
use heatsink_access::secret_file::{self, Unfit};
use heatsink_control::{RulesError, WebhookSettings};
use heatsink_env::Env;
#[cfg(feature = "upstream")]
pub use heatsink_store::upstream::Webhook;
use heatsink_workers::Sent;

/// The webhook in force, if there is one.
#[derive(Clone, Default)]
pub struct ServedWebhook(Arc<ArcSwapOption<Webhook>>);

/// There is no client of HTTP in this build.
#[cfg(not(feature = "upstream"))]
pub enum Webhook {}

impl ServedWebhook {
    /// Puts another one in force.
    pub fn replace(&self, webhook: Option<Arc<Webhook>>) {
        self.0.store(webhook);
    }

    /// Sends an event to the one in force.
    pub fn send(&self, event: Bytes) -> BoxFuture<'static, Sent> {
        let webhook = self.0.load_full();
        async move {
            match webhook {
                None => Sent::Unwanted,
                Some(webhook) => post(&webhook, &event).await,
            }
        }
        .boxed()
    }
}

#[cfg(feature = "upstream")]
async fn post(webhook: &Webhook, event: &Bytes) -> Sent {
    match webhook.post(event).await {
        Ok(()) => Sent::Taken,
        Err(failed) => {
            let why = format!("{}: {}", webhook.host(), failed.why);
            Sent::Failed { why, retryable: failed.retryable }
        }
    }
}

#[cfg(not(feature = "upstream"))]
async fn post(webhook: &Webhook, _event: &Bytes) -> Sent {
    match *webhook {}
}

/// What the settings name, with its token.
///
/// # Errors
/// What is wrong with the token's file, or with what TLS needs: file, line and field.
#[cfg(feature = "upstream")]
pub fn load(settings: &WebhookSettings, env: &Arc<dyn Env>) -> Result<Webhook, RulesError> {
    let network =
        heatsink_store::upstream::Network::of_environment(None).map_err(|why| settings.fault(why))?;
    let token = token(settings)?;
    Webhook::new(&settings.url, token.as_deref(), &network, Arc::clone(env))
        .map_err(|why| settings.fault(why))
}

/// Says that this build has none.
#[cfg(not(feature = "upstream"))]
pub fn load(settings: &WebhookSettings, _env: &Arc<dyn Env>) -> Result<Webhook, RulesError> {
    token(settings)?;
    Err(settings.fault("this heatsink was built without the feature `upstream`"))
}

/// The token. What the field holds may be one by mistake: it is repeated only where it is the name
/// of a file that is there.
fn token(settings: &WebhookSettings) -> Result<Option<String>, RulesError> {
    let read = |file| {
        secret_file::read(file).map_err(|unfit| match unfit {
            Unfit::Unreadable(error) => {
                settings.fault(format!("the file that it names cannot be read: {}", error.kind()))
            }
            unfit => settings.fault(format!("{}: {unfit}", file.display())),
        })
    };
    settings.token_file.as_deref().map(read).transpose()
}
