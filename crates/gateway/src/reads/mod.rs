//! Reads that are not sent: identical ones become one while it is under way, and an answer is given
//! again for as long as its rule says.
//!
//! Identical are eventually consistent requests for one key of a table with the same body. A write
//! of that key through this gateway begins a new generation before it is acknowledged
//! (`generations`): a read that comes after it joins no read from before, and is given no answer
//! from before. So no client misses its own write here. What another gateway, or another writer,
//! has written is seen once the answer is as old as the rule allows.
//!
//! Not here: which reads a rule means (`heatsink_control`), who may read what (`rights`): each
//! request is judged and planned before it comes here.

mod answers;
mod flights;
mod generations;
mod id;

pub(crate) use flights::{Entered, Lead, Reads, Ways};
pub(crate) use generations::Place;
pub(crate) use id::ReadId;
