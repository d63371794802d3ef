//! What a table is to the engine: a schema, a number of rows, and a cell for each row and
//! column. How SQLite gets at it is `vtab`'s; what is in it is the table's own.

use std::borrow::Cow;
use std::sync::Arc;

use rusqlite::{Connection, Statement};

/// A value in a table. Text is borrowed from the model where it lies there.
#[derive(Debug, Clone, PartialEq)]
pub enum Cell<'a> {
    /// Nothing.
    Null,
    /// A whole number.
    Int(i64),
    /// Any other number.
    Real(f64),
    /// Text.
    Text(Cow<'a, str>),
}

impl<'a> Cell<'a> {
    /// Borrowed text.
    pub fn text(text: &'a str) -> Cell<'a> {
        Cell::Text(Cow::Borrowed(text))
    }

    /// A flag, as SQL has them.
    pub fn flag(flag: bool) -> Cell<'static> {
        Cell::Int(flag.into())
    }

    /// An unsigned number; one beyond SQL's range wraps, as Perfetto's columns do.
    pub fn bits(number: u64) -> Cell<'static> {
        Cell::Int(number as i64)
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

/// What a column holds: its declared type in SQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Whole numbers.
    Int,
    /// Other numbers.
    Real,
    /// Text.
    Text,
}

impl Kind {
    /// The declared type.
    pub fn sql(self) -> &'static str {
        match self {
            Kind::Int => "INTEGER",
            Kind::Real => "REAL",
            Kind::Text => "TEXT",
        }
    }
}

/// How rows are found by a column's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// Only by looking at all.
    Scan,
    /// The value is the number of the row.
    Row,
    /// Rows are in ascending order of it, nulls first: a binary search.
    Sorted,
    /// By an index that the engine builds when it is first needed.
    Indexed,
    /// The table answers `=` itself, by [`Rows::lookup`]; for whole numbers only.
    Own,
    /// Not found at all but given: an argument of a table-valued function, by position or by
    /// `WHERE column = value`.
    Argument,
}

/// A column.
#[derive(Debug, Clone, Copy)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// How rows are found by it.
    pub access: Access,
    /// Left out of `SELECT *`.
    pub hidden: bool,
    /// What it means, for `.schema` and the docs.
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

    /// A column of whole numbers.
    pub const fn int(name: &'static str, about: &'static str) -> Column {
        Column::new(name, Kind::Int, about)
    }

    /// A column of text.
    pub const fn text(name: &'static str, about: &'static str) -> Column {
        Column::new(name, Kind::Text, about)
    }

    /// A column of numbers.
    pub const fn real(name: &'static str, about: &'static str) -> Column {
        Column::new(name, Kind::Real, about)
    }

    /// `id`, the number of the row.
    pub const fn id() -> Column {
        Column::int("id", "number of the row").found(Access::Row)
    }

    /// With another way to find rows by it.
    pub const fn found(mut self, access: Access) -> Column {
        self.access = access;
        self
    }

    /// With an index that is built when needed.
    pub const fn indexed(self) -> Column {
        self.found(Access::Indexed)
    }

    /// Rows are in its order.
    pub const fn sorted(self) -> Column {
        self.found(Access::Sorted)
    }

    /// Left out of `SELECT *`.
    pub const fn hidden(mut self) -> Column {
        self.hidden = true;
        self
    }

    /// An argument of a function.
    pub const fn argument(self) -> Column {
        self.found(Access::Argument)
    }
}

/// A table's name and columns.
#[derive(Debug)]
pub struct Schema {
    /// Its name.
    pub name: &'static str,
    /// The module of Perfetto's library it belongs to; `None` for what is there at once.
    pub module: Option<&'static str>,
    /// What it holds, in a sentence.
    pub about: &'static str,
    /// Its columns.
    pub columns: &'static [Column],
}

/// The content of a table. Rows are numbered from 0 and don't change.
pub trait Rows: Send + Sync {
    /// Number of rows; below 2^32.
    fn len(&self) -> usize;

    /// Whether there are none.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The cell of a row below [`Rows::len`] and a column of the schema, by position there.
    /// Called for each cell that SQLite looks at: cheap.
    fn cell(&self, row: usize, column: usize) -> Cell<'_>;

    /// How many different values a column has, where that is known without counting. The
    /// planner estimates by it.
    fn distinct(&self, column: usize) -> Option<usize> {
        let _ = column;
        None
    }

    /// Appends the rows, ascending, in which a column of [`Access::Own`] has that value.
    fn lookup(&self, column: usize, key: i64, found: &mut Vec<u32>) {
        let rows = 0..self.len();
        let same = rows.filter(|&row| self.cell(row, column) == Cell::Int(key));
        found.extend(same.map(|row| row as u32));
    }
}

/// An argument of a table-valued function.
#[derive(Debug, Clone, PartialEq)]
pub enum Argument {
    /// Not given.
    Absent,
    /// Given as `NULL`.
    Null,
    /// A whole number.
    Int(i64),
    /// Any other number.
    Real(f64),
    /// Text.
    Text(String),
}

/// Why a table has no rows to give: a sentence for people, shown as the statement's error.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TableError(pub String);

/// Makes the rows of a table when it is first asked for.
pub type Build = Box<dyn Fn() -> Result<Arc<dyn Rows>, TableError> + Send + Sync>;

/// Makes the rows of a table-valued function from one argument a column of its schema,
/// [`Argument::Absent`] for all that are no arguments.
pub type Call = Box<dyn Fn(&[Argument]) -> Result<Arc<dyn Rows>, TableError> + Send + Sync>;

/// A view of our own or of Perfetto's library, written in SQL.
#[derive(Debug, Clone, Copy)]
pub struct View {
    /// Its name.
    pub name: &'static str,
    /// The module of Perfetto's library it belongs to; `None` for what is there at once.
    pub module: Option<&'static str>,
    /// What it holds, in a sentence.
    pub about: &'static str,
    /// The `SELECT`.
    pub sql: &'static str,
}

/// Where a table's rows come from.
pub(super) enum Source {
    Table(Build),
    Function(Call),
}

/// All there is to query, before a database is made of it.
#[derive(Default)]
pub struct Catalog {
    pub(super) tables: Vec<(&'static Schema, Source)>,
    pub(super) views: Vec<View>,
    pub(super) macros: Vec<LibraryMacro>,
    pub(super) worked: Vec<WorkedMacro>,
    pub(super) modules: Vec<&'static str>,
}

/// A macro of Perfetto's library, or a function of it in SQL.
#[derive(Debug, Clone, Copy)]
pub struct LibraryMacro {
    /// Its name.
    pub name: &'static str,
    /// The module it belongs to; `None` for what is there at once.
    pub module: Option<&'static str>,
    /// What it stands for, in a sentence.
    pub about: &'static str,
    /// Names of its arguments.
    pub arguments: &'static [&'static str],
    /// Its text, where `$name` stands for an argument.
    pub body: &'static str,
    /// Called as `name(…)` and standing for a `SELECT` in brackets; else `name!(…)`.
    pub is_function: bool,
}

/// A call of a macro that is worked out: its arguments as they stand in the statement, and the
/// table that is to hold what it gives.
pub struct MacroCall<'a> {
    /// Where to write.
    pub connection: &'a Connection,
    /// Says whether what is prepared next is text of the user's, which may only read.
    pub(super) reading: &'a dyn Fn(bool),
    /// Its arguments, calls of macros in them replaced.
    pub arguments: &'a [String],
    /// The name of the temporary table to make.
    pub table: &'a str,
}

impl<'a> MacroCall<'a> {
    /// Prepares SQL in which there is text of the user's.
    ///
    /// # Errors
    /// Where it is wrong, or does anything but read.
    pub fn ask(&self, sql: &str) -> Result<Statement<'a>, rusqlite::Error> {
        (self.reading)(true);
        let statement = self.connection.prepare(sql);
        (self.reading)(false);
        statement
    }
}

/// Works out what a macro gives and makes its table.
pub type Work = fn(&MacroCall<'_>) -> Result<(), rusqlite::Error>;

/// A macro of Perfetto's library that no SQL can stand for: what it gives is worked out when a
/// statement calls it.
#[derive(Debug, Clone, Copy)]
pub struct WorkedMacro {
    /// Its name.
    pub name: &'static str,
    /// The module it belongs to.
    pub module: Option<&'static str>,
    /// What it gives, in a sentence.
    pub about: &'static str,
    /// Names of its arguments.
    pub arguments: &'static [&'static str],
    /// Does it.
    pub work: Work,
}

impl Catalog {
    /// Adds a table whose rows are made when it is first asked for.
    pub fn table(
        &mut self,
        schema: &'static Schema,
        build: impl Fn() -> Result<Arc<dyn Rows>, TableError> + Send + Sync + 'static,
    ) {
        self.tables.push((schema, Source::Table(Box::new(build))));
    }

    /// Adds a table-valued function. Its rows are kept for calls with the same arguments.
    pub fn function(
        &mut self,
        schema: &'static Schema,
        call: impl Fn(&[Argument]) -> Result<Arc<dyn Rows>, TableError> + Send + Sync + 'static,
    ) {
        self.tables.push((schema, Source::Function(Box::new(call))));
    }

    /// Adds a macro.
    pub fn library_macro(&mut self, added: LibraryMacro) {
        self.macros.push(added);
    }

    /// Adds a macro that is worked out.
    pub fn worked_macro(&mut self, added: WorkedMacro) {
        self.worked.push(added);
    }

    /// Adds a module that may be included and brings nothing of its own: its tables are always
    /// there.
    pub fn module(&mut self, name: &'static str) {
        self.modules.push(name);
    }

    /// Adds a view.
    pub fn view(&mut self, view: View) {
        self.views.push(view);
    }
}
