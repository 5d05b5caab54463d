//! Single items as workers find them: where each lies, where it belongs, and how it gets there.

pub(crate) mod index_rewrite;
pub(crate) mod index_value;
pub(crate) mod item;
pub(crate) mod item_location;
pub(crate) mod item_move;
pub(crate) mod walk;
