//! The directory of buckets: which buckets each logical key has had an item in.
//!
//! One table in the store, `heatsink.buckets`, hidden from clients: a row for each key and bucket,
//! written before the bucket's first item and never removed. So a bucket without a row holds
//! nothing, and one with a row may hold something.
//!
//! Not here: the requests that read and write those rows, and what a process remembers of them.

use xxhash_rust::xxh3::xxh3_128;

use crate::Table;

/// The directory's table name. Its partition key `pk` is [`directory_key`], its sort key `sk` the
/// bucket as text; both strings.
pub const DIRECTORY: &str = "heatsink.buckets";

/// The key of a logical key's rows: the table's id and a hash. Should two keys of one table ever
/// share it, each is also looked for in the other's buckets, which are then empty: that costs reads
/// and loses nothing.
pub fn directory_key(table: &Table, logical: &[u8]) -> String {
    format!("{}#{:032x}", table.id, xxh3_128(logical))
}
