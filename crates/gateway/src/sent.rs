//! Whether anything of a request was sent when its time is over. Decided once, by whoever comes
//! first: the request, or its deadline. And why nothing was, where that is known.

use std::sync::OnceLock;
use std::sync::atomic::{AtomicU8, Ordering};

use heatsink_dynamo::Error;

const UNDECIDED: u8 = 0;
const BEGUN: u8 = 1;
const GIVEN_UP: u8 = 2;

/// Of one request.
#[derive(Default)]
pub(crate) struct Sent {
    decided: AtomicU8,
    waits: OnceLock<Error>,
}

impl Sent {
    /// The request is about to send. Says whether it may.
    pub(crate) fn begin(&self) -> bool {
        self.decide(BEGUN)
    }

    /// The time of the request is over. Says whether nothing of it was sent, and nothing will be.
    pub(crate) fn give_up(&self) -> bool {
        self.decide(GIVEN_UP)
    }

    /// The request waits because of that, before anything of it is sent.
    pub(crate) fn waits(&self, why: &Error) {
        self.waits.get_or_init(|| why.clone());
    }

    /// Why the request waited, if it says so.
    pub(crate) fn waited(&self) -> Option<&Error> {
        self.waits.get()
    }

    fn decide(&self, how: u8) -> bool {
        match self.decided.compare_exchange(UNDECIDED, how, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => true,
            Err(decided) => decided == how,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_decided_once() {
        let sent = Sent::default();
        assert!(sent.begin() && sent.begin() && !sent.give_up());
        let late = Sent::default();
        assert!(late.give_up() && late.give_up() && !late.begin());
    }
}
