//! The database: SQLite in memory with the tables, views and macros of a catalog. Restricts
//! statements to reading and to creating temporary tables: they cannot open files or load
//! extensions, and their time and memory are limited.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{ControlFlow, Range};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::time::{Duration, Instant};

use rusqlite::functions::Context;
use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Error, ErrorCode, InterruptHandle, Statement};

use super::error::QueryError;
use super::listing::{ColumnInfo, Sort, TableInfo};
use super::prepass::{self, Action, Macros, Prepared, Replacing, WorkedCall, quoted};
use super::stop::Stop;
use super::table::{Catalog, MacroCall, Schema, Source, View, Work};
use super::{functions, vtab};

/// Limits of a statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Time after which a statement is interrupted; `None` for no limit.
    pub time: Option<Duration>,
    /// Bytes that SQLite can allocate for sorting, temporary tables and results.
    pub memory_bytes: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            time: None,
            memory_bytes: 4 << 30,
        }
    }
}

/// Value in a result row.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    Null,
    /// Integer.
    Int(i64),
    /// Floating-point number.
    Real(f64),
    /// Text as SQLite stores it: supposed to be UTF-8, but not checked.
    Text(&'a [u8]),
    Blob(&'a [u8]),
}

impl<'a> From<ValueRef<'a>> for Value<'a> {
    fn from(value: ValueRef<'a>) -> Value<'a> {
        match value {
            ValueRef::Null => Value::Null,
            ValueRef::Integer(number) => Value::Int(number),
            ValueRef::Real(number) => Value::Real(number),
            ValueRef::Text(text) => Value::Text(text),
            ValueRef::Blob(bytes) => Value::Blob(bytes),
        }
    }
}

/// Receiver of the rows of statements.
pub trait Sink {
    /// Starts a statement that returns rows with these columns.
    fn columns(&mut self, names: &[&str]) -> ControlFlow<()>;

    /// Receives one row.
    fn row(&mut self, row: &[Value<'_>]) -> ControlFlow<()>;

    /// Ends the rows of the statement.
    fn end(&mut self) -> ControlFlow<()>;
}

/// Operations that SQLite is allowed to run: set by [`Database`] around each statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Mode {
    /// Everything that setup needs.
    Own,
    Read,
    Create,
    Drop,
}

/// Database of virtual tables.
pub struct Database {
    connection: Connection,
    mode: Arc<AtomicU8>,
    stop: Stop,
    limits: Limits,
    macros: Macros,
    works: BTreeMap<String, Work>,
    modules: BTreeSet<&'static str>,
    tables: Vec<(&'static Schema, Sort)>,
    views: Vec<View>,
    /// Functions of values and macros, as listed for users.
    calls: Vec<TableInfo>,
    /// The tables and views are declared. Statements that only read tables do not need that.
    is_declared: Cell<bool>,
    /// Set when SQLite prepares a statement that reads the list of tables.
    is_listing: Arc<AtomicBool>,
}

/// Handle that interrupts the running statement from another thread.
pub struct Interrupter(InterruptHandle, Stop);

impl Interrupter {
    /// Interrupts the running statement and all later ones, until
    /// [`Database::forget_interrupts`].
    pub fn interrupt(&self) {
        self.1.interrupt();
        self.0.interrupt();
    }
}

/// SQLite instructions between two checks of the deadline: some microseconds.
const STEPS: i32 = 10_000;

impl Database {
    /// Makes a database of a catalog. Tables are read when a statement first needs them.
    ///
    /// # Errors
    /// Returns an error if SQLite rejects a function or module of the catalog, or if its library is
    /// invalid, which is a bug.
    pub fn open(catalog: Catalog) -> Result<Database, QueryError> {
        Database::open_with(catalog, Limits::default())
    }

    /// Makes a database with limits on the time and memory of statements.
    ///
    /// # Errors
    /// Returns the errors of [`Database::open`].
    pub fn open_with(catalog: Catalog, limits: Limits) -> Result<Database, QueryError> {
        let memory_bytes = limits.memory_bytes;
        let setup = |error| QueryError::setup(error, memory_bytes);
        let connection = Connection::open_in_memory().map_err(setup)?;
        let mut database = Database {
            connection,
            mode: Arc::new(AtomicU8::new(Mode::Own as u8)),
            stop: catalog.stop(),
            limits,
            macros: Macros::new(),
            works: BTreeMap::new(),
            modules: BTreeSet::new(),
            tables: Vec::new(),
            views: Vec::new(),
            calls: Vec::new(),
            is_declared: Cell::new(false),
            is_listing: Arc::default(),
        };
        database.fill(catalog).map_err(setup)?;
        database.guard().map_err(setup)?;
        Ok(database)
    }

    fn fill(&mut self, catalog: Catalog) -> Result<(), Error> {
        let memory = i64::try_from(self.limits.memory_bytes).unwrap_or(i64::MAX);
        // Replacing a table renames the new one. From then on, views of the old table read the new
        // one, and they might not match it yet.
        self.connection.execute_batch(&format!(
            "PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = ON; \
             PRAGMA legacy_alter_table = ON; PRAGMA hard_heap_limit = {memory};"
        ))?;
        functions::add(&self.connection)?;
        for added in catalog.scalars {
            let (name, about, arguments) = (added.name, added.about, added.arguments);
            self.calls.push(TableInfo::call(
                name,
                about,
                arguments,
                Sort::Function,
                None,
            ));
            let arguments = arguments.len() as i32;
            let value = move |context: &Context<'_>| (added.value)(context);
            self.connection
                .create_scalar_function(name, arguments, functions::FLAGS, value)?;
        }
        self.modules.extend(catalog.modules);
        for (schema, source) in catalog.tables {
            self.modules.extend(schema.module);
            let sort = match source {
                Source::Table(_) => Sort::Table,
                Source::Function(_) => Sort::Function,
            };
            self.tables.push((schema, sort));
            vtab::register(&self.connection, schema, source, &self.stop)?;
        }
        self.views = catalog.views;
        for (text, works) in catalog.library {
            let works = works.iter().map(|&(name, work)| (name.to_owned(), work));
            self.works.extend(works);
            self.add_library(text)?;
        }
        self.modules
            .extend(self.views.iter().filter_map(|view| view.module));
        Ok(())
    }

    /// Adds the macros, functions and views of a text. The comment before each one has its module,
    /// if it is of one, and its meaning.
    fn add_library(&mut self, text: &'static str) -> Result<(), Error> {
        for piece in text.split(";\n") {
            let (mut module, mut about) = (None, "");
            let mut sql = piece.trim_start();
            while let Some((line, rest)) =
                sql.strip_prefix("-- ").and_then(|sql| sql.split_once('\n'))
            {
                match line.strip_prefix("module ") {
                    Some(name) => module = Some(name),
                    None => about = line,
                }
                sql = rest.trim_start();
            }
            let view = sql.strip_prefix("CREATE PERFETTO VIEW ");
            if let Some((name, sql)) = view.and_then(|view| view.split_once(" AS\n")) {
                self.views.push(View {
                    name,
                    module,
                    about,
                    sql,
                });
            }
            if view.is_some() || sql.is_empty() {
                continue;
            }
            // Texts are read when they are called.
            let (head, body) = sql.split_once(" AS").unwrap_or((sql, ""));
            let head = format!("{head} AS $body");
            let prepared = prepass::prepare(&head, &(0..head.len()), &self.macros);
            let prepared = prepared.map_err(refused)?;
            if let Action::Define(name, mut defined) = prepared.action {
                body.trim().clone_into(&mut defined.body);
                defined.is_worked = self.works.contains_key(&name);
                let sort = match defined.is_function {
                    true => Sort::Function,
                    false => Sort::Macro,
                };
                let listed = TableInfo::call(&name, about, &defined.arguments, sort, module);
                self.calls.push(listed);
                self.modules.extend(module);
                self.macros.insert(name, defined);
            }
        }
        Ok(())
    }

    /// Declares the tables and views of the catalog: SQLite finds tables without that, but does
    /// not list them.
    pub(super) fn declare(&self) -> Result<(), Error> {
        if self.is_declared.get() {
            return Ok(());
        }
        let mut sql = String::from("BEGIN;");
        for (schema, sort) in &self.tables {
            if *sort == Sort::Table {
                let name = quoted(schema.name);
                sql += &format!("CREATE VIRTUAL TABLE {name} USING {name};");
            }
        }
        for (name, select) in self.views()? {
            sql += &format!("CREATE VIEW {} AS {select};", quoted(name));
        }
        sql += "COMMIT";
        self.own(|sqlite| {
            let declared = sqlite.execute_batch(&sql);
            match declared.is_ok() {
                true => self.is_declared.set(true),
                false if sqlite.is_autocommit() => {}
                false => sqlite.execute_batch("ROLLBACK")?,
            }
            declared
        })
    }

    /// Prepares a statement of a user, which can need the declarations.
    fn prepare(&self, sql: &str) -> Result<Statement<'_>, Error> {
        self.is_listing.store(false, Ordering::Relaxed);
        let prepared = self.connection.prepare(sql);
        let is_listing = self.is_listing.load(Ordering::Relaxed);
        if self.is_declared.get() || prepared.is_ok() && !is_listing {
            return prepared;
        }
        drop(prepared);
        self.declare()?;
        self.connection.prepare(sql)
    }

    /// Computes the results of macro calls into the temporary tables that the statement reads.
    fn work_out(&self, calls: &[WorkedCall]) -> Result<(), Error> {
        for call in calls {
            let Some(work) = self.works.get(&call.name) else {
                return Err(Error::ModuleError(format!("no such macro: {}!", call.name)));
            };
            let reading = |reads: bool| {
                let mode = if reads { Mode::Read } else { Mode::Own };
                self.mode.store(mode as u8, Ordering::Relaxed);
            };
            self.in_mode(Mode::Own, || {
                work(&MacroCall {
                    connection: &self.connection,
                    reading: &reading,
                    arguments: &call.arguments,
                    with: &call.with,
                    table: &call.table,
                })
            })?;
        }
        Ok(())
    }

    /// Drops the tables computed for a statement that has run or failed.
    fn forget(&self, calls: &[WorkedCall]) {
        for call in calls {
            let drop = format!("DROP TABLE IF EXISTS temp.{}", call.table);
            // A table that cannot be dropped, for example for lack of memory, goes with the
            // database.
            let _ = self.in_mode(Mode::Own, || self.connection.execute_batch(&drop));
        }
    }

    /// Returns the views of the catalog with their SQL after macro expansion.
    pub(super) fn views(&self) -> Result<Vec<(&'static str, String)>, Error> {
        let views = self.views.iter().map(|view| {
            let prepared = prepass::prepare(view.sql, &(0..view.sql.len()), &self.macros);
            Ok((view.name, prepared.map_err(refused)?.sql))
        });
        views.collect()
    }

    fn columns_of(&self, name: &str) -> Result<Vec<ColumnInfo>, Error> {
        let sql = "SELECT name, type, hidden FROM pragma_table_xinfo(?1)";
        let mut statement = self.connection.prepare(sql)?;
        let columns = statement.query_map([name], |row| {
            Ok(ColumnInfo {
                name: row.get(0)?,
                kind: row.get(1)?,
                about: "",
                hidden: row.get::<_, i64>(2)? != 0,
                is_key: false,
            })
        })?;
        columns.collect()
    }

    /// Installs the authorizer of the mode and the check of the deadline for later statements.
    fn guard(&self) -> Result<(), Error> {
        let (mode, is_listing) = (Arc::clone(&self.mode), Arc::clone(&self.is_listing));
        self.connection
            .authorizer(Some(move |context: AuthContext<'_>| {
                if let AuthAction::Read { table_name, .. } = context.action
                    && is_list(table_name)
                {
                    is_listing.store(true, Ordering::Relaxed);
                }
                match may(mode.load(Ordering::Relaxed), &context) {
                    true => Authorization::Allow,
                    false => Authorization::Deny,
                }
            }))?;
        let stop = self.stop.clone();
        self.connection
            .progress_handler(STEPS, Some(move || stop.is_requested()))
    }

    /// Makes the database usable again after an interrupt.
    pub fn forget_interrupts(&mut self) {
        self.stop.forget_interrupts();
    }

    /// Returns a handle that interrupts statements from another thread.
    pub fn interrupter(&self) -> Interrupter {
        Interrupter(self.connection.get_interrupt_handle(), self.stop.clone())
    }

    /// Returns all tables, views, functions and macros by name, those of statements last.
    ///
    /// # Errors
    /// Returns an error if SQLite fails.
    pub fn tables(&self) -> Result<Vec<TableInfo>, QueryError> {
        self.in_mode(Mode::Own, || {
            let mut all = self.known()?;
            let sql = "SELECT name FROM sqlite_temp_master WHERE type IN ('table', 'view') \
                 AND name NOT GLOB '_macro_*' ORDER BY 1";
            let mut statement = self.connection.prepare(sql)?;
            let names = statement.query_map([], |row| row.get::<_, String>(0))?;
            for name in names {
                let name = name?;
                all.push(TableInfo {
                    columns: self.columns_of(&name)?,
                    name,
                    sort: Sort::Temporary,
                    module: None,
                    about: "",
                });
            }
            Ok(all)
        })
        .map_err(|error| QueryError::setup(error, self.limits.memory_bytes))
    }

    /// Returns what the catalog has, by name.
    fn known(&self) -> Result<Vec<TableInfo>, Error> {
        self.declare()?;
        let tables = self
            .tables
            .iter()
            .map(|&(schema, sort)| TableInfo::new(schema, sort));
        let mut all: Vec<TableInfo> = tables.chain(self.calls.iter().cloned()).collect();
        for view in &self.views {
            all.push(TableInfo {
                name: view.name.to_owned(),
                sort: Sort::View,
                module: view.module,
                about: view.about,
                columns: self.columns_of(view.name)?,
            });
        }
        all.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(all)
    }

    /// Returns the names of the modules that can be included.
    pub fn modules(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.modules.iter().copied()
    }

    fn in_mode<T>(&self, mode: Mode, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        let before = self.mode.swap(mode as u8, Ordering::Relaxed);
        let result = work();
        self.mode.store(before, Ordering::Relaxed);
        result
    }

    /// Runs all statements of a text in order. Returns `Break` if the sink stopped the query.
    ///
    /// # Errors
    /// Returns an error for the first statement that is refused, invalid, interrupted or over a
    /// limit.
    pub fn run(&mut self, sql: &str, sink: &mut dyn Sink) -> Result<ControlFlow<()>, QueryError> {
        for statement in prepass::statements(sql) {
            if self.run_one(sql, &statement, sink)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn run_one(
        &mut self,
        sql: &str,
        statement: &Range<usize>,
        sink: &mut dyn Sink,
    ) -> Result<ControlFlow<()>, QueryError> {
        let prepared = prepass::prepare(sql, statement, &self.macros)
            .map_err(|refusal| QueryError::refused(refusal, sql))?;
        let until = self.limits.time.map(|time| Instant::now() + time);
        self.stop.begin(until);
        if self.stop.is_found() {
            // It was interrupted between two statements.
            return Err(QueryError::Interrupted);
        }
        // What is created can name what the catalog declares, and so can computed macros.
        let is_created = matches!(prepared.action, Action::Create { .. });
        let declared = match is_created || !prepared.worked.is_empty() {
            true => self.declare(),
            false => Ok(()),
        };
        let worked = declared.and_then(|()| self.work_out(&prepared.worked));
        let (done, is_read_later) = match &prepared.action {
            Action::Include(module) => {
                self.include(module, prepared.origin_of(0), sql)?;
                return Ok(ControlFlow::Continue(()));
            }
            Action::Define(name, defined) => {
                self.macros.insert(name.clone(), defined.clone());
                return Ok(ControlFlow::Continue(()));
            }
            Action::Read => {
                let mut read = || self.in_mode(Mode::Read, || self.read(&prepared, sink));
                (worked.and_then(|()| read()), false)
            }
            Action::Create { replacing, is_view } => {
                let created = worked.and_then(|()| match replacing {
                    Some(replacing) => self.replace(&prepared.sql, replacing),
                    None => self.in_mode(Mode::Create, || self.change(&prepared.sql)),
                });
                (created.map(ControlFlow::Continue), *is_view)
            }
            Action::Drop => {
                let dropped = self.in_mode(Mode::Drop, || self.change(&prepared.sql));
                (dropped.map(ControlFlow::Continue), false)
            }
        };
        let done = done.map_err(|error| self.failure(error, &prepared, sql, until));
        // What follows is short and must run even after the deadline.
        self.stop.end();
        if done.is_err() || !is_read_later {
            self.forget(&prepared.worked);
        }
        done
    }

    /// Replaces a table, view or index; the old one stays if that fails.
    fn replace(&self, sql: &str, replacing: &Replacing) -> Result<(), Error> {
        let own = |sql: &str| self.in_mode(Mode::Own, || self.connection.execute_batch(sql));
        own("SAVEPOINT replacing")?;
        let made = own(&replacing.before)
            .and_then(|()| self.in_mode(Mode::Create, || self.change(sql)))
            .and_then(|()| own(&replacing.after))
            .and_then(|()| own("RELEASE replacing"));
        if made.is_err() {
            self.stop.end();
            // If SQLite has already rolled everything back, the savepoint no longer exists.
            let _ = own("ROLLBACK TO replacing; RELEASE replacing");
        }
        made
    }

    /// Runs a statement in two steps, so that errors in preparing it have an offset.
    fn change(&self, sql: &str) -> Result<(), Error> {
        let mut statement = self.connection.prepare(sql)?;
        statement.raw_execute()?;
        Ok(())
    }

    fn read(&self, prepared: &Prepared, sink: &mut dyn Sink) -> Result<ControlFlow<()>, Error> {
        let mut statement = self.prepare(&prepared.sql)?;
        if statement.parameter_count() > 0 {
            return Err(Error::ModuleError(
                "the statement has parameters; replace them with values".to_owned(),
            ));
        }
        let names = statement.column_names().into_iter();
        let names: Vec<String> = names.map(|name| prepared.column_name(name)).collect();
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        if sink.columns(&names).is_break() {
            return Ok(ControlFlow::Break(()));
        }
        let mut rows = statement.raw_query();
        while let Some(row) = rows.next()? {
            let mut values = Vec::with_capacity(names.len());
            for at in 0..names.len() {
                values.push(Value::from(row.get_ref(at)?));
            }
            if sink.row(&values).is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(sink.end())
    }

    fn include(&self, module: &str, offset: usize, sql: &str) -> Result<(), QueryError> {
        let known = match module.strip_suffix('*') {
            Some(prefix) => self.modules.iter().any(|name| name.starts_with(prefix)),
            None => self.modules.contains(module),
        };
        match known {
            true => Ok(()),
            false => Err(QueryError::no_module(module, offset, sql, &self.modules)),
        }
    }

    fn failure(
        &self,
        error: Error,
        prepared: &Prepared,
        sql: &str,
        until: Option<Instant>,
    ) -> QueryError {
        let code = error.sqlite_error_code();
        // The planner reports the failure of a table as an error of the statement.
        if code == Some(ErrorCode::OperationInterrupted) || self.stop.is_found() {
            let late = until.is_some_and(|until| Instant::now() >= until);
            return match (late, self.limits.time) {
                (true, Some(time)) => QueryError::TooLong { time },
                _ => QueryError::Interrupted,
            };
        }
        if code == Some(ErrorCode::OutOfMemory) {
            return QueryError::TooMuch {
                memory_bytes: self.limits.memory_bytes,
            };
        }
        let known = self.in_mode(Mode::Own, || self.known()).unwrap_or_default();
        QueryError::of_sqlite(error, |offset| prepared.origin_of(offset), sql, &known)
    }

    /// Begins work without a deadline: heaptap's own, for the user.
    pub(super) fn begin_own(&self) -> &Stop {
        self.stop.begin(None);
        &self.stop
    }

    #[cfg(test)]
    pub(crate) fn connection(&self) -> &Connection {
        self.declare().unwrap();
        &self.connection
    }

    /// Returns the schema of a table of the catalog.
    pub(super) fn schema_of(&self, name: &str) -> Option<&'static Schema> {
        let mut schemas = self.tables.iter().map(|(schema, _)| *schema);
        schemas.find(|schema| schema.name == name)
    }

    /// Runs heaptap's own statements, without the restrictions for user statements.
    pub(super) fn own<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.in_mode(Mode::Own, || work(&self.connection))
    }
}

/// Pragmas that only return information, available as `pragma_…` functions in a `SELECT`.
const PRAGMAS: [&str; 8] = [
    "table_info",
    "table_xinfo",
    "table_list",
    "index_list",
    "index_info",
    "function_list",
    "module_list",
    "collation_list",
];

fn refused(refusal: prepass::Refusal) -> Error {
    Error::ModuleError(refusal.message)
}

/// Returns whether a table lists the tables of the database.
fn is_list(table: &str) -> bool {
    let has = |prefix: &str| {
        table
            .get(..7)
            .is_some_and(|start| start.eq_ignore_ascii_case(prefix))
    };
    has("sqlite_") || has("pragma_")
}

/// Returns whether a statement in that mode is allowed to perform the action.
fn may(mode: u8, context: &AuthContext<'_>) -> bool {
    if mode == Mode::Own as u8 {
        return true;
    }
    let in_temp = context.database_name == Some("temp");
    let creates = mode == Mode::Create as u8 && in_temp;
    let drops = mode == Mode::Drop as u8 && in_temp;
    let is_master = |name: &str| name == "sqlite_temp_master" || name == "sqlite_temp_schema";
    match context.action {
        AuthAction::Select | AuthAction::Read { .. } | AuthAction::Recursive => true,
        AuthAction::Function { function_name } => {
            let forbidden = ["load_extension", "fts3_tokenizer"];
            !forbidden
                .iter()
                .any(|name| function_name.eq_ignore_ascii_case(name))
        }
        AuthAction::Pragma { pragma_name, .. } => PRAGMAS
            .iter()
            .any(|known| pragma_name.eq_ignore_ascii_case(known)),
        AuthAction::Insert { table_name } | AuthAction::Update { table_name, .. } => {
            (creates || drops) && is_master(table_name)
        }
        AuthAction::Delete { .. } => drops,
        AuthAction::CreateTempTable { .. }
        | AuthAction::CreateTempView { .. }
        | AuthAction::CreateTempIndex { .. } => mode == Mode::Create as u8,
        AuthAction::Reindex { .. } => creates,
        AuthAction::DropTempTable { .. }
        | AuthAction::DropTempView { .. }
        | AuthAction::DropTempIndex { .. } => mode == Mode::Drop as u8,
        _ => false,
    }
}

#[cfg(test)]
mod tests;
