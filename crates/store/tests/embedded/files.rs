//! Who may open a data file, and what is left alone.

#![allow(clippy::panic, clippy::unwrap_used, reason = "a test helper fails by panicking")]

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;

use heatsink_dynamo::Operation;
use heatsink_store::embedded::Embedded;
use serde_json::json;

use crate::embedded::support::{call, folder, item, table};

fn refused(path: &Path) -> String {
    Embedded::file(path).err().unwrap_or_else(|| panic!("{path:?} was opened")).message.unwrap()
}

/// The names and contents of a folder's files.
fn contents(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .map(|path| (path.clone(), fs::read(&path).unwrap()))
        .collect();
    all.sort();
    all
}

#[tokio::test]
async fn a_file_is_open_once() {
    let folder = folder();
    let path = folder.path().join("data.db");
    let first = Embedded::file(&path).unwrap();
    table(&first, "game").await;
    let why = refused(&path);
    assert!(why.contains("data.db is in use"), "{why}");
    assert!(why.contains(&format!("process {}", std::process::id())), "{why}");
    // The refused attempt took nothing from the first.
    call(&first, Operation::PutItem, json!({"TableName": "game", "Item": item("a", 1)})).await;
    assert!(refused(&path).contains("is in use"));
    // Nor does deleting the lock file let a second one in: SQLite's own lock holds.
    fs::remove_file(folder.path().join("data.db.lock")).unwrap();
    let other = rusqlite::Connection::open(&path).unwrap();
    other.busy_timeout(std::time::Duration::from_millis(10)).unwrap();
    assert!(other.execute_batch("BEGIN IMMEDIATE").is_err());
    drop(other);
    drop(first);
    Embedded::file(&path).unwrap();
}

/// A server that has written nothing yet holds its file too.
#[test]
fn an_idle_server_without_its_lock_file_keeps_others_away() {
    let folder = folder();
    let path = folder.path().join("data.db");
    drop(Embedded::file(&path).unwrap());
    let idle = Embedded::file(&path).unwrap();
    fs::remove_file(folder.path().join("data.db.lock")).unwrap();
    refused(&path);
    drop(idle);
    Embedded::file(&path).unwrap();
}

/// The database was moved away under a running server, and its lock file deleted: what the server
/// writes goes to the log.
#[test]
fn a_log_without_its_database_is_refused_and_kept() {
    let folder = folder();
    let path = folder.path().join("data.db");
    fs::write(folder.path().join("data.db-wal"), [7; 4096]).unwrap();
    for database in [None, Some("")] {
        if let Some(empty) = database {
            fs::write(&path, empty).unwrap();
        }
        let before = contents(folder.path());
        let why = refused(&path);
        assert!(why.contains("is missing or empty") && why.contains("data.db-wal"), "{why}");
        assert_eq!(contents(folder.path()), before);
    }
}

#[tokio::test]
async fn a_lock_left_behind_by_a_kill_does_no_harm() {
    let folder = folder();
    let path = folder.path().join("data.db");
    fs::write(folder.path().join("data.db.lock"), "1\n").unwrap();
    drop(Embedded::file(&path).unwrap());
    assert!(!folder.path().join("data.db.lock").exists());
}

#[tokio::test]
async fn files_are_their_owners_alone() {
    let folder = folder();
    let path = folder.path().join("data.db");
    // As an earlier version made them under the usual umask.
    drop(Embedded::file(&path).unwrap());
    fs::set_permissions(&path, fs::Permissions::from_mode(0o644)).unwrap();
    let store = Embedded::file(&path).unwrap();
    table(&store, "game").await;
    call(&store, Operation::PutItem, json!({"TableName": "game", "Item": item("a", 1)})).await;
    let mut names = Vec::new();
    for entry in fs::read_dir(folder.path()).unwrap() {
        let entry = entry.unwrap();
        names.push(entry.file_name().into_string().unwrap());
        assert_eq!(entry.metadata().unwrap().permissions().mode() & 0o777, 0o600, "{names:?}");
    }
    names.sort();
    assert_eq!(names, ["data.db", "data.db-shm", "data.db-wal", "data.db.lock"]);
}

#[test]
fn foreign_files_are_refused_and_not_changed() {
    let databases: [(&str, &str); 4] = [
        ("notes.db", "CREATE TABLE notes (body TEXT); INSERT INTO notes VALUES ('x')"),
        (
            "wal.db",
            "PRAGMA journal_mode = WAL; CREATE TABLE notes (body TEXT); INSERT INTO notes VALUES ('x')",
        ),
        ("same-name.db", "CREATE TABLE _tables (a TEXT); CREATE TABLE _config (b TEXT)"),
        (
            "marked.db",
            "PRAGMA application_id = 7; CREATE TABLE _tables (key_schema TEXT); CREATE TABLE _config (value TEXT)",
        ),
    ];
    for (name, sql) in databases {
        let folder = folder();
        let path = folder.path().join(name);
        rusqlite::Connection::open(&path).unwrap().execute_batch(sql).unwrap();
        let before = contents(folder.path());
        let why = refused(&path);
        assert!(why.contains(name) && why.contains("of another application"), "{why}");
        assert_eq!(contents(folder.path()), before, "{name}");
    }
    for text in
        ["x", "SQLite format", "this is not a database, but it is longer than the header of one: it goes on"]
    {
        let folder = folder();
        let path = folder.path().join("notes.txt");
        fs::write(&path, text).unwrap();
        assert!(refused(&path).contains("notes.txt is not a database"), "{text}");
        assert_eq!(contents(folder.path()), [(path, text.as_bytes().to_vec())]);
    }
    // Another application's database that is open: its tables are still in its log.
    let folder = folder();
    let path = folder.path().join("live.db");
    let live = rusqlite::Connection::open(&path).unwrap();
    live.execute_batch("PRAGMA journal_mode = WAL; CREATE TABLE notes (body TEXT)").unwrap();
    let before = fs::read(&path).unwrap();
    assert!(refused(&path).contains("of another application"));
    assert_eq!(fs::read(&path).unwrap(), before);
    live.execute_batch("INSERT INTO notes VALUES ('x')").unwrap();
}

#[test]
fn links_folders_and_pipes_are_refused() {
    let folder = folder();
    let at = |name: &str| folder.path().join(name);
    drop(Embedded::file(at("real.db")).unwrap());
    symlink(at("real.db"), at("link.db")).unwrap();
    symlink(at("nothing"), at("dangling.db")).unwrap();
    fs::create_dir(at("folder.db")).unwrap();
    assert!(Command::new("mkfifo").arg(at("pipe.db")).status().unwrap().success());
    for (name, what) in [
        ("link.db", "symbolic link"),
        ("dangling.db", "symbolic link"),
        ("folder.db", "directory"),
        ("pipe.db", "pipe"),
    ] {
        let why = refused(&at(name));
        assert!(why.contains(name) && why.contains(what), "{why}");
    }
    assert!(!at("nothing").exists());
    for end in ["-wal", "-shm", "-journal", ".lock"] {
        let path = at(&format!("beside{end}.db"));
        let target = at("victim");
        fs::write(&target, "precious").unwrap();
        symlink(&target, at(&format!("beside{end}.db{end}"))).unwrap();
        let why = refused(&path);
        assert!(why.contains("symbolic link"), "{end}: {why}");
        assert_eq!(fs::read(&target).unwrap(), b"precious");
    }
}

#[test]
fn an_empty_file_becomes_a_database() {
    let folder = folder();
    for name in ["empty.db", "50% off? #1.db"] {
        let path = folder.path().join(name);
        fs::write(&path, "").unwrap();
        drop(Embedded::file(&path).unwrap());
        assert!(fs::read(&path).unwrap().starts_with(b"SQLite format 3\0"));
        drop(Embedded::file(&path).unwrap());
    }
}
