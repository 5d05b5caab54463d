//! A prepared reshard of one key: what it knows. Not here: preparing it (`prepare`), carrying it
//! out (`run`).

use std::sync::Arc;

use heatsink_control::describe::Described;
use heatsink_control::registry::Registry;
use heatsink_control::{KeyRecord, KeyWrites, Record};
use heatsink_layout::Layout;

use crate::key::logical_key::Key;
use crate::key::shares::Shares;
use heatsink_control::Announcer;

/// A prepared reshard of one key.
pub struct Reshard {
    pub(crate) registry: Registry,
    pub(crate) announcer: Announcer,
    pub(crate) described: Described,
    pub(crate) table: Option<Record>,
    pub(crate) record: Option<KeyRecord>,
    pub(crate) key: Key,
    pub(crate) from: Layout,
    pub(crate) to: Layout,
    /// The attribute by which items of the table expire.
    pub(crate) expires: Option<String>,
    /// Who writes records of the table's keys in this process.
    pub(crate) writes: Arc<KeyWrites>,
    /// Who moves items in this process.
    pub(crate) shares: Arc<Shares>,
}
