//! The account of the budget: how many bytes are held, how many requests hold and wait, and whether
//! more bytes fit.
//!
//! Not here: waiting for room, and giving bytes back (`super`).

use std::collections::HashMap;
use std::sync::Arc;

/// What bytes are held for: the label `of` of the metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Of {
    /// The bodies of clients' requests.
    Requests,
    /// Calls to the store and what it answers.
    Work,
    /// Answers that clients have not taken yet.
    Answers,
}

/// The progress of the request that needs room.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stage {
    /// Its body arrives. It may fill all of the budget, but bodies no more than half.
    Arrives,
    /// Its processing begins. It may fill three quarters.
    Begins,
    /// Its processing continues, or its answer exists. It may fill all.
    GoesOn,
}

/// In whose name a body comes, while it is not whole.
#[derive(Clone, Debug)]
pub(crate) struct Claimant {
    /// The client's id.
    pub(crate) id: Arc<str>,
    /// Whether its connection has shown that client's certificate.
    pub(crate) is_shown: bool,
    /// How many clients there are.
    pub(crate) clients: usize,
}

/// The bytes in use, and the number of holders and waiters.
#[derive(Debug)]
pub(super) struct Account {
    pub(super) limit: usize,
    pub(super) bytes: usize,
    /// Of these, the bytes of bodies.
    bodies: usize,
    /// Of these, the bytes of bodies that come in the name of a client, by its id, while nothing
    /// shows yet that they are its own.
    unproven: HashMap<Arc<str>, usize>,
    /// Requests that hold bytes for their processing.
    pub(super) working: usize,
    /// Requests that wait for room.
    pub(super) waiting: usize,
    /// Of these, those that already hold bytes for their processing.
    pub(super) stuck: usize,
}

impl Account {
    /// Nothing is held of that much.
    pub(super) fn new(limit: usize) -> Self {
        Account { limit, bytes: 0, bodies: 0, unproven: HashMap::new(), working: 0, waiting: 0, stuck: 0 }
    }

    /// Counts `bytes` if they fit, or if no other request is in progress. `working`: whether the
    /// request is counted as working; it is from now on. `stuck` is 1 for a request that waits for
    /// more than it holds.
    pub(super) fn take(
        &mut self,
        of: Of,
        bytes: usize,
        stage: Stage,
        working: &mut Option<&mut bool>,
        stuck: usize,
    ) -> bool {
        // All bytes of others are given back only after one of the waiting requests continues: one
        // that has begun.
        let alone = working.as_ref().is_some_and(|working| match **working {
            true => self.working - 1 == self.stuck - stuck,
            false => self.working == 0,
        });
        if !self.fits(bytes, stage) && !alone {
            return false;
        }
        if let Some(working) = working {
            self.working += usize::from(!**working);
            **working = true;
        }
        self.add(of, bytes);
        true
    }

    fn fits(&self, bytes: usize, stage: Stage) -> bool {
        let within = |used: usize, most| used.checked_add(bytes).is_some_and(|sum| sum <= most);
        within(self.bytes, self.most(stage))
            && (stage != Stage::Arrives || within(self.bodies, self.limit / 2))
    }

    fn most(&self, stage: Stage) -> usize {
        match stage {
            Stage::Begins => self.limit / 4 * 3,
            Stage::Arrives | Stage::GoesOn => self.limit,
        }
    }

    /// Whether `bytes` more of a body that holds `own` may be held in the name of a client. Half of
    /// the room for bodies is divided among all clients, and each has its share at any time. The
    /// rest is for who comes first: a client's bodies hold no more than they leave free of it, and
    /// its only body may have all that there is. Of it, half is kept from those of whom nothing but
    /// the id is known. So whoever knows ids, however many, and no secret, takes the room of nobody
    /// else. A body beside no other may have all the room.
    pub(super) fn is_fair(&self, claimant: &Claimant, own: usize, bytes: usize) -> bool {
        let room = self.limit / 2;
        let share = room / 2 / claimant.clients.max(1);
        let held = self.unproven.get(&claimant.id).copied().unwrap_or_default();
        let wanted = held.saturating_add(bytes);
        if wanted <= share || self.bodies <= own {
            return true;
        }
        let others = self.unproven.iter().filter(|(id, _)| **id != claimant.id);
        let taken: usize = others.map(|(_, held)| share.min(*held)).sum();
        let kept = (share * claimant.clients.saturating_sub(1)).saturating_sub(taken);
        let most = if claimant.is_shown { room } else { room / 4 * 3 };
        let filled = self.bodies.saturating_add(bytes).saturating_add(kept);
        filled <= most && (held <= own || wanted <= most - filled)
    }

    /// Counts `bytes` in the name of a client.
    pub(super) fn claim(&mut self, id: &Arc<str>, bytes: usize) {
        *self.unproven.entry(Arc::clone(id)).or_default() += bytes;
    }

    /// Counts `bytes` in nobody's name any more.
    pub(super) fn disclaim(&mut self, id: &str, bytes: usize) {
        if let Some(held) = self.unproven.get_mut(id) {
            *held -= bytes;
            if *held == 0 {
                self.unproven.remove(id);
            }
        }
    }

    /// Counts `bytes`, whether they fit or not.
    pub(super) fn add(&mut self, of: Of, bytes: usize) {
        self.bytes = self.bytes.saturating_add(bytes);
        if of == Of::Requests {
            self.bodies = self.bodies.saturating_add(bytes);
        }
    }

    /// Counts `bytes` no more.
    pub(super) fn give_back(&mut self, of: Of, bytes: usize) {
        self.bytes -= bytes;
        if of == Of::Requests {
            self.bodies -= bytes;
        }
    }

    /// Whether a request waits, or more is held than beginning requests may fill.
    pub(super) fn is_pressed(&self) -> bool {
        self.waiting > 0 || self.bytes > self.most(Stage::Begins)
    }
}
