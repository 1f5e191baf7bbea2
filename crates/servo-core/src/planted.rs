//! Mistakes that the simulation plants to prove that it would notice them.
//!
//! Each is one line in the code it would be made in, behind [`has`]. Without the feature `planted` that is a constant
//! `false`; with it (only the simulation asks for it) a mistake is made by threads that [`plant`] it, and by no other.

/// A realistic mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Mistake {
    /// Readiness counts completions instead of edges that were newly satisfied.
    ReadinessByCounter,
    /// A report is taken whatever attempt it is about.
    AttemptGuardDropped,
    /// A batch is created without checking the boundary afterwards.
    BoundaryNotChecked,
    /// The end of the log is the highest number seen, not the end of the dense prefix.
    CursorByMaxId,
    /// A cancelled task keeps its slot.
    SlotLeakedOnCancel,
    /// A timer fires although what it saw is older than the row.
    TimerWithoutWatermark,
    /// A manifest is published without checking the writer's epoch.
    UnfencedManifest,
    /// "Already exists" is taken for another writer's record, although the response was lost.
    LostAnswerTakenForConflict,
    /// Effects begin before their batch is durable.
    EffectsBeforeDurability,
    /// Deleted rows leave no tombstone.
    TombstoneForgotten,
    /// A result after the cancellation is promoted.
    LateResultPromoted,
    /// The fold reads a clock instead of the event's time.
    FoldReadsClock,
    /// An output counts although a check blocks it.
    GateIgnored,
    /// An output counts although its commit marker is not there.
    PromotedWithoutMarker,
    /// A dispatch does not record what its attempt reads.
    InputNotRecorded,
    /// A materialization is recorded with the code that is deployed when it is reported, not with the code that ran.
    CodeVersionOfAnotherDeployment,
    /// A run key that has left memory is not looked up in the files.
    RunKeyForgotten,
    /// Answers to requests are not loaded with the state.
    AnswerLostAtRestart,
    /// A change that was asked for leaves no row in the audit.
    AuditRowLost,
    /// Failures of an asset are counted on after a success.
    FailuresMiscounted,
    /// Slots of a lost worker are still counted.
    LostWorkerCounted,
    /// Tasks that nobody began keep their slots when the last worker of their queue is lost.
    SlotLeakedByLostWorker,
    /// A worker is registered without a look at its proof.
    UnprovenWorkerRegistered,
    /// A result of an attempt that was dispatched before a wipe counts.
    WipeUndoneByLateResult,
    /// A tick is recorded without the request for its run.
    TickWithoutRun,
    /// A step of the clock lets ticks be made that were made before it.
    TickAgainAfterClockStep,
    /// A place in the queue of runs is kept by a run that has ended.
    QueuePlaceLeaked,
    /// A task that was cancelled keeps its slot of a pool.
    PoolSlotKeptAfterCancel,
    /// What was just given a slot of a pool is not counted among those that have one.
    PoolOverfilled,
    /// A run that has ended keeps the place of its labels.
    LabelPlaceKept,
    /// A chunk is planned with the partitions of the one before it.
    ChunkPlannedTwice,
    /// A chunk whose run was cancelled keeps the place of its backfill.
    ChunkPlaceKeptAfterCancel,
    /// A fixed time that clocks show twice ticks both times.
    DoubleTickAtEndOfDst,
    /// The cursor of an evaluation counts although its sensor was changed meanwhile.
    CursorWithoutCas,
    /// A message that has failed is not tried again.
    MessageForgotten,
    /// A condition requests again what it has requested for the same change.
    ConditionFiresTwice,
    /// Whatever reads something stale is not stale itself unless that is so by itself.
    StaleOneLevelShort,
    /// A notification that could not be sent is not tried again.
    NotificationForgotten,
    /// A message that comes twice is run twice by an executor that is at its attempt already.
    DuplicateMessageRun,
    /// An executor runs what it was refused to begin.
    RefusalIgnored,
    /// An executor says what it has to say once, whether it was heard or not.
    ReportNotRepeated,
    /// An executor goes on with the token that it was given first.
    RenewedTokenForgotten,
    /// A task that is leased to a worker which never begins it is given to nobody else.
    LeaseForgotten,
    /// The message of a leased task is acknowledged before anybody has asked to begin it.
    LeaseSettledAtOnce,
}

impl Mistake {
    /// All of them.
    pub const ALL: [Self; 44] = [
        Self::ReadinessByCounter,
        Self::AttemptGuardDropped,
        Self::BoundaryNotChecked,
        Self::CursorByMaxId,
        Self::SlotLeakedOnCancel,
        Self::TimerWithoutWatermark,
        Self::UnfencedManifest,
        Self::LostAnswerTakenForConflict,
        Self::EffectsBeforeDurability,
        Self::TombstoneForgotten,
        Self::LateResultPromoted,
        Self::FoldReadsClock,
        Self::GateIgnored,
        Self::PromotedWithoutMarker,
        Self::InputNotRecorded,
        Self::CodeVersionOfAnotherDeployment,
        Self::RunKeyForgotten,
        Self::AnswerLostAtRestart,
        Self::AuditRowLost,
        Self::FailuresMiscounted,
        Self::LostWorkerCounted,
        Self::SlotLeakedByLostWorker,
        Self::UnprovenWorkerRegistered,
        Self::WipeUndoneByLateResult,
        Self::TickWithoutRun,
        Self::TickAgainAfterClockStep,
        Self::QueuePlaceLeaked,
        Self::PoolSlotKeptAfterCancel,
        Self::PoolOverfilled,
        Self::LabelPlaceKept,
        Self::ChunkPlannedTwice,
        Self::ChunkPlaceKeptAfterCancel,
        Self::DoubleTickAtEndOfDst,
        Self::CursorWithoutCas,
        Self::MessageForgotten,
        Self::ConditionFiresTwice,
        Self::StaleOneLevelShort,
        Self::NotificationForgotten,
        Self::DuplicateMessageRun,
        Self::RefusalIgnored,
        Self::ReportNotRepeated,
        Self::RenewedTokenForgotten,
        Self::LeaseForgotten,
        Self::LeaseSettledAtOnce,
    ];
}

#[cfg(feature = "planted")]
mod switch {
    use std::cell::Cell;

    use super::Mistake;
    use crate::{Millis, Timestamp};

    thread_local! {
        static PLANTED: Cell<Option<Mistake>> = const { Cell::new(None) };
        static READINGS: Cell<u64> = const { Cell::new(0) };
    }

    /// Makes this thread make a mistake from now on, or none.
    pub fn plant(mistake: Option<Mistake>) {
        PLANTED.set(mistake);
        READINGS.set(0);
    }

    /// Whether to make this mistake here.
    #[inline]
    pub fn has(mistake: Mistake) -> bool {
        PLANTED.get() == Some(mistake)
    }

    /// A nondeterministic clock reading near this time: it differs with each call.
    pub fn clock(around: Timestamp) -> Timestamp {
        READINGS.set(READINGS.get() + 1);
        around.saturating_add(Millis::new(READINGS.get() % 5))
    }
}

#[cfg(not(feature = "planted"))]
mod switch {
    /// Whether to make this mistake here: never.
    #[inline]
    pub const fn has(_: super::Mistake) -> bool {
        false
    }

    /// Never asked for.
    pub const fn clock(around: crate::Timestamp) -> crate::Timestamp {
        around
    }
}

pub use switch::*;
