//! What is known of a table: its keys and its indexes, as `CreateTable` takes and `DescribeTable`
//! gives them.

use serde::{Deserialize, Serialize};

mod describe;

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

/// A primary key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeySchema {
    /// The partition key (`HASH`).
    pub partition: AttributeDefinition,
    /// The sort key (`RANGE`), if there is one.
    pub sort: Option<AttributeDefinition>,
}

/// An index key. One of a global index can have up to four attributes of each kind (AWS Developer
/// Guide, "Multi-attribute keys", November 2025), every other one has at most one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexKeySchema {
    /// The partition key attributes (`HASH`), in order; at least one.
    pub partition: Vec<AttributeDefinition>,
    /// The sort key attributes (`RANGE`), in order.
    pub sort: Vec<AttributeDefinition>,
}

/// The attributes of any key.
#[derive(Clone, Copy, Debug)]
pub struct KeyAttributes<'a> {
    /// The partition key attributes, in order.
    pub partition: &'a [AttributeDefinition],
    /// The sort key attributes, in order.
    pub sort: &'a [AttributeDefinition],
}

/// A secondary index.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IndexSchema {
    /// The index's name.
    pub name: String,
    /// Its key.
    pub key: IndexKeySchema,
    /// Local (shares the table's partition key) or global.
    pub local: bool,
    /// Whether every attribute is projected into it (`ProjectionType` `ALL`).
    pub projects_all: bool,
    /// The non-key attributes projected (`INCLUDE`); empty for `KEYS_ONLY` and `ALL`.
    pub included: Vec<String>,
}

/// A table's keys and indexes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableSchema {
    /// The table's name.
    pub name: String,
    /// The store's own id of this incarnation of the table (`TableId`); a table dropped and made
    /// again has another. Stores that give none (dynalite) get their creation time here.
    pub id: String,
    /// The primary key.
    pub key: KeySchema,
    /// Local and global indexes.
    pub indexes: Vec<IndexSchema>,
}

impl KeySchema {
    /// The names of the key attributes, partition key first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.partition).chain(&self.sort).map(|attribute| attribute.name.as_str())
    }

    /// Whether an attribute of that name is part of the key.
    pub fn has(&self, name: &str) -> bool {
        self.names().any(|attribute| attribute == name)
    }
}

impl From<KeySchema> for IndexKeySchema {
    fn from(key: KeySchema) -> Self {
        IndexKeySchema { partition: vec![key.partition], sort: key.sort.into_iter().collect() }
    }
}

impl<'a> From<&'a KeySchema> for KeyAttributes<'a> {
    fn from(key: &'a KeySchema) -> Self {
        KeyAttributes { partition: std::slice::from_ref(&key.partition), sort: key.sort.as_slice() }
    }
}

impl<'a> From<&'a IndexKeySchema> for KeyAttributes<'a> {
    fn from(key: &'a IndexKeySchema) -> Self {
        KeyAttributes { partition: &key.partition, sort: &key.sort }
    }
}

impl<'a> KeyAttributes<'a> {
    /// All of them, those of the partition key first.
    pub fn all(self) -> impl Iterator<Item = &'a AttributeDefinition> {
        self.partition.iter().chain(self.sort)
    }

    /// Whether there are several of one kind.
    pub fn is_composite(self) -> bool {
        self.partition.len() > 1 || self.sort.len() > 1
    }
}

impl IndexKeySchema {
    /// The same key as a table can have it; `None` with several attributes of one kind.
    pub fn single(&self) -> Option<KeySchema> {
        match (self.partition.as_slice(), self.sort.as_slice()) {
            ([partition], []) => Some(KeySchema { partition: partition.clone(), sort: None }),
            ([partition], [sort]) => {
                Some(KeySchema { partition: partition.clone(), sort: Some(sort.clone()) })
            }
            _ => None,
        }
    }

    /// The key's attributes.
    pub fn attributes(&self) -> KeyAttributes<'_> {
        self.into()
    }

    /// The names of the key attributes, those of the partition key first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.attributes().all().map(|attribute| attribute.name.as_str())
    }

    /// Whether an attribute of that name is part of the key.
    pub fn has(&self, name: &str) -> bool {
        self.names().any(|attribute| attribute == name)
    }

    /// Whether an attribute of that name is part of the partition key.
    pub fn partition_has(&self, name: &str) -> bool {
        self.partition.iter().any(|attribute| attribute.name == name)
    }

    /// Whether an attribute of that name is part of the sort key.
    pub fn sort_has(&self, name: &str) -> bool {
        self.sort.iter().any(|attribute| attribute.name == name)
    }
}

/// Whether a table can have the name (AWS, "Naming rules").
pub fn is_table_name(name: &str) -> bool {
    (3..=255).contains(&name.len()) && is_of_name_characters(name)
}

/// Whether names of tables and indexes can hold all of these characters.
pub(crate) fn is_of_name_characters(text: &str) -> bool {
    text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_.-".contains(&byte))
}

impl TableSchema {
    /// The index of that name.
    pub fn index(&self, name: &str) -> Option<&IndexSchema> {
        self.indexes.iter().find(|index| index.name == name)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CREATE: &[u8] = br#"{"TableName":"t","BillingMode":"PAY_PER_REQUEST",
        "AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"sk","AttributeType":"N"},{"AttributeName":"g","AttributeType":"B"}],
        "KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}],
        "LocalSecondaryIndexes":[{"IndexName":"l","KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"g","KeyType":"RANGE"}],"Projection":{"ProjectionType":"ALL"}}],
        "GlobalSecondaryIndexes":[{"IndexName":"i","KeySchema":[{"AttributeName":"g","KeyType":"HASH"}],"Projection":{"ProjectionType":"INCLUDE","NonKeyAttributes":["x"]}}]}"#;

    #[test]
    fn a_definition_becomes_a_schema() {
        let schema = TableSchema::from_create(CREATE).unwrap();
        assert_eq!(schema.key.names().collect::<Vec<_>>(), ["pk", "sk"]);
        assert_eq!(schema.key.sort.as_ref().unwrap().key_type, KeyType::N);
        let local = schema.index("l").unwrap();
        assert!(local.local && local.projects_all);
        let global = schema.index("i").unwrap();
        assert!(!global.local && !global.projects_all && global.key.has("g") && !global.key.has("pk"));
        assert_eq!(global.included, ["x"]);
        assert_eq!(schema.index("none"), None);
    }

    #[test]
    fn a_description_has_an_id() {
        let described = |id: &str| {
            let table = std::str::from_utf8(CREATE).unwrap().replacen('{', &format!("{{{id},"), 1);
            TableSchema::from_description(format!(r#"{{"Table":{table}}}"#).as_bytes()).unwrap()
        };
        assert_eq!(described(r#""TableId":"abc","CreationDateTime":1.5"#).id, "abc");
        assert_eq!(described(r#""CreationDateTime":1.5"#).id, "1.5");
        assert_eq!(described(r#""TableId":"x""#).key, TableSchema::from_create(CREATE).unwrap().key);
    }

    #[test]
    fn an_index_can_have_several_attributes_of_a_kind() {
        let create = std::str::from_utf8(CREATE).unwrap();
        let single = r#"[{"AttributeName":"g","KeyType":"HASH"}]"#;
        let several = r#"[{"AttributeName":"g","KeyType":"HASH"},{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}]"#;
        let schema = TableSchema::from_create(create.replace(single, several).as_bytes()).unwrap();
        let key = &schema.index("i").unwrap().key;
        assert_eq!(key.names().collect::<Vec<_>>(), ["g", "pk", "sk"]);
        assert_eq!((key.partition.len(), key.sort[0].key_type), (2, KeyType::N));
        assert!(key.has("pk") && !key.has("x") && key.attributes().is_composite());
        assert!(!schema.index("l").unwrap().key.attributes().is_composite());
        // A table's own key cannot, nor a local index's.
        for key in ["\"KeySchema\":[", "\"IndexName\":\"l\",\"KeySchema\":["] {
            let twice = format!("{key}{{\"AttributeName\":\"g\",\"KeyType\":\"HASH\"}},");
            assert!(TableSchema::from_create(create.replacen(key, &twice, 1).as_bytes()).is_err(), "{key}");
        }
    }

    #[test]
    fn what_defines_no_key_is_refused() {
        for body in [
            "",
            "{}",
            r#"{"TableName":"t","KeySchema":[]}"#,
            r#"{"TableName":"t","KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}]}"#,
        ] {
            assert!(TableSchema::from_create(body.as_bytes()).is_err(), "{body}");
            assert!(TableSchema::from_description(body.as_bytes()).is_err(), "{body}");
        }
    }
}
