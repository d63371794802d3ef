//! The flags of `heaptap top`.

use super::run as native_top;
use super::run::java::{Grouping, Order};
use crate::analyze::native::groups::RowKey;
use crate::flags::filter::FilterArgs;
use crate::flags::java::JavaArgs;
use crate::flags::native::NativeArgs;
use crate::flags::pattern::pattern;
use crate::flags::stack::StackArgs;
use crate::units::ByteSize;
use clap::ValueEnum;
use regex::Regex;
use std::ffi::OsString;

/// Flags of `top`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    heaptap top rec                                functions by what they hold, of the last dump\n  \
    heaptap top rec@after-login --by library       a labelled dump of a recording\n  \
    heaptap top rec --by callsite --focus Cache    stacks that pass a cache\n  \
    heaptap top rec --tree                         from the root down\n  \
    heaptap top rec --tree --invert                from what allocates up to its callers\n  \
    heaptap top rec --view alloc_space             all that was allocated, freed or not\n  \
    heaptap top dump.hprof                         a Java heap: its largest objects and classes\n  \
    heaptap top dump.hprof --by object --class Activity\n  \
    heaptap top dump.hprof --tree --depth 4        who dominates whom\n\n\
    docs/native-tables.md says what figures, filters and JSON mean.")]
pub struct Args {
    /// A recording's folder, a trace, a pprof or an HPROF; PATH@LABEL, PATH@N or PATH@last for
    /// one dump
    #[arg(value_name = "INPUT")]
    pub input: OsString,
    /// What a row stands for [default: function; of Java: objects, then classes]
    #[arg(long, value_name = "WHAT", value_enum)]
    pub by: Option<ByArg>,
    /// What rows are ordered by
    #[arg(long, value_name = "FIGURE", value_enum)]
    pub sort: Option<SortArg>,
    /// At most so many rows; 0 is all [default: what fits a page; all in JSON and CSV, 1000 of
    /// callsites and objects]
    #[arg(short = 'n', long, value_name = "N")]
    pub limit: Option<usize>,
    /// Which stacks or objects count.
    #[command(flatten)]
    pub filter: FilterArgs,
    /// What is shown of stacks.
    #[command(flatten)]
    pub stacks: StackArgs,
    /// Which figure: space, alloc_space, objects, alloc_objects [default: space]
    ///
    /// Bytes held, bytes allocated since profiling began, and the sampled allocations behind
    /// them; of a pprof of another tool also one of its sample types.
    #[arg(long, value_name = "VIEW")]
    pub view: Option<String>,
    /// Callstacks as a tree from the root; of Java: the dominator tree, merged by class
    #[arg(long)]
    pub tree: bool,
    /// With --tree: from the allocating function up to its callers
    #[arg(long, requires = "tree")]
    pub invert: bool,
    /// With --tree: so many levels [default: 60; 8 with --invert; 6 of Java]
    #[arg(long, value_name = "N", requires = "tree")]
    pub depth: Option<usize>,
    /// With --tree: nodes of at least this [default: 0.5 % of what is shown; 1 % of Java]
    #[arg(long, value_name = "SIZE", requires = "tree", value_parser = ByteSize::parse)]
    pub min: Option<ByteSize>,
    /// Comma-separated values on stdout
    #[arg(long, conflicts_with_all = ["json", "json_lines"])]
    pub csv: bool,
    /// Which heap is meant.
    #[command(flatten)]
    pub native: NativeArgs,
    /// How the heap is looked at.
    #[command(flatten)]
    pub java: JavaArgs,
    /// Only what no root reaches: garbage that was not yet collected
    #[arg(
        long, help_heading = "Java heaps", conflicts_with_all = ["all", "tree"]
    )]
    pub unreachable: bool,
    /// What roots reach and what they do not
    #[arg(long, help_heading = "Java heaps", conflicts_with = "tree")]
    pub all: bool,
    /// Single objects of the classes that match; short for --by object --class REGEX
    #[arg(
        long, help_heading = "Java heaps", value_name = "REGEX",
        conflicts_with_all = ["by", "tree"], value_parser = pattern
    )]
    pub objects: Vec<Regex>,
    /// With --by object: also objects that retain the same as the one that dominates them
    #[arg(long, help_heading = "Java heaps")]
    pub every_object: bool,
    /// Tell apart where objects were allocated, by stack and thread, where the HPROF has that
    #[arg(long, help_heading = "Java heaps", conflicts_with = "tree")]
    pub alloc_site: bool,
    /// Count and add up sizes, no more: all objects of an HPROF, reachable or not
    #[arg(
        long, help_heading = "Java heaps",
        conflicts_with_all = ["tree", "objects", "unreachable", "alloc_site"]
    )]
    pub no_retained: bool,
}

/// What a row stands for.
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
    /// Native: a thread, where they are told apart: tracked Java allocations
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
        Some(match self {
            ByArg::Class => Grouping::Class,
            ByArg::Package => Grouping::Package,
            ByArg::Superclass => Grouping::Superclass,
            ByArg::Object => Grouping::Object,
            ByArg::Heap => Grouping::Heap,
            ByArg::Loader => Grouping::Loader,
            ByArg::Root => Grouping::Root,
            ByArg::Callsite
            | ByArg::Function
            | ByArg::Library
            | ByArg::File
            | ByArg::Line
            | ByArg::Thread => {
                return None;
            }
        })
    }

    pub(super) fn of_native(self) -> Option<RowKey> {
        Some(match self {
            ByArg::Callsite => RowKey::Callsite,
            ByArg::Function => RowKey::Function,
            ByArg::Library => RowKey::Library,
            ByArg::File => RowKey::File,
            ByArg::Line => RowKey::Line,
            ByArg::Class => RowKey::Class,
            ByArg::Package => RowKey::Package,
            ByArg::Thread => RowKey::Thread,
            ByArg::Superclass | ByArg::Object | ByArg::Heap | ByArg::Loader | ByArg::Root => {
                return None;
            }
        })
    }
}

/// What rows are ordered by.
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
    /// Java: what would be free without them, native bytes too
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
        Some(match self {
            SortArg::Retained => Order::Retained,
            SortArg::Shallow => Order::Shallow,
            SortArg::Native => Order::Native,
            SortArg::Count => Order::Count,
            SortArg::Name => Order::Name,
            SortArg::Own | SortArg::Cumulative => return None,
        })
    }

    pub(super) fn of_native(self) -> Option<native_top::Order> {
        Some(match self {
            SortArg::Own => native_top::Order::Own,
            SortArg::Cumulative => native_top::Order::Cumulative,
            SortArg::Name => native_top::Order::Name,
            SortArg::Retained | SortArg::Shallow | SortArg::Native | SortArg::Count => return None,
        })
    }
}
