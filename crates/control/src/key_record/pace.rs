//! When records of keys are written. All those of a table, and its own, lie in one partition of the
//! registry, which takes 1,000 write units a second: whoever wrote more would hold up the gateways,
//! which write there, too. And keys that are written together become known together.
//!
//! Not here: what is written (`writes`).

use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use heatsink_env::{Env, MonotonicInstant};
use heatsink_layout::{Moving, Phase};

use super::KeyRecord;

/// Write units a second that records take: the rest is for claims on keys, and for gateways.
const UNITS: u32 = 500;
/// What a record takes in a transaction, where it is no longer than 1 KB.
const OF_RECORD: u32 = 2;
/// Where so many are written together, more are about to come for a while.
const MANY: usize = 8;
const MORE: Duration = Duration::from_secs(3);

/// How urgent it is that a record is followed by the next one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Urgency {
    /// The key has not begun to move.
    Begins,
    /// No client waits for it.
    GoesOn,
    /// Requests of the key take longer.
    Ends,
    /// Writers of the key wait.
    Waits,
}

impl Urgency {
    pub fn of(record: Option<&KeyRecord>) -> Self {
        let Some((record, moves)) = record.and_then(|record| Some((record, record.moves.as_ref()?))) else {
            return match record {
                Some(KeyRecord { settled: false, .. }) => Urgency::GoesOn,
                _ => Urgency::Begins,
            };
        };
        match moves.phase {
            Phase::Hold | Phase::Check => Urgency::Waits,
            Phase::Prepare if Moving::steps(&record.layout, &moves.to).is_some() => Urgency::Waits,
            Phase::Reserve | Phase::Prepare => Urgency::GoesOn,
            Phase::Move => Urgency::Ends,
        }
    }

    /// How many units may be owed when such a record is written: keys that are on their way go before
    /// those that begin.
    fn owed(self) -> Option<u32> {
        match self {
            Urgency::Begins => Some(0),
            Urgency::GoesOn => Some(200),
            Urgency::Ends => Some(400),
            Urgency::Waits => None,
        }
    }

    /// Where many keys move, their records wait for the next multiple of this time, to be written
    /// together.
    fn tick(self) -> Duration {
        match self {
            Urgency::Begins | Urgency::GoesOn => Duration::from_millis(200),
            Urgency::Ends => Duration::from_millis(100),
            Urgency::Waits => Duration::from_millis(10),
        }
    }
}

/// The pace of one table's records in one process.
#[derive(Default)]
pub(super) struct Pace(Mutex<State>);

#[derive(Default)]
struct State {
    /// When all that was written will have taken its time.
    paid: MonotonicInstant,
    /// Until when more are about to come.
    many: MonotonicInstant,
}

impl Pace {
    /// Waits while much more was written than is due, and for nothing else.
    pub async fn wait_for_less(&self, env: &dyn Env) {
        let owed = self.0.lock().unwrap_or_else(PoisonError::into_inner).paid.since(env.now());
        let most = Urgency::Ends.owed().map_or(Duration::MAX, |units| Duration::from_secs(1) * units / UNITS);
        if let Some(pause) = owed.checked_sub(most) {
            env.sleep(pause).await;
        }
    }

    /// Waits until a record may be written.
    pub async fn wait(&self, env: &dyn Env, urgency: Urgency) {
        let mut gathers = self.0.lock().unwrap_or_else(PoisonError::into_inner).many > env.now();
        loop {
            let now = env.now();
            let owed = self.0.lock().unwrap_or_else(PoisonError::into_inner).paid.since(now);
            let most = urgency.owed().map(|units| Duration::from_secs(1) * units / UNITS);
            let mut pause = most.map_or(Duration::ZERO, |most| owed.saturating_sub(most));
            if gathers || !pause.is_zero() {
                let at = (now + pause).0;
                let tick = u64::try_from(urgency.tick().as_nanos()).unwrap_or(1);
                pause += Duration::from_nanos(at.next_multiple_of(tick.max(1)) - at);
            }
            if pause.is_zero() {
                return;
            }
            gathers = false;
            env.sleep(pause).await;
        }
    }

    /// So many records are written, beside the table's own.
    pub fn spend(&self, env: &dyn Env, records: usize) {
        let units = OF_RECORD * u32::try_from(records + 1).unwrap_or(u32::MAX / OF_RECORD);
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let now = env.now();
        state.paid = state.paid.max(now) + Duration::from_secs(1) * units / UNITS;
        if records >= MANY {
            state.many = now + MORE;
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::FutureExt;
    use futures::executor::block_on;
    use heatsink_env::{HastyEnv, ManualEnv};

    use super::*;

    #[test]
    fn it_keeps_to_its_rate_and_those_that_begin_wait_for_those_on_their_way() {
        let manual = ManualEnv::seeded(1);
        let (env, pace) = (HastyEnv(manual.clone()), Pace::default());
        let begun = env.now();
        for _ in 0..50 {
            block_on(pace.wait(&env, Urgency::Ends));
            pace.spend(&env, 99);
        }
        // 50 times 200 units at 500 a second, less what may be owed and the last ones.
        let took = env.now().since(begun).as_millis();
        assert!((18_800..19_500).contains(&took), "{took} ms");
        let waits = |urgency| {
            let begun = env.now();
            block_on(pace.wait(&env, urgency));
            env.now().since(begun).as_millis()
        };
        assert!(waits(Urgency::Waits) <= 10);
        // 1,200 ms are owed at most, of which 400 may be, and then none; each to the next tick.
        let (goes_on, begins) = (waits(Urgency::GoesOn), waits(Urgency::Begins));
        assert!((600..=1_000).contains(&goes_on), "{goes_on} ms");
        assert!((200..=600).contains(&begins), "{begins} ms");
    }

    #[test]
    fn a_few_keys_wait_for_nothing() {
        let (env, pace) = (ManualEnv::seeded(1), Pace::default());
        for _ in 0..20 {
            assert_eq!(pace.wait(&env, Urgency::GoesOn).now_or_never(), Some(()));
            pace.spend(&env, 1);
        }
    }
}
