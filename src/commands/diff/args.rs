//! The flags of `heaptap diff`.

use crate::console::flags::focus_ignore::FilterArgs;
use crate::console::flags::iterations::iterations;
use crate::console::flags::java::JavaArgs;
use crate::console::flags::limit::LimitArgs;
use crate::console::flags::native::NativeArgs;
use crate::console::flags::stack::StackArgs;
use crate::console::flags::typed::of_same_name;
use clap::builder::{PathBufValueParser, TypedValueParser};
use clap::{ValueEnum, ValueHint};
use heaptap_analyze::native::groups::RowKey;
use heaptap_base::units::ByteSize;
use std::ffi::OsString;
use std::path::PathBuf;

/// Flags of `diff`.
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Examples:\n  \
    heaptap diff rec                       its first and its last dump\n  \
    heaptap diff rec@before rec@after      two dumps of a recording\n  \
    heaptap diff old new --by library      two recordings, joined by name\n  \
    heaptap diff old new --fail-over 2MiB  in CI: exits with 9 if it grew more\n  \
    heaptap diff old new -o grown.html     a page; grown.pb.gz for go tool pprof\n  \
    heaptap diff rec@1 rec@last --rounds 20\n  \
    heaptap diff before.hprof after.hprof\n  \
    heaptap diff rec@before rec@after --by path\n  \
    heaptap diff before.smaps after.smaps\n  \
    heaptap diff before.txt after.txt      two texts of dumpsys meminfo\n  \
    heaptap diff old.hprof rec@last --mapping-before old.txt --mapping-after new.txt",
    after_long_help = "docs/internals/analysis.md explains which changes are confirmed, docs/reference/formats.md the JSON."
)]
pub struct Args {
    /// First dump: a recording, trace, pprof, HPROF, smaps or meminfo text
    ///
    /// A@MOMENT chooses one dump: A@LABEL, A@N, A@last or A@end.
    #[arg(value_name = "A")]
    pub before: OsString,
    /// Second dump, of the same or another run or build
    ///
    /// Without it, the first and the last dump of A are compared.
    #[arg(value_name = "B")]
    pub second: Option<OsString>,
    #[arg(skip)]
    pub after: OsString,
    /// Kind of rows
    ///
    /// The default is function; for Java heaps class, path and leak.
    #[arg(long, value_name = "WHAT", value_enum)]
    pub by: Option<ByArg>,
    #[command(flatten)]
    pub rows: LimitArgs,
    #[command(flatten)]
    pub filter: FilterArgs,
    #[command(flatten)]
    pub stacks: StackArgs,
    /// Measure: space or alloc_space
    #[arg(long, value_name = "VIEW", value_enum, hide_short_help = true)]
    pub view: Option<ViewArg>,
    /// Order of rows
    #[arg(long, value_name = "FIGURE", value_enum, hide_short_help = true)]
    pub sort: Option<SortArg>,
    /// Iterations between the two dumps, or of each recording
    ///
    /// heaptap divides growth by them. Between two dumps of a recording it is their total, whereas
    /// `leaks --rounds` takes the iterations from each dump to the next. N,M if two recordings
    /// differ.
    #[arg(long, value_name = "N[,M]", value_parser = iterations, conflicts_with = "per_second")]
    pub rounds: Option<[u64; 2]>,
    /// Divide growth by the seconds between two dumps
    #[arg(long, hide_short_help = true)]
    pub per_second: bool,
    /// Also show changes within the sampling error
    #[arg(long, hide_short_help = true)]
    pub noise: bool,
    /// Exit with code 9 if growth exceeds SIZE, 12 if inconclusive
    ///
    /// With --rounds or --per-second the limit is per iteration or second. With a filter on Java
    /// heaps it is for what the matching objects retain together. The result is inconclusive if the
    /// sampling error leaves it open, or if a named filter, process, heap or dump matches nothing.
    #[arg(long, value_name = "SIZE", value_parser = ByteSize::parse)]
    pub fail_over: Option<ByteSize>,
    /// File to write: a page (.html) or a pprof (.pb.gz)
    ///
    /// The page is that of `report --base`, the pprof that of `go tool pprof -diff_base`.
    #[arg(short, long, value_name = "FILE", value_hint = ValueHint::FilePath, value_parser = diff_output())]
    pub output: Option<DiffOutput>,
    /// Overwrite existing files
    #[arg(long, hide_short_help = true, requires = "output")]
    pub force: bool,
    /// Print comma-separated values to stdout
    #[arg(long, conflicts_with_all = ["json", "json_lines"])]
    pub csv: bool,
    /// R8 mapping file for A only; may be repeated
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, hide_short_help = true)]
    pub mapping_before: Vec<OsString>,
    /// R8 mapping file for B only; may be repeated
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, hide_short_help = true)]
    pub mapping_after: Vec<OsString>,
    #[command(flatten)]
    pub native: NativeArgs,
    #[command(flatten)]
    pub java: JavaArgs,
    /// Compare the memory mappings of recordings
    #[arg(long, help_heading = "Selection", hide_short_help = true)]
    pub smaps: bool,
    /// Also show classes that did not change
    #[arg(long, help_heading = "Java heaps", hide_short_help = true)]
    pub unchanged: bool,
    /// Maximum number of levels [default: 8]
    #[arg(
        long,
        help_heading = "Java heaps",
        value_name = "N",
        hide_short_help = true
    )]
    pub depth: Option<usize>,
    /// Minimum size of tree nodes [default: 0.1% of the heap]
    #[arg(long, help_heading = "Java heaps", value_name = "SIZE", value_parser = ByteSize::parse, hide_short_help = true)]
    pub min: Option<ByteSize>,
}

/// The file of `-o`, by its extension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DiffOutput {
    Page(PathBuf),
    /// A gzipped pprof.
    Profile(PathBuf),
}

/// Parses the file of `-o`.
fn diff_output() -> impl TypedValueParser<Value = DiffOutput> {
    PathBufValueParser::new().try_map(|path| {
        let name = path.to_string_lossy().to_ascii_lowercase();
        let ends = |endings: &[&str]| endings.iter().any(|ending| name.ends_with(ending));
        if ends(&[".html", ".htm"]) {
            Ok(DiffOutput::Page(path))
        } else if ends(&[".pb.gz", ".pprof"]) {
            Ok(DiffOutput::Profile(path))
        } else {
            Err("the name decides the format: end it with .html or .pb.gz".to_owned())
        }
    })
}

/// Compared items.
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
    /// Packages of these
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
        of_same_name(self)
    }

    pub(super) fn is_of_java(self) -> bool {
        matches!(
            self,
            ByArg::Class | ByArg::Package | ByArg::Path | ByArg::Leak
        )
    }
}

/// Measure of growth.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ViewArg {
    /// Unreleased bytes
    Space,
    /// Bytes allocated since profiling began
    #[value(name = "alloc_space")]
    AllocSpace,
}

/// Order of rows.
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

impl Args {
    /// The pprof file of `-o`.
    pub(super) fn profile(&self) -> Option<&PathBuf> {
        match &self.output {
            Some(DiffOutput::Profile(path)) => Some(path),
            Some(DiffOutput::Page(_)) | None => None,
        }
    }
}
