//! Request and layouts to a plan; responses to one response; cursors.
//!
//! Sans-IO: nothing here reads a clock or opens a socket, and nothing but [`Calls`] is waited for.
//! A [`Router`] makes a [`Plan`] of a request; the plan is an async function over [`Calls`], which
//! carries out its physical calls.
//!
//! One module per kind of request: `items` (what primary keys name), `scan`, `query`, `partiql`,
//! `streams`, `list_tables`, `hidden`. Strategies whose items do not lie in one slot each have a
//! folder: `counter`, `assigned` (other writers assign the shard). Beneath them `key` (where an
//! item lies, its key physical and logical), `splice` (a body with a few places changed), `answer`
//! (answers made logical), `collection` (what all reads of many items share), `cursor` (what a
//! cursor holds), `layout_cursor` (cursors that say a layout), `identity` (which item something is
//! of), `fragments` (physical keys of an item; what counters write to theirs), `moving_item`,
//! `context` (what one planning knows and learns), `learned` and `shared` (what all plans of one
//! router share). Keys that move pass through `moving`. Beside them `combine`: physical writes of one
//! item as one.

mod answer;
mod assigned;
mod calls;
mod capacity;
mod collection;
pub mod combine;
mod context;
mod counter;
mod cursor;
mod directory;
mod dry_run;
mod expression;
mod fragments;
mod hidden;
mod identity;
mod index_key;
mod items;
mod key;
mod layout_cursor;
mod learned;
mod legacy;
mod list_tables;
mod moving;
mod moving_item;
mod partiql;
mod plan;
mod preflight;
mod projection;
pub mod query;
mod refusal;
mod request;
mod router;
mod scan;
mod shared;
mod splice;
mod streams;
mod tables;
mod unrecorded;

pub use calls::{Answer, Calls, PhysicalCall, Round, Take, Target};
pub use plan::{CallExplanation, Estimate, Explanation, Kind, Plan, Planned};
pub use refusal::name_rules;
pub use router::Router;
pub use tables::{NAMING, iterator_table, table_name, tables_of};
