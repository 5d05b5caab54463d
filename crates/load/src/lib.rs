//! A thin load client: it sends DynamoDB requests over keep-alive connections and says what came
//! back, and when.
//!
//! It serves the benchmarks and `heatsink-lab demo leaderboard`. It is no SDK: no retries, no
//! signatures (a fixed, fake `Authorization` header), no response parsing beyond the error's type.
//! It calls only loopback addresses, so that nobody aims it at a real endpoint by mistake.
//!
//! Two ways to offer load:
//! * [`open_loop`]: a constant rate, whatever the server does. Latency counts from the moment a
//!   request *should* have been sent, so a server that stalls cannot hide the requests that waited
//!   behind the stall (coordinated omission).
//! * [`closed_loop`]: each connection sends its next request when the last answer is in. It finds
//!   the highest rate.
//!
//! ```no_run
//! # async fn run() -> Result<(), heatsink_load::LoadError> {
//! use std::{sync::Arc, time::Duration};
//! use heatsink_dynamo::Operation;
//! use heatsink_env::RealEnv;
//! use heatsink_load::{Rate, Request, Span, open_loop};
//!
//! let target = ([127, 0, 0, 1], 8000).into();
//! let puts = |nth: u64| Request::new(
//!     Operation::PutItem,
//!     format!(r#"{{"TableName":"T","Item":{{"pk":{{"S":"game_x"}},"sk":{{"S":"{nth:010}"}}}}}}"#),
//! );
//! let rate = Rate { per_second: 5_000.0, span: Span::of(Duration::from_secs(10)), connections: 32 };
//! let report = open_loop(Arc::new(RealEnv), target, rate, Arc::new(puts)).await?;
//! println!("{} of {} throttled", report.throttled, report.offered);
//! # Ok(()) }
//! ```

mod connection;
mod drive;
mod report;
mod request;

pub use connection::{Connection, LoadError};
pub use http::StatusCode;

pub use drive::{Rate, Span, Work, closed_loop, open_loop};
pub use report::{Latency, Report};
pub use request::{Answer, Outcome, Request};
