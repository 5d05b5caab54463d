//! Makes a change of the registry known to every gateway before anybody relies on it.
//!
//! - [`Fence`] is a gateway's side: its lease, and its reaction when the head of the registry shows
//!   a change.
//! - [`Changer`] publishes a change and waits for every gateway.
//! - [`Pass`] belongs to one request: the request may send calls, and give its client a result,
//!   only while the pass holds.
//!
//! The rules are in the crate `fence`, without I/O. This module carries them out.
//!
//! Not here: what changes and when (`first_use`, `table_lifecycle`, `adopt`), what is known of a
//! table (`table_cache`).

mod changer;
mod gateway;
mod items;
mod lease;
mod pass;
mod ruled_tables;
mod settings;

pub(crate) use changer::Published;
pub use changer::{Changer, Frozen};
pub(crate) use gateway::Fence;
pub use items::Gateway;
pub(crate) use items::unless_frozen;
pub use pass::{Pass, Sending};
pub use ruled_tables::RuledTables;
pub use settings::Fencing;
