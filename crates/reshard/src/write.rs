//! A client's write to an item that may have two copies: what [`Act`] says, call by call.
//!
//! Not here: what the write is. Its own call is sent as it came, to one of the two places, with a
//! guard if one is named. An own call whose outcome is unknown ends the write with an unknown
//! outcome; only the transactions of a pull are sent again.

use crate::phase::{Act, Guard, Otherwise};
use crate::pull::{Pull, PullAnswer, PullCall, Pulled};
use crate::record::Side;
use crate::rules::Rules;

/// A write. `T` is the item as it is stored.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Write<T> {
    at: At<T>,
    rules: Rules,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum At<T> {
    Waiting,
    Own(Side),
    Guarded(Guard, Otherwise),
    Pulling(Pull<T>),
    TooLarge,
}

/// What comes next.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum WriteStep<T> {
    /// Send this.
    Send(WriteCall<T>),
    /// Nothing was done: wait for another phase, and plan again.
    Wait,
    /// Nothing was done: the item has to be pulled for this, and is too long for its new key.
    TooLarge,
}

/// A call of a write.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum WriteCall<T> {
    /// The client's write itself. Unless its guard fails, its answer is the client's.
    Own {
        /// Where.
        side: Side,
        /// What is added to its condition.
        guard: Option<Guard>,
    },
    /// A call of a pull.
    Pull(PullCall<T>),
}

/// What a write has to be told. An own call that was answered, but for a failed guard, is the end
/// of the write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum WriteAnswer<T> {
    /// The guard, or it and the client's own condition, failed.
    GuardFailed,
    /// The answer to a call of a pull.
    Pull(PullAnswer<T>),
}

impl<T: Clone> Write<T> {
    /// A write that does this.
    pub fn new(act: Act, rules: Rules) -> Self {
        let at = match act {
            // A read has no write; whoever asks for one waits for ever and harms nothing.
            Act::Wait | Act::ReadBoth => At::Waiting,
            Act::Old => At::Own(Side::Old),
            Act::New => At::Own(Side::New),
            Act::NewIf(guard, otherwise) => At::Guarded(guard, otherwise),
            Act::PullThenNew => At::Pulling(Pull::new(rules)),
        };
        Write { at, rules }
    }

    /// What comes next.
    pub fn step(&self) -> WriteStep<T> {
        match &self.at {
            At::Waiting => WriteStep::Wait,
            At::TooLarge => WriteStep::TooLarge,
            At::Own(side) => WriteStep::Send(WriteCall::Own { side: *side, guard: None }),
            At::Guarded(guard, _) => WriteStep::Send(WriteCall::Own { side: Side::New, guard: Some(*guard) }),
            At::Pulling(pull) => WriteStep::Send(WriteCall::Pull(pull.call())),
        }
    }

    /// Whether a failed guard is the answer. Never in production.
    #[doc(hidden)]
    pub fn answers_failed_guard(&self) -> bool {
        matches!(self.at, At::Guarded(_, Otherwise::Answer))
    }

    /// Takes an answer.
    pub fn answered(&mut self, answer: WriteAnswer<T>) {
        match (&mut self.at, answer) {
            (At::Guarded(_, otherwise), WriteAnswer::GuardFailed) => {
                self.at = match otherwise {
                    Otherwise::PullThenNew => At::Pulling(Pull::new(self.rules)),
                    Otherwise::Wait | Otherwise::Answer => At::Waiting,
                };
            }
            (At::Pulling(pull), WriteAnswer::Pull(answer)) => match pull.answered(answer) {
                Some(Pulled::Clear) => self.at = At::Own(Side::New),
                // A client's pull has no claim.
                Some(Pulled::TooLarge | Pulled::ClaimGone) => self.at = At::TooLarge,
                None => {}
            },
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_update_is_tried_on_the_new_copy_and_pulls_if_there_is_none() {
        let mut write = Write::new(Act::NewIf(Guard::ExistsForGood, Otherwise::PullThenNew), Rules::ALL);
        let tried = WriteCall::Own { side: Side::New, guard: Some(Guard::ExistsForGood) };
        assert_eq!(write.step(), WriteStep::Send(tried));
        write.answered(WriteAnswer::GuardFailed);
        assert_eq!(write.step(), WriteStep::Send(WriteCall::Pull(PullCall::Read)));
        write.answered(WriteAnswer::Pull(PullAnswer::Read(Some(1))));
        write.answered(WriteAnswer::Pull(PullAnswer::Done));
        write.answered(WriteAnswer::Pull(PullAnswer::Done));
        assert_eq!(write.step(), WriteStep::Send(WriteCall::Own { side: Side::New, guard: None }));
    }

    #[test]
    fn in_check_it_waits_and_an_item_that_cannot_be_pulled_is_named() {
        let mut write: Write<u8> = Write::new(Act::NewIf(Guard::ExistsForGood, Otherwise::Wait), Rules::ALL);
        write.answered(WriteAnswer::GuardFailed);
        assert_eq!(write.step(), WriteStep::Wait);
        let mut write = Write::new(Act::PullThenNew, Rules::ALL);
        write.answered(WriteAnswer::Pull(PullAnswer::Read(Some(1))));
        write.answered(WriteAnswer::Pull(PullAnswer::TooLarge));
        assert_eq!(write.step(), WriteStep::TooLarge);
    }
}
