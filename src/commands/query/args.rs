//! The flags of `heaptap query`.

use super::run::QueryOptions;
use crate::console::flags::heap::HeapArgs;
use crate::console::flags::java::{JavaArgs, Sizes};
use crate::console::flags::names::existing;
use crate::console::flags::native::NativeArgs;
use crate::console::flags::target::TargetArgs;
use crate::console::flags::time::positive_time;
use clap::ValueHint;
use clap::builder::{OsStringValueParser, TypedValueParser};
use heaptap_base::units::ByteSize;
use heaptap_model::heap_graph::Follow;
use heaptap_query::Limits;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Flags of `query`.
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Examples:\n  \
    heaptap query rec                            a prompt\n  \
    heaptap query trace \"SELECT * FROM heaptap_dump\"\n  \
    heaptap query rec --file growth.sql --csv > growth.csv\n  \
    heaptap query dump.hprof -o dump.sqlite      for other tools",
    after_long_help = "Tables are Perfetto's and some of our own: docs/reference/sql.md lists them."
)]
pub struct Args {
    /// A recording's directory, a trace, a pprof or an HPROF; - for stdin
    #[arg(value_name = "INPUT", value_hint = ValueHint::AnyPath)]
    pub input: OsString,
    /// SQL statements, separated by semicolons [default: a prompt, or stdin]
    #[arg(value_name = "SQL")]
    pub sql: Option<String>,
    /// File with SQL statements; - for stdin
    #[arg(long, value_name = "FILE", conflicts_with = "sql", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
    /// Print comma-separated values to stdout
    #[arg(long, conflicts_with_all = ["json", "json_lines"])]
    pub csv: bool,
    /// Database to write: a new SQLite file (.sqlite, .db) with all tables
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, value_parser = database_file())]
    pub output: Option<PathBuf>,
    /// Overwrite existing files
    #[arg(long, hide_short_help = true, requires = "output")]
    pub force: bool,
    /// Give up after this time [default: no limit]
    #[arg(long, value_name = "TIME", value_parser = positive_time)]
    pub timeout: Option<Duration>,
    /// Memory limit of SQLite
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = ByteSize::parse)]
    pub memory: ByteSize,
    /// R8 mapping file; may be repeated
    #[arg(long = "mapping", value_name = "FILE", value_hint = ValueHint::FilePath, hide_short_help = true)]
    pub mappings: Vec<OsString>,
    /// Places of symbols; may be repeated
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath, value_parser = existing(), hide_short_help = true)]
    pub symbols: Vec<PathBuf>,
    /// Model of shallow sizes in an HPROF [default: dump; of Java SE: hotspot]
    #[arg(long, value_name = "MODEL", value_enum, hide_short_help = true)]
    pub sizes: Option<Sizes>,
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub heap: HeapArgs,
}

/// Parses the name of a database, and refuses one that looks like a file of rows.
fn database_file() -> impl TypedValueParser<Value = PathBuf> {
    const OF_ROWS: [&str; 6] = ["csv", "tsv", "json", "jsonl", "txt", "html"];
    OsStringValueParser::new().try_map(|given| {
        let path = PathBuf::from(given);
        let ending = path.extension().unwrap_or_default().to_ascii_lowercase();
        match OF_ROWS.iter().any(|of_rows| *of_rows == ending) {
            true => Err("it would be an SQLite database; for rows, use `--csv > FILE`"),
            false => Ok(path),
        }
    })
}

impl Args {
    pub(super) fn options(&self) -> QueryOptions {
        let java = JavaArgs {
            target: self.target.clone(),
            mappings: self.mappings.clone(),
            sizes: self.sizes,
            ..JavaArgs::default()
        };
        let native = NativeArgs {
            heap: self.heap.clone(),
            symbols: self.symbols.clone(),
            ..NativeArgs::default()
        };
        QueryOptions {
            look: native.options(&java),
            java: java.options(Follow::default()),
            limits: Limits {
                time: self.timeout,
                memory_bytes: self.memory.0,
            },
        }
    }
}
