//! The rules of the protocol, each with a switch. Tests leave one out and see that the search
//! notices.
//!
//! Not for anything else: production uses [`Rules::ALL`].

/// One rule that a test can leave out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Rule {
    /// Every phase is acknowledged by all gateways before the next one.
    AcknowledgementsAwaited,
    /// Writes to items that move wait in HOLD.
    HoldWaits,
    /// Reads look at both copies from HOLD on. (In PREPARE nothing rests on it.)
    HoldReadsBoth,
    /// HOLD is followed by CHECK unless all acknowledgements were clean.
    UncleanChecked,
    /// "All" counts the acknowledgements before HOLD's too.
    CleanCountsAll,
    /// A coordinator that takes over has not seen every acknowledgement: it counts as unclean.
    TakeoverUnclean,
    /// A coordinator that takes over publishes the phase again and waits for the acknowledgements.
    TakeoverWaits,
    /// CHECK lasts as long as a call of before HOLD may land.
    CheckWaits,
    /// Deletes wait in CHECK.
    CheckHoldsDeletes,
    /// Writes that depend on the item wait in CHECK.
    CheckHoldsDependent,
    /// An update that finds no new copy in CHECK waits.
    CheckHoldsMissing,
    /// An update in CHECK and MOVE is tried on the new copy only if that exists.
    UpdatesGuarded,
    /// A delete in MOVE pulls first.
    DeletePulls,
    /// A write that depends on the item pulls first in MOVE.
    DependentPulls,
    /// An update that finds no new copy in MOVE pulls and is tried again.
    MissingPulls,
    /// The old copy is there when it is copied.
    CopyNeedsOld,
    /// The new copy is there when the old one is deleted.
    ClearNeedsNew,
    /// The new copy is looked at before the old one.
    NewReadFirst,
    /// The new copy is looked at once more after the old one.
    NewReadAgain,
    /// Each range of old rows has its own two reads of the new ones.
    RangeReadAgain,
    /// A put that leaves an expiry pulls first.
    ExpiringPutPulls,
    /// An update is not tried on a new copy with an expiry.
    ExpiringUpdatePulls,
    /// The high water is read when HOLD is acknowledged.
    HighWaterAfterHold,
    /// It is read when no call of before HOLD can land any more.
    HighWaterAfterStragglers,
    /// MOVE lasts until the mover has finished.
    MoverAwaited,
    /// The mover's reads are strongly consistent.
    MoverReadsStrongly,
    /// Every write of a worker checks its claim.
    ClaimChecked,
    /// A claim is made only if the record is as the worker saw it.
    ClaimChecksRecord,
    /// No claim can be made any more when claims are deleted.
    ClaimsClosed,
    /// Claims are deleted before the next phase.
    ClaimsEnded,
    /// The new physical keys hold nothing when PREPARE begins.
    Surveyed,
    /// They are looked at when no call of before RESERVE can land any more.
    SurveyAfterStragglers,
    /// The next change waits until no call of the last one can land any more.
    Settled,
    /// All gateways read and clear the new fragments of a counter, or look into the new shards of
    /// buckets, before anybody writes to them.
    WidenReadersFirst,
    /// Nobody adds to the new fragments while calls may land that were planned without them.
    WidenAfterStragglers,
    /// Nothing is folded while calls may land that were planned when all fragments took ADDs.
    FoldAfterStragglers,
    /// A read of a counter in MOVE sees that no fold came between its parts.
    FoldSeen,
    /// A fold adds what it deletes: the fragment holds it still.
    FoldUnchanged,
    /// A key of a table that changes is entered before its first write.
    NewKeysEntered,
    /// First writes wait in HOLD of a table that changes.
    NewKeysHeld,
    /// They wait in TURN, too: other gateways may read by the former layouts.
    TurnHeld,
    /// Each phase of a table that changes is acknowledged by all gateways before the next one.
    TablePhasesAwaited,
    /// Keys that were entered and have no record get one before the layouts of the table change.
    EnteredRecorded,
    /// The table's keys are read when every gateway enters new ones.
    ListedAfterEntering,
    /// A cancel is taken only through HOLD; of a step of buckets only in RESERVE.
    CancelThroughHold,
    /// The record is written only if it still has the version that the coordinator knows.
    RecordByVersion,
}

/// Which rules hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Rules {
    left_out: u64,
}

impl Rules {
    /// Every rule.
    pub const ALL: Rules = Rules { left_out: 0 };

    /// The same without one rule.
    #[must_use]
    pub const fn without(self, rule: Rule) -> Rules {
        Rules { left_out: self.left_out | 1 << rule as u8 }
    }

    /// Whether a rule holds.
    pub const fn keep(self, rule: Rule) -> bool {
        self.left_out & (1 << rule as u8) == 0
    }
}
