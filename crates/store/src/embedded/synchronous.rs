//! When a commit to a data file reaches the disk: SQLite's pragma `synchronous`.

/// What an acknowledged write of a data file survives.
///
/// The file has a write-ahead log. In both modes no crash corrupts the file: it holds all commits
/// up to one, and none after that.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Synchronous {
    /// The end of the process, `kill -9` included: the operating system has the commit. A crash of
    /// the operating system or a power loss may take the last commits: those since the log was last
    /// copied into the database, which happens after some 4 MB of log.
    #[default]
    Normal,
    /// The end of the process and of the operating system: the disk has the commit (`fsync`). Each
    /// write waits for it.
    Full,
}

impl Synchronous {
    /// The pragma's value.
    pub(super) fn pragma(self) -> &'static str {
        match self {
            Synchronous::Normal => "NORMAL",
            Synchronous::Full => "FULL",
        }
    }
}
