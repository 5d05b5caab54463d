//! How many capacity units the changes of a table may take within an hour.

use std::collections::HashMap;

use heatsink_env::MonotonicInstant;

use super::reason::Reason;

const HOUR: f64 = 3_600.0;

/// What the changes of each table may still take. It fills up evenly, to an hour's units.
#[derive(Clone, Debug, Default)]
pub(super) struct Budgets(HashMap<String, (f64, MonotonicInstant)>);

impl Budgets {
    /// Takes so many units for a change of the table, or says why not.
    pub(super) fn take(
        &mut self,
        now: MonotonicInstant,
        table: &str,
        units: f64,
        per_hour: f64,
    ) -> Result<(), Reason> {
        if units > per_hour {
            return Err(Reason::BudgetTooSmall);
        }
        let left = self.left(now, table, per_hour);
        if units > left {
            return Err(Reason::BudgetUsedUp);
        }
        self.0.insert(table.to_owned(), (left - units, now));
        Ok(())
    }

    /// Gives back what a change did not take.
    pub(super) fn give(&mut self, table: &str, units: f64) {
        if let Some((left, _)) = self.0.get_mut(table) {
            *left += units;
        }
    }

    fn left(&self, now: MonotonicInstant, table: &str, per_hour: f64) -> f64 {
        let filled = |(left, since): &(f64, MonotonicInstant)| {
            (left + per_hour * now.since(*since).as_secs_f64() / HOUR).min(per_hour)
        };
        self.0.get(table).map_or(per_hour, filled)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn it_fills_up_and_is_given_back() {
        let (mut budgets, mut now) = (Budgets::default(), MonotonicInstant(0));
        let take = |budgets: &mut Budgets, now, units| budgets.take(now, "t", units, 3_600.0);
        assert_eq!(take(&mut budgets, now, 3_601.0), Err(Reason::BudgetTooSmall));
        assert_eq!(take(&mut budgets, now, 3_000.0), Ok(()));
        assert_eq!(take(&mut budgets, now, 601.0), Err(Reason::BudgetUsedUp));
        assert_eq!(budgets.take(now, "other", 3_600.0, 3_600.0), Ok(()));
        now = now + Duration::from_secs(1);
        assert_eq!(take(&mut budgets, now, 601.0), Ok(()));
        budgets.give("t", 601.0);
        assert_eq!(take(&mut budgets, now, 601.0), Ok(()));
        assert_eq!(take(&mut budgets, now + Duration::from_secs(99_999), 3_600.0), Ok(()));
    }
}
