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
    seen: MonotonicInstant,
    /// How long after its heartbeat the gateway can still have an effect.
    silence: Duration,
}

impl Liveness {
    /// Adds a list of registrations that had been read at `now`.
    pub fn listed(&mut self, now: MonotonicInstant, list: &[Registration]) {
        self.last.retain(|gateway, _| list.iter().any(|one| one.gateway == *gateway));
        for one in list {
            let known = self.last.get(&one.gateway).is_some_and(|sign| sign.beat == one.beat);
            if !known {
                let sign = Sign { beat: one.beat, seen: now, silence: one.bounds.silence() };
                self.last.insert(one.gateway.clone(), sign);
            }
        }
    }

    /// Gateways that are dead, because their registrations have not changed for too long. Each with the heartbeat that its registration must still
    /// have when it is removed.
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
