//! What the store says that a request cost, by table and index: `ConsumedCapacity`.

use std::borrow::Cow;

use bytes::Bytes;
use heatsink_dynamo::json;
use heatsink_route::table_name;

/// The capacity of all tables of a request, over all calls that it took.
#[derive(Debug, Default)]
pub(in crate::heat) struct Told<'a> {
    tables: Vec<TableCapacity<'a>>,
}

/// The capacity of one table, in thousandths of units.
#[derive(Debug)]
pub(super) struct TableCapacity<'a> {
    name: Cow<'a, str>,
    total: u64,
    /// By global index. Not all answers tell it.
    indexes: Vec<(Cow<'a, str>, u64)>,
}

impl<'a> Told<'a> {
    /// From the values of `ConsumedCapacity` in the answers to the request's calls. What is not in
    /// that form counts for nothing.
    pub(in crate::heat) fn read(figures: &'a [Bytes]) -> Self {
        let mut told = Told::default();
        for raw in figures {
            match raw.first() {
                Some(b'[') => {
                    for one in json::elements(raw).unwrap_or_default() {
                        told.add(one);
                    }
                }
                _ => _ = told.add(raw),
            }
        }
        told
    }

    /// That of a table, by its name.
    pub(super) fn table(&self, name: &str) -> Option<&TableCapacity<'a>> {
        self.tables.iter().find(|one| table_name(&one.name) == name)
    }

    fn add(&mut self, raw: &'a [u8]) -> Option<()> {
        let names = ["TableName", "CapacityUnits", "GlobalSecondaryIndexes"];
        let [name, units, indexes] = json::attributes_of(raw, names).ok()?;
        let (name, units) = (json::string(name?).ok()?, thousandths(units?)?);
        let table = match self.tables.iter().position(|one| one.name == name) {
            Some(known) => self.tables.get_mut(known)?,
            None => {
                self.tables.push(TableCapacity { name, total: 0, indexes: Vec::new() });
                self.tables.last_mut()?
            }
        };
        table.total += units;
        let indexes = indexes.and_then(|indexes| json::members(indexes).ok()).unwrap_or_default();
        for (name, raw) in indexes {
            let units = thousandths(json::member(raw, "CapacityUnits").ok()??)?;
            match table.indexes.iter_mut().find(|(known, _)| *known == name) {
                Some((_, sum)) => *sum += units,
                None => table.indexes.push((name, units)),
            }
        }
        Some(())
    }
}

impl TableCapacity<'_> {
    /// What all of it took.
    pub(super) fn total(&self) -> u64 {
        self.total
    }

    /// What the table itself took, its local indexes with it.
    pub(super) fn own(&self) -> u64 {
        self.total.saturating_sub(self.indexes.iter().map(|(_, units)| units).sum())
    }

    /// What a global index took.
    pub(super) fn index(&self, name: &str) -> u64 {
        self.indexes.iter().find(|(known, _)| known == name).map_or(0, |(_, units)| *units)
    }
}

/// Thousandths of a number of units.
#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "`as` cuts to the range")]
fn thousandths(raw: &[u8]) -> Option<u64> {
    let units: f64 = std::str::from_utf8(raw).ok()?.parse().ok()?;
    Some((units * 1_000.0).round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_and_indexes_are_added_up_over_calls() {
        let one = r#"{"TableName":"t","CapacityUnits":3.5,"Table":{"CapacityUnits":2.0},"GlobalSecondaryIndexes":{"i":{"CapacityUnits":1.5}}}"#;
        let arn = r#"[{"TableName":"arn:aws:dynamodb:r:1:table/u","CapacityUnits":1},{"TableName":"t","CapacityUnits":2}]"#;
        let calls = [one, arn, one, "{}", "7", "[", r#"{"TableName":"v","CapacityUnits":"x"}"#]
            .map(|call| Bytes::copy_from_slice(call.as_bytes()));
        let told = Told::read(&calls);
        let table = told.table("t").unwrap();
        assert_eq!(
            (table.total(), table.own(), table.index("i"), table.index("j")),
            (9_000, 6_000, 3_000, 0)
        );
        assert_eq!(told.table("u").unwrap().own(), 1_000);
        assert!(told.table("v").is_none());
    }
}
