//! A gateway's side of the fence: what it has seen of the registry, and until when it may send
//! requests.

use heatsink_env::MonotonicInstant;

use crate::{Bounds, Change, Changes, Epoch, Head, LeaseEnd};

/// One gateway.
///
/// A lease counts from just before its read was sent, so it ends before any other process can know
/// of a later read. It counts on a clock that also runs while the machine is suspended.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Member {
    bounds: Bounds,
    /// No other process changes anything, so there is no registration.
    exclusive: bool,
    membership: Membership,
    /// Every change up to this epoch has been applied.
    epoch: Epoch,
    /// The version that the change of that epoch wrote, where the head named it.
    version: Option<u64>,
    /// It has seen the head of another registry, or an older one of this: nothing that it knows
    /// counts, and nothing that it acknowledged.
    misled: bool,
    /// No request is sent from this time on.
    lease: MonotonicInstant,
    /// No request that depends on a key about to move is sent from this time on.
    short_lease: MonotonicInstant,
    /// The number of registrations sent. No two carry the same number, so that observers see each
    /// as new.
    beats: u64,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Membership {
    /// No registry has been seen: nothing is sharded, and nothing is written.
    Watching,
    /// The registry exists, and this gateway is not registered, though it should be.
    Unregistered,
    /// The registry exists. The gateway is exclusive.
    Exclusive,
    /// Registered.
    Registered {
        /// When the last registration that the store answered was sent.
        beaten: MonotonicInstant,
    },
}

/// The meaning of a read of the head.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Seen {
    /// No change: the lease is prolonged.
    Nothing,
    /// These changes must be applied before the lease is prolonged.
    Changed(Vec<Change>),
    /// More changes than the head keeps, or other ones than were seen before: every cached status
    /// must be dropped.
    Everything,
    /// An older epoch than was seen before: the registry is another one. The lease is over. Nothing
    /// is sent or acknowledged until the head is as new as it was.
    Older,
}

/// The content of a registration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Heartbeat {
    /// Grows with each heartbeat, answered or not: a registration that does not change belongs to a
    /// gateway that does nothing.
    pub number: u64,
    /// The acknowledged epoch.
    pub epoch: Epoch,
}

impl Member {
    /// A gateway that has seen no registry yet. It may not send before its first read.
    pub fn new(bounds: Bounds) -> Self {
        Member {
            bounds,
            exclusive: false,
            membership: Membership::Watching,
            epoch: 0,
            version: None,
            misled: false,
            lease: MonotonicInstant(0),
            short_lease: MonotonicInstant(0),
            beats: 0,
        }
    }

    /// The only gateway of its store. It is not registered; its lease only decides how often it
    /// reads the head.
    pub fn exclusive(bounds: Bounds) -> Self {
        Member { exclusive: true, ..Member::new(bounds) }
    }

    /// Whether a request may be sent at `now`.
    pub fn may_send(&self, now: MonotonicInstant) -> bool {
        self.lease().allows(now)
    }

    /// When the lease ends.
    pub fn lease(&self) -> LeaseEnd {
        LeaseEnd(self.lease)
    }

    /// When the lease for requests ends that depend on a key about to move. Never after the other.
    pub fn short_lease(&self) -> LeaseEnd {
        LeaseEnd(self.short_lease.min(self.lease))
    }

    /// The epoch that requests are planned under.
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Whether it is the only gateway of its store.
    pub fn is_exclusive(&self) -> bool {
        self.exclusive
    }

    /// Whether no registry has been seen. Once one has been, its absence is an outage.
    pub fn is_watching(&self) -> bool {
        self.membership == Membership::Watching
    }

    /// Whether a head may be followed: it is as new as the newest that was seen. Who registers
    /// beside an older one would be waited for in each change, and acknowledge none.
    pub fn may_follow(&self, head: &Head) -> bool {
        head.epoch >= self.epoch
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

    /// The registry exists. The gateway registers next; its current lease runs on.
    pub fn found_registry(&mut self) {
        if self.membership == Membership::Watching {
            self.membership = if self.exclusive { Membership::Exclusive } else { Membership::Unregistered };
        }
    }

    /// The first registration to write. A read of the head that was sent before the answer to this
    /// gives no lease: a process that lists the gateways meanwhile does not wait for this one.
    pub fn registration(&mut self) -> Heartbeat {
        self.beats += 1;
        Heartbeat { number: self.beats, epoch: if self.misled { 0 } else { self.epoch } }
    }

    /// The store answered the registration that was sent at `sent`.
    pub fn registered(&mut self, sent: MonotonicInstant) {
        if !self.exclusive {
            self.membership = Membership::Registered { beaten: sent };
        }
    }

    /// A strong read of the head that was sent at `sent` gave `head`.
    pub fn read(&mut self, sent: MonotonicInstant, head: &Head) -> Seen {
        if !self.may_follow(head) {
            self.mislead();
            return Seen::Older;
        }
        let named = head.changes.iter().find(|change| change.epoch == self.epoch);
        if named.is_some_and(|named| self.version.is_some_and(|version| version != named.version)) {
            // Its epochs were counted up to the same number in another registry.
            self.mislead();
        }
        if self.misled {
            return Seen::Everything;
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

    /// The changes of a head, which was read by a call sent at `sent`, have been applied: no result
    /// that was planned before them will reach a client.
    pub fn applied(&mut self, sent: MonotonicInstant, head: &Head) {
        if self.may_follow(head) {
            self.epoch = head.epoch;
            let newest = head.changes.last().filter(|change| change.epoch == head.epoch);
            self.version = newest.map(|change| change.version);
            self.misled = false;
            self.prolong(sent);
        }
    }

    fn mislead(&mut self) {
        self.misled = true;
        self.removed();
        // An exclusive gateway has no registration to lose.
        self.lease = MonotonicInstant(0);
    }

    /// Whether it is registered, as far as it knows.
    pub fn is_registered(&self) -> bool {
        matches!(self.membership, Membership::Registered { .. })
    }

    /// The next heartbeat to write; `None` if there is no registry, or the gateway is not
    /// registered.
    pub fn beat(&mut self) -> Option<Heartbeat> {
        self.is_registered().then(|| self.registration())
    }

    /// The store answered a heartbeat that was sent at `sent`.
    pub fn beaten(&mut self, sent: MonotonicInstant) {
        if let Membership::Registered { beaten } = &mut self.membership {
            *beaten = (*beaten).max(sent);
        }
    }

    /// The registration was removed: the gateway was taken for dead. It may send nothing until it
    /// has registered and read the head again.
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
        self.short_lease = self.short_lease.max(sent + self.bounds.short_lease());
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
        assert_eq!(member.lease().0, at(62));
    }

    #[test]
    fn without_a_registry_each_look_gives_a_lease() {
        let mut member = Member::new(BOUNDS);
        member.found_none(at(3));
        assert!(member.may_send(at(12)) && !member.may_send(at(13)), "the same for all");
        member.found_registry();
        member.found_none(at(50));
        assert_eq!(member.lease().0, at(13), "who has seen a registry takes its absence for an outage");
    }

    #[test]
    fn a_change_does_not_prolong_the_lease_until_it_is_applied() {
        let mut member = registered();
        member.read(at(0), &Head::default());
        let head = Head::default().with("t", 2);
        let Seen::Changed(changes) = member.read(at(10), &head) else { panic!() };
        assert_eq!((changes.len(), member.lease().0), (1, at(60)));
        assert_eq!(member.beat().map(|beat| beat.epoch), Some(0));
        member.applied(at(10), &head);
        assert_eq!((member.lease().0, member.epoch()), (at(70), 1));
        assert_eq!(member.beat().map(|beat| beat.epoch), Some(1));
        assert_eq!(member.read(at(11), &Head::default()), Seen::Older);
        assert!(!member.may_send(at(11)));
    }

    #[test]
    fn who_was_misled_by_another_head_forgets_what_it_knew_and_acknowledged() {
        let counted = |table: &str, changes| {
            (0..changes).fold(Head::default(), |head: Head, number| head.with(table, 10 * number))
        };
        let (ours, theirs) = (|changes| counted("t", changes), counted("another", 6));
        for exclusive in [false, true] {
            let mut member = if exclusive { Member::exclusive(BOUNDS) } else { Member::new(BOUNDS) };
            member.found_registry();
            member.registered(at(0));
            assert!(matches!(member.read(at(0), &theirs), Seen::Changed(_)));
            member.applied(at(0), &theirs);
            assert!(member.may_send(at(1)));
            // The head is put right, and then counted up to where the other one was.
            assert_eq!(member.read(at(1), &ours(3)), Seen::Older);
            assert!(!member.may_send(at(1)) && !member.may_follow(&ours(5)));
            assert_eq!(member.beat(), None, "it acknowledges nothing more");
            assert!(member.may_follow(&ours(6)));
            assert_eq!(member.registration().epoch, 0, "nor what it acknowledged before");
            member.registered(at(2));
            assert_eq!(member.read(at(2), &ours(6)), Seen::Everything);
            assert!(!member.may_send(at(2)));
            member.applied(at(2), &ours(6));
            assert!(member.may_send(at(2)) && member.registration().epoch == 6);
        }
    }

    #[test]
    fn a_head_that_names_another_change_of_the_same_epoch_is_another_one() {
        let mut member = registered();
        let theirs = Head::default().with("t", 1).with("t", 20);
        member.read(at(0), &theirs);
        member.applied(at(0), &theirs);
        assert_eq!(member.read(at(1), &theirs), Seen::Nothing);
        for later in 2..5 {
            let ours = (1..=later).fold(Head::default(), |head, version| head.with("t", version));
            let mut member = member.clone();
            assert_eq!(member.read(at(1), &ours), Seen::Everything, "{later}");
            assert!(!member.may_send(at(1)) && member.is_unregistered());
        }
    }

    #[test]
    fn reads_alone_prolong_the_lease_only_for_a_while() {
        let mut member = registered();
        for second in 0..300 {
            member.read(at(second), &Head::default());
        }
        assert_eq!(member.lease().0, at(80), "two heartbeats and a lease after the registration");
        member.beaten(at(290));
        member.read(at(300), &Head::default());
        assert_eq!(member.lease().0, at(360));
        member.removed();
        assert!(!member.may_send(at(300)) && member.beat().is_none());
    }

    #[test]
    fn the_short_lease_counts_from_the_last_read_and_ends_with_the_other() {
        let mut member = registered();
        member.read(at(4), &Head::default());
        assert_eq!(member.short_lease().0, at(6));
        member.read(at(5), &Head::default().with("t", 2));
        assert_eq!(member.short_lease().0, at(6), "a change that is not applied prolongs nothing");
        member.applied(at(5), &Head::default().with("t", 2));
        assert_eq!(member.short_lease().0, at(7));
        member.removed();
        assert_eq!(member.short_lease().0, at(0));
    }

    #[test]
    fn an_exclusive_gateway_is_on_no_list() {
        let mut member = Member::exclusive(BOUNDS);
        member.found_registry();
        assert!(!member.is_unregistered() && member.beat().is_none());
        member.read(at(5), &Head::default());
        assert_eq!(member.lease().0, at(65));
    }
}
