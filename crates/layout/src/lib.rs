//! Logical keys and physical keys: the suffix codec, the hashes, the strategies, and the layouts in force.
//!
//! Sans-IO. This crate does not know where layouts are recorded (`control`) nor what a request is (`route`).

mod layout;
mod source;

pub use layout::{By, Hash, Layout, Strategy};
pub use source::{LayoutSource, Placement};
