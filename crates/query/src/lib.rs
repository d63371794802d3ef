//! SQL over heap profiles: tables and columns of Perfetto's trace processor, and heaptap's own
//! views, as virtual tables of an embedded SQLite. The crate opens no files; the caller fills a
//! [`Catalog`] with the heaps that it has read.
//!
//! # The method
//!
//! A [`Catalog`] lists tables, views and macros. [`Database::open`] registers each table with
//! SQLite; its rows are computed when a statement first needs them. SQLite cannot index virtual
//! tables, so [`Access`] declares the columns by which rows are found directly. A prepass turns
//! PerfettoSQL (`INCLUDE PERFETTO MODULE`, `CREATE PERFETTO TABLE`, macros) into SQL. Statements
//! can read, and create temporary tables; they cannot open files or load extensions. [`Limits`]
//! bounds their time and memory.
//!
//! # A worked example
//!
//! A database of one process and no heap:
//!
//! ```
//! use heaptap_query::{Catalog, Database, Processes, Sink, Value, processes};
//! use std::{ops::ControlFlow, sync::Arc};
//!
//! struct Names(Vec<String>);
//! impl Sink for Names {
//!     fn columns(&mut self, _: &[&str]) -> ControlFlow<()> { ControlFlow::Continue(()) }
//!     fn row(&mut self, row: &[Value<'_>]) -> ControlFlow<()> {
//!         if let Value::Text(name) = row[0] {
//!             self.0.push(String::from_utf8_lossy(name).into_owned());
//!         }
//!         ControlFlow::Continue(())
//!     }
//!     fn end(&mut self) -> ControlFlow<()> { ControlFlow::Continue(()) }
//! }
//!
//! let mut known = Processes::default();
//! known.enter_named(4355, "com.example.app");
//! let mut catalog = Catalog::default();
//! processes::add(&mut catalog, &Arc::new(known));
//! let mut names = Names(Vec::new());
//! let _ = Database::open(catalog)?.run("SELECT name FROM process WHERE pid = 4355", &mut names)?;
//! assert_eq!(names.0, ["com.example.app"]);
//! # Ok::<(), heaptap_query::QueryError>(())
//! ```
//!
//! # Modules
//!
//! | module | owns |
//! |---|---|
//! | [`native`] | tables of native heaps |
//! | [`stacks`] | heaptap's own tables over native heaps |
//! | [`java`] | tables of Java heaps |
//! | [`flamegraph`] | `experimental_flamegraph`, over both |
//! | [`processes`] | processes and their `upid`s |
//! | [`system`] | packages, counters, facts about the recording |
//! | [`unread`] | tables of Perfetto that are always empty |
//! | [`smaps`], [`memory`], `counters` | memory mappings of processes; memory over time, GCs, counters |
//! | [`modules`] | modules of Perfetto's library |
//! | [`prepass`] | PerfettoSQL's additions to SQL |
//! | `engine` | the database and the rights of statements |
//! | `table` | schema, rows and cells of a table; the catalog |
//! | `index` | rows by value, built when first needed |
//! | `once` | models behind tables: given, or read once |
//! | `stop` | the request to end a statement |
//! | `copy` | all tables as a database file |
//! | `error` | errors with their position in the text |
//! | `listing` | tables, views, functions and macros as listed for users |
//! | `functions` | functions that SQLite does not have |
//! | `vtab` | SQLite's plans over a table |

mod copy;
mod counters;
mod engine;
mod error;
pub mod flamegraph;
mod functions;
mod index;
pub mod java;
mod listing;
pub mod memory;
pub mod modules;
pub mod native;
mod once;
pub mod prepass;
pub mod processes;
pub mod smaps;
pub mod stacks;
mod stop;
pub mod system;
mod table;
pub mod unread;
mod vtab;

pub use copy::CopiedTable;
pub use engine::{Database, Interrupter, Limits, Sink, Value};
pub use error::{Place, QueryError};
pub use listing::{ColumnInfo, Sort, TableInfo};
pub use processes::{ProcessRow, Processes};
pub use stop::{Stop, Stopped};
pub use table::{
    Access, Argument, Build, Call, Catalog, Cell, Column, Kind, Rows, Schema, TableError, View,
};
