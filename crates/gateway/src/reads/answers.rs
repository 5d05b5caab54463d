//! Answers that are given again for some milliseconds. The least recently used go first.

use std::sync::Arc;
use std::time::Duration;

use foldhash::quality::RandomState;
use hashlink::LruCache;
use heatsink_env::MonotonicInstant;
use heatsink_route::Answer;

use super::generations::Generation;
use super::id::ReadId;
use crate::budget::{Budget, Held};

/// What an answer takes beside its bytes.
const OVERHEAD: usize = 256;

/// Answers, within so many bytes.
pub(super) struct Answers {
    kept: LruCache<ReadId, Kept, RandomState>,
    bytes: usize,
    most: usize,
    budget: Arc<Budget>,
}

struct Kept {
    answer: Answer,
    generation: Generation,
    begun: MonotonicInstant,
    bytes: usize,
    _held: Held,
}

impl Answers {
    pub(super) fn new(most: usize, budget: &Arc<Budget>) -> Self {
        let kept = LruCache::with_hasher(usize::MAX, RandomState::default());
        Answers { kept, bytes: 0, most, budget: Arc::clone(budget) }
    }

    /// The answer to a read of that generation, if it began less than `age` ago.
    pub(super) fn get(
        &mut self,
        id: &ReadId,
        generation: Generation,
        age: Duration,
        now: MonotonicInstant,
    ) -> Option<Answer> {
        let kept = self.kept.get(id)?;
        if kept.generation == generation && now.since(kept.begun) < age {
            return Some(kept.answer.clone());
        }
        if let Some(old) = self.kept.remove(id) {
            self.bytes -= old.bytes;
        }
        None
    }

    /// Keeps the answer to a read that began then, if there is room.
    pub(super) fn keep(
        &mut self,
        id: ReadId,
        answer: &Answer,
        generation: Generation,
        begun: MonotonicInstant,
    ) {
        let bytes = id.bytes() + answer.body.len() + OVERHEAD;
        if bytes > self.most / 8 {
            return;
        }
        if let Some(old) = self.kept.remove(&id) {
            self.bytes -= old.bytes;
        }
        while self.bytes + bytes > self.most {
            let Some((_, old)) = self.kept.remove_lru() else { break };
            self.bytes -= old.bytes;
        }
        let Some(held) = self.budget.try_hold(bytes) else {
            // Requests need the memory.
            self.kept.clear();
            self.bytes = 0;
            return;
        };
        self.bytes += bytes;
        self.kept.insert(id, Kept { answer: answer.clone(), generation, begun, bytes, _held: held });
    }
}
