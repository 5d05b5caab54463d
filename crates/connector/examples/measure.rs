//! Compares the SDK over the connector with the SDK over loopback: requests a second, and processor
//! time of client and gateway together. `benches/connector` runs it, built as programs are.
//!
//! `measure [SECONDS] [ROUNDS] [TASKS]`. Both doors stand before one store in memory, in this
//! process, on two threads. Rounds of the contenders alternate; ratios are of one round. Over
//! loopback the SDK has the HTTP client of `heatsink-store` (hyper, HTTP/1.1, connections kept),
//! which is thinner than the SDK's own.
#![allow(
    clippy::unwrap_used,
    clippy::disallowed_methods,
    clippy::cast_precision_loss,
    reason = "a benchmark, with a clock of its own"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use aws_sdk_dynamodb::Client;
use aws_sdk_dynamodb::config::{BehaviorVersion, Builder, Credentials, Region};
use aws_sdk_dynamodb::types::{
    AttributeDefinition, AttributeValue, BillingMode, KeySchemaElement, KeyType, ScalarAttributeType,
};
use futures::future::{join_all, pending};
use heatsink_connector::{Embedded, Heatsink, Store};
use heatsink_gateway::Gateway;
use heatsink_gateway::http::Hosts;
use heatsink_store::upstream::{Network, sdk_http_client};
use rustix::time::{ClockId, clock_gettime};
use tokio::net::TcpListener;

const ITEMS: usize = 500;
const OPERATIONS: [Operation; 3] = [Operation::Get, Operation::Put, Operation::Query];

#[derive(Clone, Copy, Debug)]
enum Operation {
    /// One of the items.
    Get,
    /// One of them again, 400 B.
    Put,
    /// The top 100.
    Query,
}

/// Rate and processor time of one contender in one round.
#[derive(Clone, Copy)]
struct Figures {
    per_second: f64,
    cpu_micros: f64,
}

fn main() {
    let numbers: Vec<u64> = std::env::args().skip(1).map(|number| number.parse().unwrap()).collect();
    let number = |at: usize, usual| numbers.get(at).copied().unwrap_or(usual);
    let (seconds, rounds, tasks) = (number(0, 2), number(1, 7), number(2, 16));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    runtime.unwrap().block_on(measure(Duration::from_secs(seconds), rounds, tasks));
}

async fn measure(each: Duration, rounds: u64, tasks: u64) {
    let load = std::fs::read_to_string("/proc/loadavg").unwrap_or_default();
    println!("load average {load}{each:?} a contender and round, {rounds} rounds, {tasks} tasks, 2 threads");
    let store: Arc<dyn Store> = Arc::new(Embedded::memory().unwrap());
    let gateway = Gateway::builder(Arc::clone(&store)).start().await.unwrap();
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(gateway.serve(listener, Hosts::loopback(), pending()));
    let heatsink = Heatsink::over(store).only_gateway().start().await.unwrap();

    let signed = || config().credentials_provider(Credentials::new("x", "y", None, None, "measure"));
    let network = Network::plain().unwrap();
    let loopback = signed().endpoint_url(endpoint).http_client(sdk_http_client(&network));
    let contenders = [
        ("loopback", Client::from_conf(loopback.build())),
        ("connector", Client::from_conf(config().allow_no_auth().http_client(heatsink.connector()).build())),
        ("connector, signed", Client::from_conf(signed().http_client(heatsink.connector()).build())),
    ];
    fill(&contenders[0].1).await;
    for operation in OPERATIONS {
        let mut figures = vec![Vec::new(); contenders.len()];
        for _ in 0..rounds {
            for (at, (_, client)) in contenders.iter().enumerate() {
                figures[at].push(run(client, operation, each, tasks).await);
            }
        }
        for (at, (name, _)) in contenders.iter().enumerate() {
            let of = |figure: fn(&Figures) -> f64| figures[at].iter().map(figure).collect::<Vec<_>>();
            let (rate, cpu) = (middle(of(|one| one.per_second)), middle(of(|one| one.cpu_micros)));
            let ratio = |figure: fn(&Figures) -> f64| {
                let ratios =
                    figures[at].iter().zip(&figures[0]).map(|(one, base)| figure(one) / figure(base));
                let ratios: Vec<f64> = ratios.collect();
                let ends = (
                    ratios.iter().copied().fold(f64::MAX, f64::min),
                    ratios.iter().copied().fold(0.0, f64::max),
                );
                format!("{:.2} ({:.2} to {:.2})", middle(ratios), ends.0, ends.1)
            };
            let (rates, cpus) = (ratio(|one| one.per_second), ratio(|one| one.cpu_micros));
            println!(
                "{operation:?}, {name}: {rate:.0} requests/s, {cpu:.1} µs of processor each; ÷ loopback: {rates}; {cpus}"
            );
        }
    }
}

fn config() -> Builder {
    aws_sdk_dynamodb::Config::builder()
        .behavior_version(BehaviorVersion::latest())
        .region(Region::new("us-east-1"))
}

async fn fill(client: &Client) {
    let mut request = client.create_table().table_name("Scores").billing_mode(BillingMode::PayPerRequest);
    for (key, kind) in [("pk", KeyType::Hash), ("sk", KeyType::Range)] {
        let attribute = AttributeDefinition::builder().attribute_name(key);
        let element = KeySchemaElement::builder().attribute_name(key).key_type(kind);
        request = request
            .attribute_definitions(attribute.attribute_type(ScalarAttributeType::S).build().unwrap())
            .key_schema(element.build().unwrap());
    }
    request.send().await.unwrap();
    for at in 0..ITEMS {
        put(client, at).await;
    }
}

fn text(value: impl Into<String>) -> AttributeValue {
    AttributeValue::S(value.into())
}

fn sort_key(at: usize) -> AttributeValue {
    text(format!("{at:010}#player"))
}

async fn put(client: &Client, at: usize) {
    let put = client.put_item().table_name("Scores").item("pk", text("game")).item("sk", sort_key(at));
    put.item("note", text("lorem ipsum ".repeat(30))).send().await.unwrap();
}

async fn ask(client: &Client, operation: Operation, at: usize) {
    match operation {
        Operation::Put => put(client, at).await,
        Operation::Get => {
            let get = client.get_item().table_name("Scores").key("pk", text("game")).key("sk", sort_key(at));
            assert!(get.send().await.unwrap().item.is_some());
        }
        Operation::Query => {
            let query = client.query().table_name("Scores").key_condition_expression("pk = :p");
            let query = query.expression_attribute_values(":p", text("game")).scan_index_forward(false);
            assert_eq!(query.limit(100).send().await.unwrap().count(), 100);
        }
    }
}

async fn run(client: &Client, operation: Operation, each: Duration, tasks: u64) -> Figures {
    let (stopped, count) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU64::new(0)));
    let (begun, used) = (Instant::now(), processor_time());
    let tasks = (0..tasks).map(|task| {
        let (client, stopped, count) = (client.clone(), Arc::clone(&stopped), Arc::clone(&count));
        tokio::spawn(async move {
            let mut at = usize::try_from(task).unwrap_or_default();
            while !stopped.load(Ordering::Relaxed) {
                at = (at + 37) % ITEMS;
                ask(&client, operation, at).await;
                count.fetch_add(1, Ordering::Relaxed);
            }
        })
    });
    let tasks: Vec<_> = tasks.collect();
    tokio::time::sleep(each).await;
    stopped.store(true, Ordering::Relaxed);
    join_all(tasks).await.into_iter().for_each(|ended| ended.unwrap());
    let (took, used) = (begun.elapsed(), processor_time() - used);
    let count = count.load(Ordering::Relaxed) as f64;
    Figures { per_second: count / took.as_secs_f64(), cpu_micros: used.as_secs_f64() * 1e6 / count }
}

/// Of all threads of this process.
fn processor_time() -> Duration {
    let at = clock_gettime(ClockId::ProcessCPUTime);
    Duration::new(at.tv_sec.unsigned_abs(), u32::try_from(at.tv_nsec).unwrap_or_default())
}

fn middle(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}
