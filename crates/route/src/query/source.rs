//! Where the streams of a gathered Query come from.

use super::buckets::Buckets;
use super::ranges::Ranges;
use super::shard_streams::ShardStream;

/// Where the streams of a gathered Query come from.
pub(crate) enum Source {
    /// These.
    Streams(Vec<ShardStream>),
    /// These, opened one after the other.
    Ranges(Ranges),
    /// They are found on the way.
    Buckets(Box<Buckets>),
}
