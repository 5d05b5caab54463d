//! What is on its way by the records of tables and keys, whoever has asked for it.

use heatsink_dynamo::Error;
use heatsink_layout::ValueLayout;

use crate::key_record::KeyRecord;
use crate::registry::Registry;

/// What is on its way in one table.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct UnderWay {
    /// The store's id of the table.
    pub table_id: String,
    /// The table's name.
    pub table: String,
    /// Keys that move, or whose last move has late requests.
    pub keys: Vec<KeyRecord>,
    /// Values of indexes that get other shards.
    pub values: Vec<ValueLayout>,
}

impl UnderWay {
    /// What of these records is on its way.
    pub fn of(
        (table_id, table): (&str, &str),
        keys: impl IntoIterator<Item = KeyRecord>,
        values: impl IntoIterator<Item = ValueLayout>,
    ) -> Self {
        UnderWay {
            table_id: table_id.to_owned(),
            table: table.to_owned(),
            keys: keys.into_iter().filter(|one| one.moves.is_some() || !one.settled).collect(),
            // The forms of one that begins, or ends, are reserved.
            values: values.into_iter().filter(|one| one.migration.is_some() || one.extent() == 1).collect(),
        }
    }

    /// Whether nothing is.
    pub fn is_empty(&self) -> bool {
        self.keys.is_empty() && self.values.is_empty()
    }
}

impl Registry {
    /// What is on its way, in every table on record. Reads the whole registry.
    ///
    /// # Errors
    /// The store's; a record that cannot be read.
    pub async fn under_way(&self) -> Result<Vec<UnderWay>, Error> {
        let mut found = Vec::new();
        for record in self.all().await? {
            let keys = match record.keys {
                0 => Vec::new(),
                _ => self.key_records(&record.id).await?,
            };
            let of_table = UnderWay::of((&record.id, &record.name), keys, record.values);
            if !of_table.is_empty() {
                found.push(of_table);
            }
        }
        Ok(found)
    }
}
