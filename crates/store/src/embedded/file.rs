//! Who may open a data file: one process at a time, and only a file that is the engine's own.
//!
//! Beside the file stands `FILE.lock`, which is locked (`flock`) as long as the file is open and
//! names the process that holds it. The data file itself is not locked this way: SQLite puts POSIX
//! locks on it, and a process loses all of those as soon as it closes any other handle of the same
//! file. For the same reason everything here that opens the data file is closed again before SQLite
//! opens it, under the lock.
//!
//! Nothing is changed before it is known that the file belongs to the engine. Not here: reading the
//! data.

use std::fs::{self, File, FileType, OpenOptions, Permissions, TryLockError};
use std::io::{self, ErrorKind, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};

use heatsink_dynamo::Error;
use rusqlite::{Connection, OpenFlags};
use rustix::fs::OFlags;

/// Permissions for the owner only.
const MODE: u32 = 0o600;
/// The first bytes of every SQLite database.
const MAGIC: &[u8; 16] = b"SQLite format 3\0";
/// The suffixes of the files that SQLite writes beside a database.
const BESIDE: [&str; 3] = ["-wal", "-shm", "-journal"];

/// A data file that this process holds.
pub(super) struct DataFile {
    name: String,
    _lock: Lock,
}

impl DataFile {
    /// Locks the file at `path`, and creates it if it does not exist. The file and those beside it
    /// are accessible only to the owner from then on, whatever the umask.
    ///
    /// # Errors
    /// `InternalServerError`, nothing changed: another process has it open, it is not a database of
    /// the engine, it is a symbolic link or no regular file, or it cannot be opened.
    pub(super) fn hold(path: &Path) -> Result<Self, Error> {
        let name = path
            .to_str()
            .filter(|name| !name.starts_with("file:") && *name != ":memory:" && !name.is_empty())
            .ok_or_else(|| Error::internal(format!("{path:?} cannot name a database file")))?;
        let refuse = |why: String| Error::internal(format!("{name} {why}"));
        // Checked before the lock file is created, so that a wrong path leaves nothing behind.
        regular(path).map_err(&refuse)?;
        let lock = lock(beside(path, ".lock")).map_err(&refuse)?;
        examine(path).map_err(&refuse)?;
        without_foreign_log(path).map_err(&refuse)?;
        for end in BESIDE {
            let path = beside(path, end);
            regular(&path).map_err(|why| Error::internal(format!("{} {why}", path.display())))?;
            if path.exists() {
                owners_alone(&path).map_err(|why| refuse(failed("be protected", &why)))?;
            }
        }
        // SQLite gives the files beside it the mode of the database.
        let file = open(path, OpenOptions::new().read(true).write(true).create(true))
            .map_err(|why| refuse(failed("be opened", &why)))?;
        protect(&file).map_err(|why| refuse(failed("be protected", &why)))?;
        Ok(DataFile { name: name.to_owned(), _lock: lock })
    }

    /// The path, as SQLite takes it.
    pub(super) fn name(&self) -> &str {
        &self.name
    }
}

/// `path` with `end` behind it.
fn beside(path: &Path, end: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(end);
    PathBuf::from(name)
}

fn failed(what: &str, why: &io::Error) -> String {
    format!("cannot {what}: {why}")
}

/// Opens for the owner only; never through a symbolic link, and without waiting at a pipe.
pub(crate) fn open(path: &Path, options: &mut OpenOptions) -> io::Result<File> {
    let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits();
    options.mode(MODE).custom_flags(flags.cast_signed()).open(path)
}

/// Removes the permissions of other users that the umask may have left.
fn protect(file: &File) -> io::Result<()> {
    match file.metadata()?.permissions().mode() & 0o777 {
        MODE => Ok(()),
        _ => file.set_permissions(Permissions::from_mode(MODE)),
    }
}

fn owners_alone(path: &Path) -> io::Result<()> {
    protect(&open(path, OpenOptions::new().read(true))?)
}

/// Whether the path is a regular file or does not exist.
fn regular(path: &Path) -> Result<(), String> {
    let kind = match fs::symlink_metadata(path) {
        Ok(found) => found.file_type(),
        Err(why) if why.kind() == ErrorKind::NotFound => return Ok(()),
        Err(why) => return Err(failed("be opened", &why)),
    };
    match described(kind) {
        None => Ok(()),
        Some(what) => Err(format!("is {what}, not a regular file")),
    }
}

fn described(kind: FileType) -> Option<&'static str> {
    if kind.is_file() {
        None
    } else if kind.is_symlink() {
        Some("a symbolic link")
    } else if kind.is_dir() {
        Some("a directory")
    } else if kind.is_fifo() {
        Some("a pipe")
    } else {
        Some("a device or socket")
    }
}

/// A lock file that this process holds. It is removed when it is dropped; after a kill it stays,
/// unlocked, and does no harm.
struct Lock {
    path: PathBuf,
    /// Locked until it is closed.
    _file: File,
}

impl Drop for Lock {
    fn drop(&mut self) {
        // While it is still locked: a process that opened it before will notice that it was
        // removed.
        let _ = fs::remove_file(&self.path);
    }
}

/// Locks the lock file at `path`, and writes its holder into it.
fn lock(path: PathBuf) -> Result<Lock, String> {
    let cannot = |why: io::Error| format!("cannot be locked by means of {}: {why}", path.display());
    regular(&path).map_err(|why| format!("cannot be locked: {} {why}", path.display()))?;
    let mut file = loop {
        let options = &mut OpenOptions::new();
        let file =
            open(&path, options.read(true).write(true).create(true).truncate(false)).map_err(cannot)?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(held(&path, file)),
            Err(TryLockError::Error(why)) => return Err(cannot(why)),
        }
        // Its last holder may have removed it after it was opened here.
        let id = |found: fs::Metadata| (found.dev(), found.ino());
        let opened = file.metadata().map(id).map_err(cannot)?;
        if fs::symlink_metadata(&path).is_ok_and(|there| id(there) == opened) {
            break file;
        }
    };
    let mut write = || {
        protect(&file)?;
        file.set_len(0)?;
        writeln!(file, "{}", std::process::id())
    };
    write().map_err(cannot)?;
    Ok(Lock { path, _file: file })
}

/// The error for a lock that another process holds, with the process.
fn held(path: &Path, file: File) -> String {
    let mut holder = String::new();
    // For the message only.
    let _ = file.take(32).read_to_string(&mut holder);
    let holder = match holder.trim().parse::<u32>() {
        Ok(process) => format!("process {process}"),
        Err(_) => "another process".to_owned(),
    };
    format!("is in use: {holder} has it open ({} is locked)", path.display())
}

/// Refuses a file that is not the engine's, without changing it. A missing or empty file becomes a
/// database.
fn examine(path: &Path) -> Result<(), String> {
    let mut start = Vec::new();
    match open(path, OpenOptions::new().read(true)) {
        Ok(file) => file.take(MAGIC.len() as u64).read_to_end(&mut start),
        Err(why) if why.kind() == ErrorKind::NotFound => return Ok(()),
        Err(why) => Err(why),
    }
    .map_err(|why| failed("be read", &why))?;
    if start.is_empty() {
        return Ok(());
    }
    if start != MAGIC {
        return Err("is not a database file. It was not changed".to_owned());
    }
    match schema(path) {
        Ok(Schema::Ours) => Ok(()),
        Ok(Schema::Foreign(of)) => {
            Err(format!("is a SQLite database of another application ({of}). It was not changed"))
        }
        Err(why) => Err(format!("cannot be read as a database: {why}. It was not changed")),
    }
}

/// Refuses a path where only the log of a database stands: the database was moved away, perhaps
/// under a running server, and SQLite would empty the log, with all writes in it that are not in
/// the database yet.
fn without_foreign_log(path: &Path) -> Result<(), String> {
    let found = |path: &Path| fs::symlink_metadata(path).ok().filter(|found| found.is_file());
    let length = |path: &Path| found(path).map_or(0, |found| found.len());
    let log = beside(path, "-wal");
    if length(path) == 0 && length(&log) > 0 {
        return Err(format!(
            "is missing or empty, but {} holds writes of a database that was here. Move that database back, or its log away. Nothing was \
             changed",
            log.display()
        ));
    }
    Ok(())
}

enum Schema {
    Ours,
    /// The evidence for it.
    Foreign(String),
}

fn schema(path: &Path) -> rusqlite::Result<Schema> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    // All of a database that was just made can still be in its log, which is read only with the
    // files that come with it. Where there is no log, none of those files must appear.
    let logged = fs::metadata(beside(path, "-wal")).is_ok_and(|log| log.len() > 0);
    let connection = if logged {
        Connection::open_with_flags(path, flags)?
    } else {
        let name = format!("file:{}?immutable=1", escaped(&path.to_string_lossy()));
        Connection::open_with_flags(name, flags | OpenFlags::SQLITE_OPEN_URI)?
    };
    let number = |pragma| connection.pragma_query_value(None, pragma, |row| row.get::<_, i64>(0));
    let (application, version) = (number("application_id")?, number("user_version")?);
    let names = connection
        .prepare("SELECT name FROM sqlite_master ORDER BY name")?
        .query_map([], |row| row.get(0))?
        .collect::<rusqlite::Result<Vec<String>>>()?;
    let has = |table: &str, column: &str| {
        let count = "SELECT COUNT(*) FROM pragma_table_info(?1) WHERE name = ?2";
        connection.query_row(count, [table, column], |row| row.get::<_, i64>(0)).map(|count| count == 1)
    };
    Ok(if application != 0 {
        Schema::Foreign(format!("application id {application}"))
    } else if names.is_empty() && version == 0 || has("_tables", "key_schema")? && has("_config", "value")? {
        Schema::Ours
    } else {
        Schema::Foreign(match names.first() {
            Some(name) => format!("it holds {name:?}"),
            None => format!("user version {version}"),
        })
    })
}

/// A path within a URI, as SQLite reads it.
fn escaped(path: &str) -> String {
    let mut text = String::with_capacity(path.len());
    for character in path.chars() {
        match character {
            '%' => text.push_str("%25"),
            '?' => text.push_str("%3f"),
            '#' => text.push_str("%23"),
            other => text.push(other),
        }
    }
    text
}
