//! Sends a number of requests through a gateway without HTTP. `benches/instructions` counts what
//! each costs.
//!
//! `requests forwarded|unheated|sharded|ranges|numeric|texts|examined|recorded
//! GetItem|PutItem|BatchGetItem|BatchWriteItem|Query COUNT`. A batch has 25 keys or puts; a Query
//! reads the top 100 of 500 items, which lie in the last of `ranges`. `numeric` is sharded, its partition key a number, and `texts`
//! has the same text as a string. `unheated` counts no heat. `recorded` has a recording (`serve --record`), whose lines nobody
//! writes to a file; `examined` is the same without one. The store repeats its first answer at once,
//! so that only the gateway's work is counted. Long answers to requests that ask what they cost are
//! copies, made beforehand: a store keeps none of its own.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    clippy::disallowed_methods,
    clippy::cast_possible_truncation,
    reason = "a benchmark, with a clock of its own"
)]

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant, SystemTime};

use bytes::Bytes;
use futures::FutureExt;
use futures::executor::block_on;
use futures::future::BoxFuture;
use heatsink_control::{Control, Rules};
use heatsink_dynamo::{Error, Operation};
use heatsink_env::{Env, MonotonicInstant, RealEnv};
use heatsink_gateway::{Limits, Recording, RecordingOptions, Service, Status};
use heatsink_store::Store;
use heatsink_store::embedded::Embedded;

const RULES: &str = "[[rule]]\ntable = \"sharded\"\nstrategy = \"calculated\"\nshards = 10\n\
    [[rule]]\ntable = \"numeric\"\nstrategy = \"calculated\"\nshards = 10\n\
    [[rule]]\ntable = \"texts\"\nstrategy = \"calculated\"\nshards = 10\n\
    [[rule]]\ntable = \"ranges\"\nstrategy = \"range\"\nsplit_at = [\"0000000100\", \"0000000200\", \"0000000300\", \"0000000390\"]\n";

/// Copies of an answer: more than there are requests that ask what they cost.
const COPIES: usize = 600;
const LONG: usize = 4 << 10;
const ASKS: &[u8] = b"ReturnConsumedCapacity";

/// Answers reads and writes of items as it did the first time.
struct Canned {
    store: Embedded,
    /// Compared one by one, the last first: to hash a body takes longer.
    answers: Mutex<Vec<(Bytes, Answers)>>,
}

/// An answer, and copies of it that are given away.
struct Answers {
    first: Bytes,
    copies: Vec<Bytes>,
}

impl Answers {
    fn of(request: &[u8], first: Bytes) -> Self {
        let asks = first.len() > LONG && request.windows(ASKS.len()).any(|part| part == ASKS);
        let copies = if asks { COPIES } else { 0 };
        Answers { copies: (0..copies).map(|_| Bytes::copy_from_slice(&first)).collect(), first }
    }

    fn next(&mut self) -> Bytes {
        self.copies.pop().unwrap_or_else(|| self.first.clone())
    }
}

impl Store for Canned {
    fn call(&self, operation: Operation, body: Bytes) -> BoxFuture<'_, Result<Bytes, Error>> {
        let repeated = [
            Operation::GetItem,
            Operation::PutItem,
            Operation::BatchGetItem,
            Operation::BatchWriteItem,
            Operation::Query,
        ];
        if !repeated.contains(&operation) {
            return self.store.call(operation, body);
        }
        let mut answers = self.answers.lock().unwrap();
        if let Some((_, answers)) = answers.iter_mut().rev().find(|(of, _)| *of == body) {
            return futures::future::ready(Ok(answers.next())).boxed();
        }
        drop(answers);
        async move {
            let answer = self.store.call(operation, body.clone()).await?;
            let mut answers = Answers::of(&body, answer);
            let answer = answers.next();
            self.answers.lock().unwrap().push((body, answers));
            Ok(answer)
        }
        .boxed()
    }
}

/// The clock by the standard library: the product's asks the kernel in a way that valgrind does not
/// know. It counts microseconds as nanoseconds: under valgrind on a busy machine, no lease must run
/// out.
struct Clock(Instant);

impl Env for Clock {
    fn now(&self) -> MonotonicInstant {
        MonotonicInstant(self.0.elapsed().as_micros() as u64)
    }

    fn unix_millis(&self) -> u64 {
        SystemTime::UNIX_EPOCH.elapsed().unwrap().as_millis() as u64
    }

    fn random(&self) -> u64 {
        RealEnv.random()
    }

    fn sleep(&self, pause: Duration) -> BoxFuture<'static, ()> {
        RealEnv.sleep(pause)
    }
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [table, operation, count] = arguments.as_slice() else { panic!("which table, operation, how many") };
    let store: Arc<dyn Store> =
        Arc::new(Canned { store: Embedded::memory().unwrap(), answers: Mutex::default() });
    let env = Arc::new(Clock(Instant::now()));
    let rules = Rules::read("rules", RULES).unwrap();
    let control = block_on(Control::start(Arc::clone(&store), Arc::clone(&env) as _, rules)).unwrap();
    let mut service = Service::new(store, control, Arc::clone(&env) as _, Limits::default(), "us-east-1");
    if table == "unheated" {
        service = service.without_heat(&*env);
    }
    if table == "recorded" {
        let options = RecordingOptions { one_in: 1, hashed: false, secret: [0; 4] };
        service = service.with_recording(Arc::new(Recording::new(options, &*env)));
    }
    let (kind, key) = match table.as_str() {
        "numeric" => ("N", "1718000000123"),
        "texts" => ("S", "1718000000123"),
        _ => ("S", "game"),
    };
    let game = format!(r#"{{"{kind}":"{key}"}}"#);
    let create = format!(
        r#"{{"TableName":"{table}","BillingMode":"PAY_PER_REQUEST","AttributeDefinitions":[{{"AttributeName":"pk","AttributeType":"{kind}"}},
        {{"AttributeName":"sk","AttributeType":"S"}}],"KeySchema":[{{"AttributeName":"pk","KeyType":"HASH"}},{{"AttributeName":"sk","KeyType":"RANGE"}}]}}"#
    );
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        service.call(Operation::CreateTable, Bytes::from(create)).await.unwrap();
        let note = "lorem ipsum dolor sit amet ".repeat(12);
        let key = format!(r#""pk":{game},"sk":{{"S":"0000000123#player_123"}}"#);
        let put = Bytes::from(format!(
            r#"{{"TableName":"{table}","Item":{{{key},"score":{{"N":"123"}},"note":{{"S":"{note}"}}}}}}"#
        ));
        service.call(Operation::PutItem, put.clone()).await.unwrap();
        // It does not end; by then it has the keys of the table, so that heat is counted.
        let _ = tokio::time::timeout(Duration::from_secs(3), Status::of(&service).keep_heat()).await;
        let get = Bytes::from(format!(r#"{{"TableName":"{table}","Key":{{{key}}}}}"#));
        let (operation, body) = match operation.as_str() {
            "PutItem" => (Operation::PutItem, put),
            "BatchGetItem" => {
                let key = |at: u32| format!(r#"{{"pk":{game},"sk":{{"S":"{at:010}#player_{at}"}}}}"#);
                let keys: Vec<String> = (111..136).map(key).collect();
                let keys = keys.join(",");
                let batch = format!(r#"{{"RequestItems":{{"{table}":{{"Keys":[{keys}]}}}}}}"#);
                (Operation::BatchGetItem, Bytes::from(batch))
            }
            "BatchWriteItem" => {
                let put = |at: u32| {
                    format!(
                        r#"{{"PutRequest":{{"Item":{{"pk":{game},"sk":{{"S":"{at:010}#player_{at}"}},"note":{{"S":"{note}"}}}}}}}}"#
                    )
                };
                let puts: Vec<String> = (111..136).map(put).collect();
                let batch = format!(r#"{{"RequestItems":{{"{table}":[{}]}}}}"#, puts.join(","));
                (Operation::BatchWriteItem, Bytes::from(batch))
            }
            "Query" => {
                for at in 0..500 {
                    let put = format!(
                        r#"{{"TableName":"{table}","Item":{{"pk":{game},"sk":{{"S":"{at:010}#player_{at}"}},"note":{{"S":"{note}"}}}}}}"#
                    );
                    service.call(Operation::PutItem, Bytes::from(put)).await.unwrap();
                }
                let query = format!(
                    r#"{{"TableName":"{table}","KeyConditionExpression":"pk = :g","ExpressionAttributeValues":{{":g":{game}}},
                    "ScanIndexForward":false,"Limit":100}}"#
                );
                (Operation::Query, Bytes::from(query))
            }
            _ => (Operation::GetItem, get),
        };
        for _ in 0..count.parse().unwrap() {
            service.call(operation, body.clone()).await.unwrap();
        }
    });
}
