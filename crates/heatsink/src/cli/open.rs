//! Opens the store of a command that works on existing tables, and explains failures.

use std::path::Path;
use std::sync::Arc;

use heatsink_control::StartError;
use heatsink_dynamo::{Code, Error, Outcome};
use heatsink_env::Env;
use heatsink_store::Store;
use heatsink_store::embedded::Synchronous;

use super::right_flag;
use super::store::{self, Opened};
use crate::exit::{Exit, without_numbers};

/// The file, which must exist, or the endpoint at the URL. Without partitions: the operator's own
/// work is not throttled.
pub async fn open_existing(
    data: Option<&Path>,
    upstream: Option<&str>,
    env: &Arc<dyn Env>,
) -> Result<Opened, Exit> {
    match (data, upstream) {
        (_, Some(url)) => store::upstream(url, None, false, env).await,
        // The store says what else it is.
        (Some(file), None) if file.symlink_metadata().is_ok() => {
            // When the command ends, SQLite copies the log into the database and waits for the
            // disk.
            store::embedded(Some(file), Synchronous::Normal, None, None, env).await
        }
        (Some(file), None) => Err(Exit::usage(format!("--data {}: there is no such file", file.display()))),
        (None, None) => Err(Exit::usage("say where the tables are: --data FILE or --upstream URL")),
    }
}

/// The same for the store behind gateways, which has this registry.
///
/// # Errors
/// Exit 64 too where the URL is that of a gateway.
pub async fn open_behind_gateways(
    data: Option<&Path>,
    upstream: Option<&str>,
    registry: &str,
    env: &Arc<dyn Env>,
) -> Result<Arc<dyn Store>, Exit> {
    let store = open_existing(data, upstream, env).await?.store;
    if let Some(url) = upstream {
        right_flag::upstream(&*store, registry, url).await?;
    }
    Ok(store)
}

/// What to do where the store refuses the credentials of a command.
pub const SET_CREDENTIALS: &str =
    "set AWS_PROFILE, or AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, and AWS_REGION";

/// A store that did not answer: what was asked, and what came back.
pub fn not_answered(what: &str, error: &Error) -> Exit {
    if error.is_denied() {
        // An error of Heatsink's own around the store's says nothing by its code.
        let said = match &error.message {
            Some(message) if error.code == Code::InternalServerError => message.clone(),
            _ => error.to_string(),
        };
        return Exit::usage(format!(
            "{what}: {}. The credentials of this command are missing, wrong, expired, for another region, or not allowed to do this at the store: \
             {SET_CREDENTIALS}, or allow them the call",
            without_numbers(&said).trim_end_matches('.')
        ));
    }
    let exit = Exit::unavailable(without_numbers(&format!("{what}: {error}")));
    if passes(error) { exit.retryable() } else { exit }
}

/// Whether the same command may succeed later without a change. A fault that is Heatsink's own word
/// stays: a registry that refuses it, or is damaged.
pub fn passes(error: &Error) -> bool {
    let own = error.code == Code::InternalServerError && error.outcome == Outcome::NotDone;
    error.retryable() && !own
}

/// Why a gateway over the store does not start.
pub fn not_started(error: StartError) -> Exit {
    match &error {
        StartError::Rules(_) => Exit::usage(error.to_string()),
        StartError::Store(cause) => not_answered("The registry of sharded tables could not be read", cause),
    }
}
