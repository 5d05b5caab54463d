//! Keeps the history of the heat in a file, so that the map on the page survives a restart.
//!
//! The file is one JSON document that only its owner reads, as it has names of keys. It is replaced
//! each minute and at the end: kill -9 forgets a minute.
//!
//! Not here: what the history holds (`heatsink_heat::history`).

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use heatsink_env::Env;
use heatsink_gateway::Status;
use heatsink_heat::history::Saved;
use heatsink_store::replace_file;
use serde::{Deserialize, Serialize};

use crate::exit::in_words;

/// The version in the file.
const VERSION: u32 = 1;
/// How often it is written.
const EACH: Duration = Duration::from_secs(60);

/// The file.
#[derive(Clone, Debug)]
pub(super) struct HeatHistory(PathBuf);

#[derive(Serialize, Deserialize)]
struct Content {
    version: u32,
    #[serde(flatten)]
    history: Saved,
}

impl HeatHistory {
    /// The file that was asked for, or the one beside the data file; `None` where there is neither.
    pub(super) fn of(asked: Option<&Path>, data: Option<&Path>) -> Option<Self> {
        let beside = |data: &Path| {
            let mut name = data.as_os_str().to_owned();
            name.push(".heat");
            PathBuf::from(name)
        };
        asked.map(Path::to_owned).or_else(|| data.map(beside)).map(HeatHistory)
    }

    /// Goes on from the file. One that cannot be read is said, and begun anew: it is worth less
    /// than an answer to clients.
    pub(super) fn resume(&self, status: &Status) {
        match self.read() {
            Ok(Some(history)) => status.resume_heat_history(history),
            Ok(None) => {}
            Err(problem) => {
                let file = self.0.display();
                tracing::warn!(
                    "the history of the heat in {file} begins anew, because the file cannot be read: {problem}"
                );
            }
        }
    }

    fn read(&self) -> Result<Option<Saved>, String> {
        let text = match std::fs::read(&self.0) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(None),
            Err(error) => return Err(in_words(&error)),
        };
        let content: Content = serde_json::from_slice(&text).map_err(|problem| problem.to_string())?;
        if content.version != VERSION {
            return Err(format!(
                "it has version {}, and this build knows version {VERSION}",
                content.version
            ));
        }
        Ok(Some(content.history))
    }

    /// Writes it each minute. It does not end.
    pub(super) async fn keep(self, status: Arc<Status>, env: Arc<dyn Env>) {
        loop {
            env.sleep(EACH).await;
            self.save(&status).await;
        }
    }

    /// Writes it now. What cannot be written is logged: the gateway serves on.
    pub(super) async fn save(&self, status: &Status) {
        let (file, history) = (self.0.clone(), status.heat_history());
        let written = tokio::task::spawn_blocking(move || {
            let content = serde_json::to_vec(&Content { version: VERSION, history })?;
            replace_file(&file, &content)
        });
        if let Ok(Err(error)) = written.await {
            tracing::warn!(
                "the history of the heat cannot be written to {}: {}",
                self.0.display(),
                in_words(&error)
            );
        }
    }
}
