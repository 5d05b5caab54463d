//! The load client against a small server that counts, stalls or refuses.

#![allow(clippy::unwrap_used, reason = "a test may panic, its helpers too")]

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use heatsink_dynamo::Operation;
use heatsink_env::{Env, RealEnv};
use heatsink_load::{LoadError, Rate, Request, Span, closed_loop, open_loop};
use http::{Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

#[derive(Clone, Copy, PartialEq)]
enum Habit {
    Accept,
    /// Every second request is throttled.
    Throttle,
    /// The sixth request stalls for 200 ms.
    Stall,
    /// Never answers.
    Silent,
}

const THROTTLE: &str =
    r#"{"__type":"com.amazonaws.dynamodb.v20120810#ProvisionedThroughputExceededException"}"#;

async fn server(habit: Habit) -> (SocketAddr, Arc<AtomicU64>) {
    let listener = TcpListener::bind(("127.0.0.1", 0)).await.unwrap();
    let address = listener.local_addr().unwrap();
    let seen = Arc::new(AtomicU64::new(0));
    let counter = seen.clone();
    tokio::spawn(async move {
        while let Ok((stream, _)) = listener.accept().await {
            let counter = counter.clone();
            let service = service_fn(move |request: http::Request<hyper::body::Incoming>| {
                let nth = counter.fetch_add(1, Ordering::SeqCst);
                async move {
                    assert_eq!(request.headers()["x-amz-target"], "DynamoDB_20120810.GetItem");
                    let body = request.into_body().collect().await.unwrap().to_bytes();
                    assert!(body.starts_with(br#"{"n":"#));
                    let mut status = StatusCode::OK;
                    let mut text = "{}";
                    match habit {
                        Habit::Accept => {}
                        Habit::Throttle if nth % 2 == 1 => {
                            (status, text) = (StatusCode::BAD_REQUEST, THROTTLE);
                        }
                        Habit::Throttle => {}
                        Habit::Stall if nth == 5 => RealEnv.sleep(Duration::from_millis(200)).await,
                        Habit::Stall => {}
                        Habit::Silent => std::future::pending().await,
                    }
                    let mut response = Response::new(Full::new(Bytes::from(text)));
                    *response.status_mut() = status;
                    Ok::<_, Infallible>(response)
                }
            });
            tokio::spawn(
                hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service),
            );
        }
    });
    (address, seen)
}

fn work() -> Arc<impl Fn(u64) -> Request + Send + Sync + 'static> {
    Arc::new(|nth: u64| Request::new(Operation::GetItem, format!(r#"{{"n":{nth}}}"#)))
}

fn rate(per_second: f64, millis: u64, connections: usize) -> Rate {
    let span = Span { offer: Duration::from_millis(millis), grace: Duration::from_secs(2) };
    Rate { per_second, span, connections }
}

#[tokio::test]
async fn a_closed_loop_sends_each_number_once() {
    let (target, seen) = server(Habit::Accept).await;
    let span = Span::of(Duration::from_secs(20));
    let report = closed_loop(Arc::new(RealEnv), target, 4, span, 500, work()).await.unwrap();
    assert_eq!((report.offered, report.accepted, report.unanswered), (500, 500, 0));
    assert_eq!(report.latency.count(), 500);
    assert_eq!(seen.load(Ordering::SeqCst), 500);
}

#[tokio::test]
async fn an_open_loop_keeps_its_rate_and_counts_throttles() {
    let (target, _) = server(Habit::Throttle).await;
    let report = open_loop(Arc::new(RealEnv), target, rate(500.0, 400, 8), work()).await.unwrap();
    assert_eq!((report.offered, report.accepted, report.throttled, report.failed), (200, 100, 100, 0));
    assert!((report.throttled_share() - 0.5).abs() < 1e-9);
    // 200 requests, 2 ms apart: the last is due after 398 ms.
    assert!(report.elapsed >= Duration::from_millis(398), "{:?}", report.elapsed);
}

#[tokio::test]
async fn a_stall_shows_in_the_latency_of_those_that_waited_behind_it() {
    let (target, _) = server(Habit::Stall).await;
    let report = open_loop(Arc::new(RealEnv), target, rate(100.0, 300, 1), work()).await.unwrap();
    assert_eq!(report.accepted, 30);
    // One request stalled for 200 ms and about 20 were due meanwhile; only the intended send time
    // shows them.
    assert!(report.latency.quantile(0.8) > Duration::from_millis(80), "{:?}", report.latency.quantile(0.8));
    assert!(report.service.quantile(0.8) < report.latency.quantile(0.8));
}

#[tokio::test]
async fn silence_ends_with_the_grace_and_is_counted() {
    let (target, _) = server(Habit::Silent).await;
    let span = Span { offer: Duration::from_millis(50), grace: Duration::from_millis(50) };
    let load = Rate { per_second: 100.0, span, connections: 2 };
    let report = open_loop(Arc::new(RealEnv), target, load, work()).await.unwrap();
    assert_eq!((report.offered, report.unanswered, report.accepted), (5, 5, 0));
}

#[tokio::test]
async fn nonsense_is_refused_before_anything_is_sent() {
    let away = SocketAddr::from(([192, 0, 2, 1], 80));
    let span = Span::of(Duration::ZERO);
    let refused = closed_loop(Arc::new(RealEnv), away, 1, span, 1, work()).await;
    assert!(matches!(refused, Err(LoadError::NotLoopback(_))));
    let (target, seen) = server(Habit::Accept).await;
    for (per_second, connections) in [(0.0, 1), (f64::NAN, 1), (-1.0, 1), (f64::INFINITY, 1), (1.0, 0)] {
        let refused = open_loop(Arc::new(RealEnv), target, rate(per_second, 10, connections), work()).await;
        assert!(matches!(refused, Err(LoadError::Nothing)), "{per_second} {connections}");
    }
    assert_eq!(seen.load(Ordering::SeqCst), 0);
}
