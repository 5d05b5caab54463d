//! What the values of a file are, and why one is not counted.

/// What the values of a file are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Items of an export to S3: `{"Item":{…}}`.
    Export,
    /// Items by themselves, or in the `Items` of a Scan or Query.
    Items,
    /// Stream records, by themselves or in `Records`.
    Stream,
}

impl Kind {
    /// In words.
    pub const fn words(self) -> &'static str {
        match self {
            Kind::Export => "items of an export to S3",
            Kind::Items => "items in DynamoDB JSON",
            Kind::Stream => "stream records",
        }
    }
}

/// Why a value is not counted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[allow(missing_docs, reason = "the messages say it")]
pub enum Unreadable {
    #[error("this is not one whole JSON value")]
    NotJson,
    #[error("this is neither an item in DynamoDB JSON nor a stream record")]
    NoItem,
    #[error("{} among {}", .found.words(), .before.words())]
    Mixed { found: Kind, before: Kind },
    #[error("the item has no key attribute {0}, or one that is no string, number or binary")]
    NoKey(String),
    #[error("the item has {0} bytes, more than DynamoDB takes")]
    TooLarge(usize),
    #[error("this is an incremental export; a full export or stream records can be read")]
    Incremental,
    #[error("this is Amazon Ion; export the table as DynamoDB JSON")]
    Ion,
    #[error("this is recorded traffic: it is given with --trace")]
    Recording,
    #[error("the stream record does not say when it was written")]
    NoTime,
    /// The names of the key are not known. No other value can be read either.
    #[error("the names of the table's key are not known; attributes here: {}", .names.join(", "))]
    NamesNeeded { names: Vec<String> },
}
