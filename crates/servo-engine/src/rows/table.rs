//! A table is declared once, by [`table!`]: the row, its columns in file order, and what merging and looking up need.
//!
//! Nothing here knows how columns are stored. Whoever stores them implements [`ColumnSink`] and [`ColumnSource`] for
//! the types that fields have, and can then write and read the rows of every table.

use std::cmp::Ordering;
use std::fmt::Debug;

use servo_core::{EventId, Timestamp};

use super::{Delta, HotRows};

/// A column of a table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Column {
    /// Its name, which is that of the field.
    pub name: &'static str,
    /// Values rarely repeat: a dictionary would only cost.
    pub unique: bool,
}

/// A row, and with it the table that it belongs to. Implemented by [`table!`].
pub trait Row: Clone + PartialEq + Debug + Send + Sync + 'static {
    /// Name of the table.
    const TABLE: &'static str;
    /// One sentence about its rows.
    const DOC: &'static str;
    /// Its columns, in file order.
    const COLUMNS: &'static [Column];
    /// The columns that identify a row.
    const KEY: &'static [&'static str];
    /// The columns that immutable rows are looked up by.
    const LOOKUP: &'static [&'static str];
    /// Whether immutable rows are read a page at a time, not as a whole.
    const PAGED: bool;
    /// Whether rows are dropped when they are older than the window of request keys.
    const EXPIRES: bool;

    /// Identifies a row.
    type Key: Ord + Clone + Debug + Send + Sync;

    /// The primary key of this row.
    fn key(&self) -> Self::Key;
    /// Compares the primary key of this row with another.
    fn cmp_key(&self, key: &Self::Key) -> Ordering;
    /// Compares the primary keys of two rows.
    fn cmp_row(&self, other: &Self) -> Ordering;
    /// The event that last changed it.
    fn version(&self) -> EventId;
    /// Decides between rows of equal version: the further along wins.
    fn rank(&self) -> u8;
    /// Its position in the order of a file of history: what `min_key` and `max_key` of files are made of.
    fn sort_key(&self) -> EventId;
    /// When it came to be.
    fn at(&self) -> Timestamp;
    /// A value that few rows of a kind share, noted per row group so that others are not read.
    fn facet(&self) -> Option<&'static str>;
}

/// A row that changes and goes. Implemented by the [list of tables](crate::tables).
pub trait HotRow: Row {
    /// Rows of this table in the state.
    fn hot(rows: &HotRows) -> &Vec<Self>;
    /// The same, to be changed.
    fn hot_mut(rows: &mut HotRows) -> &mut Vec<Self>;
    /// Rows that are new or different.
    fn changed(delta: &Delta) -> &Vec<Self>;
    /// The same, to be changed.
    fn changed_mut(delta: &mut Delta) -> &mut Vec<Self>;
    /// Keys of rows that are gone.
    fn gone(delta: &Delta) -> &Vec<Self::Key>;
    /// The same, to be changed.
    fn gone_mut(delta: &mut Delta) -> &mut Vec<Self::Key>;
}

/// A hot row whose final form is kept in history, in the order of [`Row::sort_key`].
pub trait HistoryRow: HotRow {
    /// Final rows.
    fn ended(delta: &Delta) -> &Vec<Self>;
    /// The same, to be changed.
    fn ended_mut(delta: &mut Delta) -> &mut Vec<Self>;
}

/// A row that is written once and never changes.
pub trait AppendedRow: Row {
    /// New rows.
    fn appended(delta: &Delta) -> &Vec<Self>;
    /// The same, to be changed.
    fn appended_mut(delta: &mut Delta) -> &mut Vec<Self>;
}

/// Takes columns whose fields have type `F`.
pub trait ColumnSink<F> {
    /// Adds a column.
    fn column<'a>(&mut self, name: &'static str, fields: impl Iterator<Item = &'a F>)
    where
        F: 'a;
}

/// Gives rows by position.
pub trait RowSource {
    /// Why it cannot.
    type Error;
}

/// Gives columns whose fields have type `F`.
pub trait ColumnSource<F>: RowSource {
    /// A column.
    type Column;

    /// Finds a column, once for many rows.
    fn column(&self, column: Column) -> Result<Self::Column, Self::Error>;
    /// The field of one row.
    fn field(column: &Self::Column, row: usize) -> Result<F, Self::Error>;
}

/// Rows that `S` can take, because it takes each of their columns.
pub trait WriteTo<S>: Row {
    /// Adds every column.
    fn write_rows(rows: &[Self], sink: &mut S);
    /// Adds the columns of the key.
    fn write_keys(keys: &[Self::Key], sink: &mut S);
}

/// Rows that `S` can give, because it gives each of their columns.
pub trait ReadFrom<S: RowSource>: Row {
    /// The rows at these positions.
    fn read_rows(source: &S, rows: impl Iterator<Item = usize>) -> Result<Vec<Self>, S::Error>;
    /// The keys of the rows at these positions, whose other columns may be null.
    fn read_keys(source: &S, rows: impl Iterator<Item = usize>) -> Result<Vec<Self::Key>, S::Error>;
}

/// Declares a table: a sentence about its rows, its name, the row, and its columns in file order. `unique` marks
/// columns whose values rarely repeat. Every table has a column `row_version`.
///
/// | clause | |
/// |---|---|
/// | `key` | the columns that identify a row |
/// | `sorted by` | the event id that orders rows of history; `row_version` if nothing must be found by it |
/// | `at` | when the row came to be |
/// | `rank` | optional: which of two rows of equal version is further along |
/// | `facet` | optional: a state that pages of history are filtered by |
/// | `lookup` | optional: the columns that immutable rows are looked up by, with `&` between them |
/// | `read in pages` | optional: immutable rows are read a page at a time; those that are looked up are anyway |
/// | `expires with requests` | optional: rows older than the window of request keys are dropped |
macro_rules! table {
    (
        $(#[doc = $doc:literal])+
        $name:literal => $row:ident {
            key ($($key:ident: $key_type:ty),+),
            sorted by $sort_key:ident,
            at |$at_row:ident| $at:expr,
            $(rank |$rank_row:ident| $rank:expr,)?
            $(facet $facet:ident,)?
            $(lookup $($lookup:ident)&+,)?
            $(read in $paged:ident,)?
            $(expires with $expires:ident,)?
        }
        columns {
            $($(#[$field_doc:meta])* $field:ident: $type:ty $(, $unique:ident)?;)+
        }
    ) => {
        #[doc = concat!("A row of `", $name, "`.")]
        ///
        $(#[doc = $doc])+
        #[derive(Debug, Clone, PartialEq, Eq)]
        #[allow(missing_docs)]
        pub struct $row {
            $($(#[$field_doc])* pub $field: $type,)+
        }

        // A key of one column is no tuple.
        #[allow(unused_parens)]
        impl $crate::rows::Row for $row {
            const TABLE: &'static str = $name;
            const DOC: &'static str = concat!($($doc),+);
            const COLUMNS: &'static [$crate::rows::Column] = &[$(table!(@column $field $(, $unique)?)),+];
            const KEY: &'static [&'static str] = &[$(stringify!($key)),+];
            const LOOKUP: &'static [&'static str] = &[$($(stringify!($lookup)),+)?];
            const PAGED: bool = table!(@paged $($paged)?) || !Self::LOOKUP.is_empty();
            const EXPIRES: bool = table!(@expires $($expires)?);

            type Key = ($($key_type),+);

            fn key(&self) -> Self::Key {
                ($(self.$key.clone()),+)
            }

            fn cmp_key(&self, key: &Self::Key) -> std::cmp::Ordering {
                let ($($key),+) = key;
                std::cmp::Ordering::Equal$(.then_with(|| self.$key.cmp($key)))+
            }

            fn cmp_row(&self, other: &Self) -> std::cmp::Ordering {
                std::cmp::Ordering::Equal$(.then_with(|| self.$key.cmp(&other.$key)))+
            }

            fn version(&self) -> servo_core::EventId {
                self.row_version
            }

            fn rank(&self) -> u8 {
                table!(@rank self $(, $rank_row, $rank)?)
            }

            fn sort_key(&self) -> servo_core::EventId {
                self.$sort_key
            }

            fn at(&self) -> servo_core::Timestamp {
                let $at_row = self;
                $at
            }

            fn facet(&self) -> Option<&'static str> {
                table!(@facet self $(, $facet)?)
            }
        }

        #[allow(unused_parens)]
        impl<S> $crate::rows::WriteTo<S> for $row
        where
            S: $($crate::rows::ColumnSink<$type> +)+
        {
            fn write_rows(rows: &[Self], sink: &mut S) {
                $(<S as $crate::rows::ColumnSink<$type>>::column(
                    sink,
                    stringify!($field),
                    rows.iter().map(|row| &row.$field),
                );)+
            }

            fn write_keys(keys: &[Self::Key], sink: &mut S) {
                table!(@write_keys S, sink, keys, ($($key),+), $($key: $key_type),+);
            }
        }

        #[allow(unused_parens, clippy::needless_question_mark)]
        impl<S> $crate::rows::ReadFrom<S> for $row
        where
            S: $($crate::rows::ColumnSource<$type> +)+
        {
            fn read_rows(source: &S, rows: impl Iterator<Item = usize>) -> Result<Vec<Self>, S::Error> {
                $(let $field = <S as $crate::rows::ColumnSource<$type>>::column(
                    source,
                    table!(@column $field $(, $unique)?),
                )?;)+
                // Collecting results would not know how many there are, and move the rows again and again.
                let mut read = Vec::with_capacity(rows.size_hint().0);
                for row in rows {
                    read.push($row {
                        $($field: <S as $crate::rows::ColumnSource<$type>>::field(&$field, row)?,)+
                    });
                }
                Ok(read)
            }

            fn read_keys(source: &S, rows: impl Iterator<Item = usize>) -> Result<Vec<Self::Key>, S::Error> {
                $(let $key = <S as $crate::rows::ColumnSource<$key_type>>::column(
                    source,
                    table!(@column $key, unique),
                )?;)+
                let read = |row| Ok(($(<S as $crate::rows::ColumnSource<$key_type>>::field(&$key, row)?),+));
                rows.map(read).collect()
            }
        }
    };
    (@write_keys $s:ident, $sink:ident, $keys:ident, $pattern:tt, $($key:ident: $type:ty),+) => {
        $(<$s as $crate::rows::ColumnSink<$type>>::column(
            $sink,
            stringify!($key),
            $keys.iter().map(|key| {
                #[allow(unused_variables)]
                let $pattern = key;
                $key
            }),
        );)+
    };
    (@column $field:ident) => { $crate::rows::Column { name: stringify!($field), unique: false } };
    (@column $field:ident, unique) => { $crate::rows::Column { name: stringify!($field), unique: true } };
    (@expires requests) => { true };
    (@expires) => { false };
    (@paged pages) => { true };
    (@paged) => { false };
    (@rank $self:ident, $row:ident, $rank:expr) => {{ let $row = $self; $rank }};
    (@rank $self:ident) => { 0 };
    (@facet $self:ident, $facet:ident) => { Some($self.$facet.name()) };
    (@facet $self:ident) => { None };
}

pub(super) use table;
