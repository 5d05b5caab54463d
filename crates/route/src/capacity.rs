//! `ConsumedCapacity` of several calls as that of one request, and as much of it as the client
//! wants to see.

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

/// `ConsumedCapacity` of one table, of one call or summed over many.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(crate) struct Capacity {
    pub(crate) table_name: String,
    pub(crate) capacity_units: f64,
    read_capacity_units: Option<f64>,
    write_capacity_units: Option<f64>,
    pub(crate) table: Option<Units>,
    pub(crate) local_secondary_indexes: BTreeMap<String, Units>,
    pub(crate) global_secondary_indexes: BTreeMap<String, Units>,
}

/// The units of a table or an index. Only transactions tell read units and write units apart.
#[derive(Clone, Copy, Debug, Default, Deserialize)]
#[serde(rename_all = "PascalCase", default)]
pub(crate) struct Units {
    pub(crate) capacity_units: f64,
    read_capacity_units: Option<f64>,
    write_capacity_units: Option<f64>,
}

impl Capacity {
    /// As an operation on one item reports it.
    pub(crate) fn single(&self) -> Capacity {
        let mut single = Capacity::default();
        single.add(self);
        single
    }

    /// Adds what another call consumed. Its read units and write units stay out of the sum: the
    /// answers of single operations do not have them.
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
        (report != Report::None).then(|| self.written(report == Report::Indexes))
    }

    /// All of it, as a member of an answer whose calls were asked for as much as the client asks
    /// for.
    pub(crate) fn all(&self) -> Vec<u8> {
        self.written(true)
    }

    fn written(&self, indexes: bool) -> Vec<u8> {
        let mut shown = Object::new();
        shown.string("TableName", &self.table_name);
        self.total().write(&mut shown);
        if indexes {
            if let Some(table) = &self.table {
                shown.raw("Table", &table.written());
            }
            let indexes = [
                ("LocalSecondaryIndexes", &self.local_secondary_indexes),
                ("GlobalSecondaryIndexes", &self.global_secondary_indexes),
            ];
            for (kind, indexes) in indexes.into_iter().filter(|(_, indexes)| !indexes.is_empty()) {
                let mut all = Object::new();
                for (name, units) in indexes {
                    all.raw(name, &units.written());
                }
                shown.raw(kind, &all.finish());
            }
        }
        shown.finish()
    }

    fn total(&self) -> Units {
        Units {
            capacity_units: self.capacity_units,
            read_capacity_units: self.read_capacity_units,
            write_capacity_units: self.write_capacity_units,
        }
    }
}

/// Adds the capacity of one table to a list that holds each table's once.
pub(crate) fn add_by_table(tables: &mut Vec<Capacity>, more: &Capacity) {
    match tables.iter_mut().find(|one| one.table_name == more.table_name) {
        Some(one) => one.add(more),
        None => tables.push(more.single()),
    }
}

/// The member of an answer that lists the capacity of several tables.
pub(crate) fn listed(tables: &[Capacity]) -> Vec<u8> {
    let tables: Vec<Vec<u8>> = tables.iter().map(Capacity::all).collect();
    [&b"["[..], &tables.join(&b','), b"]"].concat()
}

impl Units {
    fn written(self) -> Vec<u8> {
        let mut shown = Object::new();
        self.write(&mut shown);
        shown.finish()
    }

    fn write(self, shown: &mut Object) {
        shown.raw("CapacityUnits", &number(self.capacity_units));
        for (name, part) in [
            ("ReadCapacityUnits", self.read_capacity_units),
            ("WriteCapacityUnits", self.write_capacity_units),
        ] {
            if let Some(units) = part {
                shown.raw(name, &number(units));
            }
        }
    }
}

fn number(units: f64) -> Vec<u8> {
    serde_json::Value::from(units).to_string().into_bytes()
}
