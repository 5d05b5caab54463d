//! A server before the test's store.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use heatsink_control::{Control, Rules};
use heatsink_env::{Env, RealEnv};
use heatsink_gateway::{Limits, Service, http};
use heatsink_store::Store;
use tokio::net::TcpListener;
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::carrier;
use crate::client::{Client, post};
use crate::store::Double;

pub struct Server {
    pub address: SocketAddr,
    pub store: Double,
    pub stop: oneshot::Sender<()>,
    /// Whether everything in flight was finished.
    pub done: JoinHandle<bool>,
}

/// Short enough for tests; the body limit is small so that bodies over it are cheap.
pub fn limits() -> Limits {
    Limits {
        body: 4096,
        head: 8192,
        head_read: Duration::from_millis(300),
        body_read: Duration::from_millis(300),
        request: Duration::from_secs(2),
        drain: Duration::from_secs(5),
        ..Limits::default()
    }
}

/// Room for a few bodies, which may come slowly.
pub fn little_room() -> Limits {
    Limits {
        body: 400 << 10,
        body_read: Duration::from_secs(10),
        memory: 4 << 20,
        memory_wait: Duration::from_millis(100),
        ..limits()
    }
}

pub async fn server(limits: Limits) -> Server {
    server_for(limits, http::Hosts::loopback()).await
}

pub async fn server_for(limits: Limits, hosts: http::Hosts) -> Server {
    let store = Double::default();
    let (address, stop, done) = start(Arc::new(store.clone()), Rules::default(), limits, hosts).await;
    Server { address, store, stop, done }
}

/// The service of a store under rules.
pub async fn service(store: Arc<dyn Store>, rules: Rules, limits: Limits) -> (Service, Arc<dyn Env>) {
    let env: Arc<dyn Env> = Arc::new(RealEnv);
    let control = Control::start(store.clone(), env.clone(), rules).await.unwrap();
    (Service::new(store, control, env.clone(), limits, "eu-west-1"), env)
}

/// Serves a store under rules.
pub async fn start(
    store: Arc<dyn Store>,
    rules: Rules,
    limits: Limits,
    hosts: http::Hosts,
) -> (SocketAddr, oneshot::Sender<()>, JoinHandle<bool>) {
    let (service, env) = service(store, rules, limits).await;
    let service = Arc::new(service);
    let live = http::Live::new(carrier::settings(hosts, &limits));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = oneshot::channel::<()>();
    let done = tokio::spawn(http::serve(listener, service, limits, live, env, async move {
        let _ = stopped.await;
    }));
    (address, stop, done)
}

/// The server still answers.
pub async fn alive(server: &Server) {
    let answer = Client::to(server.address).await.send(&post("GetItem", br#"{"TableName":"abc"}"#)).await;
    assert_eq!((answer.status, answer.body.as_slice()), (200, &br#"{"Item":{}}"#[..]));
}

/// Waits until it is so.
pub async fn until(what: &str, so: impl Fn() -> bool) {
    for _ in 0..1000 {
        if so() {
            return;
        }
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    panic!("{what}: not within 5 s");
}
