//! The tests of this crate, in one program: each program is linked with all that it depends on.

mod aws;
mod batches;
mod ceilings;
mod documented;
mod indexes;
mod stone;
mod support;
