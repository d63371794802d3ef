//! The flags of `heaptap record`.

use crate::flags::capture::{CaptureArgs, TargetArgs, milliseconds};
use crate::flags::names::NamesArgs;
use crate::flags::no_report::NoReportArgs;
use crate::flags::sample_names::SampleNamesArg;
use crate::recording::companion_options::Source;
use std::path::PathBuf;
use std::time::Duration;

/// Flags of `record`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    heaptap record -n com.example.app                         until Ctrl-C; `s` takes a snapshot\n  \
    heaptap record -n com.example.app -d 30s -o out           30 seconds into out/\n  \
    heaptap record -n com.example.app --launch --no-running   from the first allocation on\n  \
    heaptap record -n com.example.app --java-allocations      who allocates Java objects\n  \
    heaptap record -n com.example.app --with meminfo,gc,java  and what else its memory does")]
pub struct Args {
    /// Which processes.
    #[command(flatten)]
    pub target: TargetArgs,
    /// What to record.
    #[command(flatten)]
    pub capture: CaptureArgs,
    /// What to record beside it: java,meminfo,smaps,gc or all
    ///
    /// meminfo: samples of the process's memory all along, and the whole of dumpsys meminfo at
    /// each label. gc: garbage collections. java: a Java heap graph at each label. smaps: the
    /// mappings at each label. All on one clock, in the same folder; docs/beside.md tells what
    /// each costs.
    #[arg(
        long,
        value_name = "WHAT",
        value_enum,
        value_delimiter = ',',
        hide_possible_values = true,
        help_heading = "What to record"
    )]
    pub with: Vec<WithArg>,
    /// The folder to write to; must be empty or new [default: heaptap-TARGET-TIME-SESSION]
    #[arg(short, long, value_name = "DIR", value_hint = clap::ValueHint::DirPath, help_heading = "How to record")]
    pub output: Option<PathBuf>,
    /// Names of the sample types
    #[arg(
        long,
        value_name = "WHOSE",
        value_enum,
        default_value_t,
        help_heading = "How to record"
    )]
    pub sample_names: SampleNamesArg,
    /// Record even where the target does not look eligible
    #[arg(long, help_heading = "How to record")]
    pub force: bool,
    /// Force-stop the app, and start it once the recording is armed
    #[arg(long, help_heading = "How to record")]
    pub launch: bool,
    /// Period of the dumps for labels on builds that cannot dump on request [default: 2s to 10s]
    ///
    /// The shell of a production build cannot signal heapprofd, so heapprofd dumps at a period
    /// and a label takes the next dump. Without this flag the period is 5 s, 10 s with --detach,
    /// and a sixtieth of --duration, but at least 2 s and at most 10 s. --continuous-dump takes
    /// its place. The flag without a value means 2s. Builds that can dump on request ignore it.
    #[arg(
        long,
        value_name = "PERIOD",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "2s",
        value_parser = milliseconds,
        help_heading = "How to record"
    )]
    pub snapshots: Option<Duration>,
    /// Make no dumps for labels on builds that cannot dump on request
    #[arg(long, conflicts_with = "snapshots", help_heading = "How to record")]
    pub no_snapshots: bool,
    /// Start and return; `heaptap status`, `stop` and `collect` go on from there
    #[arg(long, help_heading = "How to record")]
    pub detach: bool,
    /// Where the buffer overran, record again with a longer interval
    #[arg(long, help_heading = "How to record")]
    pub retry_overrun: bool,
    /// Switch SELinux to permissive while recording (needs root; undone afterwards)
    #[arg(long, help_heading = "How to record")]
    pub disable_selinux: bool,
    /// Whether a page is left.
    #[command(flatten, next_help_heading = "How to record")]
    pub leave: NoReportArgs,
    /// Where names come from.
    #[command(flatten)]
    pub names: NamesArgs,
}

/// A word of `--with`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum WithArg {
    /// A Java heap graph at each label.
    Java,
    /// How the memory divides.
    Meminfo,
    /// Mappings at each label.
    Smaps,
    /// Garbage collections.
    Gc,
    /// All of them.
    All,
}

impl WithArg {
    pub(super) fn sources(self) -> Vec<Source> {
        match self {
            WithArg::Java => vec![Source::Java],
            WithArg::Meminfo => vec![Source::Meminfo],
            WithArg::Smaps => vec![Source::Smaps],
            WithArg::Gc => vec![Source::Gc],
            WithArg::All => Source::ASKED.to_vec(),
        }
    }
}
