//! Logical keys and physical keys: the suffix codec, templates, the hashes, the strategies, and the
//! layouts in force.
//!
//! Sans-IO. This crate does not know where layouts are recorded (`control`) nor what a request is
//! (`route`).

mod affixes;
mod bucket;
mod changing;
pub mod codec;
mod directory;
mod display;
mod glob;
pub mod hash;
mod in_force;
mod index;
mod key_layouts;
mod layout;
mod moving;
pub mod number_codec;
mod order;
mod physical;
mod physical_keys;
mod placement;
mod ranges;
mod slot;
mod slot_numbers;
mod sort_key;
mod source;
mod split_points;
mod step;
mod steps;
mod strategy;
mod table;
mod table_layouts;
mod template;
mod time;
mod unplaced;
mod value_layout;

pub use affixes::Affixes;
pub use bucket::{Bucket, Granularity};
pub use changing::{Changing, ENTERED_PARTS, TablePhase, entered_part, entered_place};
pub use codec::{Decoded, KeyTooLong, MAX_PARTITION_KEY, encode};
pub use directory::{DIRECTORY, directory_key};
pub use display::{in_slots, shards};
pub use glob::Glob;
pub use hash::Digest;
pub use in_force::InForce;
pub use index::{IndexKey, MigrationPhase, PrimaryKey};
pub use key_layouts::{KeyLayouts, RecordedKey};
pub use layout::{By, Hash, Layout, Strategy};
pub use moving::{MARKED, MOVED, Moving, Narrowing, Phase, Stepping, Widening};
pub use order::MIGRATING;
pub use physical_keys::PhysicalKeys;
pub use placement::Placement;
pub use slot::{Slot, Slots};
pub use slot_numbers::{BadSlots, MOST_SLOTS, check_slots};
pub use sort_key::SortKey;
pub use source::{Consistency, LayoutSource, REGISTRY_TAG, Reads};
pub use split_points::{BadSplitPoints, MOST_RANGES, SplitPoints, shortest_between};
pub use step::Step;
pub use steps::MAX_STEPS;
pub use table::Table;
pub use table_layouts::{KeyLayout, OfIndex, TableLayouts};
pub use template::{Template, TemplateError};
pub use time::{Epoch, Span, Time};
pub use unplaced::Unplaced;
pub use value_layout::{MAX_VALUE_BYTES, MAX_VALUE_LAYOUTS, ValueLayout, ValueMigration};
