//! The clients of a gateway: who they are, by their signatures or certificates, and what each may do.
//!
//! [`Clients`] is one immutable value, made of the `[[client]]` sections of a rules file and of the
//! files and variables that these name. Whoever reloads them makes a new one and puts it in the
//! place of the old: a request is judged by the one that is in force once it has come whole.
//!
//! Not here: the sections themselves (`heatsink-control`), how a signature is verified
//! (`heatsink-signature`), sockets.

mod access;
mod actions;
mod asked;
mod caller;
mod certificates;
mod clients;
mod facts;
mod globs;
mod policy;
mod rights;
pub mod secret_file;
mod sections;

pub use caller::{Caller, Request};
pub use clients::{Claimed, Clients};
pub use facts::TableFacts;
pub use heatsink_signature::{BodyHash, BodyHasher, Claim, Scope};
