//! Writes of one item that come while one of it is under way: they wait, and go as one when it
//! returns.
//!
//! The first write of an item leads: it is sent at once, alone. Those that come meanwhile wait in
//! their order (`queues`). When it returns the first of them leads: it takes with it those behind
//! it that can be combined with it (`heatsink_route::combine`), is sent, and tells each its own
//! answer (`lead`). There is no timer: a write that meets no other waits for nothing.
//!
//! All requests of an item are known by its physical key, each is planned before it comes here, and
//! each holds its own pass until its answer is delivered. So a write that is combined is sent only
//! to where the protocol of layouts lets each of them be sent.
//!
//! Not here: whether a rule wants that (`heatsink_control`). Transactions, batches and statements
//! are sent as they come, beside what waits here.

mod combining;
mod lead;
mod queues;

pub(crate) use combining::{Combining, given_up};
pub(crate) use queues::Combiner;
