//! The cost of the fence for one request on a known table: the look-up in the table cache, and the pass from the first call to the result.
#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark fails by panicking")]

use std::hint::black_box;
use std::sync::Arc;

use bytes::Bytes;
use criterion::{Criterion, criterion_group, criterion_main};
use futures::executor::block_on;
use heatsink_control::{Control, Rules};
use heatsink_dynamo::{Error, Operation};
use heatsink_env::{Env, RealEnv};
use heatsink_store::embedded::Embedded;
use heatsink_store::{Permit, Store};

const RULES: &str =
    "[[rule]]\ntable = \"Tab\"\nstrategy = \"calculated\"\nshards = 4\n[fence]\nlease = \"3600s\"\n";
const TABLE: &str = r#"{"TableName":"Tab","BillingMode":"PAY_PER_REQUEST",
    "AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"sk","AttributeType":"S"}],
    "KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}]}"#;

fn fence(criterion: &mut Criterion) {
    let store: Arc<dyn Store> = Arc::new(Embedded::memory().unwrap());
    block_on(store.call(Operation::CreateTable, Bytes::from(TABLE))).unwrap();
    let rules = Rules::read("rules", RULES).unwrap();
    let control = block_on(Control::start(store, Arc::new(RealEnv), rules)).unwrap();
    // The lease must hold to the end: an error costs more than a pass.
    let keeping = control.clone();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.spawn(async move { keeping.keep().await });
    criterion.bench_function("resolve, with admission", |bench| {
        bench.iter(|| block_on(control.resolve(black_box(&["Tab"]))).unwrap());
    });
    criterion.bench_function("send one call and deliver its result", |bench| {
        // Once it lasts longer than what is known does, the pass is a new one.
        let pass = block_on(control.resolve(&["Tab"])).unwrap();
        let answer: Result<(), Error> = Ok(());
        bench.iter(|| {
            let sending = pass.send(true);
            black_box(&sending).check().unwrap();
            sending.answered(black_box(&answer));
            black_box(pass.deliver(answer.clone()))
        });
    });
    criterion.bench_function("one reading of the clock", |bench| bench.iter(|| black_box(RealEnv.now())));
}

criterion_group!(benches, fence);
criterion_main!(benches);
