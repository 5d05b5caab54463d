//! DynamoDB's expression language: parsed, checked, evaluated, rewritten.
//!
//! Parsing resolves placeholders ([`Bindings`]), so the tree ([`ast`]) holds names and values.
//! Rewriting renders a tree with placeholders of its own ([`Fresh`]), since those of the request
//! may be shared between expressions.
//!
//! Not here: the legacy parameters (`Expected`, `QueryFilter`, `AttributeUpdates`), and whether an
//! update touches a key attribute (the caller knows the table).

pub mod ast;
mod attribute_updates;
mod bindings;
mod check;
mod condition;
mod cost;
mod eval;
mod faults;
mod key_condition;
mod kind;
mod lexer;
mod parse;
mod path;
mod project;
mod projection;
mod render;
mod reserved;
mod substitute;
mod update;
mod update_parse;

pub use ast::{Assigned, Comparator, Condition, Operand, Path, Projection, Step, Update};
pub use bindings::{Bindings, Fresh, may_mention, placeholders};
pub use cost::{Extent, Measured};
pub use key_condition::{KeyCondition, SortTest};
pub use kind::{Checks, Kind, MAX_EXPRESSION, MAX_IN_OPERANDS, MAX_OPERATORS};
pub use reserved::is_reserved;

#[cfg(test)]
mod tests;
