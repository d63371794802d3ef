//! The flags of `heaptap convert`.

use crate::console::flags::heap::HeapArgs;
use crate::console::flags::moment::MomentArgs;
use crate::console::flags::names::NamesArgs;
use crate::console::flags::sample_names::SampleNamesArg;
use crate::console::flags::target::TargetArgs;
use std::ffi::OsString;
use std::path::PathBuf;

/// Flags of `convert`.
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Examples:\n  \
    heaptap convert raw-trace -o profiles           gzipped pprofs\n  \
    heaptap convert rec@last -o last.pb.gz          one dump, one pprof\n  \
    heaptap convert rec -o rec.speedscope.json      for speedscope\n  \
    heaptap convert rec --format parquet -o tables  for DuckDB\n  \
    heaptap convert rec@last -o heap.hprof          a Java heap, for Eclipse MAT\n  \
    heaptap convert rec@last --format folded -o - | flamegraph.pl > flame.svg",
    after_long_help = "docs/reference/formats.md describes every format."
)]
pub struct Args {
    /// A recording's directory, a trace, a pprof or an HPROF; - for stdin
    ///
    /// Traces may be packed with gzip, zstd or xz, or lie in a ZIP or TAR. INPUT@MOMENT chooses one dump: INPUT@LABEL, INPUT@N, INPUT@last or INPUT@end.
    #[arg(value_name = "INPUT")]
    pub input: OsString,
    /// A new or empty directory; with other formats a file; - for stdout
    ///
    /// A file name that ends in .pb.gz takes the pprof of one dump. The default is heaptap-INPUT-TIME-ID for pprofs, and a file named after INPUT otherwise.
    /// Without --format, a name with another ending (z.htm, z.old) is an error; end the name of a
    /// directory with `/`.
    #[arg(short, long, value_name = "FILE|DIR")]
    pub output: Option<PathBuf>,
    /// Format; by default that of FILE's ending, or pprof
    ///
    /// svg is a flame graph. Flame graph viewers read folded and speedscope.
    #[arg(long, value_name = "FORMAT", value_enum)]
    pub format: Option<Format>,
    /// Measure: space, alloc_space, objects or alloc_objects
    #[arg(
        long = "view",
        value_name = "VIEW",
        value_delimiter = ',',
        hide_short_help = true
    )]
    pub views: Vec<String>,
    /// Overwrite existing files
    #[arg(long, hide_short_help = true)]
    pub force: bool,
    /// Only the dumps at these times, in ns of the trace
    #[arg(long, value_name = "NS", value_delimiter = ',', hide_short_help = true)]
    pub timestamps: Vec<u64>,
    /// Also write the dominator tree of Java heaps
    ///
    /// As a second pprof. In other formats it replaces the shortest paths.
    #[arg(long, hide_short_help = true)]
    pub dominators: bool,
    /// Omit Perfetto's marks of function names, such as [jit]
    #[arg(long, hide_short_help = true)]
    pub no_annotations: bool,
    /// Names of the sample types
    #[arg(
        long,
        value_name = "WHOSE",
        value_enum,
        default_value_t,
        hide_short_help = true
    )]
    pub sample_names: SampleNamesArg,
    #[command(flatten)]
    pub heap: HeapArgs,
    #[command(flatten)]
    pub moment: MomentArgs,
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub names: NamesArgs,
}

/// Output options.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, clap::ValueEnum)]
pub enum Format {
    /// Gzipped pprof, one file a dump
    #[default]
    Pprof,
    /// Folded stacks, one file a dump and view: flamegraph.pl, inferno
    Folded,
    /// speedscope, all dumps and views in one file
    Speedscope,
    /// All that is known, in one document
    Json,
    /// One table, a row a callsite and dump
    Csv,
    /// The page of `heaptap report`
    Html,
    /// A directory of tables: DuckDB, pandas
    #[cfg(feature = "parquet")]
    Parquet,
    /// A flame graph as a picture, one file a dump and view
    Svg,
    /// The graph of one Java heap: Eclipse MAT, VisualVM, Android Studio
    Hprof,
}
