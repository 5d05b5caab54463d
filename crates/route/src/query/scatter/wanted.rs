//! What a gathered Query asks for: enough to read it from its start, as often as needed. Not here:
//! how far it has been read (`super`).

use std::sync::Arc;

use crate::collection::keys::Key;
use crate::learned::item_sizes::ItemSizes;
use crate::query::buckets::Buckets;
use crate::query::shape::Gathering;
use crate::query::source::Source;

/// What a gathered Query asks for.
pub(crate) struct Wanted {
    pub(crate) gathering: Gathering,
    pub(crate) source: Source,
    /// The sort key of a cursor that does not say in which of several shards its item lies.
    pub(crate) passed: Option<Key>,
    /// Whether shards that cannot be read are left out.
    pub(crate) partial: bool,
    pub(crate) limit: Option<usize>,
    pub(crate) descending: bool,
    pub(crate) sizes: Arc<ItemSizes>,
    /// The name under which item sizes are learned.
    pub(crate) learned_as: String,
}

impl Wanted {
    /// The buckets that it is asked of; `None` where its streams are known from the start.
    pub(super) fn buckets(&self) -> Option<&Buckets> {
        match &self.source {
            Source::Buckets(buckets) => Some(buckets),
            Source::Streams(_) | Source::Ranges(_) => None,
        }
    }

    /// Whether its streams are all known from the start, and each is read if the merge needs it.
    pub(super) fn reads_all(&self) -> bool {
        matches!(self.source, Source::Streams(_))
    }
}
