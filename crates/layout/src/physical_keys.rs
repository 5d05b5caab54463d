//! What becomes of clients' keys that are written like physical ones. Which are is the table's to
//! say (`physical`).

/// What becomes of a client's key that is written like a physical one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum PhysicalKeys {
    /// It is a logical key like any other, with shards of its own.
    #[default]
    Accept,
    /// It is refused.
    Refuse,
    /// It is the physical key that it is written like: the item of the logical key, in that shard.
    AsShard,
}
