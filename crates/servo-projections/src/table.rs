//! The tables of the engine as columns: what every row of theirs is written to and read from.

use arrow_array::{Array, ArrayRef};
use arrow_schema::{DataType, Field as ArrowField, Schema};
use servo_engine::rows::{ColumnSink, HotRow, ReadFrom, Row, WriteTo};

use crate::batch::Batch;
use crate::value::{Field, Value};

/// Version of the files and manifests that this build writes, and the newest it reads.
pub const SCHEMA_VERSION: u64 = 1;

pub(crate) const TENANT_ID: &str = "tenant_id";
pub(crate) const WORKSPACE_ID: &str = "workspace_id";
/// True in the rows of hot files that say only that a row is gone.
pub(crate) const DELETED: &str = "_deleted";

macro_rules! names {
    ({} $($kind:ident { $($field:ident: $row:ident,)* })*) => {
        &[$($(servo_engine::rows::$row::TABLE,)*)*]
    };
}

/// The name of every table, in the order in which people are shown them.
pub const TABLES: &[&str] = servo_engine::tables! { names! {} };

/// A row all of whose fields can be stored in columns.
pub(crate) trait StoredRow: Row + WriteTo<Arrays> + for<'a> ReadFrom<Batch<'a>> {}

impl<R> StoredRow for R where R: Row + WriteTo<Arrays> + for<'a> ReadFrom<Batch<'a>> {}

/// Columns in memory, by name.
#[derive(Default)]
pub(crate) struct Arrays(pub(crate) Vec<(&'static str, ArrayRef)>);

impl Arrays {
    /// Every column of these rows.
    pub(crate) fn of_rows<R: StoredRow>(rows: &[R]) -> Self {
        let mut arrays = Self::default();
        R::write_rows(rows, &mut arrays);
        arrays
    }

    /// The key columns of these keys; every other column of a tombstone is null.
    pub(crate) fn of_keys<R: HotRow + StoredRow>(keys: &[R::Key]) -> Self {
        let mut arrays = Self::default();
        R::write_keys(keys, &mut arrays);
        arrays
    }
}

impl<F: Field> ColumnSink<F> for Arrays {
    fn column<'a>(&mut self, name: &'static str, fields: impl Iterator<Item = &'a F>)
    where
        F: 'a,
    {
        self.0.push((name, F::Value::build(fields.map(Field::as_value))));
    }
}

/// The kind of file a schema is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shape {
    /// Rows that may be tombstones.
    Hot,
    /// Rows that never change.
    Immutable,
}

/// The Arrow schema of a table's files. Everything but the names of the owners may be null, because in a tombstone
/// it is.
pub(crate) fn schema<R: StoredRow>(shape: Shape) -> Schema {
    let owner = |name| ArrowField::new(name, DataType::Utf8, false);
    let mut fields = vec![owner(TENANT_ID), owner(WORKSPACE_ID)];
    let columns = Arrays::of_rows::<R>(&[]).0;
    fields.extend(
        columns.into_iter().map(|(name, array)| ArrowField::new(name, array.data_type().clone(), true)),
    );
    if shape == Shape::Hot {
        fields.push(ArrowField::new(DELETED, DataType::Boolean, false));
    }
    Schema::new(fields)
}
