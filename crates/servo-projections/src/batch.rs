//! A piece of a file in memory, read column by column with errors that say where.

use std::any::type_name;
use std::cell::RefCell;

use arrow_array::{Array, RecordBatch};
use servo_engine::rows::{self, ColumnSource, RowSource};

use crate::error::Error;
use crate::value::{Field, Value};

/// A batch of rows of a file.
#[derive(Clone, Copy)]
pub(crate) struct Batch<'a> {
    pub(crate) rows: &'a RecordBatch,
    pub(crate) file: &'a str,
    /// Position of the first of them in the file, counted from 0.
    pub(crate) first_row: u64,
    /// Which rows from there on these are, if not all.
    pub(crate) chosen: Option<&'a [usize]>,
}

impl<'a> Batch<'a> {
    pub(crate) fn len(&self) -> usize {
        self.rows.num_rows()
    }

    /// A column by its name, checked against the type its field needs.
    pub(crate) fn column<T: Field>(&self, name: &'static str) -> Result<Column<'a, T>, Error> {
        let Some(array) = self.rows.column_by_name(name) else {
            // Files of earlier versions lack the columns that tables have gained since.
            if T::from_value(None).is_some() {
                return Ok(Column::new(None, name, *self));
            }
            return Err(Error::damaged(self.file, format!("column `{name}` is missing")));
        };
        let wanted = T::Value::data_type();
        if *array.data_type() != wanted {
            let problem = format!("column `{name}` has type {}, expected {wanted}", array.data_type());
            return Err(Error::damaged(self.file, problem));
        }
        let array = array.as_any().downcast_ref().ok_or_else(|| {
            Error::damaged(
                self.file,
                format!("column `{name}` is no {}", type_name::<<T::Value as Value>::Array>()),
            )
        })?;
        Ok(Column::new(Some(array), name, *self))
    }
}

impl RowSource for Batch<'_> {
    type Error = Error;
}

impl<'a, F: Field> ColumnSource<F> for Batch<'a> {
    type Column = Column<'a, F>;

    fn column(&self, column: rows::Column) -> Result<Column<'a, F>, Error> {
        let found = Batch::column(self, column.name)?;
        Ok(Column { repeats: F::Value::IS_PARSED && !column.unique, ..found })
    }

    fn field(column: &Column<'a, F>, row: usize) -> Result<F, Error> {
        column.get(row)
    }
}

/// A typed column of a [`Batch`].
pub(crate) struct Column<'a, T: Field> {
    /// None: there is no such column in the file.
    array: Option<&'a <T::Value as Value>::Array>,
    name: &'static str,
    batch: Batch<'a>,
    /// Whether neighbours often have the same text, which then is parsed once.
    repeats: bool,
    /// The row that was parsed last, and its value.
    last: RefCell<Option<(usize, T::Value)>>,
}

impl<'a, T: Field> Column<'a, T> {
    fn new(array: Option<&'a <T::Value as Value>::Array>, name: &'static str, batch: Batch<'a>) -> Self {
        Self { array, name, batch, repeats: false, last: RefCell::new(None) }
    }

    pub(crate) fn get(&self, row: usize) -> Result<T, Error> {
        let value = self
            .array
            .filter(|array| !array.is_null(row))
            .map(|array| self.value(array, row).map_err(|problem| self.error(row, &problem)))
            .transpose()?;
        T::from_value(value).ok_or_else(|| self.error(row, "is null, and must not be"))
    }

    fn value(&self, array: &<T::Value as Value>::Array, row: usize) -> Result<T::Value, String> {
        if !self.repeats {
            return T::Value::read(array, row);
        }
        let mut last = self.last.borrow_mut();
        match &*last {
            Some((known, value)) if T::Value::is_same(array, *known, row) => Ok(value.clone()),
            Some(_) | None => {
                let value = T::Value::read(array, row)?;
                *last = Some((row, value.clone()));
                Ok(value)
            }
        }
    }

    #[cold]
    fn error(&self, row: usize, problem: &str) -> Error {
        let row = self.batch.chosen.and_then(|chosen| chosen.get(row).copied()).unwrap_or(row);
        let at = self.batch.first_row + row as u64;
        Error::damaged(self.batch.file, format!("row {at}, column `{}`: {problem}", self.name))
    }
}
