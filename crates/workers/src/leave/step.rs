//! What a table has to go through until nothing of it is sharded, in order. Which step is next
//! follows from what is on record, so a run that was killed is run again.

use heatsink_control::State;

use super::sharded::Sharded;

/// One step.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Step {
    /// These keys become whole, while clients use them.
    Keys(Vec<Vec<u8>>),
    /// The counters of rules become whole, key by key, while clients use them.
    Counters,
    /// These values of indexes get one shard, while clients use them: index and value.
    Values(Vec<(String, Vec<u8>)>),
    /// Items that no index shows get the plain form of such values.
    FormerForms,
    /// Index keys with these attributes come back out of their rules, while clients use them.
    Indexes(Vec<String>),
    /// The items of the whole table come back out of its rules. Clients wait.
    Own,
    /// Every item is looked at, and the records of keys, and of the table, go.
    OffRecord,
    /// The table does not exist any more, and its record goes.
    Forgotten,
}

impl Step {
    /// The next one; `None` where the table is left as it is. `counted`: counters of rules are
    /// whole, as far as this run knows.
    pub(super) fn next(of: &Sharded, counted: bool) -> Option<Step> {
        let record = &of.record;
        if !of.exists {
            return Some(Step::Forgotten);
        }
        if of.is_sharded_by_hand() {
            return None;
        }
        match &record.state {
            State::Returning(_) => return Some(Step::Own),
            State::MigratingIndexKeys(migration) => {
                return Some(Step::Indexes(migration.attributes.clone()));
            }
            _ => {}
        }
        let keys: Vec<Vec<u8>> = of.keys_to_bring_back().map(|one| one.key.clone()).collect();
        let values = of.values_to_bring_back().map(|one| (one.index.name.clone(), one.value.clone()));
        let values: Vec<(String, Vec<u8>)> = values.collect();
        let (own, attributes) = (of.has_own_rules(), record.layouts.attributes());
        Some(match () {
            () if !keys.is_empty() => Step::Keys(keys),
            () if !values.is_empty() => Step::Values(values),
            () if of.has_former_forms() => Step::FormerForms,
            () if !own && (record.keys > 0 || record.is_empty()) => Step::OffRecord,
            () if !attributes.is_empty() => Step::Indexes(attributes),
            () if of.has_counters_by_rule() && !counted => Step::Counters,
            () => Step::Own,
        })
    }

    /// All that are to come, as far as that is known.
    pub fn all(of: &Sharded) -> Vec<Step> {
        let mut left = of.clone();
        let (mut steps, mut counted) = (Vec::new(), false);
        while let Some(step) = Step::next(&left, counted) {
            let last = matches!(step, Step::Own | Step::Forgotten)
                || step == Step::OffRecord && left.record.layouts.is_empty();
            match &step {
                Step::Keys(_) => left.keys.iter_mut().for_each(|one| {
                    one.moves = None;
                    one.settled = true;
                    if one.layout.counter_attributes().is_some() || !of.has_own_rules() {
                        one.layout = heatsink_layout::Layout::none();
                    }
                }),
                Step::Values(_) | Step::FormerForms => left.record.values.clear(),
                Step::OffRecord => {
                    left.keys.clear();
                    left.record.keys = 0;
                }
                Step::Indexes(attributes) => {
                    left.record.layouts = left.record.layouts.without(attributes);
                    left.record.state = State::Active;
                }
                Step::Counters => counted = true,
                Step::Own | Step::Forgotten => {}
            }
            // Its record goes with the last that is on it.
            let gone = matches!(step, Step::Indexes(_) | Step::Values(_)) && left.record.is_empty();
            steps.push(step);
            if last || gone {
                break;
            }
        }
        steps
    }
}
