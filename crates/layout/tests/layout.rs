//! The tests of this crate, in one program: each program is linked with all that it depends on.

mod by_hand;
mod codec;
mod index;
mod logical_vectors;
mod number_codec;
mod placement;
mod recipes;
mod record;
mod shards;
mod slots;
mod time;
