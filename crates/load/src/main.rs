//! `heatsink-load`: offers recorded requests to an endpoint on this machine and prints a report as
//! JSON.
//!
//! The benchmarks' tool. It reads bodies from a file, one JSON request per line, and sends them
//! round and round.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use clap::Parser;
use heatsink_dynamo::Operation;
use heatsink_env::RealEnv;
use heatsink_load::{Rate, Report, Request, Span, closed_loop, open_loop};

/// Offers load to a DynamoDB endpoint on this machine; prints counts and percentiles as JSON.
#[derive(Parser)]
#[command(version)]
struct Arguments {
    /// The endpoint; loopback only.
    #[arg(long, default_value = "127.0.0.1:8000")]
    target: SocketAddr,
    /// The operation, as in `X-Amz-Target` after the dot.
    #[arg(long, value_parser = operation)]
    op: Operation,
    /// Request bodies, one JSON object per line, sent in turn and then again from the first.
    #[arg(long)]
    bodies: PathBuf,
    /// Keep-alive connections.
    #[arg(long, default_value_t = 16)]
    connections: usize,
    /// How long to offer requests, in seconds.
    #[arg(long, default_value_t = 5.0)]
    seconds: f64,
    /// Requests per second (open loop). Without it each connection sends as fast as it is answered
    /// (closed loop).
    #[arg(long)]
    rate: Option<f64>,
    /// Stop a closed loop after this many requests. `--requests` as large as the file sends each
    /// body once.
    #[arg(long)]
    requests: Option<u64>,
}

fn operation(name: &str) -> Result<Operation, String> {
    Operation::by_name(name).ok_or_else(|| format!("no operation is called {name}"))
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    match run(&arguments) {
        Ok(report) => {
            println!("{}", report.to_json());
            if report.failed + report.unanswered == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("heatsink-load: {error}");
            ExitCode::from(64)
        }
    }
}

fn run(arguments: &Arguments) -> Result<Report, Box<dyn std::error::Error>> {
    let text = std::fs::read_to_string(&arguments.bodies)
        .map_err(|error| format!("{}: {error}", arguments.bodies.display()))?;
    let bodies: Vec<Bytes> =
        text.lines().filter(|line| !line.is_empty()).map(|line| Bytes::from(line.to_owned())).collect();
    if bodies.is_empty() {
        return Err(format!("{} holds no request", arguments.bodies.display()).into());
    }
    let count = u64::try_from(bodies.len())?;
    let op = arguments.op;
    let work = Arc::new(move |nth: u64| {
        let turn = usize::try_from(nth % count).unwrap_or(0);
        Request::new(op, bodies.get(turn).cloned().unwrap_or_default())
    });
    let span = Span::of(Duration::try_from_secs_f64(arguments.seconds)?);
    let connections = arguments.connections;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build()?;
    let env = Arc::new(RealEnv);
    Ok(runtime.block_on(async {
        match arguments.rate {
            Some(per_second) => {
                open_loop(env, arguments.target, Rate { per_second, span, connections }, work).await
            }
            None => {
                let total = arguments.requests.unwrap_or(u64::MAX);
                closed_loop(env, arguments.target, connections, span, total, work).await
            }
        }
    })?)
}
