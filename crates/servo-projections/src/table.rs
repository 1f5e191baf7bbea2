//! What a table is, and the macro that declares one with a line per column.

use std::fmt::Debug;

use arrow_array::ArrayRef;
use arrow_schema::{DataType, Field as ArrowField, Schema};
use servo_core::{EventId, Timestamp};

use crate::batch::Batch;
use crate::error::Error;

/// Version of the files and manifests that this build writes, and the newest it reads.
pub const SCHEMA_VERSION: u64 = 1;

pub(crate) const TENANT_ID: &str = "tenant_id";
pub(crate) const WORKSPACE_ID: &str = "workspace_id";
/// True in the rows of hot files that say only that a row is gone.
pub(crate) const DELETED: &str = "_deleted";

/// A column of a table.
#[derive(Debug, Clone)]
pub(crate) struct ColumnSpec {
    pub(crate) name: &'static str,
    pub(crate) data_type: DataType,
    /// Values rarely repeat: a dictionary would only cost.
    pub(crate) unique: bool,
}

/// A table: how its rows become columns and back.
pub(crate) trait Table: Send + Sync + 'static {
    const NAME: &'static str;
    type Row: Clone + PartialEq + Debug + Send + Sync;

    fn columns() -> Vec<ColumnSpec>;
    fn arrays(rows: &[Self::Row]) -> Vec<ArrayRef>;
    fn read(batch: &Batch<'_>, rows: &mut dyn Iterator<Item = usize>) -> Result<Vec<Self::Row>, Error>;

    /// Where a row stands in its file: what `min_key` and `max_key` of a file are made of.
    fn place(row: &Self::Row) -> EventId;
    /// When a row came to be.
    fn at(row: &Self::Row) -> Timestamp;
    /// A value that few rows of a kind share, noted per row group so that others are not read.
    fn facet(_row: &Self::Row) -> Option<&'static str> {
        None
    }
    /// The column to look rows up by.
    const LOOKUP: Option<&'static str> = None;
}

/// A table whose rows change and go.
pub(crate) trait HotTable: Table {
    type Key: Ord + Clone + Debug + Send + Sync;

    fn key(row: &Self::Row) -> Self::Key;
    fn version(row: &Self::Row) -> EventId;
    /// Decides between rows of equal version: the further along wins.
    fn rank(row: &Self::Row) -> u8;
    /// The key columns of these keys; every other column of a tombstone is null.
    fn key_arrays(keys: &[Self::Key]) -> Vec<(&'static str, ArrayRef)>;
    fn read_keys(batch: &Batch<'_>, rows: &mut dyn Iterator<Item = usize>) -> Result<Vec<Self::Key>, Error>;
}

/// A table whose rows of ended runs are kept in the order of [`Table::place`].
pub(crate) trait HistoryTable: HotTable {}

/// What sort of file a schema is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Rows that may be tombstones.
    Hot,
    /// Rows for ever.
    Settled,
}

/// The Arrow schema of a table's files. Everything but the names of the owners may be null, because in a tombstone
/// it is.
pub(crate) fn schema<T: Table>(shape: Shape) -> Schema {
    let owner = |name| ArrowField::new(name, DataType::Utf8, false);
    let mut fields = vec![owner(TENANT_ID), owner(WORKSPACE_ID)];
    fields.extend(T::columns().into_iter().map(|c| ArrowField::new(c.name, c.data_type, true)));
    if shape == Shape::Hot {
        fields.push(ArrowField::new(DELETED, DataType::Boolean, false));
    }
    Schema::new(fields)
}

/// Declares a [`Table`]: its name, its row type, and its columns in file order. `unique` marks columns whose values
/// rarely repeat.
macro_rules! table {
    (
        $(#[$doc:meta])*
        $table:ident = $name:literal, $row:ident, placed by $place:ident, at |$at_row:ident| $at:expr
        $(, facet $facet:ident, lookup $lookup:literal)? ;
        columns { $($field:ident : $type:ty $(, $unique:ident)? ;)* }
    ) => {
        $(#[$doc])*
        pub(crate) struct $table;

        impl Table for $table {
            const NAME: &'static str = $name;
            type Row = $row;

            fn columns() -> Vec<ColumnSpec> {
                vec![$(ColumnSpec {
                    name: stringify!($field),
                    data_type: <<$type as Field>::Value as Value>::data_type(),
                    unique: table!(@unique $($unique)?),
                },)*]
            }

            fn arrays(rows: &[$row]) -> Vec<ArrayRef> {
                vec![$(
                    <<$type as Field>::Value as Value>::build(rows.iter().map(|row| Field::as_value(&row.$field))),
                )*]
            }

            fn read(batch: &Batch<'_>, rows: &mut dyn Iterator<Item = usize>) -> Result<Vec<$row>, Error> {
                $(let $field = batch.column::<$type>(stringify!($field))?;)*
                rows.map(|row| Ok($row { $($field: $field.get(row)?,)* })).collect()
            }

            fn place(row: &$row) -> EventId {
                row.$place
            }

            fn at($at_row: &$row) -> Timestamp {
                $at
            }

            $(
                const LOOKUP: Option<&'static str> = Some($lookup);

                fn facet(row: &$row) -> Option<&'static str> {
                    Some(row.$facet.name())
                }
            )?
        }
    };
    (@unique unique) => { true };
    (@unique) => { false };
}

/// Declares a [`HotTable`]: its key columns, and what ranks rows of equal version.
macro_rules! hot_table {
    ($table:ident, $row:ident, key $key:pat_param = ($($field:ident : $type:ty),*), rank $rank:expr) => {
        // A key of one column is no tuple.
        #[allow(unused_parens, clippy::needless_question_mark)]
        impl HotTable for $table {
            type Key = ($($type),*);

            fn key(row: &$row) -> Self::Key {
                ($(row.$field.clone()),*)
            }

            fn version(row: &$row) -> EventId {
                row.row_version
            }

            fn rank(row: &$row) -> u8 {
                let rank: fn(&$row) -> u8 = $rank;
                rank(row)
            }

            fn key_arrays(keys: &[Self::Key]) -> Vec<(&'static str, ArrayRef)> {
                vec![$((
                    stringify!($field),
                    <<$type as Field>::Value as Value>::build(keys.iter().map(|key| {
                        #[allow(unused_variables)]
                        let $key = key;
                        Field::as_value($field)
                    })),
                ),)*]
            }

            fn read_keys(batch: &Batch<'_>, rows: &mut dyn Iterator<Item = usize>) -> Result<Vec<Self::Key>, Error> {
                $(let $field = batch.column::<$type>(stringify!($field))?;)*
                rows.map(|row| Ok(($($field.get(row)?),*))).collect()
            }
        }
    };
}

pub(crate) use {hot_table, table};
