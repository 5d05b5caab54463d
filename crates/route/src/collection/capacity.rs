//! `ConsumedCapacity` of the calls of one read, summed, and as much of it as the client wants to see.

use std::collections::BTreeMap;

use heatsink_dynamo::json::Object;
use serde::Deserialize;

use crate::refusal::Unplanned;
use crate::request::Request;

/// How much of the consumed capacity the client wants to see.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Report {
    None,
    Total,
    Indexes,
}

impl Report {
    /// Reads `ReturnConsumedCapacity`.
    ///
    /// # Errors
    /// [`Unplanned::Invalid`] for a value that DynamoDB does not know.
    pub(crate) fn read(request: &Request<'_>) -> Result<Self, Unplanned> {
        match request.string("ReturnConsumedCapacity").map_err(|_| Unplanned::Invalid)?.as_deref() {
            None | Some("NONE") => Ok(Report::None),
            Some("TOTAL") => Ok(Report::Total),
            Some("INDEXES") => Ok(Report::Indexes),
            Some(_) => Err(Unplanned::Invalid),
        }
    }
}

/// `ConsumedCapacity`, of one call or summed over many.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(crate) struct Capacity {
    pub(crate) table_name: String,
    pub(crate) capacity_units: f64,
    pub(crate) table: Option<Units>,
    pub(crate) local_secondary_indexes: BTreeMap<String, Units>,
    pub(crate) global_secondary_indexes: BTreeMap<String, Units>,
}

#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(crate) struct Units {
    pub(crate) capacity_units: f64,
}

impl Capacity {
    /// Adds what another call consumed.
    pub(crate) fn add(&mut self, other: &Capacity) {
        self.table_name.clone_from(&other.table_name);
        self.capacity_units += other.capacity_units;
        if let Some(table) = other.table {
            self.table.get_or_insert_default().capacity_units += table.capacity_units;
        }
        let pairs = [
            (&mut self.local_secondary_indexes, &other.local_secondary_indexes),
            (&mut self.global_secondary_indexes, &other.global_secondary_indexes),
        ];
        for (sum, added) in pairs {
            for (name, units) in added {
                sum.entry(name.clone()).or_default().capacity_units += units.capacity_units;
            }
        }
    }

    /// The member of an answer; `None` if the client does not want it.
    pub(crate) fn shown(&self, report: Report) -> Option<Vec<u8>> {
        if report == Report::None {
            return None;
        }
        let mut shown = Object::new();
        shown.string("TableName", &self.table_name).raw("CapacityUnits", &number(self.capacity_units));
        if report == Report::Indexes {
            if let Some(table) = &self.table {
                shown.raw("Table", &table.shown());
            }
            let indexes = [
                ("LocalSecondaryIndexes", &self.local_secondary_indexes),
                ("GlobalSecondaryIndexes", &self.global_secondary_indexes),
            ];
            for (kind, indexes) in indexes.into_iter().filter(|(_, indexes)| !indexes.is_empty()) {
                let mut all = Object::new();
                for (name, units) in indexes {
                    all.raw(name, &units.shown());
                }
                shown.raw(kind, &all.finish());
            }
        }
        Some(shown.finish())
    }
}

impl Units {
    fn shown(self) -> Vec<u8> {
        let mut shown = Object::new();
        shown.raw("CapacityUnits", &number(self.capacity_units));
        shown.finish()
    }
}

fn number(units: f64) -> Vec<u8> {
    serde_json::Value::from(units).to_string().into_bytes()
}
