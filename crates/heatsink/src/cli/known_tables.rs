//! A small file in which a gateway remembers the tables that it has seen on record: beside the data
//! file, else beside the rules, else in the working directory. By it a gateway that is started
//! after the registry was lost knows that items lie in shards.
//!
//! A place that is missing or cannot be written is no error, nor a file that cannot be read: tags
//! say the same, on stores that have them.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use heatsink_control::{Memory, RememberedTable};
use heatsink_store::replace_file;
use serde::{Deserialize, Serialize};

/// The file's name in a folder, and what is appended to the name of a data file.
const NAME: &str = "heatsink.known-tables.json";
const BESIDE_DATA: &str = ".known-tables.json";

/// More tables are not remembered: the oldest are dropped.
const MOST: usize = 1_000;

/// The tables in the file.
pub struct KnownTables {
    path: PathBuf,
    tables: Mutex<Vec<RememberedTable>>,
}

#[derive(Deserialize, Serialize)]
struct Line {
    registry: String,
    name: String,
    id: String,
}

impl KnownTables {
    /// Those in the folder of the rules; without rules, in the working directory.
    pub fn beside_rules(rules: Option<&Path>) -> Self {
        KnownTables::at(rules.and_then(Path::parent).unwrap_or(Path::new("")).join(NAME))
    }

    /// Those beside a data file.
    pub fn beside_data(data: &Path) -> Self {
        let mut name = data.as_os_str().to_owned();
        name.push(BESIDE_DATA);
        KnownTables::at(PathBuf::from(name))
    }

    fn at(path: PathBuf) -> Self {
        let tables = read(&path);
        KnownTables { path, tables: Mutex::new(tables) }
    }

    fn known(&self) -> MutexGuard<'_, Vec<RememberedTable>> {
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the file as it is now: other processes may have written it.
    fn change(&self, change: impl Fn(&mut Vec<RememberedTable>)) {
        let mut known = self.known();
        let mut next = read(&self.path);
        change(&mut next);
        change(&mut known);
        let excess = next.len().saturating_sub(MOST);
        next.drain(..excess);
        let lines: Vec<Line> = next
            .into_iter()
            .map(|RememberedTable { registry, name, id }| Line { registry, name, id })
            .collect();
        let written = serde_json::to_vec_pretty(&lines).map_err(std::io::Error::other);
        if let Err(error) = written.and_then(|content| replace_file(&self.path, &content)) {
            tracing::debug!("the tables on record are not remembered in {}: {error}", self.path.display());
        }
    }
}

/// The tables in the file; none if it is not there, or cannot be read.
fn read(path: &Path) -> Vec<RememberedTable> {
    let lines: Vec<Line> = std::fs::read(path)
        .ok()
        .and_then(|content| serde_json::from_slice(&content).ok())
        .unwrap_or_default();
    lines.into_iter().map(|Line { registry, name, id }| RememberedTable { registry, name, id }).collect()
}

impl Memory for KnownTables {
    fn tables(&self) -> Vec<RememberedTable> {
        self.known().clone()
    }

    fn note(&self, table: &RememberedTable) {
        if self.known().contains(table) {
            return;
        }
        self.change(|tables| {
            tables.retain(|known| known.id != table.id);
            tables.push(table.clone());
        });
    }

    fn forget(&self, id: &str) {
        if self.known().iter().any(|known| known.id == id) {
            self.change(|tables| tables.retain(|known| known.id != id));
        }
    }

    fn place(&self) -> String {
        std::path::absolute(&self.path).unwrap_or_else(|_| self.path.clone()).display().to_string()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A folder of this test's own.
    fn folder(name: &str) -> PathBuf {
        let folder = std::env::temp_dir().join(format!("heatsink-known-{name}-{}", std::process::id()));
        let _ = std::fs::remove_dir_all(&folder);
        std::fs::create_dir_all(&folder).unwrap();
        folder
    }

    fn table(id: &str) -> RememberedTable {
        RememberedTable { registry: "r".to_owned(), name: "Games".to_owned(), id: id.to_owned() }
    }

    #[test]
    fn what_was_noted_is_there_after_a_restart_until_it_is_forgotten() {
        let folder = folder("noted");
        let rules = folder.join("heatsink.toml");
        let open = || KnownTables::beside_rules(Some(&rules));
        let (one, other) = (open(), open());
        one.note(&table("1"));
        // Another process does not lose what the one has written.
        other.note(&table("2"));
        assert_eq!(open().tables(), [table("1"), table("2")]);
        one.forget("1");
        assert_eq!(open().tables(), [table("2")]);
        assert_eq!(one.tables(), []);
        std::fs::remove_dir_all(folder).unwrap();
    }

    #[test]
    fn a_place_that_cannot_be_written_and_a_file_that_is_none_are_no_errors() {
        let folder = folder("nowhere");
        let nowhere = KnownTables::beside_data(&folder.join("no/such/folder/data.db"));
        nowhere.note(&table("1"));
        assert_eq!(nowhere.tables(), [table("1")], "as long as the process lives");
        std::fs::write(folder.join(NAME), "no JSON").unwrap();
        assert_eq!(KnownTables::beside_rules(Some(&folder.join("rules.toml"))).tables(), []);
        std::fs::remove_dir_all(folder).unwrap();
    }
}
