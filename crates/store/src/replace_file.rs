//! Replaces a small file as a whole: whoever reads it, and a process that is killed, finds the old
//! content or the new one.

use std::io::{ErrorKind, Write};
use std::path::Path;

/// Writes `content` to a file beside `path` that only its owner reads, flushes it, and gives it the
/// name.
///
/// # Errors
/// The system's. The old file is there then, and nothing beside it.
pub fn replace_file(path: &Path, content: &[u8]) -> std::io::Result<()> {
    // Always the same name: what killed processes leave does not pile up.
    let mut beside = path.file_name().unwrap_or_default().to_owned();
    beside.push(".new");
    let folder = path.parent().unwrap_or(Path::new(""));
    // Made anew, it is neither somebody else's nor a link.
    match std::fs::remove_file(folder.join(&beside)) {
        Err(why) if why.kind() != ErrorKind::NotFound => return Err(why),
        _ => {}
    }
    // Where anything fails it is removed again.
    let mut file = tempfile::Builder::new().prefix(&beside).rand_bytes(0).tempfile_in(folder)?;
    file.write_all(content)?;
    file.as_file().sync_all()?;
    file.persist(path)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::PermissionsExt;

    use super::*;

    #[test]
    fn what_cannot_be_replaced_leaves_nothing_beside_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("partitions");
        std::fs::create_dir(&path).unwrap();
        assert!(replace_file(&path, b"{}").is_err());
        assert_eq!(std::fs::read_dir(&folder).unwrap().count(), 1);
    }

    #[test]
    fn it_is_its_owners_alone() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("file");
        replace_file(&path, b"old").unwrap();
        replace_file(&path, b"new").unwrap();
        assert_eq!(std::fs::read(&path).unwrap(), b"new");
        assert_eq!(path.metadata().unwrap().permissions().mode() & 0o777, 0o600);
    }
}
