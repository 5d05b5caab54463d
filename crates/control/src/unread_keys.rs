//! Keys that a BatchGetItem leaves unread, as the store does when it throttles: they are asked for
//! again, with pauses and not for ever.

use std::time::Duration;

use heatsink_dynamo::{Code, Error};

use crate::registry::Registry;

/// How often they are asked for again, with pauses that double from 10 ms to 320 ms: three seconds
/// in all.
const MOST_ROUNDS: u32 = 12;
const PAUSE: Duration = Duration::from_millis(5);

/// The rounds of one read so far.
#[derive(Default)]
pub struct UnreadKeys {
    rounds: u32,
}

impl UnreadKeys {
    /// Waits before the next round; not before the first one.
    ///
    /// # Errors
    /// `ThrottlingException`, by which SDKs slow down: there were enough rounds. `what` says what
    /// is left unread.
    pub async fn pause(&mut self, registry: &Registry, what: &str) -> Result<(), Error> {
        if self.rounds > MOST_ROUNDS {
            return Err(Error::new(
                Code::ThrottlingException,
                format!(
                    "The store leaves {what} unread, as it does when it throttles. Nothing was done; try again"
                ),
            ));
        }
        if self.rounds > 0 {
            registry.env().sleep(PAUSE * (1 << self.rounds.min(6))).await;
        }
        self.rounds += 1;
        Ok(())
    }
}
