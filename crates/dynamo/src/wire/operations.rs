//! The shapes of the operations' requests (service model 2012-08-10).
//!
//! Members stand in the order in which DynamoDB reports them. Table operations are here for their
//! types only.

use super::shape::{List, Map, Member, Named, Shape, Structure, Text, Total, Whole, Wording};
use crate::Operation;

use Shape::{Any, Flag, LaterValue, Value};

const fn words(words: &'static [&'static str]) -> Text {
    Text { least: 0, most: usize::MAX, words, named: Named::Plain }
}

const fn list(of: Shape) -> List {
    List { of, least: 0, most: usize::MAX, wording: Wording::Quoted }
}

const fn map(of: Shape, class: &'static str) -> Map {
    Map { of, class, least: 0, most: usize::MAX, total: Total::Any }
}

const STRING: Shape = Shape::Text(&Text { least: 0, most: usize::MAX, words: &[], named: Named::Plain });
const TABLE: Shape = Shape::Text(&Text { least: 3, most: 255, words: &[], named: Named::Table });
/// A PartiQL statement (service model: `PartiQLStatement`). An empty one is refused by who parses
/// it.
const STATEMENT: Shape = Shape::Text(&Text { least: 0, most: 8192, words: &[], named: Named::Plain });
const TOKEN: Shape = Shape::Text(&Text { least: 1, most: 36, words: &[], named: Named::Plain });
const STREAM: Shape = Shape::Text(&Text { least: 37, most: 1024, words: &[], named: Named::Plain });
const SHARD: Shape = Shape::Text(&Text { least: 28, most: 65, words: &[], named: Named::Plain });
const ITERATOR: Shape = Shape::Text(&Text { least: 1, most: 2048, words: &[], named: Named::Plain });
const SEQUENCE_NUMBER: Shape = Shape::Text(&Text { least: 21, most: 40, words: &[], named: Named::Plain });
const ITERATOR_TYPE: Shape =
    Shape::Text(&words(&["AFTER_SEQUENCE_NUMBER", "LATEST", "AT_SEQUENCE_NUMBER", "TRIM_HORIZON"]));
const CAPACITY: Shape = Shape::Text(&words(&["INDEXES", "TOTAL", "NONE"]));
const METRICS: Shape = Shape::Text(&words(&["SIZE", "NONE"]));
const ON_FAILURE: Shape = Shape::Text(&words(&["ALL_OLD", "NONE"]));
const SELECT: Shape =
    Shape::Text(&words(&["SPECIFIC_ATTRIBUTES", "COUNT", "ALL_ATTRIBUTES", "ALL_PROJECTED_ATTRIBUTES"]));
const RETURN_VALUES: Shape = Shape::Text(&Text {
    least: 0,
    most: usize::MAX,
    words: &["ALL_OLD", "UPDATED_OLD", "ALL_NEW", "UPDATED_NEW", "NONE"],
    named: Named::ReturnValues,
});
const LIMIT: Shape = Shape::Whole(&Whole { class: "Integer", least: 1, most: i64::MAX });
const SEGMENT: Shape = Shape::Whole(&Whole { class: "Integer", least: 0, most: 999_999 });
const SEGMENTS: Shape = Shape::Whole(&Whole { class: "Integer", least: 1, most: 1_000_000 });
const INTEGER: Shape = Shape::Whole(&Whole { class: "Integer", least: i64::MIN, most: i64::MAX });
const LONG: Shape = Shape::Whole(&Whole { class: "Long", least: i64::MIN, most: i64::MAX });
const STRINGS: Shape = Shape::List(&list(STRING));
const SOME_STRINGS: Shape = Shape::List(&List { least: 1, ..list(STRING) });
const ITEM: Shape = Shape::Map(&map(Value, "com.amazonaws.dynamodb.v20120810.AttributeValue"));
const VALUES: Shape = Shape::Map(&map(LaterValue, "com.amazonaws.dynamodb.v20120810.AttributeValue"));
const NAMES: Shape = Shape::Map(&map(STRING, "java.lang.String"));
const VALUE_LIST: Shape = Shape::List(&list(LaterValue));
const CONDITIONS: Shape =
    Shape::Map(&map(Shape::Structure(&CONDITION), "com.amazonaws.dynamodb.v20120810.Condition"));
const EXPECTED: Shape = Shape::Map(&map(
    Shape::Structure(&EXPECTED_ATTRIBUTE_VALUE),
    "com.amazonaws.dynamodb.v20120810.ExpectedAttributeValue",
));
const UPDATES: Shape = Shape::Map(&map(
    Shape::Structure(&ATTRIBUTE_VALUE_UPDATE),
    "com.amazonaws.dynamodb.v20120810.AttributeValueUpdate",
));
const KEY_SCHEMA: Shape = Shape::List(&list(Shape::Structure(&KEY_SCHEMA_ELEMENT)));
const ATTRIBUTES: Shape = Shape::List(&list(Shape::Structure(&ATTRIBUTE_DEFINITION)));
const THROUGHPUT: Shape = Shape::Structure(&PROVISIONED_THROUGHPUT);
const PROJECTED: Shape = Shape::Structure(&PROJECTION);

macro_rules! structures {
    (@need must) => { true };
    (@need may) => { false };
    ($($id:ident = $model:ident { $($need:ident $name:ident: $shape:expr),* $(,)? })*) => {
        $(static $id: Structure = Structure {
            name: stringify!($model),
            members: &[$(Member { name: stringify!($name), required: structures!(@need $need), shape: $shape }),*],
        };)*
    };
}

/// The shape of an operation's request.
pub(super) fn request(operation: Operation) -> &'static Structure {
    match operation {
        Operation::BatchExecuteStatement => &BATCH_EXECUTE_STATEMENT,
        Operation::BatchGetItem => &BATCH_GET_ITEM,
        Operation::BatchWriteItem => &BATCH_WRITE_ITEM,
        Operation::CreateTable => &CREATE_TABLE,
        Operation::DeleteItem => &DELETE_ITEM,
        Operation::DescribeStream => &DESCRIBE_STREAM,
        Operation::GetRecords => &GET_RECORDS,
        Operation::GetShardIterator => &GET_SHARD_ITERATOR,
        Operation::ListStreams => &LIST_STREAMS,
        Operation::DeleteTable | Operation::DescribeTable | Operation::DescribeTimeToLive => &ONE_TABLE,
        Operation::ExecuteStatement => &EXECUTE_STATEMENT,
        Operation::ExecuteTransaction => &EXECUTE_TRANSACTION,
        Operation::GetItem => &GET_ITEM,
        Operation::ListTables => &LIST_TABLES,
        Operation::ListTagsOfResource | Operation::TagResource | Operation::UntagResource => &TAGS,
        Operation::PutItem => &PUT_ITEM,
        Operation::Query => &QUERY,
        Operation::Scan => &SCAN,
        Operation::TransactGetItems => &TRANSACT_GET_ITEMS,
        Operation::TransactWriteItems => &TRANSACT_WRITE_ITEMS,
        Operation::UpdateItem => &UPDATE_ITEM,
        Operation::UpdateTable => &UPDATE_TABLE,
        Operation::UpdateTimeToLive => &UPDATE_TIME_TO_LIVE,
        _ => &ANYTHING,
    }
}

structures! {
    ANYTHING = Request {}
    PUT_ITEM = PutItemInput {
        must TableName: TABLE, must Item: ITEM, may ReturnConsumedCapacity: CAPACITY, may ReturnValues: RETURN_VALUES,
        may ReturnItemCollectionMetrics: METRICS, may ReturnValuesOnConditionCheckFailure: ON_FAILURE,
        may Expected: EXPECTED, may ConditionalOperator: STRING, may ConditionExpression: STRING,
        may ExpressionAttributeNames: NAMES, may ExpressionAttributeValues: VALUES,
    }
    DELETE_ITEM = DeleteItemInput {
        must TableName: TABLE, must Key: ITEM, may ReturnConsumedCapacity: CAPACITY, may ReturnValues: RETURN_VALUES,
        may ReturnItemCollectionMetrics: METRICS, may ReturnValuesOnConditionCheckFailure: ON_FAILURE,
        may Expected: EXPECTED, may ConditionalOperator: STRING, may ConditionExpression: STRING,
        may ExpressionAttributeNames: NAMES, may ExpressionAttributeValues: VALUES,
    }
    // Its other limits are worded in several ways, by how many of them are broken: left to the
    // store.
    UPDATE_ITEM = UpdateItemInput {
        must TableName: TABLE, must Key: ITEM, may ReturnConsumedCapacity: STRING, may ReturnValues: STRING,
        may ReturnItemCollectionMetrics: STRING, may ReturnValuesOnConditionCheckFailure: STRING,
        may AttributeUpdates: UPDATES, may Expected: EXPECTED, may ConditionalOperator: STRING,
        may UpdateExpression: STRING, may ConditionExpression: STRING,
        may ExpressionAttributeNames: NAMES, may ExpressionAttributeValues: VALUES,
    }
    GET_ITEM = GetItemInput {
        must Key: ITEM, must TableName: TABLE, may ReturnConsumedCapacity: CAPACITY, may AttributesToGet: SOME_STRINGS,
        may ConsistentRead: Flag, may ProjectionExpression: STRING, may ExpressionAttributeNames: NAMES,
    }
    QUERY = QueryInput {
        may Limit: LIMIT, may Select: SELECT, may ReturnConsumedCapacity: CAPACITY, must TableName: TABLE,
        may IndexName: STRING, may AttributesToGet: SOME_STRINGS, may ConsistentRead: Flag, may KeyConditions: CONDITIONS,
        may QueryFilter: CONDITIONS, may ConditionalOperator: STRING, may ScanIndexForward: Flag,
        may ExclusiveStartKey: VALUES, may ProjectionExpression: STRING, may FilterExpression: STRING,
        may KeyConditionExpression: STRING, may ExpressionAttributeNames: NAMES, may ExpressionAttributeValues: VALUES,
    }
    SCAN = ScanInput {
        may Limit: LIMIT, may Segment: SEGMENT, may TotalSegments: SEGMENTS, may Select: SELECT,
        may ReturnConsumedCapacity: CAPACITY, must TableName: TABLE,
        may IndexName: STRING, may AttributesToGet: SOME_STRINGS, may ConsistentRead: Flag, may ScanFilter: CONDITIONS,
        may ConditionalOperator: STRING, may ExclusiveStartKey: VALUES, may ProjectionExpression: STRING,
        may FilterExpression: STRING, may ExpressionAttributeNames: NAMES, may ExpressionAttributeValues: VALUES,
    }
    CONDITION = Condition { may ComparisonOperator: STRING, may AttributeValueList: VALUE_LIST, may Exists: Flag }
    EXPECTED_ATTRIBUTE_VALUE = ExpectedAttributeValue {
        may Value: Any, may Exists: Flag, may ComparisonOperator: STRING, may AttributeValueList: Shape::List(&list(Any)),
    }
    ATTRIBUTE_VALUE_UPDATE = AttributeValueUpdate { may Value: Any, may Action: STRING }
    BATCH_GET_ITEM = BatchGetItemInput {
        must RequestItems: Shape::Map(&Map {
            least: 1,
            most: 100,
            total: Total::Keys(100),
            ..map(Shape::Structure(&KEYS_AND_ATTRIBUTES), "com.amazonaws.dynamodb.v20120810.KeysAndAttributes")
        }),
        may ReturnConsumedCapacity: STRING,
    }
    KEYS_AND_ATTRIBUTES = KeysAndAttributes {
        must Keys: Shape::List(&List { least: 1, most: 100, wording: Wording::Unquoted, ..list(ITEM) }),
        may AttributesToGet: SOME_STRINGS, may ConsistentRead: Flag, may ProjectionExpression: STRING,
        may ExpressionAttributeNames: NAMES,
    }
    BATCH_WRITE_ITEM = BatchWriteItemInput {
        must RequestItems: Shape::Map(&Map {
            most: 25,
            total: Total::Writes(25),
            ..map(
                Shape::List(&list(Shape::Structure(&WRITE_REQUEST))),
                "java.util.List<com.amazonaws.dynamodb.v20120810.WriteRequest>",
            )
        }),
        may ReturnConsumedCapacity: STRING, may ReturnItemCollectionMetrics: STRING,
    }
    WRITE_REQUEST = WriteRequest { may PutRequest: Shape::Structure(&PUT_REQUEST), may DeleteRequest: Shape::Structure(&DELETE_REQUEST) }
    PUT_REQUEST = PutRequest { must Item: ITEM }
    DELETE_REQUEST = DeleteRequest { must Key: ITEM }
    TRANSACT_GET_ITEMS = TransactGetItemsInput {
        must TransactItems: Shape::List(&List { least: 1, most: 100, ..list(Shape::Structure(&TRANSACT_GET_ITEM)) }),
        may ReturnConsumedCapacity: STRING,
    }
    TRANSACT_GET_ITEM = TransactGetItem { must Get: Shape::Structure(&GET) }
    GET = Get { must Key: ITEM, must TableName: STRING, may ProjectionExpression: STRING, may ExpressionAttributeNames: NAMES }
    TRANSACT_WRITE_ITEMS = TransactWriteItemsInput {
        must TransactItems: Shape::List(&List { least: 1, most: 100, ..list(Shape::Structure(&TRANSACT_WRITE_ITEM)) }),
        may ClientRequestToken: TOKEN, may ReturnConsumedCapacity: CAPACITY, may ReturnItemCollectionMetrics: METRICS,
    }
    TRANSACT_WRITE_ITEM = TransactWriteItem {
        may ConditionCheck: Shape::Structure(&CONDITION_CHECK), may Put: Shape::Structure(&PUT),
        may Delete: Shape::Structure(&DELETE), may Update: Shape::Structure(&UPDATE),
    }
    CONDITION_CHECK = ConditionCheck {
        must Key: ITEM, must TableName: STRING, must ConditionExpression: STRING, may ExpressionAttributeNames: NAMES,
        may ExpressionAttributeValues: VALUES, may ReturnValuesOnConditionCheckFailure: ON_FAILURE,
    }
    PUT = Put {
        must Item: ITEM, must TableName: STRING, may ConditionExpression: STRING, may ExpressionAttributeNames: NAMES,
        may ExpressionAttributeValues: VALUES, may ReturnValuesOnConditionCheckFailure: ON_FAILURE,
    }
    DELETE = Delete {
        must Key: ITEM, must TableName: STRING, may ConditionExpression: STRING, may ExpressionAttributeNames: NAMES,
        may ExpressionAttributeValues: VALUES, may ReturnValuesOnConditionCheckFailure: ON_FAILURE,
    }
    UPDATE = Update {
        must Key: ITEM, must UpdateExpression: STRING, must TableName: STRING, may ConditionExpression: STRING,
        may ExpressionAttributeNames: NAMES, may ExpressionAttributeValues: VALUES,
        may ReturnValuesOnConditionCheckFailure: ON_FAILURE,
    }
    EXECUTE_STATEMENT = ExecuteStatementInput {
        must Statement: STATEMENT, may Parameters: Shape::List(&list(Any)), may ConsistentRead: Flag, may NextToken: STRING,
        may ReturnConsumedCapacity: STRING, may Limit: INTEGER, may ReturnValuesOnConditionCheckFailure: STRING,
    }
    BATCH_EXECUTE_STATEMENT = BatchExecuteStatementInput {
        must Statements: Shape::List(&List { most: 25, ..list(Shape::Structure(&BATCH_STATEMENT_REQUEST)) }), may ReturnConsumedCapacity: STRING,
    }
    BATCH_STATEMENT_REQUEST = BatchStatementRequest {
        must Statement: STATEMENT, may Parameters: Shape::List(&list(Any)), may ConsistentRead: Flag,
        may ReturnValuesOnConditionCheckFailure: STRING,
    }
    EXECUTE_TRANSACTION = ExecuteTransactionInput {
        must TransactStatements: Shape::List(&List { most: 100, ..list(Shape::Structure(&PARAMETERIZED_STATEMENT)) }),
        may ClientRequestToken: STRING, may ReturnConsumedCapacity: STRING,
    }
    PARAMETERIZED_STATEMENT = ParameterizedStatement {
        must Statement: STATEMENT, may Parameters: Shape::List(&list(Any)), may ReturnValuesOnConditionCheckFailure: STRING,
    }
    DESCRIBE_STREAM = DescribeStreamInput {
        must StreamArn: STREAM, may Limit: LIMIT, may ExclusiveStartShardId: SHARD, may ShardFilter: Shape::Structure(&SHARD_FILTER),
    }
    SHARD_FILTER = ShardFilter { may Type: STRING, may ShardId: SHARD }
    GET_RECORDS = GetRecordsInput { must ShardIterator: ITERATOR, may Limit: LIMIT }
    GET_SHARD_ITERATOR = GetShardIteratorInput {
        must StreamArn: STREAM, must ShardId: SHARD, must ShardIteratorType: ITERATOR_TYPE, may SequenceNumber: SEQUENCE_NUMBER,
    }
    LIST_STREAMS = ListStreamsInput { may TableName: TABLE, may Limit: LIMIT, may ExclusiveStartStreamArn: STREAM }
    ONE_TABLE = DescribeTableInput { may TableName: STRING }
    LIST_TABLES = ListTablesInput { may ExclusiveStartTableName: STRING, may Limit: INTEGER }
    TAGS = TagResourceInput { may ResourceArn: STRING, may Tags: Shape::List(&list(Shape::Structure(&TAG))), may TagKeys: STRINGS, may NextToken: STRING }
    TAG = Tag { may Key: STRING, may Value: STRING }
    UPDATE_TIME_TO_LIVE = UpdateTimeToLiveInput { must TableName: STRING, must TimeToLiveSpecification: Shape::Structure(&TIME_TO_LIVE) }
    TIME_TO_LIVE = TimeToLiveSpecification { must Enabled: Flag, must AttributeName: STRING }
    CREATE_TABLE = CreateTableInput {
        may TableName: STRING, may AttributeDefinitions: ATTRIBUTES, may KeySchema: KEY_SCHEMA,
        may LocalSecondaryIndexes: Shape::List(&list(Shape::Structure(&LOCAL_SECONDARY_INDEX))),
        may GlobalSecondaryIndexes: Shape::List(&list(Shape::Structure(&GLOBAL_SECONDARY_INDEX))),
        may BillingMode: STRING, may ProvisionedThroughput: THROUGHPUT,
        may StreamSpecification: Shape::Structure(&STREAM_SPECIFICATION), may Tags: Shape::List(&list(Shape::Structure(&TAG))),
        may TableClass: STRING, may DeletionProtectionEnabled: Flag,
    }
    UPDATE_TABLE = UpdateTableInput {
        may TableName: STRING, may AttributeDefinitions: ATTRIBUTES, may BillingMode: STRING,
        may ProvisionedThroughput: THROUGHPUT,
        may GlobalSecondaryIndexUpdates: Shape::List(&list(Shape::Structure(&GLOBAL_SECONDARY_INDEX_UPDATE))),
        may StreamSpecification: Shape::Structure(&STREAM_SPECIFICATION), may TableClass: STRING,
        may DeletionProtectionEnabled: Flag,
    }
    ATTRIBUTE_DEFINITION = AttributeDefinition { may AttributeName: STRING, may AttributeType: STRING }
    KEY_SCHEMA_ELEMENT = KeySchemaElement { may AttributeName: STRING, may KeyType: STRING }
    LOCAL_SECONDARY_INDEX = LocalSecondaryIndex { may IndexName: STRING, may KeySchema: KEY_SCHEMA, may Projection: PROJECTED }
    GLOBAL_SECONDARY_INDEX = GlobalSecondaryIndex {
        may IndexName: STRING, may KeySchema: KEY_SCHEMA, may Projection: PROJECTED, may ProvisionedThroughput: THROUGHPUT,
    }
    PROJECTION = Projection { may ProjectionType: STRING, may NonKeyAttributes: STRINGS }
    PROVISIONED_THROUGHPUT = ProvisionedThroughput { may ReadCapacityUnits: LONG, may WriteCapacityUnits: LONG }
    STREAM_SPECIFICATION = StreamSpecification { may StreamEnabled: Flag, may StreamViewType: STRING }
    GLOBAL_SECONDARY_INDEX_UPDATE = GlobalSecondaryIndexUpdate {
        may Create: Shape::Structure(&CREATE_INDEX), may Update: Shape::Structure(&UPDATE_INDEX), may Delete: Shape::Structure(&DELETE_INDEX),
    }
    CREATE_INDEX = CreateGlobalSecondaryIndexAction {
        may IndexName: STRING, may KeySchema: KEY_SCHEMA, may Projection: PROJECTED, may ProvisionedThroughput: THROUGHPUT,
    }
    UPDATE_INDEX = UpdateGlobalSecondaryIndexAction { may IndexName: STRING, may ProvisionedThroughput: THROUGHPUT }
    DELETE_INDEX = DeleteGlobalSecondaryIndexAction { may IndexName: STRING }
}
