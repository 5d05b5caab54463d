//! The HTTP front over TLS: what holds of hang-up, slow, unread and crowd without TLS holds with
//! it, and what TLS adds.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "processes and sockets keep real time")]
#![allow(dead_code, reason = "the modules of `http` have more than is used here")]

mod carrier;
mod certificates;
#[path = "../http/client.rs"]
mod client;
#[path = "../http/crowd.rs"]
mod crowd;
mod files;
mod handshakes;
#[path = "../http/hangup.rs"]
mod hangup;
mod identity;
#[path = "../http/memory.rs"]
mod memory;
#[path = "../http/pipelines.rs"]
mod pipelines;
mod room;
mod roots;
#[path = "../http/server.rs"]
mod server;
#[path = "../http/slow.rs"]
mod slow;
#[path = "../http/store.rs"]
mod store;
#[path = "../http/unread.rs"]
mod unread;
mod withdrawn;
