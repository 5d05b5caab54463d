//! What a request does with a key that has no record, in a table of which all keys get other
//! layouts: the whole table in one function.
//!
//! Not here: keys on record, which move by themselves ([`act`](crate::act)); when a phase ends
//! ([`TableCoordinator`](crate::TableCoordinator)).

use heatsink_layout::TablePhase;

use crate::rules::{Rule, Rules};

/// What a write of such a key does. Reads go on as ever.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FirstWrite {
    /// It is sent, under the layouts in force.
    Send,
    /// The key is entered, and once that is answered the write is sent.
    EnterFirst,
    /// It waits in the gateway for another phase. If that takes too long the answer is retryable,
    /// nothing done.
    Wait,
}

/// What a write does in that phase. `entered`: this gateway knows that the key was entered for this
/// change.
pub fn first_write(phase: TablePhase, entered: bool, rules: Rules) -> FirstWrite {
    match phase {
        TablePhase::Enter | TablePhase::Prepare if entered || !rules.keep(Rule::NewKeysEntered) => {
            FirstWrite::Send
        }
        TablePhase::Enter | TablePhase::Prepare => FirstWrite::EnterFirst,
        TablePhase::Hold if rules.keep(Rule::NewKeysHeld) => FirstWrite::Wait,
        TablePhase::Turn if rules.keep(Rule::TurnHeld) => FirstWrite::Wait,
        TablePhase::Hold | TablePhase::Turn | TablePhase::Rest => FirstWrite::Send,
    }
}
