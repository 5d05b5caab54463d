//! Scan, of a table or an index, parallel or not: one physical Scan; keys in cursors and items are translated.

use std::sync::Arc;

use bytes::Bytes;
use heatsink_dynamo::{AttributeDefinition, Error, Operation, TableSchema, json};
use heatsink_layout::LayoutSource;

use crate::answer::{rewrite, strip_object};
use crate::key::{Lost, locate};
use crate::mention::mentioning;
use crate::plan::{Plan, Single};
use crate::request::Request;
use crate::splice::Splice;

const WHY: &str =
    "a scan reads all physical keys anyway: one physical request, keys in cursor and items translated";

/// The plan of a Scan of a recorded table.
pub(crate) fn plan(
    request: &Request<'_>,
    schema: &Arc<TableSchema>,
    layouts: &dyn LayoutSource,
) -> Result<Plan, Error> {
    let name = &schema.key.partition.name;
    if !mentioning(request, &["FilterExpression"], name)?.is_empty() {
        return Err(Error::validation(format!(
            "Expressions that mention the partition key {name} are not supported on the sharded table {} yet",
            schema.name
        )));
    }
    let mut splice = Splice::new(request.body);
    start_key(request, schema, layouts, &mut splice)?;
    let body = splice.finish(request.body);
    let partition = schema.key.partition.clone();
    let finish = move |answer: Result<Bytes, Error>| {
        let body = answer?;
        rewrite(Operation::Scan, &body, |splice| logical(&partition, &body, splice))
    };
    Ok(Single::new(Operation::Scan, body, Some(Box::new(finish)), WHY).plan())
}

/// Makes `ExclusiveStartKey` physical: it holds the table's primary key, on an index too.
fn start_key<'a>(
    request: &Request<'a>,
    schema: &TableSchema,
    layouts: &dyn LayoutSource,
    splice: &mut Splice<'a>,
) -> Result<(), Error> {
    let Some(start) = request.get("ExclusiveStartKey") else { return Ok(()) };
    match locate(schema, layouts, start) {
        Ok(located) => {
            located.partition.append(&located.suffix, splice);
            Ok(())
        }
        // DynamoDB's words for a start key that is no key of the table.
        Err(Lost::Invalid) => Err(Error::validation("The provided starting key is invalid")),
        Err(Lost::Refused(error)) => Err(error),
    }
}

/// Makes every key of a page logical.
pub(crate) fn logical<'a>(
    partition: &AttributeDefinition,
    body: &'a [u8],
    splice: &mut Splice<'a>,
) -> Result<(), json::Malformed> {
    let [items, last] = json::attributes_of(body, ["Items", "LastEvaluatedKey"])?;
    if let Some(items) = items.filter(|raw| *raw != b"null") {
        for item in json::elements(items)? {
            strip_object(partition, item, splice)?;
        }
    }
    last.map_or(Ok(()), |key| strip_object(partition, key, splice))
}
