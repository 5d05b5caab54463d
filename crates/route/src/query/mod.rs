//! Query on a sharded table.

pub mod merge;
pub mod share;
