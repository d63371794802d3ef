//! The flags of `heaptap query`.

use super::run::QueryOptions;
use crate::flags::java::{JavaArgs, Sizes};
use crate::flags::names::existing;
use crate::flags::native::NativeArgs;
use crate::heap_graph::Follow;
use crate::query::Limits;
use crate::units::{ByteSize, parse_duration};
use clap::ValueHint;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;
/// Flags of `query`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    heaptap query rec                                    a prompt; .help there says more\n  \
    heaptap query trace \"SELECT * FROM heaptap_dump\"     the dumps of a trace\n  \
    heaptap query rec -f growth.sql --csv > growth.csv\n  \
    heaptap query dump.hprof --to dump.sqlite            a database for other tools\n\n\
    Tables are Perfetto's and some of our own: docs/query.md lists them.")]
pub struct Args {
    /// A recording's folder, a trace, a pprof or an HPROF; `-` is standard input
    #[arg(value_name = "INPUT", value_hint = ValueHint::AnyPath)]
    pub input: OsString,
    /// Statements, separated by semicolons [default: a prompt, or standard input]
    #[arg(value_name = "SQL")]
    pub sql: Option<String>,
    /// Statements out of a file; `-` is standard input
    #[arg(short, long, value_name = "FILE", conflicts_with = "sql", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
    /// Comma-separated values on stdout
    #[arg(long, conflicts_with_all = ["json", "json_lines"])]
    pub csv: bool,
    /// Write all tables into a new SQLite database, after the statements if there are any
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub to: Option<PathBuf>,
    /// End a statement that runs longer [default: no limit]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// What SQLite may hold in memory
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = ByteSize::parse)]
    pub memory: ByteSize,
    /// Only dumps of this process: a name (with *), or a process id
    #[arg(long, value_name = "NAME|PID")]
    pub process: Option<String>,
    /// Only this native heap
    #[arg(long, value_name = "HEAP")]
    pub heap: Option<String>,
    /// Mapping file of R8 or ProGuard for Java names; may be repeated
    #[arg(long = "mapping", value_name = "[PACKAGE=]FILE", value_hint = ValueHint::FilePath)]
    pub mappings: Vec<OsString>,
    /// Look for symbols here: folders, libraries, ZIPs, APKs; may be repeated
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath, value_parser = existing())]
    pub symbols: Vec<PathBuf>,
    /// How shallow sizes of an HPROF come about [default: hotspot or dump, as it was written]
    #[arg(long, value_name = "MODEL", value_enum)]
    pub sizes: Option<Sizes>,
}

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text, Duration::from_millis(1)).map_err(|error| error.to_string())
}

impl Args {
    pub(super) fn options(&self) -> QueryOptions {
        let java = JavaArgs {
            process: self.process.clone(),
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
