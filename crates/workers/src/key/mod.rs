//! The reshard of a key: one logical key goes from its layout to another one while clients read and
//! write it.
//!
//! - [`Reshard::prepare`](crate::Reshard::prepare) checks whether the key can move, and says what
//!   it would take.
//! - [`Reshard::run`](crate::Reshard::run) does what a
//!   [`Coordinator`](heatsink_reshard::Coordinator) says: it writes the key's record, waits for the
//!   gateways, looks at the physical keys that the key will use, and moves the items. It can be
//!   killed anywhere: whoever runs it again goes on from what is on record.
//!
//! Not here: in which order that is right (`heatsink_reshard`), what clients' requests become
//! meanwhile (`route`), how a record becomes known (`control`).

pub(crate) mod batch;
pub(crate) mod estimate;
mod fold;
pub(crate) mod logical_key;
mod mover;
mod patience;
mod place;
pub(crate) mod prepare;
mod protocol;
mod pull;
pub(crate) mod quantiles;
pub(crate) mod report;
pub(crate) mod reshard;
mod run;
pub(crate) mod shares;
pub(crate) mod spare;
pub(crate) mod steps;
mod survey;
pub(crate) mod table_context;
pub(crate) mod wanted;
