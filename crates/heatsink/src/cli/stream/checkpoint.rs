//! The file that says how far the records of a stream were printed.
//!
//! Not here: which shards there are (`shards`).

use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use crate::exit::{Exit, in_words};

/// How far a shard was printed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Position {
    /// Up to the record with this sequence number.
    After(String),
    /// To its end: it gets no more records.
    Ended,
}

/// What the file says.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Content {
    table: String,
    /// The stream's ARN; empty before it is known.
    stream: String,
    /// By the shard's id. Of those that the stream still has.
    shards: BTreeMap<String, Position>,
}

/// How far the records of a stream were printed, and the file that says so.
#[derive(Debug)]
pub(super) struct Checkpoint {
    file: Option<PathBuf>,
    content: Content,
}

impl Checkpoint {
    /// What `file` says; nothing yet where there is none.
    ///
    /// # Errors
    /// Exit 64 for a file that is no checkpoint of that table's stream.
    pub(super) fn read(file: Option<PathBuf>, table: &str) -> Result<Self, Exit> {
        let fresh = Content { table: table.to_owned(), ..Content::default() };
        let Some(path) = &file else { return Ok(Checkpoint { file, content: fresh }) };
        let content = match std::fs::read(path) {
            Ok(bytes) => serde_json::from_slice(&bytes).map_err(|error| {
                Exit::usage(format!("--checkpoint {}: this is no checkpoint: {error}", path.display()))
            })?,
            Err(error) if error.kind() == ErrorKind::NotFound => fresh,
            Err(error) => return Err(failed(path, "read", &error)),
        };
        if content.table != table {
            return Err(Exit::usage(format!(
                "--checkpoint {}: it is of table {}, not of {table}",
                path.display(),
                content.table
            )));
        }
        Ok(Checkpoint { file, content })
    }

    /// Whether it says where to begin.
    pub(super) fn has_begun(&self) -> bool {
        !self.content.stream.is_empty()
    }

    /// Says that it is of this stream.
    ///
    /// # Errors
    /// Exit 64 where it is of another one: the table was made again, or its stream turned off and
    /// on.
    pub(super) fn of_stream(&mut self, arn: &str) -> Result<(), Exit> {
        if self.has_begun() && self.content.stream != arn {
            return Err(Exit::usage(format!(
                "the checkpoint is of the stream {}, and table {} has the stream {arn} now; begin with another file",
                self.content.stream, self.content.table
            )));
        }
        arn.clone_into(&mut self.content.stream);
        Ok(())
    }

    /// How far that shard was printed.
    pub(super) fn position(&self, shard: &str) -> Option<&Position> {
        self.content.shards.get(shard)
    }

    pub(super) fn set(&mut self, shard: &str, position: Position) {
        self.content.shards.insert(shard.to_owned(), position);
    }

    /// Forgets shards that the stream has no more.
    pub(super) fn keep(&mut self, is_there: impl Fn(&str) -> bool) {
        self.content.shards.retain(|shard, _| is_there(shard));
    }

    /// Writes the file: as a whole, or not at all.
    ///
    /// # Errors
    /// Exit 69.
    pub(super) fn write(&self) -> Result<(), Exit> {
        let Some(path) = &self.file else { return Ok(()) };
        let text = serde_json::to_string(&self.content).map_err(|error| Exit::software(error.to_string()))?;
        let mut aside = path.clone().into_os_string();
        aside.push(".new");
        let aside = PathBuf::from(aside);
        std::fs::write(&aside, text + "\n")
            .and_then(|()| std::fs::rename(&aside, path))
            .map_err(|error| failed(path, "written", &error))
    }
}

fn failed(path: &Path, what: &str, error: &std::io::Error) -> Exit {
    Exit::unavailable(format!("--checkpoint {} cannot be {what}: {}", path.display(), in_words(error)))
}
