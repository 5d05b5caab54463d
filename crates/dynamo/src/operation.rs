//! The operations of DynamoDB's wire protocol, by name.

macro_rules! operations {
    ($($name:ident),* $(,)?) => {
        /// An operation of the DynamoDB or DynamoDB Streams API (service model 2012-08-10).
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[allow(missing_docs, reason = "the names are AWS's own")]
        pub enum Operation { $($name),* }

        impl Operation {
            /// Every operation known here.
            pub const ALL: &'static [Operation] = &[$(Operation::$name),*];

            /// The name as it stands in `X-Amz-Target` after the dot.
            pub const fn name(self) -> &'static str {
                match self { $(Operation::$name => stringify!($name)),* }
            }

            /// The operation of that name.
            pub fn by_name(name: &str) -> Option<Operation> {
                match name { $(stringify!($name) => Some(Operation::$name),)* _ => None }
            }
        }
    };
}

operations! {
    BatchExecuteStatement, BatchGetItem, BatchWriteItem, CreateBackup, CreateGlobalTable, CreateTable, DeleteBackup,
    DeleteItem, DeleteResourcePolicy, DeleteTable, DescribeBackup, DescribeContinuousBackups,
    DescribeContributorInsights, DescribeEndpoints, DescribeExport, DescribeGlobalTable,
    DescribeGlobalTableSettings, DescribeImport, DescribeKinesisStreamingDestination, DescribeLimits,
    DescribeStream, DescribeTable, DescribeTableReplicaAutoScaling, DescribeTimeToLive,
    DisableKinesisStreamingDestination, EnableKinesisStreamingDestination, ExecuteStatement, ExecuteTransaction,
    ExportTableToPointInTime, GetItem, GetRecords, GetResourcePolicy, GetShardIterator, ImportTable, ListBackups,
    ListContributorInsights, ListExports, ListGlobalTables, ListImports, ListStreams, ListTables,
    ListTagsOfResource, PutItem, PutResourcePolicy, Query, RestoreTableFromBackup, RestoreTableToPointInTime, Scan,
    SearchVectors, TagResource, TransactGetItems, TransactWriteItems, UntagResource, UpdateContinuousBackups,
    UpdateContributorInsights, UpdateGlobalTable, UpdateGlobalTableSettings, UpdateItem,
    UpdateKinesisStreamingDestination, UpdateTable, UpdateTableReplicaAutoScaling, UpdateTimeToLive,
}

const DYNAMODB: &str = "DynamoDB_20120810.";
const STREAMS: &str = "DynamoDBStreams_20120810.";

impl Operation {
    /// Reads an `X-Amz-Target` header: `DynamoDB_20120810.PutItem`. `None` for what DynamoDB answers with
    /// `UnknownOperationException`.
    pub fn from_target(target: &str) -> Option<Operation> {
        let name = target.strip_prefix(DYNAMODB).or_else(|| target.strip_prefix(STREAMS))?;
        Operation::by_name(name)
    }

    /// The `X-Amz-Target` header that asks for this operation.
    pub fn target(self) -> String {
        let prefix = if self.is_streams() { STREAMS } else { DYNAMODB };
        format!("{prefix}{}", self.name())
    }

    /// Whether the operation belongs to the DynamoDB Streams service.
    pub const fn is_streams(self) -> bool {
        matches!(
            self,
            Operation::DescribeStream
                | Operation::GetRecords
                | Operation::GetShardIterator
                | Operation::ListStreams
        )
    }

    /// Whether the operation acts on the AWS account beyond the tables' own items and settings: it grants access, sends data to
    /// other places or takes it from there, or deletes what lost data could be restored from.
    pub const fn acts_on_account(self) -> bool {
        matches!(
            self,
            Operation::CreateGlobalTable
                | Operation::DeleteBackup
                | Operation::DeleteResourcePolicy
                | Operation::DisableKinesisStreamingDestination
                | Operation::EnableKinesisStreamingDestination
                | Operation::ExportTableToPointInTime
                | Operation::ImportTable
                | Operation::PutResourcePolicy
                | Operation::UpdateContinuousBackups
                | Operation::UpdateGlobalTable
                | Operation::UpdateGlobalTableSettings
                | Operation::UpdateKinesisStreamingDestination
                | Operation::UpdateTableReplicaAutoScaling
        )
    }

    /// Whether it changes nothing, so that nobody misses it when it is not carried out, or carried out twice. Those not named here may
    /// change something: statements, above all, are known only by their text.
    pub const fn only_reads(self) -> bool {
        matches!(
            self,
            Operation::BatchGetItem
                | Operation::DescribeEndpoints
                | Operation::DescribeLimits
                | Operation::DescribeStream
                | Operation::DescribeTable
                | Operation::DescribeTimeToLive
                | Operation::GetItem
                | Operation::GetRecords
                | Operation::GetShardIterator
                | Operation::ListStreams
                | Operation::ListTables
                | Operation::ListTagsOfResource
                | Operation::Query
                | Operation::Scan
                | Operation::SearchVectors
                | Operation::TransactGetItems
        )
    }

    /// Whether requests or answers hold items or keys of tables, or lead to them as a shard iterator does. An operation that is
    /// missing here is forwarded on sharded tables, with logical keys.
    pub const fn touches_items(self) -> bool {
        matches!(
            self,
            Operation::BatchExecuteStatement
                | Operation::BatchGetItem
                | Operation::BatchWriteItem
                | Operation::DeleteItem
                | Operation::ExecuteStatement
                | Operation::ExecuteTransaction
                | Operation::GetItem
                | Operation::GetRecords
                | Operation::GetShardIterator
                | Operation::PutItem
                | Operation::Query
                | Operation::Scan
                | Operation::SearchVectors
                | Operation::TransactGetItems
                | Operation::TransactWriteItems
                | Operation::UpdateItem
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_touches_items_or_is_known_not_to() {
        // A new operation fails this test until somebody has decided: one that touches items and is not listed loses data on sharded tables.
        let without_items = Operation::ALL.iter().filter(|operation| !operation.touches_items());
        let known = [
            "CreateBackup",
            "CreateGlobalTable",
            "CreateTable",
            "DeleteBackup",
            "DeleteResourcePolicy",
            "DeleteTable",
            "DescribeBackup",
            "DescribeContinuousBackups",
            "DescribeContributorInsights",
            "DescribeEndpoints",
            "DescribeExport",
            "DescribeGlobalTable",
            "DescribeGlobalTableSettings",
            "DescribeImport",
            "DescribeKinesisStreamingDestination",
            "DescribeLimits",
            "DescribeStream",
            "DescribeTable",
            "DescribeTableReplicaAutoScaling",
            "DescribeTimeToLive",
            "DisableKinesisStreamingDestination",
            "EnableKinesisStreamingDestination",
            "ExportTableToPointInTime",
            "GetResourcePolicy",
            "ImportTable",
            "ListBackups",
            "ListContributorInsights",
            "ListExports",
            "ListGlobalTables",
            "ListImports",
            "ListStreams",
            "ListTables",
            "ListTagsOfResource",
            "PutResourcePolicy",
            "RestoreTableFromBackup",
            "RestoreTableToPointInTime",
            "TagResource",
            "UntagResource",
            "UpdateContinuousBackups",
            "UpdateContributorInsights",
            "UpdateGlobalTable",
            "UpdateGlobalTableSettings",
            "UpdateKinesisStreamingDestination",
            "UpdateTable",
            "UpdateTableReplicaAutoScaling",
            "UpdateTimeToLive",
        ];
        let named: Vec<&str> = without_items.map(|operation| operation.name()).collect();
        assert_eq!(named, known);
    }

    #[test]
    fn every_target_reads_back() {
        for operation in Operation::ALL {
            assert_eq!(Operation::from_target(&operation.target()), Some(*operation));
        }
        assert_eq!(Operation::from_target("DynamoDB_20120810.Nope"), None);
        assert_eq!(Operation::from_target("GetItem"), None);
    }
}
