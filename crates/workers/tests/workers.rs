//! The tests of this crate, in one program: each program is linked with all that it depends on.

#[path = "adopt/main.rs"]
mod adoption;
mod buckets;
mod drained_partition;
mod high_water;
mod slots;
