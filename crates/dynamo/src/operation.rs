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

/// What a client needs a right to, for an operation. But for the two that say otherwise the right is
/// of the operation's own name, as IAM has it ("Actions, resources, and condition keys for Amazon
/// DynamoDB", Service Authorization Reference).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RightTo {
    /// The items whose keys it gives, of each of its tables.
    Keys,
    /// Whatever items a table or an index has: it may give a partition key or not.
    Collection,
    /// What each element of a transaction does, under its own name.
    Actions,
    /// What each of its statements does, under PartiQL's names.
    Statements,
    /// The stream of a table, which has the items of all keys.
    Stream,
    /// Each table that it names as a whole, or a backup, an export, an import of one; where it
    /// names none, the account.
    Table,
    /// The account: it names no table.
    Account,
}

macro_rules! operations {
    ($($name:ident: $service:ident, $subject:ident, $effect:ident, $right:ident;)*) => {
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

            /// What a client needs a right to.
            pub const fn right_to(self) -> RightTo {
                match self { $(Operation::$name => RightTo::$right),* }
            }
        }
    };
}

operations! {
    BatchExecuteStatement: Tables, Items, Puts, Statements;
    BatchGetItem: Tables, Items, Reads, Keys;
    BatchWriteItem: Tables, Items, Puts, Keys;
    CreateBackup: Tables, Settings, Changes, Table;
    CreateGlobalTable: Tables, Account, Changes, Table;
    CreateTable: Tables, Settings, Changes, Table;
    DeleteBackup: Tables, Account, Changes, Table;
    DeleteItem: Tables, OneItem, Changes, Keys;
    DeleteResourcePolicy: Tables, Account, Changes, Table;
    DeleteTable: Tables, Settings, Changes, Table;
    DescribeBackup: Tables, Settings, Reads, Table;
    DescribeContinuousBackups: Tables, Settings, Reads, Table;
    DescribeContributorInsights: Tables, Settings, Reads, Table;
    DescribeEndpoints: Tables, Settings, Reads, Account;
    DescribeExport: Tables, Settings, Reads, Table;
    DescribeGlobalTable: Tables, Settings, Reads, Table;
    DescribeGlobalTableSettings: Tables, Settings, Reads, Table;
    DescribeImport: Tables, Settings, Reads, Table;
    DescribeKinesisStreamingDestination: Tables, Settings, Reads, Table;
    DescribeLimits: Tables, Settings, Reads, Account;
    DescribeStream: Streams, Settings, Reads, Stream;
    DescribeTable: Tables, Settings, Reads, Table;
    DescribeTableReplicaAutoScaling: Tables, Settings, Reads, Table;
    DescribeTimeToLive: Tables, Settings, Reads, Table;
    DisableKinesisStreamingDestination: Tables, Account, Changes, Table;
    EnableKinesisStreamingDestination: Tables, Account, Changes, Table;
    ExecuteStatement: Tables, OneItem, Puts, Statements;
    ExecuteTransaction: Tables, Items, Puts, Statements;
    ExportTableToPointInTime: Tables, Account, Changes, Table;
    GetItem: Tables, OneItem, Reads, Keys;
    GetRecords: Streams, Items, Reads, Stream;
    GetResourcePolicy: Tables, Settings, Reads, Table;
    GetShardIterator: Streams, Items, Reads, Stream;
    ImportTable: Tables, Account, Changes, Table;
    ListBackups: Tables, Settings, Reads, Table;
    ListContributorInsights: Tables, Settings, Reads, Table;
    ListExports: Tables, Settings, Reads, Table;
    ListGlobalTables: Tables, Settings, Reads, Table;
    ListImports: Tables, Settings, Reads, Table;
    ListStreams: Streams, Settings, Reads, Stream;
    ListTables: Tables, Settings, Reads, Account;
    ListTagsOfResource: Tables, Settings, Reads, Table;
    PutItem: Tables, OneItem, Puts, Keys;
    PutResourcePolicy: Tables, Account, Changes, Table;
    Query: Tables, Items, Reads, Collection;
    RestoreTableFromBackup: Tables, Settings, Changes, Table;
    RestoreTableToPointInTime: Tables, Settings, Changes, Table;
    Scan: Tables, Items, Reads, Collection;
    SearchVectors: Tables, Items, Reads, Collection;
    TagResource: Tables, Settings, Changes, Table;
    TransactGetItems: Tables, Items, Reads, Actions;
    TransactWriteItems: Tables, Items, Puts, Actions;
    UntagResource: Tables, Settings, Changes, Table;
    UpdateContinuousBackups: Tables, Account, Changes, Table;
    UpdateContributorInsights: Tables, Settings, Changes, Table;
    UpdateGlobalTable: Tables, Account, Changes, Table;
    UpdateGlobalTableSettings: Tables, Account, Changes, Table;
    UpdateItem: Tables, OneItem, Puts, Keys;
    UpdateKinesisStreamingDestination: Tables, Account, Changes, Table;
    UpdateTable: Tables, Settings, Changes, Table;
    UpdateTableReplicaAutoScaling: Tables, Account, Changes, Table;
    UpdateTimeToLive: Tables, Settings, Changes, Table;
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
