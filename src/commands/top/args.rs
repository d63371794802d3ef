//! The flags of `heaptap top`.

use super::run as native_top;
use super::run::java::{Grouping, Order};
use crate::console::flags::focus_ignore::FilterArgs;
use crate::console::flags::java::JavaArgs;
use crate::console::flags::limit::LimitArgs;
use crate::console::flags::native::NativeArgs;
use crate::console::flags::stack::StackArgs;
use crate::console::flags::typed::of_same_name;
use clap::ValueEnum;
use heaptap_analyze::native::groups::RowKey;
use heaptap_base::units::ByteSize;
use std::ffi::OsString;

/// Flags of `top`.
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Examples:\n  \
    heaptap top rec                              functions at the last label\n  \
    heaptap top rec@after-login --by library     a labeled dump\n  \
    heaptap top rec --tree                       from the root down\n  \
    heaptap top dump.hprof                       largest objects and classes\n  \
    heaptap top rec --by callsite --focus Cache  stacks that pass a cache\n  \
    heaptap top rec --tree --invert              from allocations up to callers\n  \
    heaptap top rec --view alloc_space           all bytes, freed or not\n  \
    heaptap top dump.hprof --by object --focus Activity\n  \
    heaptap top dump.hprof --tree --depth 4      the dominator tree",
    after_long_help = "docs/guide/native-leak.md explains figures and filters, docs/reference/formats.md the JSON."
)]
pub struct Args {
    /// A recording's directory, a trace, a pprof or an HPROF
    ///
    /// INPUT@MOMENT chooses one dump: INPUT@LABEL, INPUT@N, INPUT@last or INPUT@end.
    #[arg(value_name = "INPUT", required_unless_present_any = ["names", "pids", "packages"])]
    pub typed: Option<OsString>,
    #[arg(skip)]
    pub input: OsString,
    /// Kind of rows
    ///
    /// The default is function; for Java heaps objects, then classes. `thread` shows the stack of each
    /// thread of an HPROF and what its frames hold.
    #[arg(long, value_name = "WHAT", value_enum)]
    pub by: Option<ByArg>,
    /// Order of rows
    #[arg(long, value_name = "FIGURE", value_enum)]
    pub sort: Option<SortArg>,
    #[command(flatten)]
    pub rows: LimitArgs,
    #[command(flatten)]
    pub filter: FilterArgs,
    #[command(flatten)]
    pub stacks: StackArgs,
    /// Measure: space, alloc_space, objects or alloc_objects
    ///
    /// The default is `space`: unreleased bytes. `alloc_space` is all bytes allocated since profiling
    /// began; `objects` and `alloc_objects` are the sampled allocations behind them. A pprof of another
    /// tool can have estimated counts, and also has its own measures.
    #[arg(long, value_name = "VIEW")]
    pub view: Option<String>,
    /// Callstacks as a tree; Java: the dominator tree, by class or package
    #[arg(long)]
    pub tree: bool,
    /// With --tree: from the allocating function up to its callers
    #[arg(long, requires = "tree")]
    pub invert: bool,
    /// Maximum number of levels [default: 60; 8 with --invert; Java: 6]
    #[arg(long, value_name = "N", requires = "tree", hide_short_help = true)]
    pub depth: Option<usize>,
    /// Minimum size of tree nodes [default: 0.5% of what is shown; Java: 1%]
    #[arg(long, value_name = "SIZE", requires = "tree", value_parser = ByteSize::parse, hide_short_help = true)]
    pub min: Option<ByteSize>,
    /// Print comma-separated values to stdout
    #[arg(long, conflicts_with_all = ["json", "json_lines"])]
    pub csv: bool,
    #[command(flatten)]
    pub native: NativeArgs,
    #[command(flatten)]
    pub java: JavaArgs,
    /// Objects that GC roots reach: yes, no or any [default: yes]
    #[arg(
        long,
        help_heading = "Java heaps",
        value_name = "WHICH",
        value_enum,
        hide_possible_values = true,
        conflicts_with = "tree",
        hide_short_help = true
    )]
    pub reachable: Option<ReachableArg>,
    /// With --by object: also objects that retain the same as their dominator
    #[arg(long, help_heading = "Java heaps", hide_short_help = true)]
    pub every_object: bool,
    /// Separate rows by allocation site, if the HPROF has them
    #[arg(
        long,
        help_heading = "Java heaps",
        conflicts_with = "tree",
        hide_short_help = true
    )]
    pub alloc_site: bool,
    /// Count all objects of an HPROF and add up sizes, without GC roots
    #[arg(
        long, help_heading = "Java heaps",
        conflicts_with_all = ["tree", "reachable", "alloc_site"], hide_short_help = true)]
    pub no_retained: bool,
}

/// Objects that count.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ReachableArg {
    /// Objects that GC roots reach.
    Yes,
    /// Objects that no GC root reaches.
    No,
    /// All objects.
    Any,
}

/// Meaning of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum ByArg {
    /// Native: a stack
    Callsite,
    /// Native: a function
    Function,
    /// Native: a library
    Library,
    /// Native: a source file
    File,
    /// Native: a line of a source file
    Line,
    /// A class; native: the class or scope of a function
    Class,
    /// A package; native: that of the class, or the scope around it
    Package,
    /// A thread of an HPROF: what its frames hold; native: of tracked Java allocations
    Thread,
    /// Java: a class with all that extend it
    Superclass,
    /// Java: a single object: the largest, with what holds them
    Object,
    /// Java: app, zygote, image: one of the runtime's heaps
    Heap,
    /// Java: a class loader
    Loader,
    /// Java: a kind of root, by the shortest path from one
    Root,
}

impl ByArg {
    pub(super) fn of_java(self) -> Option<Grouping> {
        of_same_name(self)
    }

    pub(super) fn of_native(self) -> Option<RowKey> {
        of_same_name(self)
    }
}

/// Order of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum SortArg {
    /// Native: of stacks that end there
    #[value(name = "self")]
    Own,
    /// Native: of stacks that pass there
    #[value(alias = "cum")]
    Cumulative,
    /// Names
    Name,
    /// Java: what would be free without them, native bytes too; of a group, at least
    Retained,
    /// Java: their own sizes
    Shallow,
    /// Java: native bytes they own
    Native,
    /// Java: how many they are
    Count,
}

impl SortArg {
    pub(super) fn of_java(self) -> Option<Order> {
        of_same_name(self)
    }

    pub(super) fn of_native(self) -> Option<native_top::Order> {
        of_same_name(self)
    }
}
