//! The changer's side of the fence: which gateways have to acknowledge a publication, and until
//! when to wait for them.

use std::collections::BTreeMap;
use std::time::Duration;

use heatsink_env::MonotonicInstant;

use crate::{Bounds, Epoch, Liveness, Registration};

/// One publication, and the gateways that have yet to acknowledge it.
///
/// The gateways are listed after the publication. A gateway that registers later reads the head
/// after that, and so knows of it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Step {
    epoch: Epoch,
    /// When the publication was answered.
    published: MonotonicInstant,
    /// The gateways of the first list; `None` before it.
    waits: Option<BTreeMap<String, Waiting>>,
    liveness: Liveness,
    clean: bool,
    awaits: Awaits,
}

/// What a step waits for, of everything that was planned before its publication.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Awaits {
    /// No call can take effect any more: acknowledged and answered, or the lease and the straggler
    /// bound are over.
    Effects,
    /// No call is sent and no result reaches a client any more: acknowledged, or the lease is over.
    /// Calls that were sent may still take effect, unless the step [is clean](Step::is_clean).
    Results,
    /// The same, where every request that matters was planned under the [short
    /// lease](Bounds::short_lease).
    ResultsUnderShortLease,
}

impl Awaits {
    /// How long after the publication this lasts, for a gateway that does not acknowledge.
    fn longest(self, bounds: &Bounds) -> Duration {
        match self {
            Awaits::Effects => bounds.lease + bounds.straggler,
            Awaits::Results => bounds.lease,
            Awaits::ResultsUnderShortLease => bounds.short_lease(),
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Waiting {
    /// From this time on the gateway need not be waited for, whatever it does.
    longest: MonotonicInstant,
    /// From this time on it need not be waited for, by what is known of it.
    until: MonotonicInstant,
    acknowledged: bool,
    /// Whether no call of it can take effect any more once it is not waited for.
    clean: bool,
}

/// The result of an observation.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Wait {
    /// The wait is over.
    Over,
    /// Look again, at the latest at this time.
    Until(MonotonicInstant),
}

impl Step {
    /// A step whose publication of `epoch` was answered at `published`. It awaits the end of all
    /// effects.
    pub fn new(epoch: Epoch, published: MonotonicInstant) -> Self {
        let (liveness, awaits) = (Liveness::default(), Awaits::Effects);
        Step { epoch, published, waits: None, liveness, clean: true, awaits }
    }

    /// The same step, before it has seen a list of the gateways, that waits for something else.
    #[must_use]
    pub fn awaiting(self, awaits: Awaits) -> Self {
        Step { awaits, ..self }
    }

    /// The same step, for an observer who has seen lists of the gateways before: who was silent
    /// then need not be waited for as long.
    #[must_use]
    pub fn knowing(self, liveness: Liveness) -> Self {
        Step { liveness, ..self }
    }

    /// What this step has seen of the gateways, for the next one.
    pub fn liveness(&self) -> &Liveness {
        &self.liveness
    }

    /// Adds a list of the gateways that was read at `now`, after the publication.
    pub fn listed(&mut self, now: MonotonicInstant, list: &[Registration]) -> Wait {
        let (epoch, published, awaits) = (self.epoch, self.published, self.awaits);
        let first = || {
            let waiting = |one: &Registration| {
                let longest = published + awaits.longest(&one.bounds);
                (one.gateway.clone(), Waiting { longest, until: longest, acknowledged: false, clean: false })
            };
            list.iter().map(waiting).collect::<BTreeMap<_, _>>()
        };
        self.liveness.listed(now, list);
        let waits = self.waits.get_or_insert_with(first);
        // A gateway that is not listed any more has left with no calls in flight, or was silent for
        // long enough.
        waits.retain(|gateway, waiting| {
            waiting.acknowledged || list.iter().any(|one| one.gateway == *gateway)
        });
        for one in list {
            let Some(waiting) = waits.get_mut(&one.gateway) else { continue };
            if waiting.acknowledged {
                continue;
            }
            if one.epoch >= epoch && !one.ended {
                waiting.acknowledged = true;
                let late = if awaits == Awaits::Effects { one.unclean } else { Duration::ZERO };
                waiting.until = waiting.longest.min(now + late);
                self.clean &= one.unclean.is_zero();
                continue;
            }
            let (lease, effects) =
                self.liveness.over(&one.gateway).unwrap_or((waiting.longest, waiting.longest));
            let over = match awaits {
                Awaits::Effects => effects,
                // Clients do not wait for this step, and would wait for late calls in a later one.
                Awaits::Results if one.ended => effects,
                Awaits::Results | Awaits::ResultsUnderShortLease => lease,
            };
            waiting.until = waiting.longest.min(over);
            waiting.clean = effects <= waiting.until.max(now);
        }
        match waits.values().map(|waiting| waiting.until).max() {
            Some(until) if until > now => Wait::Until(until),
            _ => {
                self.clean &= waits.values().all(|waiting| waiting.acknowledged || waiting.clean);
                Wait::Over
            }
        }
    }

    /// Whether every call that was planned before was answered, so that none can take effect any
    /// more. Only known once the wait is over.
    pub fn is_clean(&self) -> bool {
        self.clean
    }

    /// The gateways that have not acknowledged yet, each with the longest time to wait for it.
    pub fn missing(&self, now: MonotonicInstant) -> impl Iterator<Item = (&str, Duration)> {
        let waits = self.waits.iter().flatten();
        waits
            .filter(|(_, waiting)| !waiting.acknowledged)
            .map(move |(gateway, waiting)| (gateway.as_str(), waiting.until.since(now)))
    }

    /// The registrations of dead gateways, as [`Liveness::silent`] has them.
    pub fn silent(&self, now: MonotonicInstant) -> impl Iterator<Item = (&str, u64)> {
        self.liveness.silent(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bounds;

    fn at(seconds: u64) -> MonotonicInstant {
        MonotonicInstant(seconds * 1_000_000_000)
    }

    fn gateway(name: &str, beat: u64, epoch: Epoch, unclean: u64) -> Registration {
        let unclean = Duration::from_secs(unclean);
        let (gateway, bounds) = (name.to_owned(), Bounds::DEFAULT);
        Registration { gateway, beat, epoch, unclean, bounds, ended: false }
    }

    #[test]
    fn nobody_listed_is_nobody_to_wait_for() {
        assert_eq!(Step::new(3, at(1)).listed(at(1), &[]), Wait::Over);
    }

    #[test]
    fn each_gateway_acknowledges_or_its_lease_and_its_late_calls_run_out() {
        let mut step = Step::new(3, at(100));
        let behind = [gateway("a", 1, 3, 0), gateway("b", 1, 2, 0)];
        assert_eq!(step.listed(at(100), &behind), Wait::Until(at(190)));
        assert_eq!(step.missing(at(100)).collect::<Vec<_>>(), [("b", Duration::from_secs(90))]);
        let mut patient = step.clone();
        assert_eq!(step.listed(at(101), &[gateway("a", 2, 3, 0), gateway("b", 2, 3, 0)]), Wait::Over);
        assert!(step.is_clean());
        assert_eq!(patient.listed(at(190), &behind), Wait::Over);
        assert!(!patient.is_clean());
    }

    #[test]
    fn calls_that_were_not_answered_are_waited_for_from_when_that_is_known() {
        let mut step = Step::new(3, at(100));
        let unclean = [gateway("a", 1, 3, 20)];
        assert_eq!(step.listed(at(105), &unclean), Wait::Until(at(125)));
        assert_eq!(step.listed(at(110), &unclean), Wait::Until(at(125)));
        assert_eq!(step.listed(at(125), &unclean), Wait::Over);
        assert!(!step.is_clean());
    }

    #[test]
    fn who_awaits_results_does_not_wait_for_late_calls_but_says_that_there_are_some() {
        let step = |awaits| Step::new(3, at(100)).awaiting(awaits);
        let unclean = [gateway("a", 1, 3, 20)];
        let mut results = step(Awaits::Results);
        assert_eq!(results.listed(at(105), &unclean), Wait::Over);
        assert!(!results.is_clean());
        let silent = [gateway("a", 1, 2, 0)];
        for (awaits, until) in [(Awaits::Results, 160_000), (Awaits::ResultsUnderShortLease, 102_500)] {
            let (mut step, until) = (step(awaits), MonotonicInstant(until * 1_000_000));
            assert_eq!(step.listed(at(100), &silent), Wait::Until(until));
            assert_eq!(step.listed(until, &silent), Wait::Over);
            assert!(!step.is_clean());
        }
    }

    #[test]
    fn who_leaves_is_not_waited_for_but_its_late_calls_are() {
        let mut step = Step::new(3, at(100));
        step.listed(at(100), &[gateway("a", 1, 2, 0), gateway("b", 1, 3, 20)]);
        assert_eq!(step.listed(at(101), &[]), Wait::Until(at(120)));
        assert_eq!(step.listed(at(120), &[]), Wait::Over);
    }

    #[test]
    fn who_was_silent_before_is_waited_for_until_its_lease_is_over() {
        let silent = [gateway("a", 1, 2, 0)];
        let mut first = Step::new(3, at(100)).awaiting(Awaits::Results);
        assert_eq!(first.listed(at(100), &silent), Wait::Until(at(160)));
        assert_eq!(first.listed(at(160), &silent), Wait::Over);
        let next = |awaits| Step::new(4, at(160)).awaiting(awaits).knowing(first.liveness().clone());
        // Two heartbeats of 12 s, and a lease of 60 s.
        assert_eq!(next(Awaits::Results).listed(at(160), &silent), Wait::Until(at(184)));
        assert_eq!(next(Awaits::Effects).listed(at(160), &silent), Wait::Until(at(214)));
        let mut step = next(Awaits::Results);
        step.listed(at(160), &silent);
        assert_eq!(step.listed(at(170), &[gateway("a", 2, 3, 0)]), Wait::Until(at(220)), "it lives");
        let mut step = next(Awaits::Results);
        assert_eq!(step.listed(at(184), &silent), Wait::Over);
        assert!(!step.is_clean(), "its calls may be late");
    }

    #[test]
    fn whose_process_has_ended_is_waited_for_until_its_late_calls_are_over() {
        let ended = |beat, epoch| [Registration { ended: true, ..gateway("a", beat, epoch, 0) }];
        for (awaits, until, clean) in [
            (Awaits::Effects, Some(130), true),
            (Awaits::Results, Some(130), true),
            (Awaits::ResultsUnderShortLease, None, false),
        ] {
            let mut step = Step::new(3, at(99)).awaiting(awaits);
            // It acknowledged the epoch before it ended: calls after that may be late all the same.
            let wait = step.listed(at(100), &ended(1, 3));
            assert_eq!(wait, until.map_or(Wait::Over, |until| Wait::Until(at(until))));
            if let Some(until) = until {
                assert_eq!(step.listed(at(until), &ended(1, 3)), Wait::Over);
            }
            assert_eq!(step.is_clean(), clean);
            let mut next = Step::new(4, at(130))
                .awaiting(Awaits::ResultsUnderShortLease)
                .knowing(step.liveness().clone());
            assert_eq!(next.listed(at(130), &ended(1, 3)), Wait::Over);
            assert!(next.is_clean(), "its late calls are over");
        }
        let mut step = Step::new(3, at(100));
        step.listed(at(100), &ended(1, 2));
        assert_eq!(step.listed(at(110), &[]), Wait::Over, "somebody has seen it ended for longer");
        assert!(step.is_clean());
    }

    #[test]
    fn a_registration_that_does_not_change_for_long_enough_is_dead() {
        let mut step = Step::new(3, at(0));
        step.listed(at(0), &[gateway("a", 1, 2, 0), gateway("b", 1, 2, 0)]);
        step.listed(at(60), &[gateway("a", 1, 2, 0), gateway("b", 2, 2, 0)]);
        let silence = Bounds::DEFAULT.silence().as_secs();
        assert_eq!(step.silent(at(silence)).count(), 0);
        assert_eq!(step.silent(at(silence + 1)).collect::<Vec<_>>(), [("a", 1)]);
    }
}
