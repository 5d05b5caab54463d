//! The store's description of a table: its schema, and whether it can be used yet.

use heatsink_dynamo::{Error, Outcome, TableSchema, json};
use serde_json::Value as Json;

use crate::record::Record;

/// A table as the store describes it.
#[derive(Clone, Debug)]
pub struct Described {
    /// Its name, id and keys.
    pub schema: TableSchema,
    /// `ACTIVE`, `CREATING`, `DELETING`, …; empty if the store does not say.
    pub status: String,
    /// Its ARN; `None` if the store does not say.
    pub arn: Option<String>,
    /// When the table was created, by the store's clock: milliseconds since 1970, if the store
    /// says.
    pub made: Option<u64>,
    /// Whether it has a stream.
    pub streams: bool,
}

impl Described {
    /// Whether the table was created before one on record, as far as both times are known. Then the
    /// description is out of date.
    pub(crate) fn is_before(&self, other: &Record) -> bool {
        self.made.zip(other.made).is_some_and(|(this, other)| this < other)
    }
}

/// The error for a description of a table that does not exist any more.
pub(crate) fn out_of_date(name: &str) -> Error {
    let message =
        format!("The store's description of table {name} is out of date: it shows a table that was deleted");
    Error::unavailable(message, Outcome::NotDone)
}

/// Reads an answer of `DescribeTable`, or of `CreateTable`, `UpdateTable`, `DeleteTable`.
///
/// # Errors
/// `InternalServerError` when the store's answer is not a description, or gives the table neither
/// id nor creation time.
pub(crate) fn answer(body: &[u8]) -> Result<Described, Error> {
    let schema = TableSchema::from_description(body)?;
    if schema.id.is_empty() {
        return Err(Error::internal(format!(
            "The store gives table {} neither TableId nor CreationDateTime, so it cannot be told from another of its name",
            schema.name
        )));
    }
    let table = member(body, "Table").or_else(|| member(body, "TableDescription")).unwrap_or_default();
    let status = text(table, "TableStatus").unwrap_or_default();
    let stream = member(table, "StreamSpecification").unwrap_or_default();
    let streams = member(stream, "StreamEnabled") == Some(b"true");
    Ok(Described { schema, status, arn: text(table, "TableArn"), made: made(table), streams })
}

fn member<'a>(object: &'a [u8], name: &str) -> Option<&'a [u8]> {
    json::member(object, name).ok().flatten()
}

fn text(table: &[u8], name: &str) -> Option<String> {
    json::string(member(table, name)?).ok().map(std::borrow::Cow::into_owned)
}

fn made(table: &[u8]) -> Option<u64> {
    let seconds: f64 = serde_json::from_slice(member(table, "CreationDateTime")?).ok()?;
    let millis = std::time::Duration::try_from_secs_f64(seconds).ok()?.as_millis();
    u64::try_from(millis).ok()
}

/// Whether the records of a stream with that `StreamSpecification` show items as they were before.
pub fn shows_old_images(stream: &Json) -> bool {
    let view = stream["StreamViewType"].as_str();
    stream["StreamEnabled"] == true && matches!(view, Some("OLD_IMAGE" | "NEW_AND_OLD_IMAGES"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_table_without_identity_is_refused() {
        let described = |id: &str| {
            answer(
                format!(
                    r#"{{"TableDescription":{{"TableName":"t","TableStatus":"CREATING",{id}
                    "AttributeDefinitions":[{{"AttributeName":"a","AttributeType":"S"}}],"KeySchema":[{{"AttributeName":"a","KeyType":"HASH"}}]}}}}"#
                )
                .as_bytes(),
            )
        };
        assert_eq!(described(r#""TableId":"1-2","#).unwrap().status, "CREATING");
        assert_eq!(described(r#""CreationDateTime":1500000000.25,"#).unwrap().schema.id, "1500000000.25");
        assert!(described("").is_err());
    }
}
