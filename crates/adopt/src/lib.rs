//! Adoption: brings a table that holds items under its rules, and back out; and verification, which says of every item of a recorded table
//! whether it lies where the record puts it.
//!
//! Both are workers: they read and write a table's items beside gateways, under a claim on its record. What they stand on is control's
//! ([`heatsink_control::registry`], [`heatsink_control::claim`], [`heatsink_control::Changer`]).
//!
//! Not here: which layout is in force (`control`), how a layout places an item (`layout`), the command line.

mod adoption;
mod as_it_lies;
mod direction;
mod drawn;
mod eligible;
mod held;
mod item;
mod mover;
mod on_record;
mod place;
mod prepare;
mod recipe;
mod sharded;
mod survey;
mod terms;
mod turn;
pub mod verify;
mod walk;

pub use adoption::Adoption;
pub use as_it_lies::{AsItLies, Layouts, Recorded};
pub use direction::Direction;
pub use drawn::DrawnWatch;
pub use survey::Survey;
pub use terms::{AdoptError, Options, Phase, Report, Watch};
