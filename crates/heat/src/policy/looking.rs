//! One look: all keys that burn are judged together, and each is changed or left alone.

use std::collections::{BTreeMap, HashMap};
use std::time::Duration;

use heatsink_env::MonotonicInstant;

use super::Policy;
use super::crowds::{Fate, PartitionLoad, Piece, fates};
use super::decision::{Change, Decision, KeyName, LeftAlone, Looked};
use super::facts::{Facts, KeyFacts};
use super::hot::ceiling;
use super::judged::{Judged, totals};
use super::placing::Ground;
use super::plan::{pays, plan};
use super::planned::Plan;
use super::ranges::InRanges;
use super::reason::Reason;
use crate::KeyLoad;
use crate::advice::{Finding, load as load_words, of as finding_words};
use crate::detect::Kind;

/// The most keys of a table that one change takes.
const TOGETHER: usize = 100;
/// A key that changed a short while ago is looked at for so long before it is mended, and so are
/// those that begin to burn after the change of another one.
const MENDED_AFTER: Duration = Duration::from_secs(1);
/// For so long it waits for which of its shards burn. Not all keys are measured by shard.
const MEASURED_WITHIN: Duration = Duration::from_secs(5);

/// A table or an index.
type Place = (String, Option<String>);

impl Policy {
    pub(super) fn decide(
        &mut self,
        now: MonotonicInstant,
        loads: &[KeyLoad],
        seen: Vec<(&KeyLoad, KeyFacts, bool)>,
        facts: &dyn Facts,
    ) -> Looked {
        let totals = totals(loads);
        let (mut burning, mut cold) = (Vec::new(), Vec::new());
        for (load, known, is_known) in seen {
            let state = self.keys.get(&KeyName::of(load)).filter(|_| is_known);
            match state.and_then(|state| state.hot.clone()) {
                Some(hot) => burning.push(Judged::of(load, known, hot, &totals)),
                None => cold.push((load, known)),
            }
        }
        let mut grounds = self.grounds(facts, &burning);
        let gates: Vec<Option<Reason>> = burning.iter().map(|one| self.gate(now, one)).collect();
        let fates = self.fates(now, &burning, &gates, &grounds, &cold);
        let mut looked = Looked::default();
        let mut together: HashMap<String, usize> = HashMap::new();
        // Who is refused most comes first.
        let mut order: Vec<usize> = (0..burning.len()).collect();
        let refused = |at: &usize| burning[*at].seen.throttled * burning[*at].hot.mean.requests;
        order.sort_by(|a, b| refused(b).total_cmp(&refused(a)));
        for at in order {
            let (fates, burns) = &fates[at];
            let beside = fates.iter().map(|fate| fate.beside).fold(0.0, f64::max);
            let one = &mut burning[at];
            let leaving = fates.iter().filter(|fate| fate.leaves).count();
            if one.facts.slots.len() == 1 {
                // What the refusals of few requests seem to say is no evidence against what was
                // counted of all keys of the partition.
                let is_evidence = fates.iter().any(|fate| fate.takes_all);
                one.seen.beside = if is_evidence { beside } else { beside.max(one.unexplained()) };
            } else if !fates.iter().any(|fate| fate.grows) {
                one.seen.crowded = u16::try_from(leaving).unwrap_or(u16::MAX);
            }
            let one = &burning[at];
            let outcome = match gates[at] {
                Some(reason) => Err(reason),
                None => self.change(now, one, fates, *burns, (&mut grounds, &mut together)),
            };
            match outcome {
                Ok(decision) => looked.decisions.push(decision),
                Err(reason) => looked.left_alone.extend(self.left_alone(one, reason, *burns)),
            }
        }
        looked.decisions.extend(cold.into_iter().filter_map(|(load, known)| self.cools(now, load, &known)));
        looked
    }

    /// What partitions are asked for, changes under way included.
    fn grounds<'a>(&self, facts: &'a dyn Facts, burning: &[Judged]) -> BTreeMap<Place, Ground<'a>> {
        let mut grounds = BTreeMap::new();
        for Judged { name, .. } in burning {
            let place = (name.table.clone(), name.index.clone());
            if grounds.contains_key(&place) {
                continue;
            }
            let Some(partitions) = facts.partitions(&name.table, name.index.as_deref()) else { continue };
            let mut ground = Ground::of(partitions);
            let pending =
                self.keys.iter().filter(|(other, _)| other.table == place.0 && other.index == place.1);
            for (name, (slots, each)) in
                pending.filter_map(|(name, state)| Some((name, state.pending.as_ref()?)))
            {
                slots.iter().for_each(|slot| ground.add(&name.key, *slot, *each, 1.0));
            }
            grounds.insert(place, ground);
        }
        grounds
    }

    /// Whether it may burn by the change of another key of its table or index.
    fn is_disturbed(&self, now: MonotonicInstant, one: &Judged) -> bool {
        let is_near = |name: &KeyName| name.table == one.name.table && name.index == one.name.index;
        self.keys.iter().any(|(name, state)| state.disturbs(now) && is_near(name))
    }

    /// Why a key may not change now; `None` if it may.
    fn gate(&self, now: MonotonicInstant, one: &Judged) -> Option<Reason> {
        let (settings, load) = (&one.facts.settings, &one.hot.mean);
        let state = self.keys.get(&one.name)?;
        let burned = now.since(one.since());
        let is_mended = state.is_new(now) || self.is_disturbed(now, one);
        let hot_for = if is_mended { settings.hot_for.min(MENDED_AFTER) } else { settings.hot_for };
        let barred = if load.is_cut {
            Some(Reason::CutKey)
        } else if load.is_number_without_room() {
            Some(Reason::NumericKey)
        } else {
            one.facts.barred
        };
        let is_index = one.name.index.is_some();
        barred
            .or_else(|| (burned < hot_for).then_some(Reason::NotYetCertain))
            .or_else(|| (one.awaits_slots() && burned < MEASURED_WITHIN).then_some(Reason::NotYetCertain))
            .or_else(|| one.is_by_index().then_some(Reason::IndexValue))
            .or_else(|| (one.limit && one.is_certain()).then_some(Reason::Limit))
            .or_else(|| state.rests.as_ref().map(|(_, reason, _)| *reason))
            .or_else(|| state.is_restless().then_some(Reason::Rests))
            .or_else(|| (is_index && !settings.index_values).then_some(Reason::IndexValuesOff))
            .or_else(|| {
                (one.splits() && burned < settings.hot_for + settings.patience).then_some(Reason::Patience)
            })
    }

    /// The fates of each key's pieces, and whether any of them certainly burns.
    fn fates(
        &self,
        now: MonotonicInstant,
        burning: &[Judged],
        gates: &[Option<Reason>],
        grounds: &BTreeMap<Place, Ground<'_>>,
        cold: &[(&KeyLoad, KeyFacts)],
    ) -> Vec<(Vec<Fate>, bool)> {
        let mut of_kinds: BTreeMap<(Place, bool), Vec<Piece>> = BTreeMap::new();
        for (at, one) in burning.iter().enumerate() {
            let place = (one.name.table.clone(), one.name.index.clone());
            let is_new = self.keys.get(&one.name).is_some_and(|state| state.is_new(now));
            let pieces = one.pieces(at, gates[at].is_none(), is_new, grounds.get(&place));
            of_kinds.entry((place, one.kind == Kind::Write)).or_default().extend(pieces);
        }
        let mut found: Vec<(Vec<Fate>, bool)> =
            burning.iter().map(|one| (vec![Fate::default(); one.facts.slots.len()], false)).collect();
        for ((place, writes), pieces) in of_kinds {
            let kind = if writes { Kind::Write } else { Kind::Read };
            let ground = grounds.get(&place);
            let cool = ground.map(|ground| cool_loads(ground, &place, kind, cold)).unwrap_or_default();
            let load = |partition| {
                let units = ground.map(|ground| ground.load(partition)).unwrap_or_default();
                let all = if writes { units.writes } else { units.reads };
                PartitionLoad { all, cool: cool.get(&partition).copied().unwrap_or_default() }
            };
            for (piece, fate) in pieces.iter().zip(fates(&pieces, ceiling(kind), load)) {
                found[piece.key].0[piece.shard] = fate;
                found[piece.key].1 |= piece.burns;
            }
        }
        found
    }

    /// Decides the change of a key, or says why there is none.
    fn change(
        &mut self,
        now: MonotonicInstant,
        one: &Judged,
        fates: &[Fate],
        burns: bool,
        (grounds, together): (&mut BTreeMap<Place, Ground<'_>>, &mut HashMap<String, usize>),
    ) -> Result<Decision, Reason> {
        if !burns {
            return Err(Reason::NotYetCertain);
        }
        if !fates.iter().any(|fate| fate.grows || fate.leaves) {
            return Err(why_it_stays(one));
        }
        let table = &one.name.table;
        let place = (table.clone(), one.name.index.clone());
        let state = self.keys.get(&one.name).ok_or(Reason::NextChange)?;
        let already = together.entry(table.clone()).or_default();
        if *already >= TOGETHER {
            return Err(Reason::NextChange);
        }
        // Its own load is not in its way.
        let ground = grounds.get_mut(&place);
        let own = own_loads(one);
        if let Some(ground) = ground {
            own.iter().for_each(|(slot, units)| ground.add(&one.name.key, *slot, *units, -1.0));
        }
        let planned = plan(one, fates, &state.left, state.rounds(), grounds.get(&place));
        let allowed = planned.and_then(|plan| {
            let settings = &one.facts.settings;
            if !pays(one, plan.units) {
                return Err(Reason::DoesNotPay);
            }
            self.budgets.take(now, table, plan.units, settings.units_per_hour).map(|()| plan)
        });
        let then: Vec<(u16, super::Units)> = match &allowed {
            Ok(plan) => plan.slots.iter().map(|slot| (*slot, plan.each)).collect(),
            Err(_) => own,
        };
        if let Some(ground) = grounds.get_mut(&place) {
            then.iter().for_each(|(slot, units)| ground.add(&one.name.key, *slot, *units, 1.0));
        }
        let plan = allowed?;
        *already += 1;
        let decision = decision(one, &plan);
        if let Some(state) = self.keys.get_mut(&one.name) {
            state.changes(now, plan.slots, plan.each, &plan.left);
        }
        Ok(decision)
    }

    fn left_alone(&self, one: &Judged, reason: Reason, burns: bool) -> Option<LeftAlone> {
        // One window, or few requests, may be chance.
        let is_told = burns || one.is_by_index() || one.limit && one.is_certain();
        if !is_told && one.hot.windows < 2.0 {
            return None;
        }
        let finding = one.finding();
        let why = match self.keys.get(&one.name).and_then(|state| state.rests.as_ref()) {
            Some((_, of, why)) if *of == reason && !why.is_empty() => format!("{}: {why}", reason.words()),
            _ => reason.words().to_owned(),
        };
        let said =
            if reason == Reason::NotYetCertain { String::new() } else { finding_words(finding, &one.seen) };
        Some(LeftAlone {
            name: one.name.clone(),
            since: one.since(),
            finding,
            reason,
            sentence: format!("{}{said}. Nothing is changed: {why}", load_words("It", &one.seen)),
            clients: one.hot.mean.client_shares(),
        })
    }

    /// Takes shards away from a key that has needed half of them or fewer for long.
    fn cools(&mut self, now: MonotonicInstant, load: &KeyLoad, known: &KeyFacts) -> Option<Decision> {
        let name = KeyName::of(load);
        let state = self.keys.get(&name)?;
        let shards = u16::try_from(known.slots.len()).unwrap_or(u16::MAX);
        let is_cold = shards > 1 && now.since(state.needed) >= known.settings.cold_for;
        let wanted = state.most_needed.max(known.settings.fewest).max(1);
        if !is_cold || wanted >= shards || known.barred.is_some() || state.rests.is_some() {
            return None;
        }
        // Shard indexes stay, so the first ones keep their slots.
        let slots: Vec<u16> = known.slots.iter().take(usize::from(wanted)).copied().collect();
        let is_plain = slots.iter().copied().eq(0..wanted);
        let change = match &name.index {
            Some(_) => Change::IndexValue { shards: wanted },
            None => match &known.split_points {
                Some(points) => {
                    InRanges { points: Some(points), slots: &known.slots }.merged(load, wanted)?
                }
                None => Change::Shards { shards: wanted, slots: (!is_plain).then(|| slots.clone()) },
            },
        };
        let slots = match &change {
            Change::Ranges { slots, .. } => slots.clone(),
            _ => slots,
        };
        let seen = load.observed(shards, known.local_index);
        let share = 1.0 - f64::from(wanted) / f64::from(shards);
        let items = known.items.unwrap_or_default();
        let units = super::units_of_move(items, load.item_bytes) * share;
        self.budgets.take(now, &name.table, units, known.settings.units_per_hour).ok()?;
        let each = super::Units::default();
        self.keys.get_mut(&name)?.changes(now, slots, each, &[]);
        let sentence = format!(
            "{}: {wanted} shards have been enough for {} hours",
            load_words("It", &seen),
            known.settings.cold_for.as_secs() / 3_600
        );
        Some(Decision { name, change, finding: Finding::Cool, sentence, units, seen })
    }
}

/// What keys that do not burn ask of each partition that is known.
fn cool_loads(
    ground: &Ground<'_>,
    (table, index): &Place,
    kind: Kind,
    cold: &[(&KeyLoad, KeyFacts)],
) -> HashMap<usize, f64> {
    let mut loads = HashMap::new();
    for (load, known) in cold.iter().filter(|(load, _)| load.table == *table && load.index == *index) {
        #[allow(clippy::cast_precision_loss, reason = "at most 1,000")]
        let each = load.units(kind) / known.slots.len().max(1) as f64;
        for slot in &known.slots {
            *loads.entry(ground.partition(&load.key, *slot)).or_default() += each;
        }
    }
    loads
}

/// Why a key that burns stays as it is, where none of its pieces is to change.
fn why_it_stays(one: &Judged) -> Reason {
    match one.finding() {
        Finding::RepeatedPage => Reason::RepeatedPage,
        Finding::Item if one.facts.settings.counters => Reason::OneItem,
        Finding::Item => {
            if one.hot.mean.added >= 0.5 {
                Reason::CountersOff
            } else {
                Reason::OneItem
            }
        }
        _ => Reason::AnotherKey,
    }
}

/// What each slot of a key asks for, as it was measured.
fn own_loads(one: &Judged) -> Vec<(u16, super::Units)> {
    let shards = u16::try_from(one.facts.slots.len()).unwrap_or(u16::MAX);
    let each = one.each(shards);
    one.facts.slots.iter().map(|slot| (*slot, each)).collect()
}

fn decision(one: &Judged, plan: &Plan) -> Decision {
    let finding = one.finding();
    let shards = plan.change.shards();
    let what = match &plan.change {
        Change::Shards { slots: Some(slots), .. } if slots.len() <= 20 => {
            let slots: Vec<String> = slots.iter().map(ToString::to_string).collect();
            format!("{shards} shards in slots {}", slots.join(", "))
        }
        Change::Shards { slots: Some(_), .. } => format!("{shards} shards in slots of their own"),
        Change::Ranges { split_at, .. } => format!("{shards} ranges of its sort key, split at {split_at}"),
        Change::Counter { .. } => format!("a counter of {shards} shards"),
        Change::Shards { .. } | Change::IndexValue { .. } => format!("{shards} shards"),
    };
    let sentence =
        format!("{}{}. It gets {what}", load_words("It", &one.seen), finding_words(finding, &one.seen));
    Decision {
        name: one.name.clone(),
        change: plan.change.clone(),
        finding,
        sentence,
        units: plan.units,
        seen: one.seen,
    }
}
