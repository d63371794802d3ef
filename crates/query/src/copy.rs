//! Copy of all tables in an SQLite file that any SQLite opens: the rows, the views, and an index
//! for each column that is indexed here.

use std::path::Path;

use rusqlite::{Connection, Error, ErrorCode};

use super::engine::Database;
use super::error::QueryError;
use super::listing::{Sort, TableInfo};
use super::prepass::quoted;
use super::stop::Stop;
use super::table::Access;

/// Table in the copy.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CopiedTable {
    pub name: String,
    /// Number of rows.
    pub rows: u64,
}

fn failed(error: Error, stop: &Stop) -> QueryError {
    match error.sqlite_error_code() {
        Some(ErrorCode::OperationInterrupted) => QueryError::Interrupted,
        _ if stop.is_found() => QueryError::Interrupted,
        _ => QueryError::Copy(error.to_string()),
    }
}

impl Database {
    /// Copies all tables into a new, empty file, including those that statements created. Calls
    /// `told` with the name of each table before copying it.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written or a table cannot be read. The partly
    /// written file stays.
    pub fn copy_to(
        &self,
        file: &Path,
        told: &mut dyn FnMut(&str),
    ) -> Result<Vec<CopiedTable>, QueryError> {
        let name = file
            .to_str()
            .ok_or_else(|| QueryError::Copy("the file name is not valid Unicode".to_owned()))?;
        let stop = self.begin_own();
        let attached = self.own(|sqlite| {
            self.declare()?;
            sqlite.execute("ATTACH ?1 AS copy", [name])?;
            // The file is not visible before it is complete, so nothing has to be rolled back in
            // it.
            sqlite.execute_batch(
                "PRAGMA copy.journal_mode = OFF; PRAGMA copy.synchronous = OFF; BEGIN",
            )
        });
        attached.map_err(|error| failed(error, stop))?;
        let copied = self.copy_tables(told, stop);
        let ended = self.own(|sqlite| {
            sqlite.execute_batch(match copied.is_ok() {
                true => "COMMIT; DETACH copy",
                false => "ROLLBACK; DETACH copy",
            })
        });
        let copied = copied?;
        ended.map_err(|error| failed(error, stop))?;
        self.copy_views(file).map_err(|error| failed(error, stop))?;
        Ok(copied)
    }

    fn copy_tables(
        &self,
        told: &mut dyn FnMut(&str),
        stop: &Stop,
    ) -> Result<Vec<CopiedTable>, QueryError> {
        let mut copied = Vec::new();
        for table in self.tables()? {
            if !matches!(table.sort, Sort::Table | Sort::Temporary) {
                continue;
            }
            if stop.is_requested() {
                return Err(QueryError::Interrupted);
            }
            told(&table.name);
            let rows = self.own(|sqlite| self.copy_table(sqlite, &table));
            copied.push(CopiedTable {
                rows: rows.map_err(|error| failed(error, stop))?,
                name: table.name,
            });
        }
        Ok(copied)
    }

    fn copy_table(&self, sqlite: &Connection, table: &TableInfo) -> Result<u64, Error> {
        let name = quoted(&table.name);
        let schema = self.schema_of(&table.name);
        let access = |column: &str| {
            let columns = schema.map_or(&[][..], |schema| schema.columns);
            columns.iter().find(|c| c.name == column).map(|c| c.access)
        };
        let shown = || table.columns.iter().filter(|column| !column.hidden);
        let columns: Vec<String> = shown()
            .map(|column| {
                let is_key = column.name == "id" && access("id") == Some(Access::Row);
                let key = if is_key { " PRIMARY KEY" } else { "" };
                format!("{} {}{key}", quoted(&column.name), column.kind)
            })
            .collect();
        let names: Vec<String> = shown().map(|column| quoted(&column.name)).collect();
        sqlite.execute_batch(&format!(
            "CREATE TABLE copy.{name} ({})",
            columns.join(", ")
        ))?;
        let names = names.join(", ");
        let rows = sqlite.execute(
            &format!("INSERT INTO copy.{name} SELECT {names} FROM {name}"),
            [],
        )?;
        for column in shown() {
            let is_found = matches!(
                access(&column.name),
                Some(Access::Indexed | Access::Sorted | Access::Own)
            );
            if is_found {
                let index = quoted(&format!("{}_{}", table.name, column.name));
                let column = quoted(&column.name);
                sqlite.execute_batch(&format!("CREATE INDEX copy.{index} ON {name} ({column})"))?;
            }
        }
        Ok(rows as u64)
    }

    /// Copies the views that need nothing specific to this database, such as its functions.
    fn copy_views(&self, file: &Path) -> Result<(), Error> {
        let plain = Connection::open(file)?;
        for (name, sql) in self.views()? {
            let name = quoted(name);
            plain.execute_batch(&format!("CREATE VIEW {name} AS {sql}"))?;
            let works = plain.prepare(&format!("SELECT * FROM {name}")).is_ok();
            if !works {
                plain.execute_batch(&format!("DROP VIEW {name}"))?;
            }
        }
        plain.close().map_err(|(_, error)| error)
    }
}
