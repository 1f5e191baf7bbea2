//! The macros that go through the [list of tables](crate::tables).

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
