//! Reads files on which the safety of a gateway depends: one that holds a secret, of a client or of
//! an admin address, and one that holds rights.

use std::fmt;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// The most bytes that are read of it.
const MOST: u64 = 64 << 10;

/// Whoever may write it besides the owner.
const CHANGED_BY_OTHERS: u32 = 0o022;

/// Whoever is neither the owner nor of the group may read or write it, or the group may write it.
const OPEN_TO_OTHERS: u32 = 0o026;

/// Why a file cannot be used.
#[derive(Debug)]
pub enum Unfit {
    /// It cannot be read.
    Unreadable(std::io::Error),
    /// Others on this machine can read or change it: its mode.
    Open(u32),
    /// Others on this machine can change it: its mode.
    Changeable(u32),
    /// It is larger than such a file can be.
    Large,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unfit::Unreadable(error) => write!(f, "{error}"),
            Unfit::Open(mode) => write!(
                f,
                "others on this machine can read or change it (mode {mode:04o}): `chmod 600` it, and make a new one if they may have seen this one"
            ),
            Unfit::Changeable(mode) => {
                write!(f, "others on this machine can change it (mode {mode:04o}): `chmod go-w` it")
            }
            Unfit::Large => write!(f, "it has more than {MOST} bytes"),
        }
    }
}

/// The text of a file that nobody else may read.
///
/// # Errors
/// Why it cannot be used. Nothing of what it holds is said.
pub fn read(file: &Path) -> Result<String, Unfit> {
    of_mode(file, OPEN_TO_OTHERS, Unfit::Open)
}

/// The text of a file that nobody else may change.
///
/// # Errors
/// Why it cannot be used.
pub fn read_unchanged(file: &Path) -> Result<String, Unfit> {
    of_mode(file, CHANGED_BY_OTHERS, Unfit::Changeable)
}

fn of_mode(file: &Path, forbidden: u32, unfit: fn(u32) -> Unfit) -> Result<String, Unfit> {
    let mut opened = File::open(file).map_err(Unfit::Unreadable)?;
    let about = opened.metadata().map_err(Unfit::Unreadable)?;
    let mode = about.permissions().mode() & 0o777;
    // A pipe of a shell has no reader but this one.
    if about.is_file() && mode & forbidden != 0 {
        return Err(unfit(mode));
    }
    let mut text = String::new();
    let bytes = opened.by_ref().take(MOST + 1).read_to_string(&mut text).map_err(Unfit::Unreadable)?;
    if u64::try_from(bytes).is_ok_and(|bytes| bytes > MOST) {
        return Err(Unfit::Large);
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use std::fs::Permissions;

    use super::*;

    #[test]
    fn a_file_that_others_can_read_or_change_is_refused() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("secret");
        std::fs::write(&file, "canary\n").unwrap();
        for (mode, is_fit) in
            [(0o600, true), (0o400, true), (0o640, true), (0o644, false), (0o660, false), (0o602, false)]
        {
            std::fs::set_permissions(&file, Permissions::from_mode(mode)).unwrap();
            let read = read(&file);
            assert_eq!(read.is_ok(), is_fit, "{mode:o}");
            assert!(read.is_ok() || !read.unwrap_err().to_string().contains("canary"));
        }
        std::fs::set_permissions(&file, Permissions::from_mode(0o644)).unwrap();
        assert!(read_unchanged(&file).is_ok());
        std::fs::set_permissions(&file, Permissions::from_mode(0o664)).unwrap();
        assert!(matches!(read_unchanged(&file), Err(Unfit::Changeable(0o664))));
        assert!(matches!(read(&folder.path().join("none")), Err(Unfit::Unreadable(_))));
    }
}
