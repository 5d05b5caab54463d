//! Which layout is in force: rules from configuration, and the registry that records them.
//!
//! Gateways ask [`Control`]. Workers, which change a table's record and items beside gateways (`adopt`), stand on [`registry`], [`claim`],
//! [`describe`], [`tags`] and [`Changer`]; nothing else is public for them.
//!
//! Not here: moving items (`adopt`), how a layout places an item (`layout`), what a request becomes under it (`route`), HTTP (`gateway`).

mod check;
pub mod claim;
mod control;
pub mod describe;
pub mod fence;
mod inner;
mod known;
mod made;
mod name;
mod record;
pub mod registry;
mod resolve;
pub mod rules;
mod suspect;
pub mod tags;
mod touch;
mod under_way;
mod unrecorded;

pub use check::{Checked, Named, Verdict, check};
pub use control::{Control, Prepared, StartError, View};
pub use fence::{Changer, Fencing, Gateway, Pass, Sending};
pub use heatsink_fence::Bounds;
pub use heatsink_layout::{KeyLayout, TableLayouts};
pub use known::MAX_AGE;
pub use record::{Progress, Record, State, Turning};
pub use registry::{NOBODY, REGISTRY};
pub use resolve::agree;
pub use rules::{Rules, RulesError, Wish};
