//! The virtual table behind all tables: access to [`Rows`] for SQLite's planner and cursors.
//! Defines plans; the contents are up to each table.
//!
//! A plan names the column that finds the rows, and the comparisons. It never drops a comparison:
//! SQLite repeats each on the returned rows, so a plan might return too many rows, but never too
//! few. Only arguments of table-valued functions are not repeated, because rows do not have them.

use std::borrow::Cow;
use std::ffi::{CStr, CString, c_int};
use std::fmt::Write as _;
use std::ops::Range;
use std::sync::{Arc, Mutex, OnceLock};

use rusqlite::types::{ToSqlOutput, Value, ValueRef};
use rusqlite::vtab::{
    Context, CreateVTab, Filters, IndexConstraintOp as Op, IndexFlags, IndexInfo, Module, VTab,
    VTabConfig, VTabConnection, VTabCursor, VTabKind, sqlite3_vtab, sqlite3_vtab_cursor,
};
use rusqlite::{Connection, Error};

mod plan;

use plan::{GUESSED_ROWS, Plan, Usable, choose};

use super::index::{Bounds, Index};
use super::stop::Stop;
use super::table::{Access, Argument, Cell, Kind, Rows, Schema, Source, TableError};
use heaptap_base::parallel::lock;

/// Rows, with the indexes that queries have needed so far.
pub(super) struct Indexed {
    rows: Arc<dyn Rows>,
    schema: &'static Schema,
    indexes: Vec<OnceLock<Index>>,
}

impl Indexed {
    fn new(rows: Arc<dyn Rows>, schema: &'static Schema) -> Indexed {
        Indexed {
            rows,
            schema,
            indexes: schema.columns.iter().map(|_| OnceLock::new()).collect(),
        }
    }

    /// Returns the index of a column. It is built on the first call.
    fn index(&self, column: usize, stop: &Stop) -> Result<&Index, TableError> {
        let kept = &self.indexes[column];
        match kept.get() {
            Some(index) => Ok(index),
            None => {
                let index = match self.schema.columns[column].access {
                    Access::Scan => Index::by_hash(&*self.rows, column, stop)?,
                    _ => Index::build(&*self.rows, column, stop)?,
                };
                // Cells that were read while the statement was stopped might be wrong.
                stop.check()?;
                Ok(kept.get_or_init(|| index))
            }
        }
    }

    /// Returns the estimated number of rows with one value of a column.
    fn rows_per_value(&self, column: usize) -> f64 {
        let len = self.rows.len() as f64;
        let counted = self.indexes[column].get().map(Index::distinct);
        match counted.or_else(|| self.rows.distinct(column)) {
            Some(distinct) => len / distinct.max(1) as f64,
            // Unknown before an index is built: assume something between a key and a flag.
            None => len.sqrt(),
        }
        .max(1.0)
    }
}

/// Table of the catalog, as SQLite's module stores it.
pub(super) struct Entry {
    schema: &'static Schema,
    source: Source,
    whole: OnceLock<Result<Arc<Indexed>, TableError>>,
    stop: Stop,
    calls: Mutex<Vec<(Vec<Argument>, Arc<Indexed>)>>,
}

/// Number of cached function calls; a query rarely makes more different ones.
const KEPT_CALLS: usize = 16;

impl Entry {
    fn whole(&self) -> Result<Arc<Indexed>, Error> {
        if let Some(made) = self.whole.get() {
            return made.clone().map_err(to_sqlite);
        }
        let made = match &self.source {
            Source::Table(build) => build().map(|rows| Arc::new(Indexed::new(rows, self.schema))),
            Source::Function(_) => Err(TableError(format!(
                "{} is a function; it needs arguments",
                self.schema.name
            ))),
        };
        // Rows that were stopped are not the rows of the table.
        self.unless_stopped()?;
        self.whole.get_or_init(|| made).clone().map_err(to_sqlite)
    }

    /// Returns an error if the statement was stopped. What was computed since then might be wrong.
    fn unless_stopped(&self) -> Result<(), Error> {
        match self.stop.is_found() {
            true => Err(Error::SqliteFailure(
                rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_INTERRUPT),
                None,
            )),
            false => Ok(()),
        }
    }

    fn called(&self, arguments: Vec<Argument>) -> Result<Arc<Indexed>, Error> {
        let Source::Function(call) = &self.source else {
            return self.whole();
        };
        let mut calls = lock(&self.calls);
        if let Some((_, made)) = calls.iter().find(|(known, _)| *known == arguments) {
            return Ok(Arc::clone(made));
        }
        let rows = call(&arguments).map_err(to_sqlite)?;
        self.unless_stopped()?;
        let made = Arc::new(Indexed::new(rows, self.schema));
        if calls.len() == KEPT_CALLS {
            calls.remove(0);
        }
        calls.push((arguments, Arc::clone(&made)));
        Ok(made)
    }
}

fn to_sqlite(error: TableError) -> Error {
    Error::ModuleError(error.0)
}

/// Registers a table with a connection, which then finds it by its name.
pub(super) fn register(
    connection: &Connection,
    schema: &'static Schema,
    source: Source,
    stop: &Stop,
) -> Result<(), Error> {
    const MODULE: &Module<'_, VirtualTable> = &Module::read_only_module();
    let entry = Entry {
        schema,
        source,
        whole: OnceLock::new(),
        stop: stop.clone(),
        calls: Mutex::default(),
    };
    connection.create_module(schema.name, MODULE, Some(Arc::new(entry)))
}

#[repr(C)]
pub(super) struct VirtualTable {
    /// SQLite's own part; must be the first field.
    base: sqlite3_vtab,
    entry: Arc<Entry>,
}

unsafe impl VTab<'_> for VirtualTable {
    type Aux = Arc<Entry>;
    type Cursor = Cursor;

    fn connect(
        db: &mut VTabConnection,
        aux: Option<&Arc<Entry>>,
        _module_name: &[u8],
        _database_name: &[u8],
        _table_name: &[u8],
        _args: &[&[u8]],
    ) -> rusqlite::Result<(Cow<'static, CStr>, Self)> {
        let entry = aux.ok_or_else(|| Error::ModuleError("no such table".to_owned()))?;
        db.config(VTabConfig::Innocuous)?;
        let mut sql = String::from("CREATE TABLE x(");
        for (at, column) in entry.schema.columns.iter().enumerate() {
            let comma = if at == 0 { "" } else { ", " };
            let hidden = if column.hidden { " HIDDEN" } else { "" };
            let _ = write!(
                sql,
                "{comma}\"{}\" {}{hidden}",
                column.name,
                column.kind.sql()
            );
        }
        sql.push(')');
        let sql = CString::new(sql).map_err(|error| Error::ModuleError(error.to_string()))?;
        let table = VirtualTable {
            base: sqlite3_vtab::default(),
            entry: Arc::clone(entry),
        };
        Ok((Cow::Owned(sql), table))
    }

    fn best_index(&self, info: &mut IndexInfo) -> rusqlite::Result<bool> {
        let columns = self.entry.schema.columns;
        let mut usable = Vec::new();
        let mut arguments = Vec::new();
        for (at, constraint) in info.constraints().enumerate() {
            let Ok(column) = usize::try_from(constraint.column()) else {
                // A comparison with the rowid.
                continue;
            };
            let op = constraint.operator();
            if columns[column].access == Access::Argument {
                if op != Op::SQLITE_INDEX_CONSTRAINT_EQ {
                    continue;
                }
                if !constraint.is_usable() {
                    return Ok(false);
                }
                arguments.push((column, at));
            } else if constraint.is_usable() {
                let varies = matches!(info.rhs_value(at), Ok(None))
                    && matches!(info.is_in_constraint(at), Ok(false));
                usable.push(Usable {
                    at,
                    column,
                    op,
                    varies,
                });
            }
        }
        usable.retain(|u| {
            let is_text = columns[u.column].kind == Kind::Text;
            !is_text || info.collation(u.at).is_ok_and(|name| name == "BINARY")
        });
        let is_function = matches!(self.entry.source, Source::Function(_));
        let mut next = 1;
        let mut words = String::new();
        if is_function {
            arguments.sort_unstable();
            arguments.dedup_by_key(|(column, _)| *column);
            for (column, at) in &arguments {
                let mut usage = info.constraint_usage(*at);
                usage.set_argv_index(next);
                usage.set_omit(columns[*column].hidden);
                next += 1;
                let _ = write!(words, "{}{column}", if words.is_empty() { "" } else { "," });
            }
            words.push(';');
        }
        let mut choice = if is_function {
            let guess = GUESSED_ROWS;
            choose(self.entry.schema, guess, |_| guess.sqrt(), &usable)
        } else {
            let table = self.entry.whole()?;
            let len = table.rows.len() as f64;
            choose(
                self.entry.schema,
                len,
                |column| table.rows_per_value(column),
                &usable,
            )
        };
        if is_function {
            choice.plan.called = true;
            // The planner might leave out arguments by accident, so make plans with more of them
            // cheaper.
            let wanted = columns.iter().filter(|c| c.access == Access::Argument);
            choice.cost += 1e5 * (wanted.count() - arguments.len()) as f64;
        }
        let order: Vec<(c_int, bool)> = info
            .order_bys()
            .map(|o| (o.column(), o.is_order_by_desc()))
            .collect();
        let mut plan = choice.plan;
        if let [(column, descending)] = order[..] {
            let column = u8::try_from(column).ok();
            let sorted = column.is_some_and(|column| {
                let access = columns.get(usize::from(column)).map(|c| c.access);
                matches!(access, Some(Access::Row | Access::Sorted | Access::Indexed))
            });
            if sorted && (plan.column.is_none() || plan.column == column) {
                plan.column = column;
                plan.descending = descending;
                info.set_order_by_consumed(true);
            }
        }
        if let Some(column) = plan.column {
            words.push_str(columns[usize::from(column)].name);
        }
        for (at, sign) in &choice.used {
            info.constraint_usage(*at).set_argv_index(next);
            next += 1;
            words.push_str(sign);
        }
        if choice.unique {
            info.set_idx_flags(IndexFlags::SQLITE_INDEX_SCAN_UNIQUE);
        }
        info.set_idx_num(plan.encode());
        info.set_idx_str(&words);
        info.set_estimated_cost(choice.cost);
        info.set_estimated_rows(choice.rows.ceil() as i64);
        Ok(true)
    }

    fn open(&mut self) -> rusqlite::Result<Cursor> {
        Ok(Cursor {
            base: sqlite3_vtab_cursor::default(),
            entry: Arc::clone(&self.entry),
            table: None,
            walk: Walk::Nothing,
            found: Vec::new(),
            range: 0..0,
            descending: false,
        })
    }
}

impl CreateVTab<'_> for VirtualTable {
    // Tables can be read, and functions called, without creating a table.
    const KIND: VTabKind = VTabKind::Eponymous;
}

/// Rows that a cursor visits.
enum Walk {
    Nothing,
    /// Rows whose numbers are in the range.
    Numbers,
    /// Rows in the range of a column's index.
    Index(usize),
    /// Rows in the range of `found`.
    Found,
}

/// Position in a table.
#[repr(C)]
pub(super) struct Cursor {
    /// SQLite's own part; must be the first field.
    base: sqlite3_vtab_cursor,
    entry: Arc<Entry>,
    table: Option<Arc<Indexed>>,
    walk: Walk,
    found: Vec<u32>,
    /// Remaining part of the walk.
    range: Range<usize>,
    descending: bool,
}

/// Converts a value for comparison with a column, by SQLite's affinity of the column. Returns
/// `None` if no cell of the column can equal it, or if SQLite should find its place among them.
fn comparable<'a>(kind: Kind, value: ValueRef<'a>) -> Option<Cell<'a>> {
    match (kind, value) {
        (_, ValueRef::Null) => Some(Cell::Null),
        (Kind::Int | Kind::Real, ValueRef::Integer(number)) => Some(Cell::Int(number)),
        (Kind::Int | Kind::Real, ValueRef::Real(number)) => whole(number),
        (Kind::Int | Kind::Real, ValueRef::Text(text)) => {
            let text = std::str::from_utf8(text).ok()?.trim();
            match text.parse() {
                Ok(number) => Some(Cell::Int(number)),
                Err(_) => whole(text.parse().ok()?),
            }
        }
        (Kind::Text, ValueRef::Text(text)) => std::str::from_utf8(text).ok().map(Cell::text),
        _ => None,
    }
}

/// Converts a float to the equal integer; beyond 2^53, neighbors share a float.
fn whole(number: f64) -> Option<Cell<'static>> {
    let whole = number as i64;
    let exact = whole as f64 == number && whole.unsigned_abs() < 1 << 53;
    exact.then_some(Cell::Int(whole))
}

unsafe impl VTabCursor for Cursor {
    fn filter(
        &mut self,
        idx_num: c_int,
        idx_str: Option<&str>,
        args: &Filters<'_>,
    ) -> rusqlite::Result<()> {
        let plan = Plan::decode(idx_num);
        let schema = self.entry.schema;
        let mut values = args.iter();
        if plan.called {
            let (given, _) = idx_str
                .unwrap_or_default()
                .split_once(';')
                .unwrap_or_default();
            let given = given.split(',').filter_map(|at| at.parse::<usize>().ok());
            let mut arguments = vec![Argument::Absent; schema.columns.len()];
            for (column, value) in given.zip(values.by_ref()) {
                arguments[column] = argument(value)?;
            }
            self.table = Some(self.entry.called(arguments)?);
        } else if self.table.is_none() {
            self.table = Some(self.entry.whole()?);
        }
        let Some(table) = &self.table else {
            return Ok(());
        };
        let all = 0..table.rows.len();
        self.descending = plan.descending;
        let Some(column) = plan.column.map(usize::from) else {
            (self.walk, self.range) = (Walk::Numbers, all);
            return Ok(());
        };
        let shape = schema.columns[column];
        let mut values = values.map(|value| comparable(shape.kind, value));
        // A value that cannot be compared here becomes `None`, and SQLite checks this bound.
        let mut bounds = Bounds {
            lower: None,
            upper: None,
        };
        let mut nulls = plan.null && !plan.equal;
        let mut nothing = false;
        if plan.equal {
            match values.next().flatten() {
                Some(Cell::Null) if plan.null => nulls = true,
                Some(Cell::Null) => nothing = true,
                Some(value) => bounds = Bounds::only(value),
                None => {}
            }
        }
        let mut bound = |included: Option<bool>| {
            let included = included?;
            let value = values.next().flatten()?;
            nothing |= value == Cell::Null;
            Some((value, included))
        };
        if !plan.equal && !plan.null {
            bounds.lower = bound(plan.lower);
            bounds.upper = bound(plan.upper);
        }
        let compared = plan.equal || plan.null || plan.lower.is_some() || plan.upper.is_some();
        let open = bounds.lower.is_none() && bounds.upper.is_none();
        if nothing {
            (self.walk, self.range) = (Walk::Nothing, 0..0);
            return Ok(());
        }
        (self.walk, self.range) = match shape.access {
            // At most one row was promised: without an equal value return no row rather than all.
            Access::Row if nulls || plan.equal && open => (Walk::Nothing, 0..0),
            Access::Row => {
                let range = match bounds.exactly() {
                    Some(row) => match usize::try_from(row) {
                        Ok(row) if row < all.end => row..row + 1,
                        _ => 0..0,
                    },
                    None => bounds.within(all, Cell::from),
                };
                (Walk::Numbers, range)
            }
            Access::Sorted => {
                let first = Bounds::within(
                    &Bounds {
                        lower: Some((Cell::Null, false)),
                        upper: None,
                    },
                    all.clone(),
                    |row| table.rows.cell(row, column),
                );
                let range = if nulls {
                    0..first.start
                } else if compared && !open {
                    bounds.within(first, |row| table.rows.cell(row, column))
                } else {
                    all
                };
                (Walk::Numbers, range)
            }
            Access::Own => match (bounds.exactly(), nulls) {
                (Some(key), false) => {
                    self.found.clear();
                    table.rows.lookup(column, key, &mut self.found);
                    (Walk::Found, 0..self.found.len())
                }
                _ => (Walk::Numbers, all),
            },
            Access::Indexed | Access::Scan => {
                let stop = &self.entry.stop;
                let index = table.index(column, stop).map_err(to_sqlite)?;
                let range = if nulls {
                    index.nulls()
                } else if compared && !open {
                    index.between(&*table.rows, column, &bounds)
                } else {
                    0..index.rows().len()
                };
                (Walk::Index(column), range)
            }
            Access::Argument => (Walk::Numbers, all),
        };
        Ok(())
    }

    fn next(&mut self) -> rusqlite::Result<()> {
        if self.descending {
            self.range.end = self.range.end.saturating_sub(1).max(self.range.start);
        } else {
            self.range.start += 1;
        }
        Ok(())
    }

    fn eof(&self) -> bool {
        self.range.is_empty()
    }

    fn column(&self, context: &mut Context, column: c_int) -> rusqlite::Result<()> {
        let Some(table) = &self.table else {
            return context.set_result(&Value::Null);
        };
        let column = usize::try_from(column).map_err(|_| Error::InvalidQuery)?;
        let cell = table.rows.cell(self.row(table), column);
        // A cell can compute what the whole table needs.
        self.entry.unless_stopped()?;
        let output = match cell {
            Cell::Null => ToSqlOutput::Borrowed(ValueRef::Null),
            Cell::Int(number) => ToSqlOutput::Borrowed(ValueRef::Integer(number)),
            Cell::Real(number) => ToSqlOutput::Borrowed(ValueRef::Real(number)),
            Cell::Text(Cow::Borrowed(text)) => {
                ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes()))
            }
            Cell::Text(Cow::Owned(text)) => ToSqlOutput::Owned(Value::Text(text)),
        };
        context.set_result(&output)
    }

    fn rowid(&self) -> rusqlite::Result<i64> {
        let table = self.table.as_ref();
        Ok(table.map_or(0, |table| self.row(table) as i64))
    }
}

impl Cursor {
    fn row(&self, table: &Indexed) -> usize {
        let at = if self.descending {
            self.range.end - 1
        } else {
            self.range.start
        };
        match self.walk {
            Walk::Nothing | Walk::Numbers => at,
            Walk::Index(column) => {
                let index = table.indexes[column].get().expect("`filter` has built it");
                index.rows()[at] as usize
            }
            Walk::Found => self.found[at] as usize,
        }
    }
}

fn argument(value: ValueRef<'_>) -> Result<Argument, Error> {
    Ok(match value {
        ValueRef::Null => Argument::Null,
        ValueRef::Integer(number) => Argument::Int(number),
        ValueRef::Real(number) => Argument::Real(number),
        ValueRef::Text(text) => Argument::Text(String::from_utf8_lossy(text).into_owned()),
        ValueRef::Blob(_) => {
            return Err(Error::ModuleError("arguments cannot be blobs".to_owned()));
        }
    })
}

#[cfg(test)]
mod tests;
