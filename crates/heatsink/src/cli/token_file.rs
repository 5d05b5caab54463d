//! Reads a file that holds the token of an admin address.

use std::path::Path;

use heatsink_access::secret_file::{self, Unfit};

use crate::exit::in_words;

/// Holds the token where no file does.
pub const TOKEN_VARIABLE: &str = "HEATSINK_ADMIN_TOKEN";

/// The text of the file.
///
/// # Errors
/// Why it cannot be used, in words: it cannot be read, or others can read or change it.
pub fn read(file: &Path) -> Result<String, String> {
    secret_file::read_once(file).map_err(|unfit| match unfit {
        Unfit::Unreadable(error) => in_words(&error),
        open => open.to_string(),
    })
}
