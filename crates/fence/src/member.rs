//! A gateway's side of the fence: what it has seen of the registry, and until when it may send requests.

use heatsink_env::MonotonicInstant;

use crate::{Bounds, Change, Changes, Epoch, Head};

/// One gateway.
///
/// A lease counts from just before the read that gives it was sent, so it is over before any other party can know of a read that came
/// later. It counts on a clock that goes on while the machine sleeps.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Member {
    bounds: Bounds,
    /// Nobody else changes anything: there is no list to be on.
    exclusive: bool,
    membership: Membership,
    /// Everything up to this epoch has been applied.
    epoch: Epoch,
    /// No request is sent from this moment on.
    lease: MonotonicInstant,
    /// How many registrations were sent. No two carry the same number, so that each is seen to be new.
    beats: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Membership {
    /// No registry has been seen: nothing is sharded, and nothing is written.
    Watching,
    /// The registry is there, and this gateway is not on its list, though it should be.
    Unregistered,
    /// The registry is there. The gateway is exclusive.
    Exclusive,
    /// On the list.
    Registered {
        /// When the last registration that the store answered was sent.
        beaten: MonotonicInstant,
    },
}

/// What a read of the head means.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// Nothing new: the lease is prolonged.
    Nothing,
    /// These changes must be applied before the lease is prolonged.
    Changed(Vec<Change>),
    /// More than the head has kept: everything that is known must be dropped.
    Everything,
    /// An older epoch than was seen before: the registry is not the one it was. The lease is over.
    Older,
}

/// What a gateway writes into its registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Heartbeat {
    /// Grows each time, whether the one before was answered or not: a registration that does not change belongs to a gateway that does
    /// nothing.
    pub number: u64,
    /// The epoch that is acknowledged.
    pub epoch: Epoch,
}

impl Member {
    /// A gateway that has seen no registry yet. It may not send until it has looked.
    pub fn new(bounds: Bounds) -> Self {
        Member {
            bounds,
            exclusive: false,
            membership: Membership::Watching,
            epoch: 0,
            lease: MonotonicInstant(0),
            beats: 0,
        }
    }

    /// A gateway that nobody else stands beside. It is on no list; its lease only says how often it looks.
    pub fn exclusive(bounds: Bounds) -> Self {
        Member { exclusive: true, ..Member::new(bounds) }
    }

    /// Whether a request may be sent at `now`.
    pub fn may_send(&self, now: MonotonicInstant) -> bool {
        now < self.lease
    }

    /// When the lease ends.
    pub fn lease(&self) -> MonotonicInstant {
        self.lease
    }

    /// The epoch that requests are planned under.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Whether nobody else stands beside it.
    pub fn is_exclusive(&self) -> bool {
        self.exclusive
    }

    /// Whether no registry has been seen. Once one has been, its absence is an outage.
    pub fn is_watching(&self) -> bool {
        self.membership == Membership::Watching
    }

    /// Whether it has to register before it may read a head for a lease.
    pub fn is_unregistered(&self) -> bool {
        self.membership == Membership::Unregistered
    }

    /// A strong read that was sent at `sent` found no registry.
    pub fn found_none(&mut self, sent: MonotonicInstant) {
        if self.membership == Membership::Watching {
            self.lease = self.lease.max(sent + self.bounds.unregistered_lease());
        }
    }

    /// The registry is there. The gateway registers next; what lease it has from before runs on.
    pub fn found_registry(&mut self) {
        if self.membership == Membership::Watching {
            self.membership = if self.exclusive { Membership::Exclusive } else { Membership::Unregistered };
        }
    }

    /// What to write to get on the list. What a read of the head that was sent before this is answered says is worth no lease: whoever
    /// lists the gateways meanwhile does not wait for this one.
    pub fn registration(&mut self) -> Heartbeat {
        self.beats += 1;
        Heartbeat { number: self.beats, epoch: self.epoch }
    }

    /// The registration that was sent at `sent` is on the list.
    pub fn registered(&mut self, sent: MonotonicInstant) {
        if !self.exclusive {
            self.membership = Membership::Registered { beaten: sent };
        }
    }

    /// A strong read of the head that was sent at `sent` gave `head`.
    pub fn read(&mut self, sent: MonotonicInstant, head: &Head) -> Seen {
        if head.epoch < self.epoch {
            self.lease = MonotonicInstant(0);
            return Seen::Older;
        }
        match head.since(self.epoch) {
            Changes::These([]) => {
                self.prolong(sent);
                Seen::Nothing
            }
            Changes::These(changes) => Seen::Changed(changes.to_vec()),
            Changes::Everything => Seen::Everything,
        }
    }

    /// What a read of the head that was sent at `sent` and showed `epoch` said has been applied: no result that was planned earlier
    /// under what it changed will reach a client.
    pub fn applied(&mut self, sent: MonotonicInstant, epoch: Epoch) {
        if epoch >= self.epoch {
            self.epoch = epoch;
            self.prolong(sent);
        }
    }

    /// Whether it is on the list, as far as it knows.
    pub fn is_registered(&self) -> bool {
        matches!(self.membership, Membership::Registered { .. })
    }

    /// The next registration to write; nothing where there is no list, or the gateway is not on it.
    pub fn beat(&mut self) -> Option<Heartbeat> {
        self.is_registered().then(|| self.registration())
    }

    /// The store answered a registration that was sent at `sent`.
    pub fn beaten(&mut self, sent: MonotonicInstant) {
        if let Membership::Registered { beaten } = &mut self.membership {
            *beaten = (*beaten).max(sent);
        }
    }

    /// The store says that the gateway is not on the list any more: it was taken for dead. It may send nothing until it has registered
    /// and read the head again.
    pub fn removed(&mut self) {
        if matches!(self.membership, Membership::Registered { .. }) {
            self.membership = Membership::Unregistered;
            self.lease = MonotonicInstant(0);
        }
    }

    fn prolong(&mut self, sent: MonotonicInstant) {
        let strength = match self.membership {
            Membership::Registered { beaten } => sent.min(beaten + self.bounds.heartbeat_patience()),
            Membership::Exclusive => sent,
            Membership::Watching | Membership::Unregistered => return,
        };
        self.lease = self.lease.max(strength + self.bounds.lease);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const BOUNDS: Bounds = Bounds {
        lease: Duration::from_secs(60),
        heartbeat: Duration::from_secs(10),
        poll: Duration::from_secs(2),
        straggler: Duration::from_secs(30),
    };

    fn at(seconds: u64) -> MonotonicInstant {
        MonotonicInstant(seconds * 1_000_000_000)
    }

    fn registered() -> Member {
        let mut member = Member::new(BOUNDS);
        member.found_registry();
        member.registered(at(0));
        member
    }

    #[test]
    fn the_first_lease_comes_from_a_read_after_the_registration() {
        let mut member = Member::new(BOUNDS);
        assert!(!member.may_send(at(0)));
        member.found_registry();
        assert_eq!(member.read(at(0), &Head::default()), Seen::Nothing);
        assert!(!member.may_send(at(0)), "not on the list");
        member.registered(at(1));
        member.read(at(2), &Head::default());
        assert_eq!(member.lease(), at(62));
    }

    #[test]
    fn without_a_registry_each_look_gives_a_lease() {
        let mut member = Member::new(BOUNDS);
        member.found_none(at(3));
        assert!(member.may_send(at(12)) && !member.may_send(at(13)), "the same for all");
        member.found_registry();
        member.found_none(at(50));
        assert_eq!(member.lease(), at(13), "who has seen a registry takes its absence for an outage");
    }

    #[test]
    fn a_change_does_not_prolong_the_lease_until_it_is_applied() {
        let mut member = registered();
        member.read(at(0), &Head::default());
        let head = Head::default().with("t", 2);
        let Seen::Changed(changes) = member.read(at(10), &head) else { panic!() };
        assert_eq!((changes.len(), member.lease()), (1, at(60)));
        assert_eq!(member.beat().map(|beat| beat.epoch), Some(0));
        member.applied(at(10), 1);
        assert_eq!((member.lease(), member.epoch()), (at(70), 1));
        assert_eq!(member.beat().map(|beat| beat.epoch), Some(1));
        assert_eq!(member.read(at(11), &Head::default()), Seen::Older);
        assert!(!member.may_send(at(11)));
    }

    #[test]
    fn reads_alone_prolong_the_lease_only_for_a_while() {
        let mut member = registered();
        for second in 0..300 {
            member.read(at(second), &Head::default());
        }
        assert_eq!(member.lease(), at(80), "two heartbeats and a lease after the registration");
        member.beaten(at(290));
        member.read(at(300), &Head::default());
        assert_eq!(member.lease(), at(360));
        member.removed();
        assert!(!member.may_send(at(300)) && member.beat().is_none());
    }

    #[test]
    fn an_exclusive_gateway_is_on_no_list() {
        let mut member = Member::exclusive(BOUNDS);
        member.found_registry();
        assert!(!member.is_unregistered() && member.beat().is_none());
        member.read(at(5), &Head::default());
        assert_eq!(member.lease(), at(65));
    }
}
