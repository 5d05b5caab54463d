//! Who makes the heat: by client, in the heat of a key and in the metrics.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use arc_swap::ArcSwap;
use heatsink_access::Clients;
use heatsink_gateway::Gateway;
use heatsink_gateway::http::{Access, Hosts};
use heatsink_store::embedded::Embedded;
use metrics::{Counter, Gauge, Histogram, Key, KeyName, Metadata, Recorder, SharedString, Unit};
use serde_json::{Value as Json, json};
use tokio::net::TcpListener;

use crate::client::{Answer, Client, post};
use crate::signed::{clients_of, clients_with, signed};

const ORDERS: (&str, &str) = ("orders", "by-client");
const REPORTS: (&str, &str) = ("reports", "other");
const TABLE: &str = r#"{"TableName":"games","AttributeDefinitions":[{"AttributeName":"pk","AttributeType":"S"}],"KeySchema":[{"AttributeName":"pk","KeyType":"HASH"}],"BillingMode":"PAY_PER_REQUEST"}"#;
const PUT: &str = r#"{"TableName":"games","Item":{"pk":{"S":"hot"}}}"#;

/// The addresses of a gateway for the clients and for the operators.
async fn serve(clients: Clients) -> [SocketAddr; 2] {
    let store = Arc::new(Embedded::memory().unwrap());
    let known = Arc::new(ArcSwap::from_pointee(clients));
    let gateway = Gateway::builder(store).region("eu-west-1").clients(known).start().await.unwrap();
    let listeners =
        [TcpListener::bind("127.0.0.1:0").await.unwrap(), TcpListener::bind("127.0.0.1:0").await.unwrap()];
    let addresses = [0, 1].map(|at: usize| listeners[at].local_addr().unwrap());
    let [of_clients, admin] = listeners;
    let forever = std::future::pending::<()>;
    tokio::spawn(gateway.serve_admin(admin, Access::Hosts(Hosts::loopback()), forever()));
    tokio::spawn(gateway.serve(of_clients, Hosts::loopback(), forever()));
    addresses
}

async fn ask(client: &mut Client, operation: &str, body: &str, key: (&str, &str)) -> Answer {
    client.send(&signed(operation, key, body.as_bytes(), "")).await
}

/// The heat of the key, as writes of it, of the last window; `null` where it has none.
async fn heat(admin: SocketAddr) -> Json {
    let request = b"GET /_heatsink/heat?table=games HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let answer = Client::to(admin).await.send(request).await;
    let heat: Json = serde_json::from_slice(&answer.body).unwrap();
    let parts = heat["parts"].as_array().unwrap().iter().filter(|part| part["kind"] == "write");
    let mut keys = parts.flat_map(|part| part["keys"].as_array().unwrap());
    keys.find(|key| key["key"] == json!({ "S": "hot" })).cloned().unwrap_or_default()
}

/// Calls this until a window has at least twenty writes of the key, and gives its heat.
async fn heat_while(admin: SocketAddr, mut writes: impl AsyncFnMut()) -> Json {
    let begun = Instant::now();
    loop {
        writes().await;
        let heat = heat(admin).await;
        if heat["requests_per_s"].as_f64().is_some_and(|rate| rate >= 20.0) {
            return heat;
        }
        assert!(begun.elapsed() < Duration::from_secs(30), "{heat}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

#[tokio::test]
async fn a_hot_key_says_which_client_makes_it_hot() {
    let [address, admin] = serve(clients_with([ORDERS.1, REPORTS.1], "")).await;
    let mut client = Client::to(address).await;
    assert_eq!(ask(&mut client, "CreateTable", TABLE, ORDERS).await.status, 200);
    let heat = heat_while(admin, async || {
        for key in [ORDERS, ORDERS, REPORTS, ORDERS, ORDERS] {
            assert_eq!(ask(&mut client, "PutItem", PUT, key).await.status, 200);
        }
    })
    .await;
    let clients = heat["clients"].as_array().unwrap();
    let share = |at: usize| clients[at]["share_percent"].as_f64().unwrap();
    assert_eq!(
        (&clients[0]["client"], &clients[1]["client"]),
        (&json!("orders"), &json!("reports")),
        "{heat}"
    );
    assert!((share(0) - 80.0).abs() < 8.0 && (share(0) + share(1) - 100.0).abs() < 1e-6, "{heat}");
}

#[tokio::test]
async fn where_clients_are_not_known_none_are_told() {
    let seen = Seen::default();
    let _recording = metrics::set_default_local_recorder(&seen);
    let [address, admin] = serve(Clients::default()).await;
    let mut client = Client::to(address).await;
    assert_eq!(client.send(&post("CreateTable", TABLE.as_bytes())).await.status, 200);
    let heat = heat_while(admin, async || {
        assert_eq!(client.send(&post("PutItem", PUT.as_bytes())).await.status, 200);
    })
    .await;
    assert_eq!(heat["clients"], json!([]));
    assert!(seen.clients().is_empty());
    assert!(seen.count("heatsink_requests_total,operation=PutItem,outcome=ok") > 0);
}

#[tokio::test]
async fn metrics_name_clients_of_the_configuration_and_nobody_else() {
    let seen = Seen::default();
    let _recording = metrics::set_default_local_recorder(&seen);
    let [address, admin] =
        serve(clients_with([ORDERS.1, REPORTS.1], "actions = [\"CreateTable\", \"PutItem\"]")).await;
    let mut client = Client::to(address).await;
    assert_eq!(ask(&mut client, "CreateTable", TABLE, ORDERS).await.status, 200);
    // Nobody of that name is known; and who signs wrongly in a known name is not that client.
    for key in [("nobody", "guess"), ("a\\\",limit=\\\"x", "guess"), (REPORTS.0, "guess")] {
        assert_ne!(
            Client::to(address).await.send(&signed("PutItem", key, PUT.as_bytes(), "")).await.status,
            200
        );
    }
    assert_eq!(seen.clients(), ["orders"]);
    let get = r#"{"TableName":"games","Key":{"pk":{"S":"hot"}}}"#;
    for _ in 0..3 {
        assert_eq!(ask(&mut client, "GetItem", get, REPORTS).await.error(), "AccessDeniedException");
    }
    let mut puts = 0;
    heat_while(admin, async || {
        assert_eq!(ask(&mut client, "PutItem", PUT, ORDERS).await.status, 200);
        puts += 1;
    })
    .await;
    assert_eq!(seen.clients(), ["orders", "reports"]);
    assert_eq!(seen.count("heatsink_client_requests_total,client=reports,outcome=client_error"), 3);
    assert_eq!(seen.count("heatsink_client_refused_total,client=reports,limit=rights"), 3);
    assert_eq!(seen.count("heatsink_refused_total,limit=rights"), 3);
    assert_eq!(seen.count("heatsink_client_requests_total,client=orders,outcome=ok"), puts + 1);
    assert_eq!(seen.count("heatsink_client_refused_total,client=orders,limit=rights"), 0);
    let units = seen.count("heatsink_client_units_total,client=orders,kind=write");
    assert!((20..=puts).contains(&units), "{units} of {puts}");
    assert_eq!(seen.count("heatsink_client_units_total,client=reports,kind=write"), 0);
    assert_eq!(seen.count("heatsink_client_throttled_total,client=orders,kind=write"), 0);
}

/// The configuration bounds them; a process that reads it again is bounded, too.
#[tokio::test]
async fn clients_beyond_two_hundred_are_added_up_under_no_name() {
    let seen = Seen::default();
    let _recording = metrics::set_default_local_recorder(&seen);
    let all: Vec<_> = (0..203).map(|at| (format!("c{at:03}"), "many")).collect();
    let [address, _] = serve(clients_of(&all, "")).await;
    let mut client = Client::to(address).await;
    for (id, secret) in all.iter().chain(&all[200..201]) {
        assert_eq!(ask(&mut client, "ListTables", "{}", (id, secret)).await.status, 200);
    }
    assert_eq!(seen.clients().len(), 201);
    assert_eq!(seen.count("heatsink_client_requests_total,client=,outcome=ok"), 4);
    assert_eq!(seen.count("heatsink_client_requests_total,client=c199,outcome=ok"), 1);
}

/// Counters by their names and labels.
#[derive(Default)]
struct Seen(Mutex<BTreeMap<String, Arc<AtomicU64>>>);

impl Seen {
    fn count(&self, name: &str) -> u64 {
        self.0.lock().unwrap()[name].load(Ordering::Relaxed)
    }

    /// What stands in the label `client`.
    fn clients(&self) -> Vec<String> {
        let counters = self.0.lock().unwrap();
        let labels = counters.keys().flat_map(|name| name.split(',').skip(1));
        let mut clients: Vec<String> =
            labels.filter_map(|label| label.strip_prefix("client=")).map(str::to_owned).collect();
        clients.sort();
        clients.dedup();
        clients
    }
}

impl Recorder for Seen {
    fn describe_counter(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_gauge(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn describe_histogram(&self, _: KeyName, _: Option<Unit>, _: SharedString) {}

    fn register_counter(&self, key: &Key, _: &Metadata<'_>) -> Counter {
        let labels = key.labels().map(|label| format!(",{}={}", label.key(), label.value()));
        let name = key.name().to_owned() + &labels.collect::<String>();
        Counter::from_arc(Arc::clone(self.0.lock().unwrap().entry(name).or_default()))
    }

    fn register_gauge(&self, _: &Key, _: &Metadata<'_>) -> Gauge {
        Gauge::noop()
    }

    fn register_histogram(&self, _: &Key, _: &Metadata<'_>) -> Histogram {
        Histogram::noop()
    }
}
