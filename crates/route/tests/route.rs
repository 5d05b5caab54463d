//! The tests of this crate, in one program: each program is linked with all that it depends on.

mod common;
mod cost;
#[path = "equal_answers/main.rs"]
mod equal_answers;
mod expressions;
#[path = "items/main.rs"]
mod items;
#[path = "moving/main.rs"]
mod moving;
mod partiql;
mod point;
#[path = "query/main.rs"]
mod query;
mod scan_apart;
mod sets;
mod stepping;
mod transact;
