//! What is known of a table: its keys and its indexes, as `CreateTable` takes and `DescribeTable` gives them.

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

/// A global secondary index whose key has several partition key or several sort key attributes, up to four of each (AWS
/// Developer Guide, "Multi-attribute keys", November 2025).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CompositeIndex {
    /// The index's name.
    pub name: String,
    /// Its partition key attributes, in order; at least one.
    pub partition: Vec<AttributeDefinition>,
    /// Its sort key attributes, in order.
    pub sort: Vec<AttributeDefinition>,
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
    /// Local and global indexes with at most one attribute of each kind in their keys.
    pub indexes: Vec<IndexSchema>,
    /// Global indexes with more of them.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub composite_indexes: Vec<CompositeIndex>,
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

impl CompositeIndex {
    /// The names of the key attributes, those of the partition key first.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.partition.iter().chain(&self.sort).map(|attribute| attribute.name.as_str())
    }

    /// Whether an attribute of that name is part of the key.
    pub fn has(&self, name: &str) -> bool {
        self.names().any(|attribute| attribute == name)
    }
}

impl TableSchema {
    /// The index of that name, if its key has at most one attribute of each kind.
    pub fn index(&self, name: &str) -> Option<&IndexSchema> {
        self.indexes.iter().find(|index| index.name == name)
    }

    /// The index of that name, if its key has several attributes of one kind.
    pub fn composite_index(&self, name: &str) -> Option<&CompositeIndex> {
        self.composite_indexes.iter().find(|index| index.name == name)
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
        assert_eq!((schema.indexes.len(), schema.index("i")), (1, None));
        let index = schema.composite_index("i").unwrap();
        assert_eq!(index.names().collect::<Vec<_>>(), ["g", "pk", "sk"]);
        assert_eq!((index.partition.len(), index.sort[0].key_type), (2, KeyType::N));
        assert!(index.has("pk") && !index.has("x"));
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
