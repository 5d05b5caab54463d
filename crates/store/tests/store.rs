//! The tests of this crate, in one program: each program is linked with all that it depends on.

#[path = "embedded/main.rs"]
mod embedded;
#[cfg(feature = "upstream")]
mod let_go;
#[path = "partitions/main.rs"]
mod partitions;
#[cfg(feature = "upstream")]
mod upstream;
