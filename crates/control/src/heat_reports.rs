//! What each gateway sees of hot keys, told to the others: an item of the registry for each
//! gateway.
//!
//! A report is advice, not truth: it may be lost, late or written twice. All lie in one partition,
//! so one Query reads them.
//!
//! Not here: what a report says (`heatsink_heat::KeyLoad`), and who acts on it
//! (`heatsink_workers`).

use heatsink_dynamo::{Code, Error, Operation};
use serde_json::{Value as Json, json};

use crate::registry::Registry;

/// The partition of all reports.
const PARTITION: &str = "heat";

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

fn item_key(gateway: &str) -> Json {
    json!({ "pk": { "S": PARTITION }, "sk": { "S": gateway } })
}

impl Registry {
    /// Replaces a gateway's report. Costs a write unit for each KB.
    ///
    /// # Errors
    /// The store's.
    pub async fn write_heat(&self, report: &HeatReport) -> Result<(), Error> {
        let mut item = item_key(&report.gateway);
        item["number"] = json!({ "N": report.number.to_string() });
        item["report"] = json!({ "S": report.text });
        self.call(Operation::PutItem, json!({ "TableName": self.name(), "Item": item })).await.map(drop)
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
            reports.extend(page["Items"].as_array().into_iter().flatten().filter_map(|item| {
                Some(HeatReport {
                    gateway: item["sk"]["S"].as_str()?.to_owned(),
                    number: item["number"]["N"].as_str()?.parse().ok()?,
                    text: item["report"]["S"].as_str()?.to_owned(),
                })
            }));
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
