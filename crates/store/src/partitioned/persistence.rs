//! Stores the partitions of a data file's tables in a file beside it. Partitions are never merged,
//! so they must outlive the process.
//!
//! The file is one JSON document, replaced as a whole: written to a temporary file, flushed,
//! renamed. It is written after the answer of its request: a crash in between forgets the last
//! split, which will then happen again.

use std::collections::HashMap;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Read};
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread::JoinHandle;

use heatsink_dynamo::Error;
use heatsink_physics::SavedTable;
use serde::{Deserialize, Serialize};

use crate::embedded::file::open;
use crate::replace_file;

/// The version in the file's first member.
const VERSION: u32 = 1;

/// The file's content.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StoredPartitions {
    version: u32,
    tables: Vec<StoredTable>,
}

#[derive(Debug, Serialize, Deserialize)]
struct StoredTable {
    name: String,
    /// A table dropped and made again has other partitions.
    incarnation: String,
    #[serde(flatten)]
    partitions: SavedTable,
}

impl StoredPartitions {
    pub(super) fn new(tables: impl Iterator<Item = (String, String, SavedTable)>) -> Self {
        let table = |(name, incarnation, partitions)| StoredTable { name, incarnation, partitions };
        StoredPartitions { version: VERSION, tables: tables.map(table).collect() }
    }
}

/// The tables' partitions by name and incarnation.
pub(super) type Found = HashMap<(String, String), SavedTable>;

/// Writes the file, on a thread of its own.
pub(super) struct PartitionFile {
    /// The revision that was last handed over.
    revision: AtomicU64,
    writer: Option<(Sender<StoredPartitions>, JoinHandle<()>)>,
}

impl PartitionFile {
    /// Reads the file at `path`; empty if it does not exist.
    ///
    /// # Errors
    /// `InternalServerError` if the file cannot be read or is not what was written: partitions are
    /// not forgotten in silence.
    pub(super) fn open(path: &Path) -> Result<(PartitionFile, Found), Error> {
        let refuse = |problem: String| {
            let way_out = "remove the file to start with the partitions that the tables' capacity gives them";
            Error::internal(format!("cannot read the partitions in {}: {problem}; {way_out}", path.display()))
        };
        let kept = match read(path) {
            Ok(bytes) => serde_json::from_slice::<StoredPartitions>(&bytes)
                .map_err(|problem| refuse(problem.to_string()))?,
            Err(missing) if missing.kind() == ErrorKind::NotFound => {
                StoredPartitions::new(std::iter::empty())
            }
            Err(problem) => return Err(refuse(problem.to_string())),
        };
        if kept.version != VERSION {
            return Err(refuse(format!("version {} is not known", kept.version)));
        }
        let found = kept
            .tables
            .into_iter()
            .map(|table| ((table.name, table.incarnation), table.partitions))
            .collect();
        let (sender, receiver) = channel::<StoredPartitions>();
        let path = path.to_path_buf();
        let thread = std::thread::spawn(move || {
            while let Ok(mut kept) = receiver.recv() {
                // Only the latest matters.
                while let Ok(newer) = receiver.try_recv() {
                    kept = newer;
                }
                if let Err(error) = replace(&path, &kept) {
                    tracing::warn!(%error, path = %path.display(), "cannot keep the partitions");
                }
            }
        });
        Ok((PartitionFile { revision: AtomicU64::new(0), writer: Some((sender, thread)) }, found))
    }

    /// Whether something changed since it was last handed over.
    pub(super) fn stale(&self, revision: u64) -> bool {
        self.revision.load(Ordering::Relaxed) != revision
    }

    /// The same, and takes it that it is handed over now.
    pub(super) fn changed(&self, revision: u64) -> bool {
        self.revision.swap(revision, Ordering::Relaxed) != revision
    }

    /// Has it written. Returns at once.
    pub(super) fn keep(&self, kept: StoredPartitions) {
        if let Some((sender, _)) = &self.writer {
            // The thread lives as long as this does.
            let _ = sender.send(kept);
        }
    }
}

impl Drop for PartitionFile {
    /// Waits until all is written.
    fn drop(&mut self) {
        if let Some((sender, thread)) = self.writer.take() {
            drop(sender);
            let _ = thread.join();
        }
    }
}

fn read(path: &Path) -> std::io::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    open(path, OpenOptions::new().read(true))?.read_to_end(&mut bytes)?;
    Ok(bytes)
}

fn replace(path: &Path, kept: &StoredPartitions) -> std::io::Result<()> {
    replace_file(path, &serde_json::to_vec(kept)?)
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use heatsink_physics::{Mode, Tables};

    use super::*;

    #[test]
    fn written_whole_and_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("partitions");
        // Of a process that was killed.
        std::fs::write(folder.path().join("partitions.new"), "{").unwrap();
        let mut tables = Tables::default();
        tables.create(0, "t".into(), Mode::Provisioned { read: 1, write: 5_000 });
        let saved = tables.save("t").unwrap();
        {
            let (keeper, found) = PartitionFile::open(&path).unwrap();
            assert!(found.is_empty());
            assert!(keeper.changed(1) && !keeper.changed(1));
            keeper.keep(StoredPartitions::new([("t".into(), "1".into(), saved.clone())].into_iter()));
        }
        let (_, found) = PartitionFile::open(&path).unwrap();
        assert_eq!(found.get(&("t".into(), "1".into())), Some(&saved));
        let names: Vec<_> =
            std::fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["partitions"]);
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
        std::fs::write(&path, "{").unwrap();
        assert!(PartitionFile::open(&path).err().unwrap().to_string().contains("remove the file"));
    }
}
