//! Opens the store of a command that works on tables that are there already.

use std::path::Path;
use std::sync::Arc;

use heatsink_env::Env;

use super::serve::store::{self, Opened};
use crate::exit::Exit;

/// The file, which must exist, or the endpoint at the URL. Without partitions: the operator's own work is not throttled.
pub async fn open_existing(
    data: Option<&Path>,
    upstream: Option<&str>,
    env: &Arc<dyn Env>,
) -> Result<Opened, Exit> {
    match (data, upstream) {
        (_, Some(url)) => store::upstream(url, false, env).await,
        (Some(file), None) if file.is_file() => store::embedded(Some(file), None, env).await,
        (Some(file), None) => Err(Exit::usage(format!("--data {}: there is no such file", file.display()))),
        (None, None) => Err(Exit::usage("say where the tables are: --data FILE or --upstream URL")),
    }
}
