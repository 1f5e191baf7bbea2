//! The state in memory as rows, and what changes in it. Both have a list per table, made from the [list of
//! tables](crate::tables).

use servo_core::{EventId, Millis, Timestamp};

use super::{AnswerEntry, AppendedRow, HistoryRow, HotRow, IdempotencyEntry, Row, RunKeyEntry};
use crate::settings::Settings;
use crate::state::DailyRuns;

/// Position of the fold in the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Head {
    /// Last batch folded; 0 before the first.
    pub seq: u64,
    /// Last event folded.
    pub last_event: EventId,
    /// Time of the newest event folded.
    pub last_event_at: Timestamp,
    /// Time that has passed in the log: the time between events, each gap counted for an hour at most. A clock that is
    /// set makes hardly a difference to it, so what is remembered for a while is counted by it.
    pub elapsed: Millis,
    /// Events skipped because this version does not know them.
    pub unknown_events: u64,
    /// Runs that were asked for on the newest day that had some.
    pub daily_runs: DailyRuns,
}

/// How much is kept of what only grows: keys of requests, rows of history, batches of the ledger.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyRetention {
    /// Keys that are older than this are forgotten.
    pub window: Millis,
    /// Keys beyond this many are forgotten, oldest first.
    pub entries: usize,
    /// Run keys that are in memory, the newest ones.
    pub run_keys: usize,
    /// Rows of history that are older than this are dropped; zero keeps all.
    pub history: Millis,
    /// Batches of the ledger behind the tables; zero keeps all.
    pub ledger: usize,
}

impl KeyRetention {
    pub(crate) fn of(settings: &Settings, run_keys: usize) -> Self {
        Self {
            window: settings.dedup_window,
            entries: settings.dedup_entries,
            run_keys,
            history: settings.keep_history,
            ledger: settings.keep_ledger_batches,
        }
    }
}

impl Default for KeyRetention {
    fn default() -> Self {
        let settings = Settings::default();
        Self::of(&settings, settings.recent_run_keys)
    }
}

macro_rules! declare {
    (
        {}
        hot_with_history { $($history:ident: $history_row:ident,)* }
        hot { $($hot:ident: $hot_row:ident,)* }
        append_only { $($appended:ident: $appended_row:ident,)* }
    ) => {
        /// The state in memory, as rows. Lists are sorted by key.
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[allow(missing_docs)]
        pub struct HotRows {
            pub head: Head,
            $(pub $history: Vec<super::$history_row>,)*
            $(pub $hot: Vec<super::$hot_row>,)*
            /// The newest run keys, oldest first.
            pub run_keys: Vec<RunKeyEntry>,
            /// The newest run key that is not among them any more; nil if all are.
            pub run_keys_evicted: EventId,
            /// Idempotency keys held in memory, oldest first.
            pub idempotency: Vec<IdempotencyEntry>,
            /// Answers held in memory, oldest first.
            pub answers: Vec<AnswerEntry>,
        }

        /// Keys of removed hot rows.
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        #[allow(missing_docs)]
        pub struct RemovedKeys {
            $(pub $history: Vec<<super::$history_row as Row>::Key>,)*
            $(pub $hot: Vec<<super::$hot_row as Row>::Key>,)*
        }

        /// Final rows of what has ended and left memory.
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        #[allow(missing_docs)]
        pub struct EndedRows {
            $(pub $history: Vec<super::$history_row>,)*
        }

        /// Rows that are written once.
        #[derive(Debug, Clone, Default, PartialEq, Eq)]
        #[allow(missing_docs)]
        pub struct AppendedRows {
            $(pub $appended: Vec<super::$appended_row>,)*
        }

        /// The rows that changed since the last [`crate::State::take_delta`].
        #[derive(Debug, Clone, PartialEq, Eq)]
        pub struct Delta {
            /// State after the changes.
            pub head: Head,
            /// How long keys of requests are remembered.
            pub request_keys: KeyRetention,
            $(
                /// Hot rows that are new or different, each once, as they are now.
                pub $history: Vec<super::$history_row>,
            )*
            $(
                /// Hot rows that are new or different, each once, as they are now.
                pub $hot: Vec<super::$hot_row>,
            )*
            /// Hot rows that left memory. A key here is never in the lists above.
            pub gone: RemovedKeys,
            /// Final rows of what has ended and left memory.
            pub ended: EndedRows,
            /// New rows of tables whose rows are written once.
            pub appended: AppendedRows,
        }

        impl HotRows {
            /// No rows.
            pub fn empty(head: Head) -> Self {
                Self {
                    head,
                    $($history: Vec::new(),)*
                    $($hot: Vec::new(),)*
                    run_keys: Vec::new(),
                    run_keys_evicted: EventId::NIL,
                    idempotency: Vec::new(),
                    answers: Vec::new(),
                }
            }
        }

        impl Delta {
            /// No changes.
            pub fn empty(head: Head) -> Self {
                Self {
                    head,
                    request_keys: KeyRetention::default(),
                    $($history: Vec::new(),)*
                    $($hot: Vec::new(),)*
                    gone: RemovedKeys::default(),
                    ended: EndedRows::default(),
                    appended: AppendedRows::default(),
                }
            }

            /// Whether there is nothing to write.
            pub fn is_empty(&self) -> bool {
                let Self { head: _, request_keys: _, $($history,)* $($hot,)* gone, ended, appended } = self;
                $($history.is_empty() &&)*
                $($hot.is_empty() &&)*
                *gone == RemovedKeys::default()
                    && *ended == EndedRows::default()
                    && *appended == AppendedRows::default()
            }
        }

        $(hot_row! { $history: $history_row })*
        $(hot_row! { $hot: $hot_row })*

        $(impl HistoryRow for super::$history_row {
            fn ended(delta: &Delta) -> &Vec<Self> {
                &delta.ended.$history
            }

            fn ended_mut(delta: &mut Delta) -> &mut Vec<Self> {
                &mut delta.ended.$history
            }
        })*

        $(impl AppendedRow for super::$appended_row {
            fn appended(delta: &Delta) -> &Vec<Self> {
                &delta.appended.$appended
            }

            fn appended_mut(delta: &mut Delta) -> &mut Vec<Self> {
                &mut delta.appended.$appended
            }
        })*
    };
}

macro_rules! hot_row {
    ($field:ident: $row:ident) => {
        impl HotRow for super::$row {
            fn hot(rows: &HotRows) -> &Vec<Self> {
                &rows.$field
            }

            fn hot_mut(rows: &mut HotRows) -> &mut Vec<Self> {
                &mut rows.$field
            }

            fn changed(delta: &Delta) -> &Vec<Self> {
                &delta.$field
            }

            fn changed_mut(delta: &mut Delta) -> &mut Vec<Self> {
                &mut delta.$field
            }

            fn gone(delta: &Delta) -> &Vec<Self::Key> {
                &delta.gone.$field
            }

            fn gone_mut(delta: &mut Delta) -> &mut Vec<Self::Key> {
                &mut delta.gone.$field
            }
        }
    };
}

crate::tables! { declare! {} }
