//! Request and layouts to a plan; responses to one response; cursors.
//!
//! Sans-IO: nothing here waits, reads a clock or opens a socket. A router makes a plan of a request; the plan's
//! [`Execution`] hands out physical calls and takes their answers until it can give the client's.

mod execution;
pub mod query;

pub use execution::{Execution, PhysicalCall, Step};
