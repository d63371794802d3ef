//! Tables as the engine sees them: a schema, a number of rows, and a cell for each row and column.
//! `vtab` gives SQLite access to them; each table has its own contents.

use std::borrow::Cow;
use std::sync::Arc;

use rusqlite::functions::Context;
use rusqlite::types::Value as SqlValue;
use rusqlite::{Connection, Statement};

use super::stop::{Stop, Stopped};

/// Value in a table. Text is borrowed from the model if possible.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell<'a> {
    Null,
    /// Integer.
    Int(i64),
    /// Floating-point number.
    Real(f64),
    Text(Cow<'a, str>),
}

impl<'a> Cell<'a> {
    /// Returns a cell with borrowed text.
    pub fn text(text: &'a str) -> Cell<'a> {
        Cell::Text(Cow::Borrowed(text))
    }

    /// Returns 1 for true and 0 for false.
    pub fn flag(flag: bool) -> Cell<'static> {
        Cell::Int(flag.into())
    }
}

impl From<i64> for Cell<'_> {
    fn from(number: i64) -> Self {
        Cell::Int(number)
    }
}

impl From<u32> for Cell<'_> {
    fn from(number: u32) -> Self {
        Cell::Int(number.into())
    }
}

/// Numbers beyond SQL's range wrap, as in Perfetto's columns.
impl From<u64> for Cell<'_> {
    fn from(number: u64) -> Self {
        Cell::Int(number as i64)
    }
}

impl From<usize> for Cell<'_> {
    fn from(number: usize) -> Self {
        Cell::Int(number as i64)
    }
}

impl<'a> From<&'a str> for Cell<'a> {
    fn from(text: &'a str) -> Self {
        Cell::text(text)
    }
}

impl From<String> for Cell<'_> {
    fn from(text: String) -> Self {
        Cell::Text(Cow::Owned(text))
    }
}

impl<'a, T: Into<Cell<'a>>> From<Option<T>> for Cell<'a> {
    fn from(value: Option<T>) -> Self {
        value.map_or(Cell::Null, Into::into)
    }
}

/// Type of a column's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Integers.
    Int,
    /// Floating-point numbers.
    Real,
    Text,
}

impl Kind {
    /// Returns the declared type in SQL.
    pub fn sql(self) -> &'static str {
        match self {
            Kind::Int => "INTEGER",
            Kind::Real => "REAL",
            Kind::Text => "TEXT",
        }
    }
}

/// Access to rows by a column's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Only by scanning all rows. If a loop searches it, an index by hash is built.
    Scan,
    /// The value is the number of the row.
    Row,
    /// By binary search: rows are in ascending order of the column, nulls first.
    Sorted,
    /// By an index that is built when first needed.
    Indexed,
    /// By [`Rows::lookup`], which supports `=` with integers only.
    Own,
    /// Not searched but passed in: an argument of a table-valued function, by position or by
    /// `WHERE column = value`.
    Argument,
}

/// Column of a table.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    pub name: &'static str,
    /// Type of its values.
    pub kind: Kind,
    /// Access to rows by its value.
    pub access: Access,
    /// Not part of `SELECT *`.
    pub hidden: bool,
    /// Meaning, for `.schema` and the docs.
    pub about: &'static str,
}

impl Column {
    const fn new(name: &'static str, kind: Kind, about: &'static str) -> Column {
        Column {
            name,
            kind,
            access: Access::Scan,
            hidden: false,
            about,
        }
    }

    /// Returns a column of integers.
    pub const fn int(name: &'static str, about: &'static str) -> Column {
        Column::new(name, Kind::Int, about)
    }

    pub const fn text(name: &'static str, about: &'static str) -> Column {
        Column::new(name, Kind::Text, about)
    }

    /// Returns a column of floating-point numbers.
    pub const fn real(name: &'static str, about: &'static str) -> Column {
        Column::new(name, Kind::Real, about)
    }

    /// Sets the access to rows by this column.
    const fn found(mut self, access: Access) -> Column {
        self.access = access;
        self
    }

    /// Makes the column the number of the row.
    pub const fn row(self) -> Column {
        self.found(Access::Row)
    }

    /// Leaves the search to [`Rows::lookup`].
    pub const fn own(self) -> Column {
        self.found(Access::Own)
    }

    /// Indexes the column when first needed.
    pub const fn indexed(self) -> Column {
        self.found(Access::Indexed)
    }

    /// Declares that rows are in the order of this column.
    pub const fn sorted(self) -> Column {
        self.found(Access::Sorted)
    }

    /// Leaves the column out of `SELECT *`.
    pub const fn hidden(mut self) -> Column {
        self.hidden = true;
        self
    }

    /// Makes the column an argument of the function.
    pub const fn argument(self) -> Column {
        self.found(Access::Argument)
    }
}

/// Describes columns, one in each line: name, type, how its rows are found, and meaning. The words
/// for types and access are functions of [`Column`].
macro_rules! columns {
    ($($name:ident $kind:ident $($how:ident)*: $about:literal;)*) => {
        &[$($crate::table::Column::$kind(stringify!($name), $about)$(.$how())*),*]
    };
}

/// Describes a table: its name, the module of Perfetto's library that defines it, its contents, and
/// its columns.
macro_rules! schema {
    ($name:literal $(in $module:literal)?: $about:literal; $($columns:tt)*) => {
        $crate::table::Schema {
            name: $name,
            module: [$(Some($module),)? None][0],
            about: $about,
            columns: columns! { $($columns)* },
        }
    };
}

pub(crate) use {columns, schema};

/// Name and columns of a table.
#[derive(Debug)]
pub struct Schema {
    pub name: &'static str,
    /// Module of Perfetto's library; `None` if the table needs no module.
    pub module: Option<&'static str>,
    /// Contents, in one sentence.
    pub about: &'static str,
    pub columns: &'static [Column],
}

/// Contents of a table. Rows are numbered from 0 and do not change.
pub trait Rows: Send + Sync {
    /// Returns the number of rows, which is below 2^32.
    fn len(&self) -> usize;

    /// Returns whether the table does not have rows.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the cell of a row below [`Rows::len`] and of a column, by position in the schema.
    /// It must be fast, because it is called for each cell that SQLite reads.
    fn cell(&self, row: usize, column: usize) -> Cell<'_>;

    /// Returns the number of distinct values in a column if it is known without counting. The
    /// planner uses it for estimates.
    fn distinct(&self, column: usize) -> Option<usize> {
        let _ = column;
        None
    }

    /// Returns all values of a column of row numbers, `u32::MAX` for NULL, if that is faster than
    /// reading its cells.
    fn numbers(&self, column: usize) -> Option<Vec<u32>> {
        let _ = column;
        None
    }

    /// Appends the rows, ascending, with this value in a column of [`Access::Own`].
    fn lookup(&self, column: usize, key: i64, found: &mut Vec<u32>) {
        let rows = 0..self.len();
        let same = rows.filter(|&row| self.cell(row, column) == Cell::Int(key));
        found.extend(same.map(|row| row as u32));
    }
}

/// Precomputed rows of a small table.
#[derive(Default)]
pub(super) struct Fixed(pub(super) Vec<Vec<Cell<'static>>>);

impl Rows for Fixed {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        self.0[row][column].clone()
    }
}

/// Rows of a model, by functions.
struct ModelRows<M, C, D> {
    model: Arc<M>,
    len: usize,
    cell: C,
    distinct: D,
}

impl<M, C, D> Rows for ModelRows<M, C, D>
where
    M: Send + Sync,
    C: for<'m> Fn(&'m M, usize, usize) -> Cell<'m> + Send + Sync,
    D: Fn(&M, usize) -> Option<usize> + Send + Sync,
{
    fn len(&self) -> usize {
        self.len
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        (self.cell)(&self.model, row, column)
    }

    fn distinct(&self, column: usize) -> Option<usize> {
        (self.distinct)(&self.model, column)
    }
}

/// Argument of a table-valued function.
#[derive(Debug, Clone, PartialEq)]
pub enum Argument {
    /// Not passed.
    Absent,
    /// Passed as `NULL`.
    Null,
    /// Integer.
    Int(i64),
    /// Floating-point number.
    Real(f64),
    Text(String),
}

/// Reason why the rows of a table cannot be computed, shown to the user as the statement's error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TableError(pub String);

impl From<Stopped> for TableError {
    fn from(Stopped: Stopped) -> TableError {
        TableError("interrupted".to_owned())
    }
}

/// Returns the model of tables when one of them is first needed.
pub(super) type Model<M> = Arc<dyn Fn() -> Result<Arc<M>, TableError> + Send + Sync>;

/// Computes the rows of a table when it is first needed.
pub type Build = Box<dyn Fn() -> Result<Arc<dyn Rows>, TableError> + Send + Sync>;

/// Computes the rows of a table-valued function. Gets one argument for each column of the schema,
/// [`Argument::Absent`] for columns that are not arguments.
pub type Call = Box<dyn Fn(&[Argument]) -> Result<Arc<dyn Rows>, TableError> + Send + Sync>;

/// View of heaptap or of Perfetto's library, written in SQL.
#[derive(Debug, Clone, Copy)]
pub struct View {
    pub name: &'static str,
    /// Module of Perfetto's library; `None` if the view needs no module.
    pub module: Option<&'static str>,
    /// Contents, in one sentence.
    pub about: &'static str,
    /// `SELECT` statement.
    pub sql: &'static str,
}

/// Source of a table's rows.
pub(super) enum Source {
    Table(Build),
    Function(Call),
}

/// Scalar function.
pub(super) struct Scalar {
    pub name: &'static str,
    /// Result, in one sentence.
    pub about: &'static str,
    pub arguments: &'static [&'static str],
    /// Returns the value for given arguments.
    pub value: Box<ScalarValue>,
}

pub(super) type ScalarValue = dyn Fn(&Context<'_>) -> Result<SqlValue, rusqlite::Error> + Send;

/// All tables, views and macros of a database to be made.
#[derive(Default)]
pub struct Catalog {
    pub(super) tables: Vec<(&'static Schema, Source)>,
    pub(super) views: Vec<View>,
    pub(super) library: Vec<(&'static str, &'static [(&'static str, Work)])>,
    pub(super) modules: Vec<&'static str>,
    pub(super) scalars: Vec<Scalar>,
    pub(super) stop: Stop,
}

/// Call of a computed macro, with its arguments from the statement and the table for its result.
pub(super) struct MacroCall<'a> {
    /// Connection for writing the result.
    pub(super) connection: &'a Connection,
    /// Switches to reading only (`true`) while SQL with text of the user is prepared.
    pub(super) reading: &'a dyn Fn(bool),
    /// Arguments, with macro calls in them expanded.
    pub(super) arguments: &'a [String],
    /// `WITH` clause of the statement up to the call; empty for none.
    pub(super) with: &'a str,
    /// Name of the temporary table to create.
    pub(super) table: &'a str,
}

impl<'a> MacroCall<'a> {
    /// Prepares a `SELECT` that contains text of the user.
    ///
    /// # Errors
    /// Returns an error if the SQL is invalid or does anything but read.
    pub(super) fn ask(&self, sql: &str) -> Result<Statement<'a>, rusqlite::Error> {
        (self.reading)(true);
        let statement = self.connection.prepare(&format!("{} {sql}", self.with));
        (self.reading)(false);
        statement
    }
}

/// Computes the result of a macro and creates its table.
pub(super) type Work = fn(&MacroCall<'_>) -> Result<(), rusqlite::Error>;

impl Catalog {
    /// Returns the request to end a statement, for tables that take long to compute.
    pub fn stop(&self) -> Stop {
        self.stop.clone()
    }

    /// Adds a table whose rows are computed when it is first needed.
    pub fn table(
        &mut self,
        schema: &'static Schema,
        build: impl Fn() -> Result<Arc<dyn Rows>, TableError> + Send + Sync + 'static,
    ) {
        self.tables.push((schema, Source::Table(Box::new(build))));
    }

    /// Adds a table of a model, by functions for the number of its rows and for their cells: see
    /// [`Rows::len`] and [`Rows::cell`].
    pub(super) fn rows<M: Send + Sync + 'static>(
        &mut self,
        schema: &'static Schema,
        model: &Model<M>,
        len: impl Fn(&M) -> usize + Send + Sync + 'static,
        cell: impl for<'m> Fn(&'m M, usize, usize) -> Cell<'m> + Copy + Send + Sync + 'static,
    ) {
        self.counted_rows(schema, model, len, cell, |_, _| None);
    }

    /// Adds a small table whose rows are computed completely when it is first needed.
    pub(super) fn fixed(
        &mut self,
        schema: &'static Schema,
        rows: impl Fn() -> Result<Vec<Vec<Cell<'static>>>, TableError> + Send + Sync + 'static,
    ) {
        self.table(schema, move || Ok(Arc::new(Fixed(rows()?))));
    }

    /// As [`Catalog::rows`], with a function for [`Rows::distinct`].
    pub(super) fn counted_rows<M: Send + Sync + 'static>(
        &mut self,
        schema: &'static Schema,
        model: &Model<M>,
        len: impl Fn(&M) -> usize + Send + Sync + 'static,
        cell: impl for<'m> Fn(&'m M, usize, usize) -> Cell<'m> + Copy + Send + Sync + 'static,
        distinct: impl Fn(&M, usize) -> Option<usize> + Copy + Send + Sync + 'static,
    ) {
        let model = Arc::clone(model);
        self.table(schema, move || {
            let model = model()?;
            Ok(Arc::new(ModelRows {
                len: len(&model),
                model,
                cell,
                distinct,
            }))
        });
    }

    /// Adds a table-valued function. Its rows are cached for calls with the same arguments.
    pub fn function(
        &mut self,
        schema: &'static Schema,
        call: impl Fn(&[Argument]) -> Result<Arc<dyn Rows>, TableError> + Send + Sync + 'static,
    ) {
        self.tables.push((schema, Source::Function(Box::new(call))));
    }

    /// Adds a scalar function.
    pub(super) fn scalar(&mut self, added: Scalar) {
        self.scalars.push(added);
    }

    /// Adds the macros, functions and views in a text of PerfettoSQL, with the programs of the macros
    /// that cannot be written in SQL.
    pub(super) fn library(&mut self, text: &'static str, works: &'static [(&'static str, Work)]) {
        self.library.push((text, works));
    }

    /// Adds a module that can be included but does not define anything: its tables are always
    /// available.
    pub fn module(&mut self, name: &'static str) {
        self.modules.push(name);
    }

    /// Adds a view.
    pub fn view(&mut self, view: View) {
        self.views.push(view);
    }
}
