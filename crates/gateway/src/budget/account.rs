//! The account of the budget: how many bytes are held, how many requests hold and wait, and whether
//! more bytes fit.
//!
//! Not here: waiting for room, and giving bytes back (`super`).

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

/// The bytes in use, and the number of holders and waiters.
#[derive(Debug)]
pub(super) struct Account {
    pub(super) limit: usize,
    pub(super) bytes: usize,
    /// Of these, the bytes of bodies.
    bodies: usize,
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
        Account { limit, bytes: 0, bodies: 0, working: 0, waiting: 0, stuck: 0 }
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
