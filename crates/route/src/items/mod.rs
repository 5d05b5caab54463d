//! Single items: reads and writes of what a primary key names. One way for all of them, whatever
//! the item's placement.
//!
//! A request is *placed* first: `physical` makes it physical for the slot that it goes to, by the
//! item's placement (`heatsink_layout::Placement`). Then:
//!
//! | placement | a read | a write |
//! |---|---|---|
//! | `One` | goes to the slot | goes to the slot |
//! | `AnyOf` | fetches all slots: the item is the one that is found | looks first (`assigned::seek`), then goes to the slot where the item was found and requires that it is still there |
//! | `SumOf` | fetches all slots, and adds the fragments' numbers | goes to the fragments that it concerns (`counter`) |
//! | `Moving` | reads both slots (`read`) | is `One`: the phase of the move says which, and what comes first (`moving`) |
//!
//! Front ends: `point` (GetItem, PutItem, UpdateItem, DeleteItem), `batch`, `transact`. Steps of a
//! read beneath them: `fetch`, `beside_folds`, `fold`, `shown` (projection), `wanted` and `read` (all of them in
//! order); in transactions `added`. PartiQL's writes are placed by the same context
//! (`partiql::keys`).
//!
//! Not here: reads of many items by a condition (`query`, `scan`).

pub(crate) mod added;
pub(crate) mod batch;
mod beside_folds;
pub(crate) mod fetch;
mod fold;
pub(crate) mod only;
pub(crate) mod physical;
pub(crate) mod point;
mod read;
mod require_exists;
pub(crate) mod shown;
pub(crate) mod transact;
mod wanted;
