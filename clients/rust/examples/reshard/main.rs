//! A client with the AWS SDK for Rust that takes part in `clients/fence --only reshard`: its
//! workers own items of a key that moves, and know what must lie there. They write at a rate that
//! is near what the key's partition takes.
//!
//! One line of JSON on stdin says what to do ([`Wanted`]); when stdin ends, the workers stop. A
//! line of JSON on stdout tells each fault, the last line is the report. It exits with 1 after a
//! fault, with 2 if it could not begin.
//!
//! Not here: the gateways and what befalls them, and the last look at what is stored, which are the
//! scenario's.

mod calls;
mod known;
mod pace;
mod queries;
mod report;
mod several;
mod single;
mod worker;

use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use heatsink_env::RealEnv;
use serde::Deserialize;

use crate::pace::Pace;
use crate::report::Report;
use crate::worker::{Shared, Worker};

/// What the scenario wants.
#[derive(Deserialize)]
struct Wanted {
    /// The gateways' endpoints, on this machine.
    gateways: Vec<String>,
    table: String,
    /// The partition key that moves.
    key: String,
    seed: u64,
    workers: u64,
    /// Write units of the key that all workers ask for together in a second; 0: as many as they
    /// can.
    units_per_second: f64,
    /// How many of 60 calls are Queries of the whole key. In a key that moves a page is many
    /// requests to the store.
    queries: u32,
}

#[tokio::main]
async fn main() -> ExitCode {
    let wanted = std::io::stdin().lines().next().and_then(Result::ok).ok_or("stdin is empty".to_owned());
    let wanted: Wanted = match wanted.and_then(|line| serde_json::from_str(&line).map_err(|e| e.to_string()))
    {
        Ok(wanted) => wanted,
        Err(problem) => {
            eprintln!("the first line of stdin has to say what to do: {problem}");
            return ExitCode::from(2);
        }
    };
    let env = Arc::new(RealEnv);
    let shared = Arc::new(Shared {
        env: env.clone(),
        table: wanted.table,
        key: wanted.key,
        seed: wanted.seed,
        stopping: AtomicBool::new(false),
        queries: wanted.queries,
        pace: Pace::new(env, wanted.units_per_second),
        report: Report::default(),
    });
    let workers: Vec<_> = (0..wanted.workers)
        .map(|number| tokio::spawn(Box::pin(Worker::new(shared.clone(), number, &wanted.gateways).work())))
        .collect();
    let end = shared.clone();
    std::thread::spawn(move || {
        std::io::stdin().lines().for_each(drop);
        end.stopping.store(true, Ordering::Relaxed);
    });
    let mut items = Vec::new();
    for worker in workers {
        match worker.await {
            Ok(of_one) => items.extend(of_one),
            Err(problem) => shared.report.fault("failed", "", "", &format!("a worker: {problem}")),
        }
    }
    shared.report.tell(&items)
}
