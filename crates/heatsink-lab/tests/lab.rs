//! The tests of this crate, in one program: each program is linked with all that it depends on.

mod closed_loop;
mod picture;
mod simulate;
