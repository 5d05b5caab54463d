//! Holds stream records against recorded traffic: which writes did not come through the gateways
//! that recorded it.
//!
//! Not here: how they are held against each other (`heatsink_heat::audit::bypass`), what is said of
//! it (`past`).

use heatsink_heat::audit::bypass::{Bypass, Requested};
use heatsink_heat::audit::records::{Kind, Records};

use super::args::Args;
use super::past::Past;
use super::trace;
use crate::exit::Exit;

/// Recorded traffic.
pub struct Beside {
    requested: Requested,
    skipped: u64,
}

impl Beside {
    /// Reads the traces that the arguments name.
    pub fn read(args: &Args) -> Result<Self, Exit> {
        let reading = trace::read::<Requested>(args)?;
        Ok(Beside { requested: reading.taker.told, skipped: reading.skipped })
    }

    /// Compares. `table`: the name of the records' table, where it is known.
    pub fn compare(&self, table: Option<&str>, records: &Records) -> Result<Past, Exit> {
        let kind = records.first().unwrap_or(Kind::Stream);
        let (Kind::Stream, Some(writes)) = (kind, records.writes()) else {
            return Err(Exit::usage(format!(
                "--trace beside --file: only stream records say when an item was written, and the file holds {}",
                kind.words()
            )));
        };
        let mut recorded = self.requested.tables();
        let table = match (table, recorded.next(), recorded.next()) {
            (Some(table), _, _) => table,
            (None, Some(only), None) => only,
            _ => {
                return Err(Exit::usage(
                    "the records do not say of which table they are: name it (heatsink audit TABLE …)"
                        .to_owned(),
                ));
            }
        };
        let tables = || self.requested.tables();
        let is_recorded = tables().any(|one| one == table);
        Ok(Past {
            others: (!is_recorded).then(|| tables().map(str::to_owned).collect()),
            table: table.to_owned(),
            bypass: Bypass::of(table, writes, &self.requested),
            hashed: self.requested.is_hashed(),
            skipped: self.skipped,
        })
    }
}
