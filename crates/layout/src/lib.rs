//! Logical keys and physical keys: the suffix codec, the hashes, the strategies, and the layouts in force.
//!
//! Sans-IO. This crate does not know where layouts are recorded (`control`) nor what a request is (`route`).

pub mod codec;
pub mod hash;
mod layout;
mod source;
mod strategy;

pub use codec::{Decoded, KeyTooLong, MAX_PARTITION_KEY};
pub use layout::{By, Hash, Layout, Strategy};
pub use source::{Consistency, LayoutSource, Placement, Reads};
pub use strategy::SortKey;
