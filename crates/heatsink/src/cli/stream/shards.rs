//! The shards of a stream, and which of them can be read now: a shard's records come after those of
//! its parent.
//!
//! Not here: reading them (`reading`).

use std::collections::BTreeMap;

use serde_json::Value as Json;

use super::checkpoint::{Checkpoint, Position};

/// One shard, as far as it is read.
#[derive(Debug, Default)]
pub(super) struct Shard {
    parent: Option<String>,
    /// Whether its records before the command began are left out.
    pub(super) newest: bool,
    /// Where the next page begins; `None` before the store was asked.
    pub(super) iterator: Option<String>,
}

/// The shards that a stream has.
#[derive(Debug, Default)]
pub(super) struct Shards(BTreeMap<String, Shard>);

impl Shards {
    /// Takes in the shards that the stream has now, `Shards` of all pages of DescribeStream.
    /// `newest`: those that are open begin at their newest record.
    pub(super) fn update(&mut self, described: &[Json], newest: bool) {
        let id = |shard: &Json| shard["ShardId"].as_str().map(str::to_owned);
        let ids: Vec<String> = described.iter().filter_map(id).collect();
        self.0.retain(|shard, _| ids.contains(shard));
        for shard in described {
            let Some(id) = id(shard) else { continue };
            let parent = shard["ParentShardId"].as_str().map(str::to_owned);
            self.0.entry(id).or_insert_with(|| Shard { parent, newest, iterator: None });
        }
    }

    pub(super) fn has(&self, id: &str) -> bool {
        self.0.contains_key(id)
    }

    pub(super) fn get_mut(&mut self, id: &str) -> Option<&mut Shard> {
        self.0.get_mut(id)
    }

    /// Those that are not read to their end, and whose parents are, or are gone.
    pub(super) fn readable(&self, checkpoint: &Checkpoint) -> Vec<String> {
        let has_ended = |id: &str| checkpoint.position(id) == Some(&Position::Ended);
        let waits = |shard: &Shard| {
            shard.parent.as_ref().is_some_and(|parent| self.has(parent) && !has_ended(parent))
        };
        let readable = self.0.iter().filter(|(id, shard)| !has_ended(id) && !waits(shard));
        readable.map(|(id, _)| id.clone()).collect()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_shard_waits_for_its_parent_while_the_stream_has_it() {
        let mut checkpoint = Checkpoint::read(None, "t").unwrap();
        let mut shards = Shards::default();
        let shard = |id: &str, parent: &str| json!({ "ShardId": id, "ParentShardId": parent });
        shards.update(
            &[json!({ "ShardId": "a" }), shard("b", "a"), shard("c", "b"), shard("d", "gone")],
            false,
        );
        assert_eq!(shards.readable(&checkpoint), ["a", "d"]);
        checkpoint.set("a", Position::After("7".to_owned()));
        assert_eq!(shards.readable(&checkpoint), ["a", "d"]);
        checkpoint.set("a", Position::Ended);
        assert_eq!(shards.readable(&checkpoint), ["b", "d"]);
        shards.update(&[shard("c", "b"), shard("d", "gone")], false);
        assert_eq!(shards.readable(&checkpoint), ["c", "d"]);
    }
}
