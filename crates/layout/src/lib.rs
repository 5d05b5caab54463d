//! Logical keys and physical keys: the suffix codec, templates, the hashes, the strategies, and the layouts in force.
//!
//! Sans-IO. This crate does not know where layouts are recorded (`control`) nor what a request is (`route`).

mod bucket;
pub mod codec;
mod directory;
mod display;
mod glob;
pub mod hash;
mod index;
mod key_layouts;
mod layout;
mod moving;
mod order;
mod physical;
mod placement;
mod slot;
mod source;
mod steps;
mod strategy;
mod table;
mod template;
mod time;
mod unplaced;
mod value_layout;

pub use bucket::{Bucket, Granularity};
pub use codec::{Decoded, KeyTooLong, MAX_PARTITION_KEY};
pub use directory::{DIRECTORY, directory_key};
pub use glob::Glob;
pub use index::{IndexKey, MigrationPhase, PrimaryKey};
pub use key_layouts::{KeyLayouts, RecordedKey};
pub use layout::{By, Digest, Hash, Layout, Strategy};
pub use moving::{Moving, Phase, Slots, Stepping, Widening};
pub use order::MIGRATING;
pub use physical::PhysicalKeys;
pub use placement::Placement;
pub use slot::Slot;
pub use source::{Consistency, InForce, LayoutSource, REGISTRY_TAG, Reads};
pub use steps::{MAX_STEPS, Step};
pub use strategy::SortKey;
pub use table::{Affixes, KeyLayout, OfIndex, Table, TableLayouts};
pub use template::{Template, TemplateError};
pub use time::{Epoch, Span, Time};
pub use unplaced::Unplaced;
pub use value_layout::{MAX_VALUE_BYTES, MAX_VALUE_LAYOUTS, ValueLayout, ValueMigration};
