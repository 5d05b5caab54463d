//! What each gateway sees of hot keys, told to the others: an item of the registry for each
//! gateway.
//!
//! A report is advice, not truth: it may be lost, late or written twice. All lie in one partition,
//! so one Query reads them; they are compressed, for they are written each second. Older builds
//! wrote them as they were, and leave out these.
//!
//! Not here: what a report says, and who acts on it (`heatsink_workers`).

use std::io::{Read, Write};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use flate2::Compression;
use flate2::read::DeflateDecoder;
use flate2::write::DeflateEncoder;
use heatsink_dynamo::{Code, Error, Operation};
use serde_json::{Value as Json, json};

use crate::registry::Registry;

/// The partition of all reports.
const PARTITION: &str = "heat";

/// The most bytes that a report takes on record. An item may have 400 KB; but each KB is a write
/// unit a second, of a partition that takes 1,000 of them from all gateways.
const MOST_BYTES: usize = 100 * 1024;

/// The most bytes that a report is read as.
const MOST_READ: u64 = 16 * 1024 * 1024;

/// A gateway's report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeatReport {
    /// The gateway's id.
    pub gateway: String,
    /// Counts its reports. That it changes shows that the gateway lives.
    pub number: u64,
    /// What it says, as JSON.
    pub text: String,
}

impl HeatReport {
    /// What lies on record; `None` if it is too large for that.
    fn packed(&self) -> Option<Vec<u8>> {
        let mut encoder = DeflateEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(self.text.as_bytes()).ok()?;
        encoder.finish().ok().filter(|packed| packed.len() <= MOST_BYTES)
    }

    fn read(item: &Json) -> Option<Self> {
        let mut text = String::new();
        let packed = STANDARD.decode(item["packed"]["B"].as_str()?).ok()?;
        DeflateDecoder::new(&*packed).take(MOST_READ).read_to_string(&mut text).ok()?;
        Some(HeatReport {
            gateway: item["sk"]["S"].as_str()?.to_owned(),
            number: item["number"]["N"].as_str()?.parse().ok()?,
            text,
        })
    }
}

fn item_key(gateway: &str) -> Json {
    json!({ "pk": { "S": PARTITION }, "sk": { "S": gateway } })
}

impl Registry {
    /// Replaces a gateway's report. Costs a write unit for each KB of what it is compressed to.
    /// `false` if that is too much: nothing is written then.
    ///
    /// # Errors
    /// The store's.
    pub async fn write_heat(&self, report: &HeatReport) -> Result<bool, Error> {
        let Some(packed) = report.packed() else { return Ok(false) };
        let mut item = item_key(&report.gateway);
        item["number"] = json!({ "N": report.number.to_string() });
        item["packed"] = json!({ "B": STANDARD.encode(packed) });
        let body = json!({ "TableName": self.name(), "Item": item });
        self.call(Operation::PutItem, body).await.map(|_| true)
    }

    /// The reports of all gateways, perhaps out of date by a moment. One that cannot be read is
    /// left out.
    ///
    /// # Errors
    /// The store's. No registry is no report.
    pub async fn heat_reports(&self) -> Result<Vec<HeatReport>, Error> {
        let (mut reports, mut start) = (Vec::new(), Json::Null);
        loop {
            let mut body = json!({
                "TableName": self.name(), "KeyConditionExpression": "pk = :p", "ExpressionAttributeValues": { ":p": { "S": PARTITION } },
            });
            if !start.is_null() {
                body["ExclusiveStartKey"] = start;
            }
            let mut page = match self.call(Operation::Query, body).await {
                Ok(page) => page,
                Err(error) if error.code == Code::ResourceNotFoundException => return Ok(reports),
                Err(error) => return Err(error),
            };
            let items = page["Items"].as_array().into_iter().flatten();
            reports.extend(items.filter_map(HeatReport::read));
            start = page["LastEvaluatedKey"].take();
            if start.is_null() {
                return Ok(reports);
            }
        }
    }

    /// Removes the report of a gateway that has stopped.
    ///
    /// # Errors
    /// The store's.
    pub async fn remove_heat(&self, gateway: &str) -> Result<(), Error> {
        let body = json!({ "TableName": self.name(), "Key": item_key(gateway) });
        self.call(Operation::DeleteItem, body).await.map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn report(text: String) -> HeatReport {
        HeatReport { gateway: "g".to_owned(), number: 7, text }
    }

    #[test]
    fn a_report_is_read_as_it_was_written_or_is_too_large() {
        let written = report("{\"keys\":[1,2,3]}".repeat(10_000));
        let packed = written.packed().unwrap();
        assert!(packed.len() < written.text.len() / 20);
        let item = json!({
            "sk": { "S": "g" }, "number": { "N": "7" }, "packed": { "B": STANDARD.encode(&packed) },
        });
        assert_eq!(HeatReport::read(&item), Some(written));
        let damaged = json!({ "sk": { "S": "g" }, "number": { "N": "7" }, "packed": { "B": "AAAA" } });
        assert_eq!(HeatReport::read(&damaged), None);
        // Text of which no byte repeats another.
        let noise: String =
            (0..60_000_u64).map(|at| format!("{:016x}", at.wrapping_mul(0x9e37_79b9_7f4a_7c15))).collect();
        assert_eq!(report(noise).packed(), None);
    }
}
