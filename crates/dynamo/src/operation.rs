//! The operations of DynamoDB's wire protocol, by name, and the facts about each that others go by.
//! They stand here and nowhere else.

/// The service that takes an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Service {
    Tables,
    Streams,
}

/// What an operation is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Subject {
    /// One item. A statement counts as one: it names one item, or is a SELECT.
    OneItem,
    /// Items or keys of tables, or what leads to them as a shard iterator does.
    Items,
    /// Tables, their settings, and lists of them.
    Settings,
    /// The AWS account beyond that: who has access, where data is sent or taken from, what lost
    /// data is restored from.
    Account,
}

/// What an operation can do to its subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Effect {
    Reads,
    /// May put an item where none was. Statements do: they are known only by their text.
    Puts,
    /// Changes or deletes, but puts no item.
    Changes,
}

macro_rules! operations {
    ($($name:ident: $service:ident, $subject:ident, $effect:ident;)*) => {
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

            const fn facts(self) -> (Service, Subject, Effect) {
                match self { $(Operation::$name => (Service::$service, Subject::$subject, Effect::$effect)),* }
            }
        }
    };
}

operations! {
    BatchExecuteStatement: Tables, Items, Puts;
    BatchGetItem: Tables, Items, Reads;
    BatchWriteItem: Tables, Items, Puts;
    CreateBackup: Tables, Settings, Changes;
    CreateGlobalTable: Tables, Account, Changes;
    CreateTable: Tables, Settings, Changes;
    DeleteBackup: Tables, Account, Changes;
    DeleteItem: Tables, OneItem, Changes;
    DeleteResourcePolicy: Tables, Account, Changes;
    DeleteTable: Tables, Settings, Changes;
    DescribeBackup: Tables, Settings, Reads;
    DescribeContinuousBackups: Tables, Settings, Reads;
    DescribeContributorInsights: Tables, Settings, Reads;
    DescribeEndpoints: Tables, Settings, Reads;
    DescribeExport: Tables, Settings, Reads;
    DescribeGlobalTable: Tables, Settings, Reads;
    DescribeGlobalTableSettings: Tables, Settings, Reads;
    DescribeImport: Tables, Settings, Reads;
    DescribeKinesisStreamingDestination: Tables, Settings, Reads;
    DescribeLimits: Tables, Settings, Reads;
    DescribeStream: Streams, Settings, Reads;
    DescribeTable: Tables, Settings, Reads;
    DescribeTableReplicaAutoScaling: Tables, Settings, Reads;
    DescribeTimeToLive: Tables, Settings, Reads;
    DisableKinesisStreamingDestination: Tables, Account, Changes;
    EnableKinesisStreamingDestination: Tables, Account, Changes;
    ExecuteStatement: Tables, OneItem, Puts;
    ExecuteTransaction: Tables, Items, Puts;
    ExportTableToPointInTime: Tables, Account, Changes;
    GetItem: Tables, OneItem, Reads;
    GetRecords: Streams, Items, Reads;
    GetResourcePolicy: Tables, Settings, Reads;
    GetShardIterator: Streams, Items, Reads;
    ImportTable: Tables, Account, Changes;
    ListBackups: Tables, Settings, Reads;
    ListContributorInsights: Tables, Settings, Reads;
    ListExports: Tables, Settings, Reads;
    ListGlobalTables: Tables, Settings, Reads;
    ListImports: Tables, Settings, Reads;
    ListStreams: Streams, Settings, Reads;
    ListTables: Tables, Settings, Reads;
    ListTagsOfResource: Tables, Settings, Reads;
    PutItem: Tables, OneItem, Puts;
    PutResourcePolicy: Tables, Account, Changes;
    Query: Tables, Items, Reads;
    RestoreTableFromBackup: Tables, Settings, Changes;
    RestoreTableToPointInTime: Tables, Settings, Changes;
    Scan: Tables, Items, Reads;
    SearchVectors: Tables, Items, Reads;
    TagResource: Tables, Settings, Changes;
    TransactGetItems: Tables, Items, Reads;
    TransactWriteItems: Tables, Items, Puts;
    UntagResource: Tables, Settings, Changes;
    UpdateContinuousBackups: Tables, Account, Changes;
    UpdateContributorInsights: Tables, Settings, Changes;
    UpdateGlobalTable: Tables, Account, Changes;
    UpdateGlobalTableSettings: Tables, Account, Changes;
    UpdateItem: Tables, OneItem, Puts;
    UpdateKinesisStreamingDestination: Tables, Account, Changes;
    UpdateTable: Tables, Settings, Changes;
    UpdateTableReplicaAutoScaling: Tables, Account, Changes;
    UpdateTimeToLive: Tables, Settings, Changes;
}

const DYNAMODB: &str = "DynamoDB_20120810.";
const STREAMS: &str = "DynamoDBStreams_20120810.";

impl Operation {
    /// Reads an `X-Amz-Target` header: `DynamoDB_20120810.PutItem`. `None` for what DynamoDB
    /// answers with `UnknownOperationException`.
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
        matches!(self.facts().0, Service::Streams)
    }

    /// Whether the operation acts on the AWS account beyond the tables' own items and settings: it
    /// grants access, sends data to other places or takes it from there, or deletes what lost data
    /// could be restored from.
    pub const fn acts_on_account(self) -> bool {
        matches!(self.facts().1, Subject::Account)
    }

    /// Whether it changes nothing, so that nobody misses it when it is not carried out, or carried
    /// out twice. Statements count as writes: they are known only by their text.
    pub const fn only_reads(self) -> bool {
        matches!(self.facts().2, Effect::Reads)
    }

    /// Whether requests or answers hold items or keys of tables, or lead to them as a shard
    /// iterator does. An operation for which this is false is forwarded on sharded tables, with
    /// logical keys.
    pub const fn touches_items(self) -> bool {
        matches!(self.facts().1, Subject::OneItem | Subject::Items)
    }

    /// Whether its answers come in pages of items or names, each with the position of the next.
    pub const fn gives_pages(self) -> bool {
        matches!(
            self,
            Operation::Query | Operation::Scan | Operation::ExecuteStatement | Operation::ListTables
        )
    }

    /// Whether it can put an item where none was.
    pub const fn can_put(self) -> bool {
        matches!(self.facts().2, Effect::Puts)
    }

    /// Whether it writes one item, outside a batch or a transaction.
    pub const fn writes_one_item(self) -> bool {
        matches!(self.facts(), (_, Subject::OneItem, Effect::Puts | Effect::Changes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_operation_touches_items_or_is_known_not_to() {
        // A new operation fails this test until somebody has decided: one that touches items and is
        // not listed loses data on sharded tables.
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
    fn what_describes_lists_or_gets_only_reads() {
        for operation in Operation::ALL {
            let asks = ["Describe", "Get", "List"].iter().any(|verb| operation.name().starts_with(verb));
            assert!(operation.only_reads() || !asks, "{}", operation.name());
            assert!(!(operation.only_reads() && operation.can_put()), "{}", operation.name());
        }
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
