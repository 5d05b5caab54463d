//! Attribute values.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;

/// An attribute value. Numbers keep the text that was sent; `number` gives them their order and arithmetic.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs, reason = "the names are DynamoDB's own")]
pub enum Value {
    S(String),
    N(String),
    B(Bytes),
    Bool(bool),
    Null,
    Ss(BTreeSet<String>),
    Ns(Vec<String>),
    Bs(BTreeSet<Bytes>),
    L(Vec<Value>),
    M(Item),
}

/// An item, or a map within one: attributes by name.
pub type Item = BTreeMap<String, Value>;
