//! The flags of `heaptap diff`.

use crate::analyze::native::groups::RowKey;
use crate::flags::filter::FilterArgs;
use crate::flags::iterations::iterations;
use crate::flags::java::JavaArgs;
use crate::flags::native::NativeArgs;
use crate::flags::stack::StackArgs;
use crate::units::ByteSize;
use clap::{ValueEnum, ValueHint};
use std::ffi::OsString;
use std::path::PathBuf;

/// Flags of `diff`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    heaptap diff rec@before rec@after               what grew between two dumps of a recording\n  \
    heaptap diff old new --by library               between two recordings, joined by name\n  \
    heaptap diff rec@1 rec@last --per 20            by iteration, of 20 in between\n  \
    heaptap diff old new --fail-over 2MiB           in CI: ends with 9 where it surely grew by more\n  \
    heaptap diff old new -o grown.html              a page: flame graph of what grew\n  \
    heaptap diff old new --pprof grown.pb.gz        for go tool pprof\n  \
    heaptap diff before.hprof after.hprof           two Java heaps\n  \
    heaptap diff rec@before rec@after --by path     where in the dominator tree it grew\n  \
    heaptap diff before.smaps after.smaps           memory mappings: files, or recordings with --smaps\n  \
    heaptap diff before.txt after.txt               two texts of dumpsys meminfo, row by row\n  \
    heaptap diff old.hprof rec@last --mapping-before old/mapping.txt --mapping-after mapping.txt\n\n\
    docs/native-tables.md says how dumps are paired, what is certain, and what JSON means.")]
pub struct Args {
    /// The first dump: a recording's folder, a trace, a pprof, an HPROF or smaps, PATH@LABEL,
    /// PATH@N, PATH@last
    #[arg(value_name = "A")]
    pub before: OsString,
    /// The second, of the same or another kind of file, run or build
    #[arg(value_name = "B")]
    pub after: OsString,
    /// What a row stands for [default: function; of Java all three that it has]
    #[arg(long, value_name = "WHAT", value_enum)]
    pub by: Option<ByArg>,
    /// At most so many rows of each table; 0 is all [default: what fits a page; all in JSON and
    /// CSV, 1000 of callsites]
    #[arg(short = 'n', long, value_name = "N")]
    pub limit: Option<usize>,
    /// Which stacks or objects count.
    #[command(flatten)]
    pub filter: FilterArgs,
    /// What is shown of stacks.
    #[command(flatten)]
    pub stacks: StackArgs,
    /// Growth of what is held, or of all that was allocated [default: space]
    #[arg(long, value_name = "VIEW", value_enum)]
    pub view: Option<ViewArg>,
    /// What rows are ordered by [default: self]
    #[arg(long, value_name = "FIGURE", value_enum)]
    pub sort: Option<SortArg>,
    /// Divide growth by N iterations; N,M where the two sides had a different number
    #[arg(long, value_name = "N[,M]", value_parser = iterations, conflicts_with = "per_second")]
    pub per: Option<[f64; 2]>,
    /// Divide growth by the seconds between two dumps of a run; of two runs each side by its own
    #[arg(long)]
    pub per_second: bool,
    /// All rows too that sampling explains, not the first few
    #[arg(long)]
    pub noise: bool,
    /// Exit with code 9 if growth (of what matches) exceeds SIZE, 12 if inconclusive
    ///
    /// With --per or --per-second the limit is for an iteration or a second. It is inconclusive if
    /// the sampling error leaves it open, or if a filter, process, heap or dump that is named
    /// matches nothing.
    #[arg(long, value_name = "SIZE", value_parser = ByteSize::parse)]
    pub fail_over: Option<ByteSize>,
    /// Write the difference as gzipped pprof, as go tool pprof -diff_base makes it
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub pprof: Option<PathBuf>,
    /// Write a page that shows the difference, as report --base does
    #[arg(short, long, value_name = "FILE.html", value_hint = ValueHint::FilePath)]
    pub output: Option<PathBuf>,
    /// Overwrite files that are there
    #[arg(long)]
    pub force: bool,
    /// Comma-separated values on stdout
    #[arg(long, conflicts_with_all = ["json", "json_lines"])]
    pub csv: bool,
    /// Mapping file for the first dump alone; may be repeated
    #[arg(long, value_name = "[PACKAGE=]FILE", value_hint = ValueHint::FilePath)]
    pub mapping_before: Vec<OsString>,
    /// Mapping file for the second dump alone; may be repeated
    #[arg(long, value_name = "[PACKAGE=]FILE", value_hint = ValueHint::FilePath)]
    pub mapping_after: Vec<OsString>,
    /// Which heap is meant.
    #[command(flatten)]
    pub native: NativeArgs,
    /// How the heaps are looked at.
    #[command(flatten)]
    pub java: JavaArgs,
    /// Compare memory mappings, of recordings that hold them; files of smaps are known for it
    #[arg(long, help_heading = "Which heap")]
    pub smaps: bool,
    /// Classes that did not change too
    #[arg(long, help_heading = "Java heaps")]
    pub unchanged: bool,
    /// Levels of the dominator tree [default: 8]
    #[arg(long, help_heading = "Java heaps", value_name = "N")]
    pub depth: Option<usize>,
    /// Nodes of the dominator tree that changed by at least this [default: 0.1 % of the heap]
    #[arg(long, help_heading = "Java heaps", value_name = "SIZE", value_parser = ByteSize::parse)]
    pub min: Option<ByteSize>,
}

/// What is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ByArg {
    /// Native: stacks
    Callsite,
    /// Native: functions
    Function,
    /// Native: libraries
    Library,
    /// Native: source files
    File,
    /// Native: lines of source files
    Line,
    /// Classes; native: classes or scopes of functions
    Class,
    /// Native: packages of these
    Package,
    /// Java: places in the dominator tree, merged by class
    #[value(alias = "dominator")]
    Path,
    /// Mappings: rows of meminfo
    Kind,
    /// Mappings: each, those that differ in their address alone as one
    Mapping,
    /// Java: objects that should be gone, by what holds them
    #[value(alias = "suspect")]
    Leak,
}

impl ByArg {
    pub(super) fn of_native(self) -> Option<RowKey> {
        Some(match self {
            ByArg::Callsite => RowKey::Callsite,
            ByArg::Function => RowKey::Function,
            ByArg::Library => RowKey::Library,
            ByArg::File => RowKey::File,
            ByArg::Line => RowKey::Line,
            ByArg::Class => RowKey::Class,
            ByArg::Package => RowKey::Package,
            ByArg::Path | ByArg::Leak | ByArg::Kind | ByArg::Mapping => return None,
        })
    }

    pub(super) fn is_of_java(self) -> bool {
        matches!(self, ByArg::Class | ByArg::Path | ByArg::Leak)
    }
}

/// Whose growth it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ViewArg {
    /// Bytes held
    Space,
    /// Bytes allocated since profiling began
    #[value(name = "alloc_space")]
    AllocSpace,
}

/// What rows are ordered by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SortArg {
    /// Growth of stacks that end there
    #[value(name = "self")]
    Own,
    /// Growth of stacks that pass there
    #[value(alias = "cum")]
    Cumulative,
    /// Names
    Name,
}
