//! Which registered gateways still send heartbeats, as one observer sees it.

use std::collections::BTreeMap;
use std::time::Duration;

use heatsink_env::MonotonicInstant;

use crate::Registration;

/// The last heartbeat of every registered gateway, and when this observer first saw it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Liveness {
    last: BTreeMap<String, Sign>,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct Sign {
    beat: u64,
    ended: bool,
    seen: MonotonicInstant,
    /// How long after that the gateway can still send, or give a client a result.
    lease: Duration,
    /// How long after that it can still have an effect.
    silence: Duration,
}

impl Sign {
    fn new(seen: MonotonicInstant, one: &Registration) -> Self {
        let (lease, silence) = match one.ended {
            true => (Duration::ZERO, one.bounds.straggler),
            false => (one.bounds.longest_lease(), one.bounds.silence()),
        };
        Sign { beat: one.beat, ended: one.ended, seen, lease, silence }
    }
}

impl Liveness {
    /// Adds a list of registrations that had been read at `now`.
    pub fn listed(&mut self, now: MonotonicInstant, list: &[Registration]) {
        self.last.retain(|gateway, _| list.iter().any(|one| one.gateway == *gateway));
        for one in list {
            let sign = Sign::new(now, one);
            let same = |known: &Sign| (known.beat, known.ended) == (sign.beat, sign.ended);
            if !self.last.get(&one.gateway).is_some_and(same) {
                self.last.insert(one.gateway.clone(), sign);
            }
        }
    }

    /// When the gateway has no lease any more, and when it has no effect, unless its registration
    /// changes.
    pub(crate) fn over(&self, gateway: &str) -> Option<(MonotonicInstant, MonotonicInstant)> {
        self.last.get(gateway).map(|sign| (sign.seen + sign.lease, sign.seen + sign.silence))
    }

    /// Whether any is listed of which it is known that its process has ended.
    pub fn any_ended(&self) -> bool {
        self.last.values().any(|sign| sign.ended)
    }

    /// Gateways that are dead, because their registrations have not changed for too long. Each with
    /// the heartbeat that its registration must still have when it is removed.
    pub fn silent(&self, now: MonotonicInstant) -> impl Iterator<Item = (&str, u64)> {
        let silent = self.last.iter().filter(move |(_, sign)| now.since(sign.seen) > sign.silence);
        silent.map(|(gateway, sign)| (gateway.as_str(), sign.beat))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Bounds;

    fn at(seconds: u64) -> MonotonicInstant {
        MonotonicInstant(seconds * 1_000_000_000)
    }

    #[test]
    fn who_has_not_changed_for_so_long_is_silent_and_a_beat_counts_anew() {
        let gateway = |name: &str, beat| Registration {
            gateway: name.to_owned(),
            beat,
            epoch: 1,
            unclean: Duration::ZERO,
            bounds: Bounds::DEFAULT,
            ended: false,
        };
        let silence = Bounds::DEFAULT.silence().as_secs();
        let mut liveness = Liveness::default();
        liveness.listed(at(10), &[gateway("a", 1), gateway("b", 1)]);
        liveness.listed(at(60), &[gateway("a", 1), gateway("b", 2), gateway("c", 1)]);
        let silent = |liveness: &Liveness, now| {
            liveness.silent(at(now)).map(|(name, beat)| (name.to_owned(), beat)).collect::<Vec<_>>()
        };
        assert_eq!(silent(&liveness, 10 + silence), []);
        assert_eq!(silent(&liveness, 11 + silence), [("a".to_owned(), 1)]);
        liveness.listed(at(11 + silence), &[gateway("b", 2), gateway("c", 1)]);
        assert_eq!(silent(&liveness, 60 + silence), []);
        assert_eq!(silent(&liveness, 61 + silence).len(), 2);
    }
}
