//! Checks a change against the account's quotas, as the control plane does before anything changes.

use crate::demand::ResourceId;
use crate::mode::Mode;
use crate::quotas::{Plan, QuotaExceeded, lowers};
use crate::tables::Tables;

impl Tables {
    /// Whether the quotas allow all of these changes, made at once. `unix_millis`: the wall clock.
    ///
    /// # Errors
    /// The first quota that does not.
    pub fn permit(&self, unix_millis: u64, plans: &[Plan]) -> Result<(), QuotaExceeded> {
        let quotas = self.rules.quotas;
        let new = plans.iter().filter(|plan| plan.on.is_none() && !plan.index).count();
        if new > 0 && self.names.len() + new > quotas.tables {
            return Err(QuotaExceeded::Tables(quotas.tables));
        }
        let resource = |on: ResourceId| self.resources.get(on.0 as usize)?.as_deref();
        for plan in plans {
            let before = plan.on.and_then(resource);
            let Some(mode) = plan.mode else { continue };
            if let Mode::Provisioned { read, write } = mode
                && read.max(write) > quotas.table
                && before.is_none_or(|before| before.capacity.mode() != mode)
            {
                return Err(QuotaExceeded::Table(quotas.table));
            }
            let Some(before) = before else { continue };
            let was = before.capacity.mode();
            if lowers(was, mode) && before.changes.decreases(unix_millis, quotas.decreases) == 0 {
                return Err(QuotaExceeded::Decreases(quotas.decreases));
            }
            let switches = was.provisioned() && !mode.provisioned() && !plan.index;
            if switches && before.changes.switches(unix_millis) >= quotas.switches {
                return Err(QuotaExceeded::Switches(quotas.switches));
            }
        }
        let provisioned = |mode: Mode| match mode {
            Mode::Provisioned { read, write } => [read, write],
            Mode::OnDemand { .. } => [0, 0],
        };
        let sum = |modes: &mut dyn Iterator<Item = Mode>| {
            modes
                .map(provisioned)
                .fold([0u64; 2], |sum, more| [sum[0].saturating_add(more[0]), sum[1].saturating_add(more[1])])
        };
        let planned = |on: ResourceId| plans.iter().any(|plan| plan.on == Some(on));
        let all = || self.resources.iter().flatten();
        let before = sum(&mut all().map(|one| one.capacity.mode()));
        let stay = all().filter(|one| !planned(one.id)).map(|one| one.capacity.mode());
        let after = sum(&mut stay.chain(plans.iter().filter_map(|plan| plan.mode)));
        let exceeds = (0..2).any(|side| after[side] > quotas.account && after[side] > before[side]);
        if exceeds { Err(QuotaExceeded::Account(quotas.account)) } else { Ok(()) }
    }

    /// Writes down that a table or index is about to change, for the daily quotas. Call it before
    /// [`Tables::update`].
    pub fn note_change(&mut self, unix_millis: u64, on: ResourceId, mode: Mode) {
        let most = self.rules.quotas.decreases;
        if let Some(resource) = self.get(on) {
            let before = resource.capacity.mode();
            resource.changes.note(unix_millis, before, mode, most);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::quotas::{HOUR, Quotas};
    use crate::rules::Rules;

    fn provisioned(units: u64) -> Mode {
        Mode::Provisioned { read: units, write: units }
    }

    /// Changes one table as often as it may; how often that was.
    fn as_often(tables: &mut Tables, on: ResourceId, hours: f64, mode: impl Fn(u64) -> Mode) -> u64 {
        #[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "hours of a test")]
        let now = (hours * HOUR as f64) as u64;
        for nth in 0..100 {
            let plan = Plan { on: Some(on), mode: Some(mode(nth)), index: false };
            if tables.permit(now, &[plan]).is_err() {
                return nth;
            }
            tables.note_change(now, on, mode(nth));
            tables.update(0, on, mode(nth));
        }
        100
    }

    #[test]
    fn four_decreases_at_once_and_27_a_day() {
        let mut tables = Tables::default();
        let on = tables.create(0, "t".into(), provisioned(40_000));
        let mut today = 0;
        let decrease = |tables: &mut Tables, hours: f64, today: u64| {
            as_often(tables, on, hours, |nth| provisioned(30_000 - today * 100 - nth))
        };
        for hour in 0..24 {
            let made = decrease(&mut tables, f64::from(hour) + 0.5, today);
            assert_eq!(made, if hour == 0 { 4 } else { 1 });
            today += made;
        }
        assert_eq!(today, 27);
        assert_eq!(decrease(&mut tables, 24.0, 60), 4, "a new day");
        assert_eq!(decrease(&mut tables, 27.0, 70), 3, "one for every hour");
        assert_eq!(decrease(&mut tables, 40.0, 80), 4, "no more than four are saved up");
        assert_eq!(
            as_often(&mut tables, on, 40.0, |nth| provisioned(30_000 + nth)),
            100,
            "increases are free"
        );
    }

    #[test]
    fn four_switches_to_on_demand_within_24_hours() {
        let mut tables = Tables::default();
        let on = tables.create(0, "t".into(), provisioned(10));
        let there_and_back = |nth: u64| if nth.is_multiple_of(2) { Mode::ON_DEMAND } else { provisioned(10) };
        assert_eq!(as_often(&mut tables, on, 1.0, there_and_back), 8, "four there and four back");
        assert_eq!(as_often(&mut tables, on, 24.9, there_and_back), 0);
        assert_eq!(as_often(&mut tables, on, 25.0, there_and_back), 8);
    }

    #[test]
    fn a_table_an_account_and_how_many_tables() {
        let mut tables =
            Tables::new(Rules { quotas: Quotas { tables: 4, ..Quotas::default() }, ..Rules::default() });
        let new = |mode, index| Plan { on: None, mode: Some(mode), index };
        assert_eq!(tables.permit(0, &[new(provisioned(40_001), false)]), Err(QuotaExceeded::Table(40_000)));
        assert_eq!(tables.permit(0, &[new(Mode::ON_DEMAND, false)]), Ok(()));
        let first = tables.create(0, "a".into(), provisioned(40_000));
        let both = [new(provisioned(30_000), false), new(provisioned(10_001), true)];
        assert_eq!(tables.permit(0, &both), Err(QuotaExceeded::Account(80_000)));
        assert_eq!(tables.permit(0, &both[..1]), Ok(()));
        tables.create(0, "b".into(), provisioned(40_000));
        let swap = [
            Plan { on: Some(first), mode: Some(provisioned(30_000)), index: false },
            new(provisioned(10_000), false),
        ];
        assert_eq!(tables.permit(0, &swap), Ok(()), "what one gives up another may have");
        assert_eq!(tables.permit(0, &swap[1..]), Err(QuotaExceeded::Account(80_000)));
        tables.create(0, "c".into(), Mode::ON_DEMAND);
        tables.create(0, "d".into(), Mode::ON_DEMAND);
        assert_eq!(tables.permit(0, &[new(Mode::ON_DEMAND, false)]), Err(QuotaExceeded::Tables(4)));
    }
}
