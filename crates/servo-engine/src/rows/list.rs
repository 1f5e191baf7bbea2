//! The list of tables, and the macros that go through it.

/// Every table: the field of [`HotRows`](crate::HotRows) and [`Delta`](crate::Delta) that holds its rows, and the row. A
/// table is a file in `rows/` and a line here; everything that is done with tables is generated from this list.
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

/// Evaluates an expression for every table, with the name of your choice standing for its row.
///
/// ```
/// use servo_engine::rows::Row;
///
/// let mut names = Vec::new();
/// servo_engine::for_each_table!(R => names.push(R::TABLE));
/// assert!(names.contains(&"runs") && names.contains(&"materializations"));
/// ```
#[macro_export]
macro_rules! for_each_table {
    ($row:ident => $body:expr) => {
        $crate::for_each_hot_table!($row => $body);
        $crate::for_each_append_only_table!($row => $body);
    };
}

/// As [`for_each_table!`], for tables whose rows change and go: [`HotRow`](crate::rows::HotRow).
#[macro_export]
macro_rules! for_each_hot_table {
    ($row:ident => $body:expr) => {
        $crate::tables! { $crate::for_each_listed! { hot $row => $body } }
    };
}

/// As [`for_each_table!`], for hot tables with history: [`HistoryRow`](crate::rows::HistoryRow).
#[macro_export]
macro_rules! for_each_history_table {
    ($row:ident => $body:expr) => {
        $crate::tables! { $crate::for_each_listed! { history $row => $body } }
    };
}

/// As [`for_each_table!`], for tables whose rows are written once: [`AppendedRow`](crate::rows::AppendedRow).
#[macro_export]
macro_rules! for_each_append_only_table {
    ($row:ident => $body:expr) => {
        $crate::tables! { $crate::for_each_listed! { append_only $row => $body } }
    };
}

#[doc(hidden)]
#[macro_export]
macro_rules! for_each_listed {
    (
        { $kind:ident $row:ident => $body:expr }
        hot_with_history { $($history_field:ident: $history:ident,)* }
        hot { $($hot_field:ident: $hot:ident,)* }
        append_only { $($appended_field:ident: $appended:ident,)* }
    ) => {
        $crate::for_each_listed! { @ $kind $row => $body; [$($history)*] [$($hot)*] [$($appended)*] }
    };
    (@ history $row:ident => $body:expr; [$($history:ident)*] [$($hot:ident)*] [$($appended:ident)*]) => {
        $({ type $row = $crate::rows::$history; $body; })*
    };
    (@ hot $row:ident => $body:expr; [$($history:ident)*] [$($hot:ident)*] [$($appended:ident)*]) => {
        $({ type $row = $crate::rows::$history; $body; })*
        $({ type $row = $crate::rows::$hot; $body; })*
    };
    (@ append_only $row:ident => $body:expr; [$($history:ident)*] [$($hot:ident)*] [$($appended:ident)*]) => {
        $({ type $row = $crate::rows::$appended; $body; })*
    };
}
