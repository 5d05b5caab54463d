//! Tests of this crate in one program: each program is linked with all that it depends on. Those that
//! need a process of their own have one.

mod cost;
#[path = "shared_calls/main.rs"]
mod shared_calls;
#[path = "units/main.rs"]
mod units;
