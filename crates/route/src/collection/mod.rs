//! Reads of collections: what Query, Scan and a PartiQL SELECT have in common, whichever strategy
//! stores their items.
//!
//! Every such read is one pipeline. The front ends (`query`, `scan`, `partiql`) say what to read;
//! the steps are the same:
//!
//! | step | what it does | where |
//! |---|---|---|
//! | fetch | asks the store for pages, and takes them apart | `template`, `page` |
//! | merge | puts the items of all shards in one order, as far as that is known | `query::merge` |
//! | fold | adds what other fragments of a counter hold | `counter::pages` |
//! | filter, project | tests each item with its logical key, and leaves what is shown of it | `selection` |
//! | cut | decides where the page ends and whether more follows | `query::scatter`, `scan` |
//! | encode | writes the page and the cursor at which the next one begins | `query::answer`, `selection`, `cursor` |
//!
//! The store is shown the filter but holds nothing back for it: what counts as evaluated, and where
//! a page ends, is decided here.

pub(crate) mod keys;
pub(crate) mod page;
pub(crate) mod position;
pub(crate) mod range;
pub(crate) mod selection;
pub(crate) mod template;
