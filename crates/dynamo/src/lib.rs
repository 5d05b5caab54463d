//! DynamoDB's own language, without a network: operations, errors, wire checks, values, keys,
//! expressions, item sizes and capacity units.
//!
//! This crate knows nothing of Heatsink: no shards, no layouts, no HTTP. Everything here is a plain
//! function from values to values. What it claims about DynamoDB names its source.

pub mod capacity;
pub mod comparison;
pub mod display;
pub mod error;
pub mod expression;
pub mod json;
pub mod key;
mod memory_estimate;
pub mod number;
pub mod operation;
pub mod pages;
pub mod partiql;
pub mod size;
pub mod table;
pub mod value;
pub mod wire;

pub use error::{Code, Error, Fault, Origin, Outcome};
pub use key::KeyValue;
pub use memory_estimate::memory_estimate;
pub use number::Number;
pub use operation::{Operation, RightTo};
pub use table::{
    AttributeDefinition, IndexKeySchema, IndexSchema, KeyAttributes, KeySchema, KeyType, TableSchema,
    is_table_name,
};
pub use value::{Item, Value};
