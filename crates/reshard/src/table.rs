//! Takes a table from phase to phase of which all keys get other layouts.
//!
//! While gateways enter the keys that clients write to for the first time
//! ([`first_write`](crate::first_write)), the walk over the table and what is entered name every key
//! that has an item. Those are put on record as they lie. Then first writes wait for a moment, the
//! keys that were entered last are put on record, too, and the new layouts hold for all that have no
//! record: none of them has an item. From then on new keys are born where they belong, and those on
//! record are moved one by one, each by a [`Coordinator`](crate::Coordinator) of its own.
//!
//! All that has to be remembered is the phase. Whoever takes over waits for its acknowledgements
//! once more.

use heatsink_layout::TablePhase;

use crate::rules::{Rule, Rules};

/// What is to be done next.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TableDo {
    /// Write that phase on record, if the record is as it was, and publish it. With TURN the new
    /// layouts are written.
    Write(TablePhase),
    /// Wait until every gateway knows it.
    Acknowledge(TablePhase),
    /// Read the keys of all items, strongly consistently, and put those on record as they lie that
    /// have none.
    RecordAll,
    /// The same of the keys that were entered.
    RecordEntered,
    /// List the keys on record that lie as before.
    List,
    /// Have those keys moved that were listed.
    Move,
    /// Take the change off the record: all is done.
    End,
}

/// What came of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TableSeen {
    /// It was done.
    Done,
    /// So many keys have to be moved.
    Listed(usize),
}

/// The coordinator of one table's change.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct TableCoordinator {
    /// The phase on record.
    phase: Option<TablePhase>,
    next: TableDo,
    rules: Rules,
}

impl TableCoordinator {
    /// One that begins, or goes on with what is on record.
    pub fn new(phase: Option<TablePhase>, rules: Rules) -> Self {
        let next = match phase {
            None => TableDo::Write(TablePhase::Enter),
            Some(phase) => after_write(phase, rules),
        };
        TableCoordinator { phase, next, rules }
    }

    /// One that turns a change round which has come so far. Before TURN nothing lies as the change
    /// would have it, but for keys that an earlier one had moved there: it goes to REST at once, as the
    /// end of a change that came from there.
    pub fn turning_round(phase: TablePhase, rules: Rules) -> Self {
        match phase.has_turned() {
            true => TableCoordinator::new(None, rules),
            false => TableCoordinator { phase: None, next: TableDo::Write(TablePhase::Rest), rules },
        }
    }

    /// What to do.
    pub fn next(&self) -> TableDo {
        self.next
    }

    /// The phase on record.
    pub fn phase(&self) -> Option<TablePhase> {
        self.phase
    }

    /// Takes what came of it.
    pub fn seen(&mut self, seen: TableSeen) {
        self.next = match (self.next, seen) {
            (TableDo::Write(phase), _) => {
                // Whoever is in REST or in TURN reads the same, and in TURN nobody enters a key.
                let rests = (self.phase, phase) == (Some(TablePhase::Turn), TablePhase::Rest);
                self.phase = Some(phase);
                if rests { TableDo::List } else { after_write(phase, self.rules) }
            }
            (TableDo::Acknowledge(phase), _) => after_acknowledged(phase, self.rules),
            (TableDo::RecordAll, _) => TableDo::Write(TablePhase::Prepare),
            (TableDo::RecordEntered, _) => TableDo::Write(TablePhase::Turn),
            (TableDo::List, TableSeen::Listed(keys)) if keys > 0 => TableDo::Move,
            (TableDo::List | TableDo::End, _) => TableDo::End,
            (TableDo::Move, _) => TableDo::List,
        };
    }
}

fn after_write(phase: TablePhase, rules: Rules) -> TableDo {
    match (phase, rules.keep(Rule::TablePhasesAwaited)) {
        (TablePhase::Enter, _) if !rules.keep(Rule::ListedAfterEntering) => TableDo::RecordAll,
        (phase, true) => TableDo::Acknowledge(phase),
        (phase, false) => after_acknowledged(phase, rules),
    }
}

fn after_acknowledged(phase: TablePhase, rules: Rules) -> TableDo {
    match phase {
        TablePhase::Enter => TableDo::RecordAll,
        TablePhase::Prepare => TableDo::Write(TablePhase::Hold),
        TablePhase::Hold if rules.keep(Rule::EnteredRecorded) => TableDo::RecordEntered,
        TablePhase::Hold => TableDo::Write(TablePhase::Turn),
        TablePhase::Turn => TableDo::Write(TablePhase::Rest),
        TablePhase::Rest => TableDo::List,
    }
}
