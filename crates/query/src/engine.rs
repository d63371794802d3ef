//! The database: SQLite in memory, with the tables, views and macros of a catalog. Owns what
//! statements may do: read, and make temporary tables of what they read. No file is opened, no
//! extension loaded; time and memory have bounds.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::{ControlFlow, Range};
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rusqlite::hooks::{AuthAction, AuthContext, Authorization};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Error, ErrorCode, InterruptHandle};

use super::error::QueryError;
use super::functions;
use super::prepass::{self, Action, Macro, Macros, Prepared, Replacing, WorkedCall};
use super::table::{Access, Catalog, MacroCall, Schema, Source, Work, WorkedMacro};
use super::vtab;

/// What a query may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// A statement that runs longer is ended; `None` for as long as it takes.
    pub time: Option<Duration>,
    /// Bytes that SQLite may hold for sorting, temporary tables and results.
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

/// A value of a result.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Value<'a> {
    /// Nothing.
    Null,
    /// A whole number.
    Int(i64),
    /// Any other number.
    Real(f64),
    /// Text, as SQLite has it: bytes that claim to be UTF-8.
    Text(&'a [u8]),
    /// Bytes.
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

/// Takes the rows of statements.
pub trait Sink {
    /// A statement that gives rows begins; its columns.
    fn columns(&mut self, names: &[&str]) -> ControlFlow<()>;

    /// A row.
    fn row(&mut self, row: &[Value<'_>]) -> ControlFlow<()>;

    /// All rows of the statement were given.
    fn end(&mut self) -> ControlFlow<()>;
}

/// What something in the catalog is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sort {
    /// A table.
    Table,
    /// A view, ours or of Perfetto's library.
    View,
    /// A function that gives a table.
    Function,
    /// `name!(…)`.
    Macro,
    /// Made by a statement.
    Temporary,
}

/// A column, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnInfo {
    /// Its name.
    pub name: String,
    /// Its declared type; empty for those of views.
    pub kind: String,
    /// What it means; empty where nobody said.
    pub about: &'static str,
    /// Left out of `SELECT *`: an argument.
    pub hidden: bool,
    /// Rows are found by it without looking at others.
    pub is_key: bool,
}

impl ColumnInfo {
    /// An argument of a macro.
    fn argument(name: &&str) -> ColumnInfo {
        ColumnInfo {
            name: (*name).to_owned(),
            kind: String::new(),
            about: "",
            hidden: true,
            is_key: false,
        }
    }
}

/// A table, view, function or macro, for people.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableInfo {
    /// Its name.
    pub name: String,
    /// What it is.
    pub sort: Sort,
    /// The module of Perfetto's library it belongs to.
    pub module: Option<&'static str>,
    /// What it holds, in a sentence.
    pub about: &'static str,
    /// Its columns, or a macro's arguments.
    pub columns: Vec<ColumnInfo>,
}

/// What SQLite may do at the moment: what [`Database`] has it do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
enum Mode {
    /// Whatever is needed to set up.
    Own,
    Read,
    Create,
    Drop,
}

/// A database of virtual tables.
pub struct Database {
    connection: Connection,
    mode: Arc<AtomicU8>,
    deadline: Arc<Mutex<Option<Instant>>>,
    limits: Limits,
    macros: Macros,
    works: BTreeMap<String, Work>,
    modules: BTreeSet<&'static str>,
    known: Vec<TableInfo>,
    schemas: Vec<&'static Schema>,
    views: Vec<(&'static str, String)>,
}

/// Ends the statement that runs, from another thread.
pub struct Interrupter(InterruptHandle);

impl Interrupter {
    /// Ends it.
    pub fn interrupt(&self) {
        self.0.interrupt();
    }
}

/// SQLite's steps between two looks at the clock: some microseconds.
const STEPS: i32 = 10_000;

impl Database {
    /// Makes a database of a catalog. No table is read before it is asked for.
    ///
    /// # Errors
    /// Where SQLite refuses a table or view of ours: a mistake in the catalog.
    pub fn open(catalog: Catalog) -> Result<Database, QueryError> {
        Database::open_with(catalog, Limits::default())
    }

    /// The same, with limits for what statements may take.
    ///
    /// # Errors
    /// As [`Database::open`].
    pub fn open_with(catalog: Catalog, limits: Limits) -> Result<Database, QueryError> {
        let connection = Connection::open_in_memory().map_err(QueryError::setup)?;
        let mut database = Database {
            connection,
            mode: Arc::new(AtomicU8::new(Mode::Own as u8)),
            deadline: Arc::default(),
            limits,
            macros: Macros::new(),
            works: BTreeMap::new(),
            modules: BTreeSet::new(),
            known: Vec::new(),
            schemas: Vec::new(),
            views: Vec::new(),
        };
        database.fill(catalog).map_err(QueryError::setup)?;
        database.guard().map_err(QueryError::setup)?;
        Ok(database)
    }

    fn fill(&mut self, catalog: Catalog) -> Result<(), Error> {
        let memory = i64::try_from(self.limits.memory_bytes).unwrap_or(i64::MAX);
        // Replacing a table renames the new one; views that read the old one read that from then
        // on, and need not fit yet.
        self.connection.execute_batch(&format!(
            "PRAGMA temp_store = MEMORY; PRAGMA trusted_schema = ON; \
             PRAGMA legacy_alter_table = ON; PRAGMA hard_heap_limit = {memory};"
        ))?;
        functions::add(&self.connection)?;
        self.modules.extend(catalog.modules);
        for (schema, source) in &catalog.tables {
            self.modules.extend(schema.module);
            self.schemas.push(schema);
            self.known.push(TableInfo {
                name: schema.name.to_owned(),
                sort: match source {
                    Source::Table(_) => Sort::Table,
                    Source::Function(_) => Sort::Function,
                },
                module: schema.module,
                about: schema.about,
                columns: schema
                    .columns
                    .iter()
                    .map(|column| ColumnInfo {
                        name: column.name.to_owned(),
                        kind: column.kind.sql().to_owned(),
                        about: column.about,
                        hidden: column.hidden,
                        is_key: !matches!(column.access, Access::Scan | Access::Argument),
                    })
                    .collect(),
            });
        }
        vtab::register(&self.connection, catalog.tables)?;
        for added in catalog.macros {
            self.modules.extend(added.module);
            let arguments = added.arguments.iter();
            self.macros.insert(
                added.name.to_lowercase(),
                Macro {
                    arguments: arguments.map(|name| name.to_lowercase()).collect(),
                    body: added.body.to_owned(),
                    is_function: added.is_function,
                    is_worked: false,
                },
            );
            self.known.push(TableInfo {
                name: added.name.to_owned(),
                sort: match added.is_function {
                    true => Sort::Function,
                    false => Sort::Macro,
                },
                module: added.module,
                about: added.about,
                columns: added.arguments.iter().map(ColumnInfo::argument).collect(),
            });
        }
        for added in catalog.worked {
            self.add_worked(added);
        }
        for view in catalog.views {
            self.modules.extend(view.module);
            let sql = self.rewritten(view.sql)?;
            self.connection
                .execute_batch(&format!("CREATE VIEW \"{}\" AS {sql}", view.name))?;
            self.known.push(TableInfo {
                name: view.name.to_owned(),
                sort: Sort::View,
                module: view.module,
                about: view.about,
                columns: self.columns_of(view.name)?,
            });
            self.views.push((view.name, sql));
        }
        self.known.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(())
    }

    fn add_worked(&mut self, added: WorkedMacro) {
        self.modules.extend(added.module);
        let name = added.name.to_lowercase();
        let arguments = added.arguments.iter();
        self.macros.insert(
            name.clone(),
            Macro {
                arguments: arguments.clone().map(|name| name.to_lowercase()).collect(),
                body: String::new(),
                is_function: false,
                is_worked: true,
            },
        );
        self.works.insert(name, added.work);
        self.known.push(TableInfo {
            name: added.name.to_owned(),
            sort: Sort::Macro,
            module: added.module,
            about: added.about,
            columns: arguments.map(ColumnInfo::argument).collect(),
        });
    }

    /// Works out what macros give, each into the temporary table that the statement reads.
    fn work_out(&self, calls: &[WorkedCall]) -> Result<(), Error> {
        for call in calls {
            let Some(work) = self.works.get(&call.name) else {
                return Err(Error::ModuleError(format!(
                    "there is no macro {}!",
                    call.name
                )));
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
                    table: &call.table,
                })
            })?;
        }
        Ok(())
    }

    /// Drops what was worked out for a statement that has run or failed.
    fn forget(&self, calls: &[WorkedCall]) {
        for call in calls {
            let drop = format!("DROP TABLE IF EXISTS temp.{}", call.table);
            // What can't be dropped, as when memory is short, goes with the database.
            let _ = self.in_mode(Mode::Own, || self.connection.execute_batch(&drop));
        }
    }

    /// A `SELECT` of ours with its macros replaced.
    fn rewritten(&self, sql: &str) -> Result<String, Error> {
        let refused = |refusal: prepass::Refusal| Error::ModuleError(refusal.message);
        let prepared = prepass::prepare(sql, &(0..sql.len()), &self.macros);
        Ok(prepared.map_err(refused)?.sql)
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

    /// From here on statements may do what their mode says, and no longer than the deadline.
    fn guard(&self) -> Result<(), Error> {
        let mode = Arc::clone(&self.mode);
        self.connection
            .authorizer(Some(move |context: AuthContext<'_>| {
                match may(mode.load(Ordering::Relaxed), &context) {
                    true => Authorization::Allow,
                    false => Authorization::Deny,
                }
            }))?;
        let deadline = Arc::clone(&self.deadline);
        self.connection.progress_handler(
            STEPS,
            Some(move || {
                let deadline = deadline.lock().unwrap_or_else(PoisonError::into_inner);
                deadline.is_some_and(|deadline| Instant::now() >= deadline)
            }),
        )
    }

    /// What ends a statement from another thread.
    pub fn interrupter(&self) -> Interrupter {
        Interrupter(self.connection.get_interrupt_handle())
    }

    /// All tables, views, functions and macros, by name; those that statements made last.
    ///
    /// # Errors
    /// Where SQLite fails.
    pub fn tables(&self) -> Result<Vec<TableInfo>, QueryError> {
        self.in_mode(Mode::Own, || {
            let sql = "SELECT name FROM sqlite_temp_master WHERE type IN ('table', 'view') \
                 AND name NOT GLOB '_macro_*' ORDER BY 1";
            let mut statement = self.connection.prepare(sql)?;
            let names = statement.query_map([], |row| row.get::<_, String>(0))?;
            let mut all = self.known.clone();
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
        .map_err(QueryError::setup)
    }

    /// Names of the modules that may be included.
    pub fn modules(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.modules.iter().copied()
    }

    fn in_mode<T>(&self, mode: Mode, work: impl FnOnce() -> Result<T, Error>) -> Result<T, Error> {
        let before = self.mode.swap(mode as u8, Ordering::Relaxed);
        let result = work();
        self.mode.store(before, Ordering::Relaxed);
        result
    }

    /// Runs all statements of a text in order. `Break` where the sink wanted no more.
    ///
    /// # Errors
    /// The first statement that is refused, wrong, interrupted or takes too much.
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
        self.set_deadline(until);
        let worked = self.work_out(&prepared.worked);
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
                let mut read = || self.in_mode(Mode::Read, || self.read(&prepared.sql, sink));
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
        // What follows is short, and has to be done however late it is.
        self.set_deadline(None);
        if done.is_err() || !is_read_later {
            self.forget(&prepared.worked);
        }
        done
    }

    fn set_deadline(&self, until: Option<Instant>) {
        *self.deadline.lock().unwrap_or_else(PoisonError::into_inner) = until;
    }

    /// Makes something in the place of an older one, which stays if that fails.
    fn replace(&self, sql: &str, replacing: &Replacing) -> Result<(), Error> {
        let own = |sql: &str| self.in_mode(Mode::Own, || self.connection.execute_batch(sql));
        own("SAVEPOINT replacing")?;
        let made = own(&replacing.before)
            .and_then(|()| self.in_mode(Mode::Create, || self.change(sql)))
            .and_then(|()| own(&replacing.after))
            .and_then(|()| own("RELEASE replacing"));
        if made.is_err() {
            self.set_deadline(None);
            // Where SQLite has taken all back by itself there is no savepoint any more.
            let _ = own("ROLLBACK TO replacing; RELEASE replacing");
        }
        made
    }

    /// Prepared apart from being run, so that errors know where they are.
    fn change(&self, sql: &str) -> Result<(), Error> {
        let mut statement = self.connection.prepare(sql)?;
        statement.raw_execute()?;
        Ok(())
    }

    fn read(&self, sql: &str, sink: &mut dyn Sink) -> Result<ControlFlow<()>, Error> {
        let mut statement = self.connection.prepare(sql)?;
        if statement.parameter_count() > 0 {
            return Err(Error::ModuleError(
                "the statement has parameters: write values in their place".to_owned(),
            ));
        }
        let names: Vec<String> = statement
            .column_names()
            .into_iter()
            .map(str::to_owned)
            .collect();
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
        if code == Some(ErrorCode::OperationInterrupted) {
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
        QueryError::of_sqlite(error, |offset| prepared.origin_of(offset), sql)
    }

    #[cfg(test)]
    pub(crate) fn connection(&self) -> &Connection {
        &self.connection
    }

    /// The schema of a table of ours.
    pub(super) fn schema_of(&self, name: &str) -> Option<&'static Schema> {
        self.schemas
            .iter()
            .copied()
            .find(|schema| schema.name == name)
    }

    /// Our views, as SQLite has them.
    pub(super) fn views(&self) -> impl Iterator<Item = (&'static str, &str)> {
        self.views.iter().map(|(name, sql)| (*name, sql.as_str()))
    }

    /// SQLite itself, for what is ours and not a user's.
    pub(super) fn own<T>(
        &self,
        work: impl FnOnce(&Connection) -> Result<T, Error>,
    ) -> Result<T, Error> {
        self.in_mode(Mode::Own, || work(&self.connection))
    }
}

/// Pragmas that only tell, as `pragma_…` functions in a `SELECT`.
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

/// Whether a statement in that mode may do that.
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
