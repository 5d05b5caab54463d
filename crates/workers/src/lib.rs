//! Workers: they read and write a table's items beside gateways, under a claim on its record, and
//! can be killed anywhere and run again.
//!
//! - `table`: a table that holds items comes under its rules, and back out ([`Adoption`],
//!   [`AsItLies`]);
//! - `key`: one logical key goes from its layout to another one while clients use it ([`Reshard`]);
//! - `value`: the same of one value of an index's key ([`ValueReshard`]);
//! - `leave`: all of a table comes back, and off the record ([`Leave`]);
//! - `verify`: whether every item of a recorded table is where the record puts it; `rebuild`: a
//!   lost record from what items say;
//! - `runner`: carries out in a gateway what operators ask for; `automatic`: asks for what hot keys
//!   need; `carry`: both, for as long as a gateway runs; `events`: tells somebody what was done.
//!
//! They build on `control` ([`heatsink_control::registry`], [`heatsink_control::claim`],
//! [`heatsink_control::Changer`]).
//!
//! Not here: which layout is in force (`control`), how a layout places an item (`layout`), in which
//! order the steps of a key's reshard are right (`heatsink_reshard`), the command line.

mod automatic;
mod carry;
mod direction;
mod eligible;
mod error;
mod events;
mod items;
mod key;
mod leave;
mod on_record;
mod progress;
mod rebuild;
mod recorded_keys;
mod runner;
mod table;
mod value;
pub mod verify;

pub use automatic::{Acts, Automatic};
pub use carry::carry;
pub use direction::Direction;
pub use error::WorkerError;
pub use events::{EventQueue, Events, Sent, events};
pub use key::logical_key::Key;
pub use key::prepare::{DEFAULT_RATE, Plan, ReshardOptions};
pub use key::quantiles::quantiles;
pub use key::report::ReshardReport;
pub use key::reshard::Reshard;
pub use key::steps::NewestStep;
pub use key::table_context::TableContext;
pub use key::wanted::{is_wanted, slots_flag};
pub use leave::{InTheWay, Leave, LeaveOptions, Sharded, Step, StepReport, asks_for_whole};
pub use progress::{Phase, Progress, Unwatched};
pub use rebuild::{NotTold, Rebuild, Rebuilt, Told};
pub use runner::{Here, Pace, Runner};
pub use table::adoption::Adoption;
pub use table::as_it_lies::{AsItLies, Layouts, Recorded};
pub use table::live::{KeyWish, LiveAdoption, LiveNext, LiveSurvey, NotLive, PreparedLive};
pub use table::recipe_observer::RecipeObserver;
pub use table::report::{AdoptionOptions, AdoptionReport};
pub use table::survey::Survey;
pub use value::{INDEX_DELAY, ValueAsked, ValueOptions, ValuePlan, ValueReshard};
