//! Counters: numbers that are added to in any of N fragments and summed when they are read. The
//! placement is `SumOf`.
//!
//! The item (pk, sk) of a counter has fragments at the physical keys of its N shards. The base
//! fragment, in shard 0, holds all its attributes; the others hold the key and parts of the
//! declared numbers. **The base fragment exists whenever another fragment does**, so that
//! conditions on existence are right on it alone: an ADD to another fragment is conditional on that
//! fragment, and where it does not exist yet, one transaction creates it beside the base fragment.
//!
//! | request | becomes |
//! |---|---|
//! | an UpdateItem that only adds to declared numbers | the same on one fragment, each in turn (`add`) |
//! | a write that neither sets nor reads them | the same on the base fragment |
//! | a write that sets, removes or replaces them | one transaction over all fragments (`fragments::transaction`); in a BatchWriteItem one for each counter (`batch`) |
//! | a read that shows them | all fragments, folded into one item (`fragments::fold`; of pages `pages`, of single items the module `items`) |
//! | a PartiQL statement | a Query or a Scan; a statement on the base fragment, or a transaction over all (`statement`) |
//!
//! What no fragment can know is refused (`fragments::effect`): a write that reads or returns a
//! declared number. Why so: docs/develop/decisions/0008-counters.md.

mod add;
pub(crate) mod batch;
mod index;
pub(crate) mod pages;
pub(crate) mod statement;
pub(crate) mod write;

use heatsink_dynamo::{Error, json};

pub(crate) use index::{of_index, of_table};

/// Refuses to turn on time to live: it deletes the base fragment alone, and the parts in the others
/// would come back with the next write.
///
/// # Errors
/// `ValidationException`.
pub(crate) fn refuse_expiry(body: &[u8]) -> Result<(), Error> {
    let specification = json::member(body, "TimeToLiveSpecification").ok().flatten();
    let enabled = specification.and_then(|one| json::member(one, "Enabled").ok()?);
    if enabled != Some(b"true") {
        return Ok(());
    }
    Err(Error::gateway_rejection(
        "Not supported on a table with counters: time to live would delete the first row of a counter and leave the parts in its other \
         rows. Delete counters with DeleteItem, or keep them in a table of their own",
    ))
}
