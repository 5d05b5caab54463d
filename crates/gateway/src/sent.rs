//! Whether anything of a request was sent when its time is over. Decided once, by whoever comes
//! first: the request, or its deadline. And why nothing was, where that is known.

use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, OnceLock};

use heatsink_dynamo::Error;

const UNDECIDED: u8 = 0;
const BEGUN: u8 = 1;
const GIVEN_UP: u8 = 2;

/// What was decided, once.
#[derive(Default)]
pub(crate) struct Decision(AtomicU8);

impl Decision {
    /// It is about to be sent. Says whether it may.
    pub(crate) fn begin(&self) -> bool {
        self.decide(BEGUN)
    }

    /// Its time is over. Says whether it was not sent, and will not be.
    pub(crate) fn give_up(&self) -> bool {
        self.decide(GIVEN_UP)
    }

    /// Whether it will not be sent.
    pub(crate) fn is_given_up(&self) -> bool {
        self.0.load(Ordering::SeqCst) == GIVEN_UP
    }

    fn decide(&self, how: u8) -> bool {
        match self.0.compare_exchange(UNDECIDED, how, Ordering::SeqCst, Ordering::SeqCst) {
            Ok(_) => true,
            Err(decided) => decided == how,
        }
    }
}

/// Of one request.
#[derive(Default)]
pub(crate) struct Sent {
    decided: Decision,
    /// In the place of that, of a request that waits for others' turns: who has the turn decides.
    turn: OnceLock<Arc<Decision>>,
    waits: OnceLock<Error>,
}

impl Sent {
    /// The request is about to send. Says whether it may.
    pub(crate) fn begin(&self) -> bool {
        self.turn.get().map_or_else(|| self.decided.begin(), |turn| turn.begin())
    }

    /// The time of the request is over. Says whether nothing of it was sent, and nothing will be.
    pub(crate) fn give_up(&self) -> bool {
        if let Some(turn) = self.turn.get() {
            return turn.give_up();
        }
        let given_up = self.decided.give_up();
        // It may have come to wait meanwhile.
        self.turn.get().map_or(given_up, |turn| turn.give_up())
    }

    /// The request comes to wait for its turn, in which others may send it.
    pub(crate) fn turn(&self) -> Arc<Decision> {
        let turn = self.turn.get_or_init(Arc::default);
        match self.decided.0.load(Ordering::SeqCst) {
            GIVEN_UP => _ = turn.give_up(),
            BEGUN => _ = turn.begin(),
            _ => {}
        }
        Arc::clone(turn)
    }

    /// The client of the request has gone. Says whether it waited for its turn, and does not any
    /// more: it can be dropped.
    pub(crate) fn withdraw(&self) -> bool {
        self.turn.get().is_some_and(|turn| turn.give_up())
    }

    /// The request waits because of that, before anything of it is sent.
    pub(crate) fn waits(&self, why: &Error) {
        self.waits.get_or_init(|| why.clone());
    }

    /// Why the request waited, if it says so.
    pub(crate) fn waited(&self) -> Option<&Error> {
        self.waits.get()
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
        let waiting = Sent::default();
        assert!(!waiting.withdraw());
        let turn = waiting.turn();
        assert!(turn.begin() && !waiting.give_up() && !waiting.withdraw() && waiting.begin());
        let gone = Sent::default();
        let turn = gone.turn();
        assert!(gone.withdraw() && turn.is_given_up() && !turn.begin() && gone.give_up());
        assert!(late.turn().is_given_up() && !sent.turn().is_given_up());
    }
}
