//! How long a transaction is sent again whose outcome the store does not tell, and with which
//! pauses: a store that is down is not to be asked without end, nor without a pause.
//!
//! Not here: conflicts and throttles (`heatsink_control::claim`).

use std::time::Duration;

use heatsink_dynamo::Error;
use heatsink_env::{Env, MonotonicInstant};

/// After that it is the caller's, who tries the whole again later.
const LONGEST: Duration = Duration::from_secs(120);
/// The first pause, which doubles, and the longest.
const FIRST: Duration = Duration::from_millis(20);
const MOST: Duration = Duration::from_secs(2);

/// That of one item.
pub(super) struct Patience {
    begun: Option<MonotonicInstant>,
    pause: Duration,
}

impl Patience {
    pub(super) const fn new() -> Self {
        Patience { begun: None, pause: FIRST }
    }

    /// Waits before the transaction is sent again.
    ///
    /// # Errors
    /// What the store said, once that has lasted for too long.
    pub(super) async fn wait(&mut self, env: &dyn Env, error: Error) -> Result<(), Error> {
        let begun = *self.begun.get_or_insert_with(|| env.now());
        if env.now().since(begun) >= LONGEST {
            return Err(error);
        }
        env.sleep(self.pause).await;
        self.pause = (self.pause * 2).min(MOST);
        Ok(())
    }
}
