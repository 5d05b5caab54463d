//! What one key gets: how many shards, and in which slots.

use std::collections::BTreeSet;

use super::crowds::Fate;
use super::decision::Change;
use super::judged::Judged;
use super::placing::{Ground, lowest};
use super::planned::{FILLED, ITEMS, Plan, units_of_move};
use super::ranges::InRanges;
use super::reason::Reason;
use crate::advice::{Observed, fewest_shards};

/// A key gets at most so many times the shards that carry what it asks for: more of them make reads
/// dearer, and where one burns by others it needs another slot, not smaller shards.
const MOST_OF_LEAST: u16 = 3;
/// After each second change that did not help, shards are to take so much less.
const SMALLER: f64 = 2.0 / 3.0;
/// For so long a change has to pay for what it moves.
const PAYS_WITHIN: f64 = 3_600.0;

/// Plans the change of a key. `fates`: of its pieces, by shard. `used`: slots that burned before.
/// `rounds`: how often it changed of late.
pub(super) fn plan(
    judged: &Judged,
    fates: &[Fate],
    used: &BTreeSet<u16>,
    rounds: usize,
    ground: Option<&Ground<'_>>,
) -> Result<Plan, Reason> {
    let facts = &judged.facts;
    if let Some(points) = &facts.split_points {
        return InRanges { points: Some(points), slots: &facts.slots }.split(judged, fates, used, ground);
    }
    if fates.iter().any(|fate| fate.grows) && judged.gets_ranges() {
        let whole = InRanges { points: None, slots: &facts.slots };
        match whole.split(judged, fates, used, ground) {
            // What is known of its writes does not divide: a hash does.
            Err(Reason::UnknownSortKeys | Reason::OneItem | Reason::MostShards) => {}
            planned => return planned,
        }
    }
    let (settings, slots) = (&facts.settings, &facts.slots);
    let now = u16::try_from(slots.len()).unwrap_or(u16::MAX).max(1);
    let wants = fates.iter().any(|fate| fate.grows);
    let makes_counter = wants && judged.can_count();
    let names_slots = facts.names_slots && !makes_counter;
    let seen = if ground.is_some() { judged.seen } else { cautious(&judged.seen) };
    let enough = fewest_shards(&seen, 1.0).map_or(u16::MAX, |one| one.saturating_mul(MOST_OF_LEAST));
    let grows = wants && (now < enough || !names_slots);
    let leaves = |shard: usize| fates.get(shard).is_some_and(|fate| fate.leaves || fate.grows && !grows);
    let filled = FILLED * SMALLER.powi(i32::try_from(rounds / 2).unwrap_or(i32::MAX));
    let least = if grows || !names_slots {
        fewest_shards(&seen, filled).ok_or(Reason::SeveralKeys)?.min(enough).max(now + 1)
    } else {
        // A whole key that leaves may need two shards where it lands.
        let splits = now == 1 && judged.is_spread();
        fewest_shards(&judged.seen, FILLED).filter(|_| splits).unwrap_or(now)
    };
    let most = settings.most.max(1);
    if least.max(settings.fewest) > now && now >= most {
        return Err(Reason::MostShards);
    }
    let least = least.max(settings.fewest).min(most);
    let most = most.min(enough.max(least));
    let keep: Vec<Option<u16>> =
        slots.iter().enumerate().map(|(shard, slot)| Some(*slot).filter(|_| !leaves(shard))).collect();
    let taken: BTreeSet<u16> = slots.iter().chain(used).copied().collect();
    let each = |shards| judged.each(shards);
    let key = &judged.name.key;
    let new = match ground {
        // Counters are laid out otherwise, and values of indexes have the first slots.
        _ if makes_counter => (0..least).collect(),
        Some(ground) if names_slots => ground
            .place(key, &keep, &taken, least_placed(judged, now, least, grows)..=most, each)
            .ok_or(Reason::SeveralKeys)?,
        // Where no count fits into what else is there, the least one is better than none.
        Some(ground) => (0..ground.place_first(key, least..=most, each).unwrap_or(least)).collect(),
        None if names_slots => lowest(&keep, least, &taken).ok_or(Reason::SeveralKeys)?,
        None => (0..least).collect(),
    };
    let shards = u16::try_from(new.len()).unwrap_or(u16::MAX);
    let left = slots.iter().filter(|slot| !new.contains(slot)).copied().collect();
    let units = moved(slots, &new) * units_of_move(facts.items.unwrap_or(ITEMS), judged.seen.item_bytes);
    let change = match (&judged.name.index, makes_counter) {
        (Some(_), _) => Change::IndexValue { shards },
        (None, true) => Change::Counter { shards },
        (None, false) => {
            let is_plain = new.iter().copied().eq(0..shards);
            Change::Shards { shards, slots: (!is_plain).then(|| new.clone()) }
        }
    };
    Ok(Plan { change, slots: new, each: each(shards), left, units })
}

/// What was seen, less one standard deviation of what was drawn: where nothing else bounds the
/// estimate, a key that needs more shards gets them in a second step.
fn cautious(seen: &Observed) -> Observed {
    let less = |units: f64, error: f64| (units - error / 3.0).max(0.0);
    Observed {
        writes: less(seen.writes, seen.write_error),
        peak_writes: less(seen.peak_writes, seen.write_error),
        reads: less(seen.reads, seen.read_error),
        ..*seen
    }
}

/// Where partitions are known, shards may be as large as a cool one takes.
fn least_placed(judged: &Judged, now: u16, least: u16, grows: bool) -> u16 {
    let fewest = fewest_shards(&judged.seen, super::crowds::MOST_FILLED).unwrap_or(least);
    let fewest = if grows { fewest.max(now + 1) } else { now };
    fewest.max(judged.facts.settings.fewest).min(least)
}

/// Which share of the key's items moves from some slots to others.
#[allow(clippy::cast_precision_loss, reason = "at most 1,000")]
fn moved(from: &[u16], to: &[u16]) -> f64 {
    // Shard indexes stay: of N shards that become M, one in M stays in each of the first N.
    let most = from.len().max(to.len()).max(1);
    let stays = from.iter().zip(to).filter(|(from, to)| from == to).count();
    1.0 - stays as f64 / most as f64
}

/// Whether what is refused within an hour is more than what the move takes. A tenth of the load is
/// charged where less is refused.
pub(super) fn pays(judged: &Judged, units: f64) -> bool {
    let load = judged.seen.asked_writes() + judged.seen.asked_reads();
    judged.facts.items.is_none() || load * judged.seen.throttled.max(0.1) * PAYS_WITHIN >= units
}
