//! Searches every order in which gateways, coordinators, movers and the store can take their steps
//! while a key moves, and looks whether a client can be given an answer that one plain table would
//! not have given.
//!
//! [`heatsink_reshard`]'s machines are used as they are. One or two items of one key, each with a
//! copy in either layout. A configuration is a set of small scripts, searched to its end. For every
//! rule of the protocol there is one in which it is left out, and the search has to notice.
//! `HEATSINK_TRACE=1` prints how.
//!
//! Time is an order of events here: a wait for stragglers removes the late calls that it covers. A
//! gateway that is stopped takes no step; that a step of the fence gets past it when its lease is
//! over is the model of `heatsink-fence`. Here it gives up what it had under way, and acknowledges.
//!
//! Not here: Scan, batches, transactions of clients, indexes, more than two items; whether anything
//! ever gets done (each configuration shows that it can).

#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "a test fails by panicking"
)]

mod change;
mod config;
mod gateway;
mod monitor;
mod search;
mod worker;
mod world;

mod coordinators;
mod counters;
mod counters_back;
mod narrowing;
mod one_item;
mod reserve;
mod steps;
mod tables;
mod time_to_live;
mod two_items;
mod two_keys;
mod widening;
