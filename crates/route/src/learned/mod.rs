//! What a router has learned from requests and answers, for the plans after.

pub(crate) mod item_sizes;
pub(crate) mod tokens;
