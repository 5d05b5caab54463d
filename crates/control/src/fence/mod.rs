//! How a change of the registry becomes known to every gateway before anybody relies on it.
//!
//! - [`Fence`] is a gateway's own side: its lease, and what it does when the head of the registry shows a change.
//! - [`Changer`] publishes a change and waits for every gateway.
//! - [`Pass`] is what one request carries: it may send, and give its client a result, only while that holds.
//!
//! The rules themselves are in the crate `fence`, without I/O; here they are carried out.
//!
//! Not here: what is changed and when (`first_use`, `made`, `adopt`), what is known of a table (`table_cache`).

mod changer;
mod gateway;
mod items;
mod pass;
mod settings;

pub(crate) use changer::Published;
pub use changer::{Changer, Frozen};
pub(crate) use gateway::Fence;
pub use items::Gateway;
pub use pass::{Pass, Sending};
pub use settings::Fencing;
