//! Which layout is in force: rules from configuration, the registry that records them, adoption of existing tables.
//!
//! Not here: how a layout places an item (`layout`), what a request becomes under it (`route`), HTTP (`gateway`).

pub mod adopt;
mod check;
mod claim;
mod control;
mod describe;
mod drawn;
pub mod fence;
mod inner;
mod known;
mod made;
mod name;
mod place;
mod record;
mod registry;
mod resolve;
pub mod rules;
mod suspect;
mod tags;
mod touch;
mod under_way;
mod unrecorded;
pub mod verify;

pub use check::{Checked, Named, Verdict, check};
pub use control::{Control, Prepared, StartError, View};
pub use drawn::DrawnWatch;
pub use fence::{Changer, Fencing, Gateway, Pass, Sending};
pub use heatsink_fence::Bounds;
pub use heatsink_layout::{KeyLayout, TableLayouts};
pub use known::MAX_AGE;
pub use record::{Progress, Record, State};
pub use registry::{NOBODY, REGISTRY};
pub use rules::{Rules, RulesError, Wish};
