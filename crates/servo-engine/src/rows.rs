//! The rows of Servo's tables: state as plain data, ready to be written, read, merged and compared.
//!
//! Hot rows ([`HotRows`]) are exactly the state in memory: [`crate::State::rows`] and [`crate::State::from_rows`] are
//! inverse. Rows of ended runs leave memory and are written once to history.
//!
//! Each table is declared once, in a file of this module, and named once, in the [list of tables](crate::tables).
//! Columns, files, merging, reading, comparing, `servo sql` and the docs follow from that.

mod answers;
mod asset_definitions;
mod asset_renames;
mod asset_states;
mod audit;
mod backfills;
mod check_results;
mod conditions;
mod definition_versions;
mod delta;
mod dep_sets;
mod deployments;
mod dynamic_partitions;
mod edges;
mod for_each;
mod freshness;
mod idempotency;
mod json;
mod materialization_inputs;
mod materializations;
mod notifications;
mod outbox;
mod partition_status;
mod partition_undo;
mod pauses;
mod quarantine;
mod removals;
mod run_keys;
mod runs;
mod schedules;
mod sensors;
mod settings;
mod table;
mod task_costs;
mod tasks;
mod timers;
mod workers;

pub use answers::{AnswerEntry, AnswerRow};
pub use asset_definitions::AssetDefinitionRow;
pub use asset_renames::AssetRenameRow;
pub use asset_states::AssetStateRow;
pub use audit::AuditRow;
pub use backfills::{BackfillChunkRow, BackfillRow};
pub use check_results::CheckResultRow;
pub use conditions::{ConditionEvaluationRow, ConditionRequestRow, ConditionStateRow};
pub use definition_versions::{DefinitionChange, DefinitionKind, DefinitionVersionRow};
pub use delta::{AppendedRows, Delta, EndedRows, Head, HotRows, KeyRetention, RemovedKeys};
pub use dep_sets::DepSetRow;
pub use deployments::DeploymentRow;
pub use dynamic_partitions::{DynamicPartitionRow, PartitionSetRow};
pub use edges::EdgeRow;
pub use freshness::{FreshnessHistoryRow, FreshnessStatusRow};
pub use idempotency::{IdempotencyEntry, IdempotencyRow};
pub use json::{Json, JsonTexts, Name};
pub use materialization_inputs::MaterializationInputRow;
pub use materializations::MaterializationRow;
pub use notifications::{NotificationRow, NotificationRuleRow};
pub use outbox::OutboxRow;
pub use partition_status::PartitionStatusRow;
pub use partition_undo::PartitionUndoRow;
pub use pauses::PauseRow;
pub use quarantine::QuarantineRow;
pub use removals::RemovalRow;
pub use run_keys::{RunKeyConflictRow, RunKeyEntry, RunKeyRow};
pub use runs::RunRow;
pub use schedules::{ScheduleDefinitionRow, ScheduleStateRow, ScheduleTickRow};
pub use sensors::{SensorDefinitionRow, SensorEvalRow, SensorMessageRow, SensorStateRow};
pub use settings::SettingRow;
pub use table::{
    AppendedRow, Column, ColumnSink, ColumnSource, HistoryRow, HotRow, ReadFrom, Row, RowSource, WriteTo,
};
pub use task_costs::TaskCostRow;
pub use tasks::TaskRow;
pub use timers::TimerRow;
pub use workers::WorkerRow;

/// The place of a time that passed in the log among the times of rows: what decides when a row expires.
pub(crate) fn elapsed_at(elapsed: servo_core::Millis) -> servo_core::Timestamp {
    servo_core::Timestamp::EPOCH.saturating_add(elapsed)
}

/// Every table: the field of [`HotRows`](crate::HotRows) and [`Delta`](crate::Delta) that holds its rows, and the row.
/// A table is a file in this module and a line here; everything that is done with tables is generated from this list.
///
/// Hands the list to another macro, behind the arguments that it is given.
#[macro_export]
macro_rules! tables {
    ($($callback:ident)::+ ! { $($arguments:tt)* }) => {
        $($callback)::+! {
            { $($arguments)* }
            // Rows change and go; their final form is kept.
            hot_with_history {
                runs: RunRow,
                tasks: TaskRow,
                edges: EdgeRow,
                dep_sets: DepSetRow,
                deployments: DeploymentRow,
                schedule_ticks: ScheduleTickRow,
                sensor_evals: SensorEvalRow,
                backfills: BackfillRow,
                backfill_chunks: BackfillChunkRow,
                condition_evaluations: ConditionEvaluationRow,
                notifications: NotificationRow,
            }
            // Rows change and go.
            hot {
                timers: TimerRow,
                outbox: OutboxRow,
                asset_definitions: AssetDefinitionRow,
                asset_states: AssetStateRow,
                partition_status: PartitionStatusRow,
                partition_undo: PartitionUndoRow,
                asset_renames: AssetRenameRow,
                quarantine: QuarantineRow,
                dynamic_partitions: DynamicPartitionRow,
                partition_sets: PartitionSetRow,
                settings: SettingRow,
                pauses: PauseRow,
                schedule_definitions: ScheduleDefinitionRow,
                schedule_state: ScheduleStateRow,
                sensor_definitions: SensorDefinitionRow,
                sensor_state: SensorStateRow,
                sensor_messages: SensorMessageRow,
                condition_state: ConditionStateRow,
                condition_requests: ConditionRequestRow,
                notification_rules: NotificationRuleRow,
                workers: WorkerRow,
                freshness_status: FreshnessStatusRow,
            }
            // Rows are written once.
            append_only {
                materializations: MaterializationRow,
                materialization_inputs: MaterializationInputRow,
                check_results: CheckResultRow,
                task_costs: TaskCostRow,
                removals: RemovalRow,
                freshness_history: FreshnessHistoryRow,
                definition_versions: DefinitionVersionRow,
                audit: AuditRow,
                run_keys: RunKeyRow,
                run_key_conflicts: RunKeyConflictRow,
                idempotency: IdempotencyRow,
                answers: AnswerRow,
            }
        }
    };
}
