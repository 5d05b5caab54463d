//! Why a statement could not be read.

/// How deep parentheses, calls and literals may nest here. DynamoDB takes values 32 levels deep.
pub const MAX_DEPTH: usize = 64;

/// Why a statement could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what} at byte {at}")]
pub struct Unread {
    /// What was found, or was missing.
    pub what: String,
    /// Where in the text, in bytes.
    pub at: usize,
}
