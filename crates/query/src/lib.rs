//! SQL over profiles: Perfetto's tables and columns, and views of our own, as virtual tables of
//! an embedded SQLite. Knows neither files nor the terminal.
//!
//! | file | owns |
//! |---|---|
//! | `table` | what a table is: schema, rows, cells; the catalog of all |
//! | `index` | rows by value, built when first needed |
//! | `copy` | all tables as a database file |
//! | `error` | what can go wrong, and where in the text |
//! | `functions` | functions that SQLite lacks |
//! | `engine` | the database, and what statements may do |
//! | `processes` | processes and their `upid`s |
//! | `prepass` | what PerfettoSQL adds to SQL |
//! | `native` | tables of native heaps |
//! | `stacks` | tables of our own over native heaps |
//! | `system` | packages, counters, what is known of the recording |
//! | `java` | tables of Java heaps |
//! | `smaps` | mappings of processes |
//! | `memory` | counters of memory, memory over time, collections |
//! | `flamegraph` | `experimental_flamegraph`, over both |
//! | `modules` | modules of Perfetto's library |
//! | `vtab` | how SQLite plans over and walks through a table |

mod copy;
mod counters;
mod engine;
mod error;
pub mod flamegraph;
mod functions;
mod index;
pub mod java;
pub mod memory;
pub mod modules;
pub mod native;
pub mod prepass;
pub mod processes;
pub mod smaps;
pub mod stacks;
pub mod system;
mod table;
mod vtab;

pub use copy::CopiedTable;
pub use engine::{ColumnInfo, Database, Interrupter, Limits, Sink, Sort, TableInfo, Value};
pub use error::{Place, QueryError};
pub use processes::{ProcessRow, Processes};
pub use table::{
    Access, Argument, Build, Call, Catalog, Cell, Column, Kind, LibraryMacro, MacroCall, Rows,
    Schema, TableError, View, Work, WorkedMacro,
};
