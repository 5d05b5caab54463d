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
mod combine;
mod computed_metrics;
mod execute;
mod former_stream;
mod gateway;
mod heat;
pub mod http;
mod item_size_monitor;
mod limits;
mod metrics;
mod missing_table;
mod missing_table_statements;
mod only_reads;
mod outcome;
mod partitions;
mod placed;
mod planner;
mod reads;
mod repeats;
mod rights;
mod send;
mod send_once;
mod sent;
mod service;
mod shared_calls;
mod spans;
mod spent;
mod stages;
mod status;

pub use access_log::ACCESS_LOG;
pub use acts::Told;
pub use computed_metrics::{COMPUTED_METRICS, KeyNames};
pub use gateway::{Builder, Gateway};
pub use heat::{Recording, RecordingOptions};
pub use limits::{Cost, Limits};
pub use partitions::Partitions;
pub use service::Service;
pub use spans::SPANS;
pub use status::{Recorded, Status};
