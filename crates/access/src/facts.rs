//! What a judgement has to know of a table.

use std::collections::HashMap;

/// What is known of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableFacts {
    /// The name of its partition key attribute.
    pub partition_key: String,
    /// Its ARN, if the store says.
    pub arn: Option<String>,
    /// The names of all its key attributes.
    pub keys: Vec<String>,
    /// The names of the key attributes of each index, by its name.
    pub index_keys: HashMap<String, Vec<String>>,
}

impl TableFacts {
    /// The attributes that the position in a read of the table or of an index holds; `None` for an
    /// index that is not known.
    pub(crate) fn of_position(&self, index: Option<&str>) -> Option<impl Iterator<Item = &String>> {
        let of_index = index.map_or(Some(&[][..]), |index| self.index_keys.get(index).map(Vec::as_slice))?;
        Some(self.keys.iter().chain(of_index))
    }
}
