//! The flags of `heaptap leaks`.

use crate::flags::filter::FilterArgs;
use crate::flags::java::JavaArgs;
use crate::flags::native::NativeArgs;
use crate::flags::stack::StackArgs;
use crate::units::ByteSize;
use std::ffi::OsString;

/// Flags of `leaks`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    heaptap leaks rec                        what grows with every labelled snapshot of a recording\n  \
    heaptap leaks rec@3 rec@5 rec@7          single dumps of one process, the oldest first\n  \
    heaptap leaks a.pb.gz b.pb.gz c.pb.gz    pprofs of any tool\n  \
    heaptap leaks rec --fail --tolerance 64k in CI: ends with 9 where something surely leaks more\n  \
    heaptap leaks dump.hprof                 a Java heap: leaked activities, fragments … and waste\n  \
    heaptap leaks rec --java                 the Java heaps of a recording that has both\n\n\
    docs/leaks.md says what is told of native heaps and what each rule for Java heaps needs, \
    docs/sampling.md how sure it is.")]
pub struct Args {
    /// A recording's folder, a trace, a pprof or an HPROF; several of one process, oldest first
    ///
    /// PATH@LABEL, PATH@N or PATH@last name one dump; without it a recording stands for all its
    /// labelled dumps, else for all.
    #[arg(value_name = "INPUT", required = true)]
    pub inputs: Vec<OsString>,
    /// Exit with code 9 if a leak is confirmed, 12 if inconclusive
    ///
    /// It is inconclusive too if a filter, process, heap or dump that is named matches nothing.
    /// Of a Java heap: where an object of the app leaks, for certain or likely. What Android
    /// leaks itself does not count, nor what only may be a leak.
    #[arg(long)]
    pub fail: bool,
    /// How often the scenario was repeated between two dumps
    ///
    /// Growth is told by repetition. Of Java heaps growth by fewer objects is not told.
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub loops: u64,
    /// At most so many entries of each list; 0 is all [default: what fits a page; 100 in JSON]
    #[arg(short = 'n', long, value_name = "N")]
    pub limit: Option<usize>,
    /// What is looked at.
    #[command(flatten)]
    pub filter: FilterArgs,
    /// What of the flags is about native heaps.
    #[command(flatten)]
    pub growth: GrowthArgs,
    /// Which frames are shown.
    #[command(flatten)]
    pub stacks: StackArgs,
    /// Which heap is meant.
    #[command(flatten)]
    pub native: NativeArgs,
    /// Look for one of the two alone
    #[arg(long, value_name = "WHAT", value_enum, help_heading = "Java heaps")]
    pub only: Option<OnlyArg>,
    /// How the heap is looked at.
    #[command(flatten)]
    pub java: JavaArgs,
}

/// How growth of native heaps is judged.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Native heaps")]
pub struct GrowthArgs {
    /// Growth by repetition that nobody minds [default: 4 KiB]
    #[arg(long, value_name = "SIZE", value_parser = ByteSize::parse)]
    pub tolerance: Option<ByteSize>,
    /// Leave so many dumps out at the beginning [default: 1 of six or more]
    #[arg(long, value_name = "N")]
    pub warmup: Option<usize>,
    /// The sampling interval of pprofs that do not say theirs; 1 where nothing was sampled
    #[arg(long, value_name = "SIZE", value_parser = ByteSize::parse)]
    pub interval: Option<ByteSize>,
}

impl GrowthArgs {
    /// One of these flags that was given.
    pub(super) fn given(&self) -> Option<&'static str> {
        let flags = [
            (self.tolerance.is_some(), "--tolerance"),
            (self.warmup.is_some(), "--warmup"),
            (self.interval.is_some(), "--interval"),
        ];
        flags
            .into_iter()
            .find_map(|(given, flag)| given.then_some(flag))
    }
}

/// What to look for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum OnlyArg {
    /// Objects that should be gone, and growth
    Leaks,
    /// Memory that holds what is already there, or nothing
    Waste,
}
