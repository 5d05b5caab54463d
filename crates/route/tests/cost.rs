//! What it costs to find out what a request names: a body 16 times as long takes not much more than
//! 16 times as long.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use bytes::Bytes;
use heatsink_dynamo::{Operation, wire};
use heatsink_route::{Router, tables_of};
use rustix::time::{ClockId, clock_gettime};

/// Bodies that repeat one of their parts so many times.
fn bodies(count: usize) -> Vec<(Operation, Bytes)> {
    let list = |element: &dyn Fn(usize) -> String| (0..count).map(element).collect::<Vec<_>>().join(",");
    let tables = list(&|at| format!(r#""t{at}":[]"#));
    let puts = list(&|at| format!(r#"{{"Put":{{"TableName":"t{}"}}}}"#, at % 100));
    let repeated = list(&|at| format!(r#""TableName":"t{}""#, at % 90));
    let unknown = list(&|at| format!(r#""m{at}":1"#));
    let names = list(&|at| format!(r##""#a{at}":"a""##));
    let values = list(&|at| format!(r#"":a{at}":{{"S":""}}"#));
    let attributes = list(&|at| format!(r#""a{at}""#));
    let statement = list(&|at| format!("FROM t{at}")).replace(',', " ");
    [
        (Operation::BatchWriteItem, format!(r#"{{"RequestItems":{{{tables}}}}}"#)),
        (Operation::TransactWriteItems, format!(r#"{{"TransactItems":[{puts}]}}"#)),
        (Operation::GetItem, format!("{{{repeated}}}")),
        (Operation::GetItem, format!(r#"{{"TableName":"game",{unknown}}}"#)),
        (Operation::Query, format!(r#"{{"TableName":"game","ExpressionAttributeNames":{{{names}}},"ExpressionAttributeValues":{{{values}}}}}"#)),
        (Operation::GetItem, format!(r#"{{"TableName":"game","AttributesToGet":[{attributes}]}}"#)),
        (Operation::ExecuteStatement, format!(r#"{{"Statement":"{statement}"}}"#)),
    ]
    .map(|(operation, body)| (operation, Bytes::from(body)))
    .into()
}

/// The shortest of a few runs, in seconds that this thread worked.
fn took(work: impl Fn()) -> f64 {
    #[allow(clippy::cast_precision_loss, reason = "seconds of one thread")]
    let worked = || {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
    };
    let once = || {
        let start = worked();
        work();
        worked() - start
    };
    (0..7).map(|_| once()).fold(f64::INFINITY, f64::min)
}

#[test]
fn it_is_linear_in_the_body() {
    for ((operation, short), (_, long)) in bodies(2_500).into_iter().zip(bodies(40_000)) {
        let read = |body: &Bytes| {
            let _ = tables_of(operation, body);
            let _ = wire::check(operation, body);
            let _ = Router::new().plan(operation, body, &sharded::All);
        };
        let (short, long) = (took(|| read(&short)), took(|| read(&long)));
        // Eight times as long; a quadratic pass would take 64 times.
        assert!(
            long < short * 24.0 + 2e-3,
            "{operation:?}: {short} s, then {long} s for eight times as much"
        );
    }
}

/// Every table is sharded.
mod sharded {
    use std::sync::Arc;

    use heatsink_dynamo::{AttributeDefinition, KeySchema, KeyType, TableSchema};
    use heatsink_layout::{By, Hash, InForce, Layout, LayoutSource, Strategy, Table};

    pub struct All;

    impl LayoutSource for All {
        fn table(&self, name: &str) -> Option<Arc<Table>> {
            let attribute = |name: &str| AttributeDefinition { name: name.into(), key_type: KeyType::S };
            let schema = TableSchema {
                name: name.into(),
                id: "1".into(),
                key: KeySchema { partition: attribute("pk"), sort: Some(attribute("sk")) },
                indexes: Vec::new(),
            };
            Some(Arc::new(Table::new(schema, Arc::default())))
        }

        fn in_force(&self, _: &Table, _: &[u8]) -> InForce {
            let strategy = Strategy::calculated(By::SortKey);
            InForce::Stable(Arc::new(Layout { strategy, shards: 4, hash: Hash::JumpXxh3, version: 1 }))
        }

        fn handle(&self) -> Arc<dyn LayoutSource> {
            Arc::new(All)
        }
    }
}
