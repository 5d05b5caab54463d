//! Heat accounting: counts what each answered request asked of which partition key, and tells the
//! hottest keys.
//!
//! It changes no request, waits for nothing, and sends nothing but one DescribeTable for each table
//! that it meets, from a task beside the requests ([`HeatView::keep`]): the names of a table's keys
//! are in no request. Requests for a table before that are not counted.
//!
//! Not here: what is counted of a key, and what would help it (`heatsink_heat`).

mod accesses;
mod advise;
mod counting;
mod history;
mod layouts;
mod loads;
mod map;
mod recording;
mod shard_loads;
mod show;
mod table_totals;
mod tables;
mod units;
mod view;

pub(crate) use counting::Heat;
pub use recording::{Recording, RecordingOptions};
pub(crate) use shard_loads::Drawn;
pub(crate) use view::HeatView;
