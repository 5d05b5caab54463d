//! The layouts on record for single logical keys of one table. They precede the table's rules.
//!
//! In a table without layouts of its own, keys stay as clients send them, and only the shards of
//! recorded keys have the reserved form: `K#~i` is shard i of K if K is on record with more than i
//! shards, at any time. Every other key of that form is the client's. So it is for numbers, with the
//! form of their own.
//!
//! Not here: where these layouts are recorded (`control`), and how a physical key is written and
//! read ([`Table`](crate::Table)).

use std::collections::HashMap;

use xxhash_rust::xxh3::{Xxh3, xxh3_64};

use heatsink_dynamo::KeyType;

use crate::{InForce, Layout, Moving, Phase, codec};

/// One logical key on record.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RecordedKey {
    /// What is in force.
    pub in_force: InForce,
    /// Shards from 1 up to this number, exclusive, are this key's and nobody else's: the most
    /// shards that it ever had.
    pub reserved: u16,
    /// The version of the table's record with which the key began to lie, or to move, as it does. A
    /// move begins with PREPARE: before that nothing of the key lies elsewhere, or is about to. Its
    /// later phases are no changes. 0 for a key that has never moved.
    pub since: u64,
    /// Whether every gateway knows that the key has this layout.
    pub settled: bool,
}

impl RecordedKey {
    /// Whether gateways may not know yet that the key begins to move, or that it has come to rest.
    /// The items of counters stay.
    fn may_be_unknown(&self) -> bool {
        match &self.in_force {
            InForce::Widening(_) | InForce::Narrowing(_) | InForce::Stepping(_) => false,
            InForce::Moving(moving) if changes_counter(moving) => false,
            InForce::Stable(layout) if layout.counter_attributes().is_some() => false,
            _ => self.phase().map_or(!self.settled && self.since > 0, |phase| phase == Phase::Prepare),
        }
    }

    /// Whether its items lie, or may lie, elsewhere than they did before it was on record. Those of
    /// counters and buckets stay where they are.
    fn has_moved(&self) -> bool {
        let stays = match &self.in_force {
            InForce::Widening(_) | InForce::Narrowing(_) | InForce::Stepping(_) => true,
            InForce::Moving(moving) => changes_counter(moving),
            InForce::Stable(layout) => layout.counter_attributes().is_some(),
        };
        self.since > 0 && !stays
    }

    /// How far its move has come, from PREPARE on.
    fn phase(&self) -> Option<Phase> {
        match &self.in_force {
            InForce::Moving(moving) => Some(moving.phase).filter(|phase| *phase > Phase::Reserve),
            InForce::Stable(_) | InForce::Widening(_) | InForce::Narrowing(_) | InForce::Stepping(_) => None,
        }
    }

    /// The attributes that are summed over fragments: also of a key whose other fragments are about
    /// to be made.
    fn counter_attributes(&self) -> &[String] {
        let layout = match &self.in_force {
            InForce::Stable(layout) => layout,
            InForce::Moving(moving) if moving.from.counter_attributes().is_some() => &moving.from,
            InForce::Moving(moving) => &moving.to,
            InForce::Widening(widening) => &widening.layout,
            InForce::Narrowing(narrowing) => &narrowing.layout,
            InForce::Stepping(stepping) => &stepping.layout,
        };
        layout.counter_attributes().unwrap_or_default()
    }
}

/// Whether a counter gets more fragments, or fewer: it is in RESERVE.
fn changes_counter(moving: &Moving) -> bool {
    Moving::widens(&moving.from, &moving.to) || Moving::narrows(&moving.from, &moving.to)
}

/// The layouts of the recorded keys of one table. Immutable, and shared by all requests of one
/// version.
#[derive(Debug, Default)]
pub struct KeyLayouts {
    version: u64,
    digest: u64,
    moving: usize,
    /// The newest [`RecordedKey::since`].
    newest: u64,
    begin: u64,
    /// The newest change after which records of keys were taken off while others stayed; 0 if none.
    forgotten: u64,
    has_moved: bool,
    changes: bool,
    narrows: bool,
    /// Sorted, each once.
    counter_attributes: Vec<String>,
    by_key: HashMap<Box<[u8]>, RecordedKey>,
}

impl KeyLayouts {
    /// The layouts of these keys, read when the table's record had that version of them; not 0.
    pub fn new(version: u64, keys: impl IntoIterator<Item = (Vec<u8>, RecordedKey)>) -> Self {
        let by_key: HashMap<Box<[u8]>, RecordedKey> =
            keys.into_iter().map(|(key, of)| (key.into_boxed_slice(), of)).collect();
        // A key that has never moved lies as it would without a record.
        let mut sorted: Vec<_> = by_key.iter().filter(|(_, of)| of.since > 0).collect();
        sorted.sort_unstable_by_key(|(key, _)| *key);
        let (mut digest, whole) = (Xxh3::new(), Layout::none());
        for (key, of) in sorted {
            digest.update(&key.len().to_be_bytes());
            digest.update(key);
            let (layout, moves) = match &of.in_force {
                InForce::Stable(layout) => (layout, None),
                InForce::Widening(widening) => (&widening.layout, None),
                InForce::Narrowing(narrowing) => (&narrowing.layout, None),
                InForce::Stepping(stepping) => (&stepping.layout, None),
                // Before PREPARE all lies as ever, and from then on readers put both layouts in one
                // order.
                InForce::Moving(moving) => (&moving.from, of.phase().map(|_| &*moving.to)),
            };
            // However many fragments a counter has: its items lie where the base fragments do.
            let layout = if layout.counter_attributes().is_some() { &whole } else { &**layout };
            digest.update(&serde_json::to_vec(&(layout, moves)).unwrap_or_default());
        }
        let moving = by_key.values().filter(|of| matches!(of.in_force, InForce::Moving(_))).count();
        let newest = by_key.values().map(|of| of.since).max().unwrap_or_default();
        let unknown = by_key.values().filter(|of| of.may_be_unknown()).map(|of| of.since.saturating_sub(1));
        let has_moved = by_key.values().any(RecordedKey::has_moved);
        // A record that is newer than the table's was read by chance: not all gateways know of it.
        let changes = |of: &RecordedKey| {
            of.phase().is_some() || of.may_be_unknown() || of.since > version && of.has_moved()
        };
        let changes = by_key.values().any(changes);
        let narrows = by_key.values().any(|of| matches!(of.in_force, InForce::Narrowing(_)));
        let begin = unknown.min().unwrap_or(u64::MAX).min(newest).min(version);
        let mut counter_attributes: Vec<String> =
            by_key.values().flat_map(RecordedKey::counter_attributes).cloned().collect();
        counter_attributes.sort_unstable();
        counter_attributes.dedup();
        KeyLayouts {
            version,
            digest: digest.digest(),
            moving,
            newest,
            begin,
            forgotten: 0,
            has_moved,
            changes,
            narrows,
            counter_attributes,
            by_key,
        }
    }

    /// The same, of a table whose record had that version when records of other keys were last taken
    /// off it; 0 if none were.
    #[must_use]
    pub fn forgotten(self, forgotten: u64) -> Self {
        KeyLayouts { forgotten, ..self }
    }

    /// Whether a key may have left the record that had changed by then: a Scan that has left its
    /// items out would not find it at its end.
    pub fn has_forgotten(&self, since: u64) -> bool {
        since < self.forgotten
    }

    /// The version that the table's record had; 0 for a table that never had a recorded key.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// A digest of all of them: another one where a key lies elsewhere.
    pub(crate) fn digest(&self) -> u64 {
        self.digest
    }

    /// How many keys are on record.
    pub fn len(&self) -> usize {
        self.by_key.len()
    }

    /// Whether no key is on record.
    pub fn is_empty(&self) -> bool {
        self.by_key.is_empty()
    }

    /// The attributes of counters among them, each once.
    pub fn counter_attributes(&self) -> &[String] {
        &self.counter_attributes
    }

    /// Whether items of a key on record lie, or may lie, elsewhere than they once did.
    pub fn any_has_moved(&self) -> bool {
        self.has_moved
    }

    /// Whether a key has begun a move, or ended one so lately that gateways may not know.
    pub fn any_changes(&self) -> bool {
        self.changes
    }

    /// Whether a counter loses fragments ([`Narrowing`](crate::Narrowing)).
    pub fn any_narrows(&self) -> bool {
        self.narrows
    }

    /// Whether a key moves.
    pub fn any_moves(&self) -> bool {
        self.moving > 0
    }

    /// The newest change of where a key lies that these layouts surely show, and all before it; 0
    /// without recorded keys. Records are not read at one moment: some may show a later change,
    /// whose number is then higher.
    pub fn newest(&self) -> u64 {
        self.newest.min(self.version).max(self.forgotten)
    }

    /// What a Scan that begins now takes for the newest change. Of a key that has changed so lately
    /// that another segment of the same Scan may not know, it is the one before: then every segment
    /// reads the key by itself.
    pub fn begin(&self) -> u64 {
        self.begin
    }

    /// Whether a Scan that began when the newest change was `since` meets a key whose items it has
    /// to read by themselves ([`is_apart`](Self::is_apart)).
    pub fn any_apart(&self, since: u64) -> bool {
        self.newest > since || self.any_moves() && self.by_key.values().any(|of| of.phase().is_some())
    }

    /// Whether a Scan that began when the newest change was `since` has to read the items of a
    /// logical key by themselves, and not where it meets them: the key moves, or has changed
    /// meanwhile, so that some of its items may lie where the Scan has been before.
    pub fn is_apart(&self, key: &[u8], since: u64) -> bool {
        self.get(key).is_some_and(|of| of.since > since || of.phase().is_some())
    }

    /// The first such key behind `after`, in the order of bytes, that a segment of a parallel Scan
    /// has to read; `segment` is its number and their count. Each segment reads the keys that have
    /// changed since it began: another one may have been through before. A key that moved even then
    /// is read by one of them.
    pub fn next_apart(&self, since: u64, after: Option<&[u8]>, segment: Option<(u64, u64)>) -> Option<&[u8]> {
        let owns = |key: &[u8]| segment.is_none_or(|(number, count)| xxh3_64(key) % count.max(1) == number);
        let behind = |key: &[u8]| after.is_none_or(|after| key > after);
        let wanted = self
            .iter()
            .filter(|(key, of)| behind(key) && (of.since > since || of.phase().is_some() && owns(key)));
        wanted.map(|(key, _)| key).min()
    }

    /// What is on record for a logical key.
    pub fn get(&self, key: &[u8]) -> Option<&RecordedKey> {
        self.by_key.get(key)
    }

    /// The recorded keys, in no order.
    pub fn iter(&self) -> impl Iterator<Item = (&[u8], &RecordedKey)> {
        self.by_key.iter().map(|(key, of)| (&**key, of))
    }

    /// Reads a key of that type as a shard of a recorded one: the recorded key, a part of it, and
    /// the shard, at least 1. `None` for a client's key.
    pub fn shard<'a>(&self, key: &'a [u8], key_type: KeyType) -> Option<(&'a [u8], u16)> {
        if self.by_key.is_empty() {
            return None;
        }
        let (logical, shard) = codec::split_shard_of(key, key_type)?;
        (shard < self.get(logical)?.reserved).then_some((logical, shard))
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;

    fn recorded(reserved: u16) -> RecordedKey {
        RecordedKey { in_force: InForce::Stable(Arc::new(Layout::none())), reserved, since: 1, settled: true }
    }

    #[test]
    fn only_shards_of_recorded_keys_are_shards() {
        let keys = [("hot", 4), ("hot#~7", 3), ("whole", 1)];
        let keys = keys.map(|(key, reserved)| (key.as_bytes().to_vec(), recorded(reserved)));
        let layouts = KeyLayouts::new(1, keys);
        let shard = |key: &'static str| layouts.shard(key.as_bytes(), KeyType::S);
        assert_eq!(shard("hot#~3"), Some((&b"hot"[..], 3)));
        assert_eq!(shard("hot#~7#~2"), Some((&b"hot#~7"[..], 2)));
        for own in
            ["hot", "hot#~0", "hot#~4", "hot#~7", "hot#~03", "cold#~1", "whole#~1", "hot#~99999", "#~1"]
        {
            assert_eq!(shard(own), None, "{own}");
        }
        let layouts = KeyLayouts::new(1, [(b"12.5".to_vec(), recorded(4))]);
        let shard = |key: &'static str, key_type| layouts.shard(key.as_bytes(), key_type);
        assert_eq!(shard("12.5000007095510003", KeyType::N), Some((&b"12.5"[..], 3)));
        assert_eq!(shard("12.5000007095510003", KeyType::S), None);
        for own in ["12.5", "12.5#~3", "12.5000007095510004", "13.0000007095510003", "-12.5000007095510003"] {
            assert_eq!(shard(own, KeyType::N), None, "{own}");
        }
    }

    #[test]
    fn a_scan_reads_apart_what_moves_and_what_has_changed_since() {
        let stable = |since| RecordedKey { since, ..recorded(4) };
        let layout = Arc::new(Layout::none());
        let moving = Moving {
            from: Arc::clone(&layout),
            to: layout,
            phase: Phase::Move,
            expires: None,
            marks: false,
            high_water: None,
        };
        let moving = RecordedKey {
            in_force: InForce::Moving(Arc::new(moving)),
            reserved: 4,
            since: 3,
            settled: false,
        };
        let keys = [("old", stable(2)), ("moves", moving), ("new", stable(9))];
        let keys = keys.map(|(key, of)| (key.as_bytes().to_vec(), of));
        let layouts = KeyLayouts::new(8, keys);
        assert_eq!(layouts.newest(), 8, "what is newer was read by chance");
        let next = |after: Option<&str>, segment| layouts.next_apart(8, after.map(str::as_bytes), segment);
        assert_eq!(next(None, None), Some(&b"moves"[..]));
        assert_eq!(next(Some("moves"), None), Some(&b"new"[..]));
        assert_eq!(next(Some("new"), None), None);
        let owners = (0..5).filter(|number| next(None, Some((*number, 5))) == Some(b"moves"));
        assert_eq!(owners.count(), 1);
        assert!((0..5).all(|number| next(Some("moves"), Some((number, 5))) == Some(b"new")));
        assert!(layouts.is_apart(b"old", 1) && !layouts.is_apart(b"old", 2));
        assert!(!KeyLayouts::new(2, [(b"old".to_vec(), stable(2))]).any_apart(2));
    }

    #[test]
    fn a_scan_takes_no_notice_of_a_counter_that_widens() {
        let attributes = vec!["n".to_owned()];
        let strategy = crate::Strategy::Counter { attributes };
        let counter = Arc::new(Layout { strategy, shards: 4, ..Layout::none() });
        let moving = |phase| Moving {
            from: Layout::none().into(),
            to: Arc::clone(&counter),
            phase,
            expires: None,
            marks: false,
            high_water: None,
        };
        let views = [
            (InForce::Stable(Layout::none().into()), true),
            (moving(Phase::Reserve).in_force(), false),
            (moving(Phase::Prepare).in_force(), false),
            (InForce::Stable(Arc::clone(&counter)), false),
            (InForce::Stable(Arc::clone(&counter)), true),
        ];
        for (in_force, settled) in views {
            let key = RecordedKey { in_force, reserved: 4, since: 3, settled };
            let layouts = KeyLayouts::new(9, [(b"key".to_vec(), key)]);
            assert_eq!((layouts.begin(), layouts.newest()), (3, 3));
            assert!(!layouts.any_apart(3) && !layouts.is_apart(b"key", 3));
        }
    }

    /// What gateways know of a key, one after the other: whole, PREPARE, MOVE, at rest, and at rest
    /// as all know.
    fn known(view: usize) -> KeyLayouts {
        let layout = Arc::new(Layout::none());
        let moving = |phase| {
            let moving = Moving {
                from: Arc::clone(&layout),
                to: Arc::clone(&layout),
                phase,
                expires: None,
                marks: false,
                high_water: None,
            };
            InForce::Moving(Arc::new(moving))
        };
        let stable = InForce::Stable(Arc::clone(&layout));
        let (in_force, since, settled) = match view {
            0 => return KeyLayouts::default(),
            1 => (moving(Phase::Prepare), 3, false),
            2 => (moving(Phase::Move), 3, false),
            3 => (stable, 6, false),
            _ => (stable, 6, true),
        };
        let version = [0, 3, 5, 6, 7][view];
        KeyLayouts::new(version, [(b"key".to_vec(), RecordedKey { in_force, reserved: 4, since, settled })])
    }

    /// Two segments of a Scan that begin together, each of one page or more, while the key moves:
    /// whatever the gateways know that they ask, which are never more than one step apart, the key
    /// is shown whole by one of them, or both have passed through it while it lay still.
    #[test]
    fn segments_that_begin_at_gateways_one_step_apart_miss_no_key() {
        let mut cases = vec![Vec::new()];
        for _ in 0..5 {
            let mut longer = Vec::new();
            for pages in &cases {
                let now = pages.last().map_or(0, |(_, _, now)| *now);
                for (segment, next, behind) in (0..2).flat_map(|segment| {
                    (now..5).flat_map(move |next| [0, 1].map(|behind| (segment, next, behind)))
                }) {
                    let mut pages: Vec<(u64, usize, usize)> = pages.clone();
                    pages.push((segment, next.saturating_sub(behind), next));
                    longer.push(pages);
                }
            }
            for pages in &longer {
                assert!(is_shown(pages), "{pages:?}");
            }
            cases = longer;
        }
    }

    fn is_shown(pages: &[(u64, usize, usize)]) -> bool {
        let segments = [0, 1].map(|segment| {
            let of = pages.iter().filter(|(number, ..)| *number == segment);
            of.map(|(_, view, _)| *view).collect::<Vec<_>>()
        });
        let begun =
            [0, 1].map(|segment| pages.iter().find(|(number, ..)| *number == segment).map(|page| page.2));
        // Not a Scan yet; one of which a segment was not begun with the others
        // (docs/explain/fence.md); one whose next page is refused, because its gateway has yet to
        // learn of what an earlier page knew.
        let refused =
            |views: &Vec<usize>| views.windows(2).any(|two| known(two[1]).newest() < known(two[0]).newest());
        if begun[0] != begun[1] || segments.iter().any(|views| views.is_empty() || refused(views)) {
            return true;
        }
        let since = |views: &Vec<usize>| known(views[0]).begin();
        let read_by_itself = segments.iter().zip(0..).any(|(views, number)| {
            let last = known(*views.last().unwrap());
            last.next_apart(since(views), None, Some((number, 2))).is_some()
        });
        let passed_through = segments
            .iter()
            .all(|views| views.iter().all(|view| !known(*view).is_apart(b"key", since(views))));
        let still =
            pages.iter().all(|(_, view, _)| *view == 0) || pages.iter().all(|(_, view, _)| *view >= 3);
        read_by_itself || passed_through && still
    }
}
