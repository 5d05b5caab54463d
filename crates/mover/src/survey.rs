//! Looks at the physical keys that a key will use: what lies there, and should not.

use heatsink_control::claim::Claim;
use heatsink_control::registry::Registry;
use heatsink_layout::Layout;
use serde_json::{Value as Json, json};

use crate::error::ReshardError;
use crate::key::Key;

/// What was found there.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Items that clients have put under a name which only looks like a shard's: such a name cannot become one.
    pub foreign: u64,
    /// Items of this key that an earlier layout left there: their primary keys.
    pub orphans: Vec<Json>,
    /// The first name with items of clients.
    pub named: Option<String>,
}

/// Reads them all. `reserved`: shards below this number were this key's before.
///
/// # Errors
/// The store's.
pub(crate) async fn survey(
    registry: &Registry,
    key: &Key,
    from: &Layout,
    to: &Layout,
    reserved: u16,
) -> Result<Found, ReshardError> {
    let mut found = Found::default();
    for shard in 0..to.shards {
        // Where all items of the key lie, none can be elsewhere.
        if shard == 0 && from.shards == 1 {
            continue;
        }
        let physical = key.physical(to, shard)?;
        let mut start = None;
        loop {
            let page = key.page(registry, &physical, start.as_ref(), None).await?;
            for (sort, item) in &page.items {
                if shard >= reserved.max(1) {
                    found.foreign += 1;
                    found.named.get_or_insert_with(|| physical.to_string());
                } else if Key::shard(from, sort) != shard {
                    found.orphans.push(key.primary(&physical, item));
                }
            }
            // One is enough to refuse the move.
            start = page.more.filter(|_| found.foreign == 0);
            if start.is_none() {
                break;
            }
        }
    }
    Ok(found)
}

/// Deletes what an earlier layout left.
///
/// # Errors
/// The store's; another worker that has taken over.
pub(crate) async fn clear(claim: &Claim, key: &Key, orphans: &[Json]) -> Result<(), ReshardError> {
    for orphan in orphans {
        let delete = json!({ "TableName": key.table.name, "Key": orphan });
        claim.write(vec![json!({ "Delete": delete })]).await?;
    }
    Ok(())
}
