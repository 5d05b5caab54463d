//! The tables of the differential test: every key type, every kind of index that a sharded table
//! can have.

use serde_json::{Value as Json, json};

/// An index of a test table, as the generator needs it.
#[derive(Clone, Debug)]
pub struct Index {
    pub name: &'static str,
    pub partition: (&'static str, &'static str),
    pub sort: Option<(&'static str, &'static str)>,
    /// More partition key attributes, and more sort key attributes.
    pub more: [Vec<(&'static str, &'static str)>; 2],
    pub local: bool,
    pub projection: Json,
}

/// A test table. Attributes are pairs of name and type.
#[derive(Clone, Debug)]
pub struct Table {
    pub name: &'static str,
    pub partition: (&'static str, &'static str),
    pub sort: Option<(&'static str, &'static str)>,
    pub indexes: Vec<Index>,
}

fn index(
    name: &'static str,
    partition: (&'static str, &'static str),
    sort: Option<(&'static str, &'static str)>,
    projection: Json,
) -> Index {
    Index { name, partition, sort, more: [vec![], vec![]], local: false, projection }
}

fn local(
    name: &'static str,
    partition: (&'static str, &'static str),
    sort: (&'static str, &'static str),
    projection: Json,
) -> Index {
    Index { local: true, ..index(name, partition, Some(sort), projection) }
}

/// A global index with several attributes of a kind in its key; at least one of each.
fn several(
    name: &'static str,
    partition: &[(&'static str, &'static str)],
    sort: &[(&'static str, &'static str)],
    projection: Json,
) -> Index {
    let more = [partition, sort].map(|attributes| attributes[1..].to_vec());
    Index { more, ..index(name, partition[0], Some(sort[0]), projection) }
}

impl Index {
    /// The partition key's attributes.
    pub fn partitions(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        std::iter::once(self.partition).chain(self.more[0].iter().copied())
    }

    /// The sort key's attributes.
    pub fn sorts(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.sort.into_iter().chain(self.more[1].iter().copied())
    }
}

/// The table whose indexes have several attributes of a kind in their keys.
pub const SEVERAL: &str = "Several";

/// All test tables. Key attribute values come from small pools, so that overwrites, ties and empty
/// shards happen.
pub fn tables() -> Vec<Table> {
    let all = json!({"ProjectionType": "ALL"});
    let keys_only = json!({"ProjectionType": "KEYS_ONLY"});
    let include = json!({"ProjectionType": "INCLUDE", "NonKeyAttributes": ["v", "m"]});
    let (string, number) = (("pk", "S"), ("pk", "N"));
    vec![
        Table {
            name: "Strings",
            partition: string,
            sort: Some(("sk", "S")),
            indexes: vec![
                local("by-t", string, ("t", "S"), all.clone()),
                local("by-n", string, ("n", "N"), keys_only.clone()),
                index("t-n", ("t", "S"), Some(("n", "N")), all.clone()),
                index("pk-t", string, Some(("t", "S")), include.clone()),
                index("pk-only", string, None, keys_only.clone()),
                index("inverted", ("sk", "S"), Some(string), all.clone()),
            ],
        },
        Table {
            name: "Numbers",
            partition: string,
            sort: Some(("sk", "N")),
            indexes: vec![
                local("by-b", string, ("b", "B"), include),
                index("n-only", ("n", "N"), None, all.clone()),
            ],
        },
        Table {
            name: "Bytes",
            partition: ("pk", "B"),
            sort: Some(("sk", "B")),
            indexes: vec![index("t-b", ("t", "S"), Some(("b", "B")), keys_only)],
        },
        Table {
            name: "HashOnly",
            partition: string,
            sort: None,
            indexes: vec![index("t-only", ("t", "S"), None, all)],
        },
        // Every sort key of it begins with a time.
        Table {
            name: "Times",
            partition: string,
            sort: Some(("sk", "S")),
            indexes: vec![
                local("by-n", string, ("n", "N"), json!({"ProjectionType": "ALL"})),
                index("pk-t", string, Some(("t", "S")), json!({"ProjectionType": "KEYS_ONLY"})),
            ],
        },
        Table {
            name: "Indexed",
            partition: string,
            sort: Some(("sk", "S")),
            indexes: vec![
                local("by-n", string, ("n", "N"), json!({"ProjectionType": "ALL"})),
                index("t-n", ("t", "S"), Some(("n", "N")), json!({"ProjectionType": "ALL"})),
                index(
                    "t-only",
                    ("t", "S"),
                    None,
                    json!({"ProjectionType": "INCLUDE", "NonKeyAttributes": ["v", "m"]}),
                ),
                index("b-pk", ("b", "B"), Some(string), json!({"ProjectionType": "KEYS_ONLY"})),
                index("n-only", ("n", "N"), None, json!({"ProjectionType": "ALL"})),
            ],
        },
        Table {
            name: "NumericKey",
            partition: number,
            sort: Some(("sk", "S")),
            indexes: vec![
                local("by-n", number, ("n", "N"), json!({"ProjectionType": "ALL"})),
                index("t-n", ("t", "S"), Some(("n", "N")), json!({"ProjectionType": "ALL"})),
                index("pk-n", number, Some(("n", "N")), json!({"ProjectionType": "KEYS_ONLY"})),
                index("b-pk", ("b", "B"), Some(number), json!({"ProjectionType": "ALL"})),
            ],
        },
        Table { name: SEVERAL, partition: string, sort: Some(("sk", "S")), indexes: several_indexes() },
    ]
}

/// The table's partition key beside another attribute of the partition key; alone; first in the
/// sort key, and behind another; and nowhere.
fn several_indexes() -> Vec<Index> {
    let all = json!({"ProjectionType": "ALL"});
    let (pk, sk, t, n, b) = (("pk", "S"), ("sk", "S"), ("t", "S"), ("n", "N"), ("b", "B"));
    let include = json!({"ProjectionType": "INCLUDE", "NonKeyAttributes": ["v", "m"]});
    vec![
        several("t_pk", &[t, pk], &[n, sk], all.clone()),
        several("pk-n_b", &[pk], &[n, b], include),
        several("t-pk_n", &[t], &[pk, n], all.clone()),
        several("n-b_pk", &[n], &[b, pk, sk], all),
        several("t_n", &[t, n], &[b, sk], json!({"ProjectionType": "KEYS_ONLY"})),
    ]
}

fn key_schema<'a>(
    partition: impl Iterator<Item = (&'a str, &'a str)>,
    sort: impl Iterator<Item = (&'a str, &'a str)>,
) -> Json {
    let element = |kind| move |(name, _)| json!({"AttributeName": name, "KeyType": kind});
    partition.map(element("HASH")).chain(sort.map(element("RANGE"))).collect()
}

impl Table {
    /// The `CreateTable` request.
    pub fn create(&self) -> Json {
        let mut attributes: Vec<(&str, &str)> = vec![self.partition];
        attributes.extend(self.sort);
        for index in &self.indexes {
            attributes.extend(index.partitions().chain(index.sorts()));
        }
        attributes.sort_unstable();
        attributes.dedup();
        let definitions: Vec<Json> = attributes
            .iter()
            .map(|(name, kind)| json!({"AttributeName": name, "AttributeType": kind}))
            .collect();
        let mut body = json!({
            "TableName": self.name,
            "BillingMode": "PAY_PER_REQUEST",
            "StreamSpecification": {"StreamEnabled": true, "StreamViewType": "NEW_AND_OLD_IMAGES"},
            "AttributeDefinitions": definitions,
            "KeySchema": key_schema([self.partition].into_iter(), self.sort.into_iter()),
        });
        for (member, local) in [("LocalSecondaryIndexes", true), ("GlobalSecondaryIndexes", false)] {
            let indexes: Vec<Json> = self
                .indexes
                .iter()
                .filter(|index| index.local == local)
                .map(|index| {
                    json!({
                        "IndexName": index.name,
                        "KeySchema": key_schema(index.partitions(), index.sorts()),
                        "Projection": index.projection,
                    })
                })
                .collect();
            if !indexes.is_empty() {
                body[member] = Json::Array(indexes);
            }
        }
        body
    }
}
