//! What is known of all recorded requests of a table or an index.

/// What is known of all recorded requests of a table or an index.
#[derive(Clone, Copy, Debug)]
pub(super) struct Recorded<'a> {
    /// The index whose keys these are; `None` for the table's.
    pub index: Option<&'a str>,
    /// Whether the table has a sort key.
    pub sort_key: bool,
    /// Whether it has a local index.
    pub local_index: bool,
    /// Whether keys are hashes.
    pub hashed: bool,
    /// Seconds of the recording.
    pub seconds: i64,
}
