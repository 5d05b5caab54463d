//! Searches every order in which gateways, whoever changes layouts, the store and the clock can
//! take their steps, and looks whether a client can be given an answer that one table alone would
//! not have given.
//!
//! [`heatsink_fence::Member`], [`heatsink_fence::Step`] and [`heatsink_fence::Head`] are used as
//! they are. One table name, one item, which lies at its raw key or in its shard. A configuration
//! is small and searched to its end; for every rule of the protocol there is one in which it is
//! left out, and the search has to notice. `HEATSINK_TRACE=1` prints how.
//!
//! Not here: more than one item or table, Query and Scan of clients, transactions, throttled
//! registries; whether anything ever gets done (each configuration shows that it can).

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod change;
mod config;
mod gateway;
mod program;
mod request;
mod search;
mod world;

mod adopted;
mod first_use;
mod member;
mod table_lifecycle;
