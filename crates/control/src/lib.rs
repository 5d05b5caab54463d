//! Which layout is in force: rules from the configuration, and the registry that records layouts.
//!
//! Gateways use [`Control`]. Workers, which change a table's record and items beside gateways
//! (`adopt`), use [`registry`], [`claim`], [`describe`], [`tags`] and [`Changer`]; nothing else is
//! public for them.
//!
//! Not here: moving items (`adopt`), how a layout places an item (`layout`), what a request becomes
//! under it (`route`), HTTP (`gateway`).

mod announcer;
mod behind_head;
mod cached_keys;
mod check;
pub mod claim;
mod control;
mod counted;
pub mod describe;
mod dismantle;
mod entered_keys;
pub mod fence;
mod first_use;
pub mod heat_reports;
mod in_progress;
mod inner;
mod key_record;
mod known_keys;
pub mod lost_registry;
mod memory;
pub mod missed_record;
mod name;
mod own_names;
mod put_on_record;
mod range_traces;
mod record;
mod records;
pub mod registry;
mod registry_key;
mod reserved_keys;
pub mod reshard_intent;
mod resolve;
mod rest;
pub mod rules;
mod seal;
mod shard_traces;
mod slot_traces;
mod table_cache;
mod table_lifecycle;
pub mod tags;
mod tally;
mod together;
mod touched;
mod transact;
mod unread_keys;
mod unrecorded_table;
mod unsharded_tables;

pub use announcer::Announcer;
pub use check::{Checked, Named, Verdict, check};
pub use control::{CheckedRules, Control, Prepared, SharedKey, StartError, View};
pub use dismantle::Dismantled;
pub use fence::{Changer, Fencing, Gateway, Pass, RuledTables, Sending};
pub use heatsink_fence::{Awaits, Bounds};
pub use heatsink_layout::{KeyLayout, TableLayouts};
pub use key_record::{KeyRecord, KeyRecords, KeyWrites, MAX_KEY_RECORDS, Move, TableFacts, settled_layouts};
pub use memory::{Expectation, Memory, RememberedTable};
pub use own_names::keeps_to_itself;
pub use record::{AdoptionCheckpoint, IndexKeyMigration, Record, State, TableChange};
pub use registry::{NOBODY, REGISTRY};
pub use resolve::agree;
pub use rest::REST;
pub use rules::{
    Automatic, ClientLimits, ClientSettings, DesiredLayout, Mode, RightsSettings, Rules, RulesError, Secret,
    SecretSource, SharedCalls, WebhookSettings,
};
pub use shard_traces::{KeyTraces, MOST_SHARDS, ShardTraces};
pub use table_cache::MAX_AGE;
pub use tally::Tally;
pub use together::Together;
pub use touched::Touched;
pub use unread_keys::UnreadKeys;
