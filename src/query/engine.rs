//! The database: SQLite in memory, with the tables and views of a catalog. Owns what statements
//! may do.

use rusqlite::Connection;

use super::table::Catalog;
use super::vtab;

/// A database of virtual tables.
pub struct Database {
    connection: Connection,
}

impl Database {
    /// Makes a database of a catalog. No table is read before it is asked for.
    ///
    /// # Errors
    /// Where SQLite refuses a table or view of ours: a mistake in the catalog.
    pub fn open(catalog: Catalog) -> Result<Database, rusqlite::Error> {
        let connection = Connection::open_in_memory()?;
        let views = catalog.views.clone();
        vtab::register(&connection, catalog)?;
        for view in views {
            let sql = format!("CREATE VIEW \"{}\" AS {}", view.name, view.sql);
            connection.execute_batch(&sql)?;
        }
        Ok(Database { connection })
    }

    /// SQLite itself.
    pub fn connection(&self) -> &Connection {
        &self.connection
    }
}
