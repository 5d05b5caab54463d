//! The tests of this crate, in one program: each program is linked with all that it depends on.

mod cost;
mod heat;
#[path = "shared_calls/main.rs"]
mod shared_calls;
mod spans;
#[path = "units/main.rs"]
mod units;
