//! The cost of the fence for one request on a known table: the look-up in the table cache, and the
//! pass from the first call to the result.
#![allow(clippy::unwrap_used, missing_docs, reason = "a benchmark fails by panicking")]

use std::hint::black_box;
use std::sync::Arc;

use bytes::Bytes;
use divan::Bencher;
use futures::executor::block_on;
use heatsink_control::{Control, Rules};
use heatsink_dynamo::{Error, Operation};
use heatsink_env::{Env, MonotonicInstant, RealEnv};
use heatsink_store::embedded::Embedded;
use heatsink_store::{Permit, Store};

const RULES: &str =
    "[[rule]]\ntable = \"Tab\"\nstrategy = \"calculated\"\nshards = 4\n[fence]\nlease = \"3600s\"\n";
const TABLE: &str = r#"{"TableName":"Tab","BillingMode":"PAY_PER_REQUEST",
    "AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"},{"AttributeName":"sk","AttributeType":"S"}],
    "KeySchema":[{"AttributeName":"pk","KeyType":"HASH"},{"AttributeName":"sk","KeyType":"RANGE"}]}"#;

fn started() -> Control {
    let store: Arc<dyn Store> = Arc::new(Embedded::memory().unwrap());
    block_on(store.call(Operation::CreateTable, Bytes::from(TABLE))).unwrap();
    let rules = Rules::read("rules", RULES).unwrap();
    block_on(Control::start(store, Arc::new(RealEnv), rules)).unwrap()
}

/// Runs `bench` while the lease is kept: an error costs more than a pass.
fn keeping(bench: impl FnOnce(&Control)) {
    let control = started();
    let keeping = control.clone();
    let runtime = tokio::runtime::Runtime::new().unwrap();
    runtime.spawn(async move { keeping.keep().await });
    bench(&control);
}

#[divan::bench]
fn resolve_with_admission(bencher: Bencher<'_, '_>) {
    keeping(|control| bencher.bench_local(|| block_on(control.resolve(black_box(&["Tab"]))).unwrap()));
}

#[divan::bench]
fn send_one_call_and_deliver_its_result(bencher: Bencher<'_, '_>) {
    keeping(|control| {
        let pass = block_on(control.resolve(&["Tab"])).unwrap();
        let answer: Result<(), Error> = Ok(());
        bencher.bench_local(|| {
            let sending = pass.send(true);
            black_box(&sending).check().unwrap();
            sending.answered(black_box(&answer));
            black_box(pass.deliver(answer.clone()))
        });
    });
}

#[divan::bench]
fn one_reading_of_the_clock() -> MonotonicInstant {
    RealEnv.now()
}

fn main() {
    divan::main();
}
