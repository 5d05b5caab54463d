//! The clients of a gateway: who they are, by their signatures, and what each may do.
//!
//! [`Clients`] is one immutable value, made of the `[[client]]` sections of a rules file and of the
//! files and variables that these name. Whoever reloads them makes a new one and puts it in the
//! place of the old: a request is judged by the one that was in force when its head came.
//!
//! Not here: the sections themselves (`heatsink-control`), how a signature is verified
//! (`heatsink-signature`), sockets.

mod access;
mod actions;
mod asked;
mod caller;
mod clients;
mod facts;
mod globs;
mod policy;
mod rights;
pub mod secret_file;

pub use caller::{Caller, Request};
pub use clients::Clients;
pub use facts::TableFacts;
pub use heatsink_signature::{BodyHasher, Claim, Scope};
