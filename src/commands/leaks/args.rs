//! The flags of `heaptap leaks`.

use crate::console::flags::conflicts::first_given;
use crate::console::flags::focus_ignore::FilterArgs;
use crate::console::flags::iterations::iteration_count;
use crate::console::flags::java::JavaArgs;
use crate::console::flags::limit::LimitArgs;
use crate::console::flags::native::NativeArgs;
use crate::console::flags::stack::StackArgs;
use heaptap_base::units::ByteSize;
use std::ffi::OsString;

/// Flags of `leaks`.
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Examples:\n  \
    heaptap leaks rec                      what grows from label to label\n  \
    heaptap leaks dump.hprof               leaked activities … and waste\n  \
    heaptap leaks a.pb.gz b.pb.gz c.pb.gz  pprofs of any tool, oldest first\n  \
    heaptap leaks rec --fail               in CI: exits with 9 if it leaks\n  \
    heaptap leaks rec@3 rec@5 rec@7        single dumps of one process\n  \
    heaptap leaks rec --heap java          the Java heaps of a recording",
    after_long_help = "docs/guide/native-leak.md and java-leak.md explain the results, docs/internals/analysis.md the rules and the confidence."
)]
pub struct Args {
    /// Recordings, traces, pprofs or HPROFs of one process, oldest first
    ///
    /// INPUT@LABEL, INPUT@N or INPUT@last chooses one dump. Without it, a recording stands for its
    /// labeled dumps (of Java heaps, also its newest one), or for all dumps if fewer than three (of
    /// Java heaps, two) have a label. Native heaps need two dumps, but a single iteration does not confirm a leak. Java heaps need
    /// one dump.
    #[arg(value_name = "INPUT", required_unless_present_any = ["names", "pids", "packages"])]
    pub inputs: Vec<OsString>,
    /// Exit with code 9 if a leak is confirmed, 12 if inconclusive
    ///
    /// The result is also inconclusive if a named filter, process, heap or dump matches nothing. In a
    /// Java heap, confirmed and likely leaks of app objects count; possible leaks and known leaks of
    /// Android, its manufacturer and libraries do not.
    #[arg(long)]
    pub fail: bool,
    /// Like --fail, and known leaks of Android and libraries count
    #[arg(long)]
    pub fail_known: bool,
    /// Iterations from each dump to the next
    ///
    /// heaptap reports growth per iteration of the scenario. In Java heaps it ignores growth by fewer
    /// than N objects from dump to dump. `diff --rounds` takes the total between its two dumps
    /// instead.
    #[arg(long, value_name = "N", value_parser = iteration_count, default_value_t = 1)]
    pub rounds: u64,
    #[command(flatten)]
    pub rows: LimitArgs,
    #[command(flatten)]
    pub filter: FilterArgs,
    #[command(flatten)]
    pub growth: GrowthArgs,
    #[command(flatten)]
    pub stacks: StackArgs,
    #[command(flatten)]
    pub native: NativeArgs,
    /// Report only leaks, or only waste
    #[arg(
        long,
        value_name = "WHAT",
        value_enum,
        help_heading = "Java heaps",
        hide_short_help = true
    )]
    pub only: Option<OnlyArg>,
    #[command(flatten)]
    pub java: JavaArgs,
}

/// Check of growth of native heaps.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "Native heaps")]
pub struct GrowthArgs {
    /// Tolerated growth per iteration [default: 4 KiB]
    #[arg(long, value_name = "SIZE", value_parser = ByteSize::parse)]
    pub tolerance: Option<ByteSize>,
    /// Number of first dumps to skip [default: 1 of six or more]
    #[arg(long, value_name = "N", hide_short_help = true)]
    pub warmup: Option<usize>,
    /// Sampling interval; only for pprofs that lack it (1: not sampled)
    #[arg(long, value_name = "SIZE", value_parser = ByteSize::parse, hide_short_help = true)]
    pub interval: Option<ByteSize>,
}

impl GrowthArgs {
    /// Returns the first of these flags that was given.
    pub(super) fn given(&self) -> Option<&'static str> {
        let flags = [
            (self.tolerance.is_some(), "--tolerance"),
            (self.warmup.is_some(), "--warmup"),
            (self.interval.is_some(), "--interval"),
        ];
        first_given(flags)
    }
}

/// Selected analysis.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum OnlyArg {
    /// Objects that should be gone, and growth
    Leaks,
    /// Memory that holds what is already there, or nothing
    Waste,
}
