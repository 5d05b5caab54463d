//! Adoption brings a table that holds items under its rules, and back out. Verification checks that every item of a recorded table is where the
//! record puts it.
//!
//! Both are workers: they read and write a table's items beside gateways, under a claim on its record. They build on `control`
//! ([`heatsink_control::registry`], [`heatsink_control::claim`], [`heatsink_control::Changer`]).
//!
//! Not here: which layout is in force (`control`), how a layout places an item (`layout`), the command line.

mod adoption;
mod adoption_begin;
mod adoption_pass;
mod as_it_lies;
mod direction;
mod eligible;
mod index_migration;
mod index_rewrite;
mod index_value;
mod item;
mod item_location;
mod item_move;
mod on_record;
mod prepare;
mod rebuild;
mod recipe;
mod recipe_observer;
mod sharded;
mod survey;
mod types;
mod value_reshard;
pub mod verify;
mod walk;

pub use adoption::Adoption;
pub use as_it_lies::{AsItLies, Layouts, Recorded};
pub use direction::Direction;
pub use rebuild::{NotTold, Rebuild, Rebuilt, Told};
pub use recipe_observer::RecipeObserver;
pub use survey::Survey;
pub use types::{AdoptError, Options, Phase, Progress, Report};
pub use value_reshard::{INDEX_DELAY, ValueAsked, ValueOptions, ValuePlan, ValueReport, ValueReshard};
