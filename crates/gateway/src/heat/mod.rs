//! Heat accounting: counts what each answered request asked of which partition key, and tells the
//! hottest keys.
//!
//! Of a request that is counted it asks the store what it costs, and takes that out of the answer
//! again. It waits for nothing, and sends nothing but one DescribeTable for each table that it
//! meets, from a task beside the requests ([`HeatView::keep`]): the names of a table's keys are in
//! no request. Requests for a table before that are not counted.
//!
//! Not here: what is counted of a key, and what would help it (`heatsink_heat`).

mod accesses;
mod advise;
mod asked_capacity;
mod counted;
mod counting;
mod history;
mod layouts;
mod map;
mod recording;
mod shard_loads;
mod show;
mod table_totals;
mod tables;
mod units;
mod view;

pub(crate) use counted::{DrawnRequest, Figures};
pub(crate) use counting::Heat;
pub use recording::{Recording, RecordingOptions};
pub(crate) use shard_loads::CountedCalls;
pub(crate) use view::HeatView;
