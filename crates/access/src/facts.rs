//! What a judgement has to know of a table.

/// What is known of a table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableFacts {
    /// The name of its partition key attribute.
    pub partition_key: String,
    /// Its ARN, if the store says.
    pub arn: Option<String>,
}
