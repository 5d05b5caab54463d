//! Reads files on which the safety of a gateway depends: one that holds a secret, of a client or of
//! an admin address, and one that holds rights or the CAs of clients' certificates. Only regular
//! files are read, and only so much of them: none keeps whoever reads it waiting.

use std::fmt;
use std::fs::{File, Metadata, OpenOptions};
use std::io::Read;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::path::Path;

use rustix::fs::OFlags;

/// The most bytes that are read of it.
const MOST: u64 = 4 << 20;

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
    /// It is a folder, a pipe, a socket or a device.
    Irregular,
}

/// What a file holds.
#[derive(Debug, Default)]
pub struct Text {
    /// Its text.
    pub text: String,
    /// The bits of its mode that say who may do what.
    pub mode: u32,
}

impl Text {
    /// Whether others than its owner can change it.
    pub fn is_changeable(&self) -> bool {
        self.mode & CHANGED_BY_OTHERS != 0
    }
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
            Unfit::Irregular => f.write_str("it is no regular file: name one, or a link to one"),
        }
    }
}

/// The text of a file that nobody else may read.
///
/// # Errors
/// Why it cannot be used. Nothing of what it holds is said.
pub fn read(file: &Path) -> Result<String, Unfit> {
    of_mode(read_any(file)?, OPEN_TO_OTHERS, Unfit::Open)
}

/// The text of a file that nobody else may change.
///
/// # Errors
/// Why it cannot be used.
pub fn read_unchanged(file: &Path) -> Result<String, Unfit> {
    of_mode(read_any(file)?, CHANGED_BY_OTHERS, Unfit::Changeable)
}

/// The text of any file of a configuration, and its mode.
///
/// # Errors
/// Why it cannot be used.
pub fn read_any(file: &Path) -> Result<Text, Unfit> {
    let (mut opened, about) = open(file)?;
    if !about.is_file() {
        // The usual name of nothing.
        let is_nothing = std::fs::metadata("/dev/null").is_ok_and(|null| null.rdev() == about.rdev());
        let nothing = about.file_type().is_char_device() && is_nothing;
        return if nothing { Ok(Text::default()) } else { Err(Unfit::Irregular) };
    }
    Ok(Text { text: bounded(&mut opened)?, mode: about.permissions().mode() & 0o777 })
}

/// As [`read_any`], for whoever reads it once: also from the pipe of a shell, which has no reader but
/// this one.
///
/// # Errors
/// Why it cannot be used.
pub fn read_any_once(file: &Path) -> Result<Text, Unfit> {
    match std::fs::metadata(file) {
        Ok(about) if about.file_type().is_fifo() => {
            let mut opened = File::open(file).map_err(Unfit::Unreadable)?;
            Ok(Text { text: bounded(&mut opened)?, mode: 0 })
        }
        _ => read_any(file),
    }
}

/// The text of a secret, read as [`read_any_once`] does.
///
/// # Errors
/// Why it cannot be used. Nothing of what it holds is said.
pub fn read_once(file: &Path) -> Result<String, Unfit> {
    of_mode(read_any_once(file)?, OPEN_TO_OTHERS, Unfit::Open)
}

/// What is in a file of a configuration, to notice that it changes. `None` where it cannot be read.
pub fn look(file: &Path) -> Option<(Vec<u8>, Metadata)> {
    let (mut opened, about) = open(file).ok().filter(|(_, about)| about.is_file())?;
    let mut bytes = Vec::new();
    opened.by_ref().take(MOST + 1).read_to_end(&mut bytes).ok()?;
    Some((bytes, about))
}

fn of_mode(Text { text, mode }: Text, forbidden: u32, unfit: fn(u32) -> Unfit) -> Result<String, Unfit> {
    if mode & forbidden != 0 { Err(unfit(mode)) } else { Ok(text) }
}

/// Never waits: a pipe without a writer would hold the reader up for good, and so would a device.
fn open(file: &Path) -> Result<(File, Metadata), Unfit> {
    let mut options = OpenOptions::new();
    let options = options.read(true).custom_flags(OFlags::NONBLOCK.bits().cast_signed());
    let opened = options.open(file).map_err(Unfit::Unreadable)?;
    let about = opened.metadata().map_err(Unfit::Unreadable)?;
    Ok((opened, about))
}

fn bounded(opened: &mut File) -> Result<String, Unfit> {
    let mut text = String::new();
    let bytes = opened.by_ref().take(MOST + 1).read_to_string(&mut text).map_err(Unfit::Unreadable)?;
    match u64::try_from(bytes) {
        Ok(bytes) if bytes <= MOST => Ok(text),
        _ => Err(Unfit::Large),
    }
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

    #[test]
    fn what_is_no_regular_file_or_too_large_is_refused_at_once() {
        let folder = tempfile::tempdir().unwrap();
        let at = |name: &str| folder.path().join(name);
        let made = std::process::Command::new("mkfifo").arg(at("pipe")).status().unwrap();
        assert!(made.success());
        let _socket = std::os::unix::net::UnixListener::bind(at("socket")).unwrap();
        for irregular in [at("pipe"), folder.path().to_owned(), "/dev/zero".into()] {
            for read in [read, read_unchanged, |file: &Path| read_any(file).map(|read| read.text)] {
                assert!(matches!(read(&irregular), Err(Unfit::Irregular)), "{}", irregular.display());
            }
            assert!(look(&irregular).is_none());
        }
        assert!(matches!(read(&at("socket")), Err(Unfit::Unreadable(_))));
        assert_eq!(read_any(Path::new("/dev/null")).unwrap().text, "");
        let most = usize::try_from(MOST).unwrap();
        for (bytes, is_fit) in [(most, true), (most + 1, false)] {
            std::fs::write(at("large"), vec![b' '; bytes]).unwrap();
            assert_eq!(read_any(&at("large")).is_ok(), is_fit, "{bytes}");
        }
        // A link leads to what it names, as Kubernetes links them.
        std::fs::write(at("file"), "text").unwrap();
        std::os::unix::fs::symlink("file", at("link")).unwrap();
        let read = read_any(&at("link")).unwrap();
        assert_eq!((read.text.as_str(), read.is_changeable()), ("text", false));
    }
}
