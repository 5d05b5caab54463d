//! What the store says of a table: its schema, and whether it can be used yet.

use heatsink_dynamo::{Error, TableSchema, json};

/// A table as the store described it.
#[derive(Clone, Debug)]
pub(crate) struct Described {
    pub schema: TableSchema,
    /// `ACTIVE`, `CREATING`, `DELETING`, …; empty where the store does not say.
    pub status: String,
    /// How AWS names it; `None` where the store does not say.
    pub arn: Option<String>,
}

/// Reads an answer of `DescribeTable`, or of `CreateTable`, `UpdateTable`, `DeleteTable`.
///
/// # Errors
/// `InternalServerError` when the store's answer is not such a description, or gives the table neither id nor creation time.
pub(crate) fn answer(body: &[u8]) -> Result<Described, Error> {
    let schema = TableSchema::from_description(body)?;
    if schema.id.is_empty() {
        return Err(Error::internal(format!(
            "The store gives table {} neither TableId nor CreationDateTime, so it cannot be told from another of its name",
            schema.name
        )));
    }
    Ok(Described {
        schema,
        status: text(body, "TableStatus").unwrap_or_default(),
        arn: text(body, "TableArn"),
    })
}

fn text(body: &[u8], name: &str) -> Option<String> {
    let member = |name| json::member(body, name).ok().flatten();
    let table = member("Table").or_else(|| member("TableDescription"))?;
    let text = json::member(table, name).ok().flatten()?;
    json::string(text).ok().map(std::borrow::Cow::into_owned)
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
