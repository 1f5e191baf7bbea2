//! The rows of Servo's tables: state as plain data, ready to be written, read, merged and compared.
//!
//! Hot rows ([`HotRows`]) are exactly the state in memory: [`crate::State::rows`] and [`crate::State::from_rows`] are
//! inverse. Rows of ended runs leave memory and are written once to history.
//!
//! Each table is declared once, in a file of this module, and named once, in the [list of tables](crate::tables).
//! Columns, files, merging, reading, comparing, `servo sql` and the docs follow from that.

mod asset_definitions;
mod check_results;
mod delta;
mod deployments;
mod dynamic_partitions;
mod edges;
mod for_each;
mod idempotency;
mod json;
mod materialization_inputs;
mod materializations;
mod outbox;
mod partition_status;
mod quarantine;
mod run_keys;
mod runs;
mod table;
mod tasks;
mod timers;

pub use asset_definitions::AssetDefinitionRow;
pub use check_results::CheckResultRow;
pub use delta::{AppendedRows, Delta, EndedRows, Head, HotRows, RemovedKeys};
pub use deployments::DeploymentRow;
pub use dynamic_partitions::{DynamicPartitionRow, PartitionSetRow};
pub use edges::EdgeRow;
pub use idempotency::{IdempotencyEntry, IdempotencyRow};
pub use json::{Json, Name};
pub use materialization_inputs::MaterializationInputRow;
pub use materializations::MaterializationRow;
pub use outbox::OutboxRow;
pub use partition_status::PartitionStatusRow;
pub use quarantine::QuarantineRow;
pub use run_keys::{RunKeyConflictRow, RunKeyEntry, RunKeyRow};
pub use runs::RunRow;
pub use table::{
    AppendedRow, Column, ColumnSink, ColumnSource, HistoryRow, HotRow, ReadFrom, Row, RowSource, WriteTo,
};
pub use tasks::TaskRow;
pub use timers::TimerRow;

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
                deployments: DeploymentRow,
            }
            // Rows change and go.
            hot {
                timers: TimerRow,
                outbox: OutboxRow,
                asset_definitions: AssetDefinitionRow,
                partition_status: PartitionStatusRow,
                quarantine: QuarantineRow,
                dynamic_partitions: DynamicPartitionRow,
                partition_sets: PartitionSetRow,
            }
            // Rows are written once.
            append_only {
                materializations: MaterializationRow,
                materialization_inputs: MaterializationInputRow,
                check_results: CheckResultRow,
                run_keys: RunKeyRow,
                run_key_conflicts: RunKeyConflictRow,
                idempotency: IdempotencyRow,
            }
        }
    };
}
