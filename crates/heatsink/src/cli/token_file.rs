//! Reads a file that holds the token of an admin address.

use std::fs::File;
use std::io::Read;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use crate::exit::in_words;

/// Holds the token where no file does.
pub const TOKEN_VARIABLE: &str = "HEATSINK_ADMIN_TOKEN";

/// The most bytes that are read of it.
const MOST: u64 = 64 << 10;

/// Whoever is neither the owner nor of the group may read or write it, or the group may write it.
const OPEN_TO_OTHERS: u32 = 0o026;

/// The text of the file.
///
/// # Errors
/// Why it cannot be used, in words: it cannot be read, or others can read or change it.
pub fn read(file: &Path) -> Result<String, String> {
    let mut opened = File::open(file).map_err(|error| in_words(&error))?;
    let about = opened.metadata().map_err(|error| in_words(&error))?;
    let mode = about.permissions().mode() & 0o777;
    // A pipe of a shell has no reader but this one.
    if about.is_file() && mode & OPEN_TO_OTHERS != 0 {
        return Err(format!(
            "others on this machine can read or change it (mode {mode:04o}): `chmod 600` it, and make a new token if they may have seen this one"
        ));
    }
    let mut text = String::new();
    opened.by_ref().take(MOST).read_to_string(&mut text).map_err(|error| in_words(&error))?;
    Ok(text)
}
