//! How often a runner looks, and what it waits for.

use std::time::Duration;

/// How often a gateway looks, and what it waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Pace {
    /// How often it looks at the intents. One Query of half a read unit while there are none.
    pub look: Duration,
    /// How often a gateway that carries an intent out writes how far it is.
    pub beat: Duration,
    /// How long an intent has to be unchanged until another gateway takes it over.
    pub taken_over: Duration,
    /// How long until one is tried again that was hindered.
    pub tried_again: Duration,
    /// How long an intent is kept after it ended well, for those who wait for it.
    pub kept: Duration,
    /// Of how many tables a gateway carries intents out at once; those of which all are paused or
    /// hindered not counted.
    pub at_once: usize,
}

impl Pace {
    /// The default.
    pub const DEFAULT: Pace = Pace {
        look: Duration::from_secs(1),
        beat: Duration::from_secs(1),
        taken_over: Duration::from_secs(5),
        tried_again: Duration::from_secs(10),
        kept: Duration::from_secs(60),
        at_once: 4,
    };

    /// The same, so many times faster. For tests.
    #[must_use]
    pub fn faster(self, times: u32) -> Self {
        Pace {
            look: self.look / times,
            beat: self.beat / times,
            taken_over: self.taken_over / times,
            tried_again: self.tried_again / times,
            ..self
        }
    }
}
