//! DynamoDB's PartiQL: a statement's text to what it names, reads and writes, with the places of
//! everything in the text.
//!
//! The parser takes somewhat more than DynamoDB: refusing a statement is the store's affair, and
//! its words. What it does not take, nobody may guess the meaning of. A tree's spans are byte
//! ranges of the text, for whoever changes a key in it.
//!
//! Not here: the statement's other members (`wire`), the grammar of expressions (`expression`), and
//! what an item is. Why not a library: docs/develop/decisions/0005-partiql.md.

mod ast;
mod condition;
mod lexer;
mod lower;
mod parse;
mod tables;
mod term;
#[cfg(test)]
mod tests;
mod unread;

pub use ast::{
    Action, Condition, Named, Operand, Order, Place, Put, Returned, Span, Statement, Term, TermKind, Test,
    TestKind,
};
pub use parse::parse;
pub use tables::{is_select, tables, tables_at};
pub use unread::{MAX_DEPTH, Unread};

/// The longest statement DynamoDB takes, in characters (API reference, `ExecuteStatement`).
pub const MAX_STATEMENT: usize = 8192;
