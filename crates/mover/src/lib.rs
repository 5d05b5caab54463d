//! Carries out a reshard: takes one logical key from its layout to another one while clients read and write it.
//!
//! - [`Reshard::prepare`] checks whether the key can move, and says what it would take ([`Plan`]).
//! - [`Reshard::run`] does what a [`Coordinator`](heatsink_reshard::Coordinator) says: it writes the key's record, waits for the gateways, looks at the
//!   physical keys that the key will use, and moves the items. It can be killed anywhere: whoever runs it again goes on from what is on record.
//!
//! Not here: in which order that is right (`heatsink_reshard`), what clients' requests become meanwhile (`route`), how a record becomes known
//! (`control`).

mod automatic;
mod error;
mod key;
mod mover;
mod place;
mod prepare;
mod progress;
mod protocol;
mod reshard;
mod run;
mod runner;
mod spare;
mod steps;
mod survey;
mod table;
mod wanted;

pub use automatic::{Automatic, HeatSource};
pub use error::ReshardError;
pub use key::Key;
pub use prepare::{DEFAULT_RATE, Options, Plan};
pub use progress::{COUNTING, Progress, Report, beside_count};
pub use reshard::Reshard;
pub use runner::{Pace, Runner, ValueCarrier, ValueJob};
pub use steps::NewestStep;
pub use table::TableContext;
pub use wanted::never_narrower;
