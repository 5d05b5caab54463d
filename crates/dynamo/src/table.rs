//! What is known of a table: its keys and its indexes, as `CreateTable` takes and `DescribeTable` gives them.

use serde::{Deserialize, Serialize};

/// The types a key attribute can have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum KeyType {
    /// String, ordered by UTF-8 bytes.
    S,
    /// Number, ordered by value.
    N,
    /// Binary, ordered by unsigned bytes.
    B,
}

impl KeyType {
    /// The type's name on the wire.
    pub const fn name(self) -> &'static str {
        match self {
            KeyType::S => "S",
            KeyType::N => "N",
            KeyType::B => "B",
        }
    }
}

/// The name and type of a key attribute.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AttributeDefinition {
    /// The attribute's name.
    pub name: String,
    /// Its type.
    pub key_type: KeyType,
}

/// A primary key or an index key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeySchema {
    /// The partition key (`HASH`).
    pub partition: AttributeDefinition,
    /// The sort key (`RANGE`), if there is one.
    pub sort: Option<AttributeDefinition>,
}

/// A secondary index.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct IndexSchema {
    /// The index's name.
    pub name: String,
    /// Its key.
    pub key: KeySchema,
    /// Local (shares the table's partition key) or global.
    pub local: bool,
    /// Whether every attribute is projected into it (`ProjectionType` `ALL`).
    pub projects_all: bool,
    /// The non-key attributes projected (`INCLUDE`); empty for `KEYS_ONLY` and `ALL`.
    pub included: Vec<String>,
}

/// A table's keys and indexes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TableSchema {
    /// The table's name.
    pub name: String,
    /// The store's own id of this incarnation of the table (`TableId`); a table dropped and made again has another.
    /// Stores that give none (dynalite) get their creation time here.
    pub id: String,
    /// The primary key.
    pub key: KeySchema,
    /// Local and global indexes.
    pub indexes: Vec<IndexSchema>,
}
