//! Streams of a table that had the name of one that is there now, and was sharded: its records hold
//! physical keys, and the layouts by which they could be read are gone with it.

use bytes::Bytes;
use heatsink_control::Control;
use heatsink_dynamo::{Error, Operation, json};
use heatsink_route::table_name;
use heatsink_store::Store;
use serde_json::{Value as Json, json};

use crate::missing_table;

/// Refuses an iterator into the stream of a former table.
///
/// # Errors
/// `ResourceNotFoundException`, as for the stream of a deleted table; those of the store.
pub(crate) async fn check(store: &dyn Store, control: &Control, body: &[u8]) -> Result<(), Error> {
    let arn = json::member(body, "StreamArn").ok().flatten().and_then(|raw| json::string(raw).ok());
    let Some((arn, label)) = arn.as_deref().and_then(|arn| Some((arn, arn.split_once("/stream/")?.1))) else {
        return Ok(());
    };
    let name = table_name(arn);
    let Some(begun) = begin_of(label) else { return Ok(()) };
    if !control.was_recorded(name).await? {
        return Ok(());
    }
    let request = Bytes::from(json!({ "TableName": name }).to_string());
    let described = store.call(Operation::DescribeTable, request).await?;
    let unreadable = |_| Error::internal("The store's description of the table cannot be read");
    let described: Json = serde_json::from_slice(&described).map_err(unreadable)?;
    let table = &described["Table"];
    // Stores tell the time of a table's creation in seconds, some in whole ones.
    let made = table["CreationDateTime"].as_f64().unwrap_or_default().floor();
    if table["LatestStreamArn"] == arn || begun >= made + 1.0 {
        return Ok(());
    }
    Err(missing_table::stream(name))
}

/// The time of a stream's label, in seconds since 1970.
fn begin_of(label: &str) -> Option<f64> {
    let time: jiff::civil::DateTime = label.parse().ok()?;
    Some(time.to_zoned(jiff::tz::TimeZone::UTC).ok()?.timestamp().as_duration().as_secs_f64())
}
