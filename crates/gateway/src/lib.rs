//! HTTP in and out: headers, limits, deadlines, draining; and the processing of a request between
//! the wire and the store.
//!
//! Not here: what a request means (`dynamo`), which shards it touches (`route`), where it is
//! executed (`store`).

mod access_log;
mod acts;
mod blocking;
mod budget;
mod client_metrics;
mod execute;
mod former_stream;
mod gateway;
mod heat;
mod hot_key_metrics;
pub mod http;
mod item_size_monitor;
mod limits;
mod metrics;
mod missing_table;
mod missing_table_statements;
mod outcome;
mod partitions;
mod placed;
mod planner;
mod repeats;
mod rights;
mod send;
mod sent;
mod service;
mod spans;
mod spent;
mod stages;
mod status;

pub use access_log::ACCESS_LOG;
pub use acts::Told;
pub use gateway::{Builder, Gateway};
pub use heat::{Recording, RecordingOptions};
pub use hot_key_metrics::{HOT_KEY_METRICS, KeyNames};
pub use limits::{Cost, Limits};
pub use partitions::Partitions;
pub use placed::Placed;
pub use service::Service;
pub use spans::SPANS;
pub use status::{Recorded, Status};
