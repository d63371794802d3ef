//! The flags of `heaptap record`.

use crate::console::flags::capture::CaptureArgs;
use crate::console::flags::names::NamesArgs;
use crate::console::flags::no_report::NoReportArgs;
use crate::console::flags::sample_names::SampleNamesArg;
use crate::console::flags::target::NamedTargetArgs;
use crate::console::flags::time::time;
use crate::recording::companion_options::Source;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Flags of `record`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:\n  \
    heaptap record -n com.example.app               until Ctrl-C; `s` Enter: snapshot\n  \
    heaptap record -n com.example.app -d 30s        30 seconds\n  \
    heaptap record -n com.example.app --launch --no-running    from its start on\n  \
    heaptap record -n com.example.app --with all    and Java, meminfo, gc …\n  \
    heaptap record -n com.example.app --java-allocations\n  \
    heaptap record --host -o out -- ./server --port 80    a program of this Linux host")]
pub struct Args {
    #[command(flatten)]
    pub target: NamedTargetArgs,
    #[command(flatten)]
    pub capture: CaptureArgs,
    /// Also java, meminfo, smaps, gc or all
    ///
    /// meminfo: samples of process memory all along, and dumpsys meminfo at each label. gc: garbage
    /// collections. java: a Java heap graph at each label. smaps: memory mappings at each label. All are
    /// on one clock, in the same directory; `-v` prints their costs.
    #[arg(
        long,
        value_name = "WHAT",
        value_enum,
        value_delimiter = ',',
        hide_possible_values = true,
        help_heading = "What to record"
    )]
    pub with: Vec<WithArg>,
    /// A new or empty directory
    ///
    /// The default is heaptap-TARGET-TIME-SESSION in the current directory.
    #[arg(short, long, value_name = "DIR", value_hint = clap::ValueHint::DirPath, help_heading = "How to record")]
    pub output: Option<PathBuf>,
    /// Names of the sample types
    #[arg(
        long,
        value_name = "WHOSE",
        value_enum,
        default_value_t,
        help_heading = "How to record",
        hide_short_help = true
    )]
    pub sample_names: SampleNamesArg,
    /// Continue even if a process may not be profiled
    #[arg(long, help_heading = "How to record")]
    pub no_check: bool,
    /// Restart the app once the recording is armed
    #[arg(long, help_heading = "How to record")]
    pub launch: bool,
    /// Period of dumps for labels on user builds [default: 2s to 10s]
    ///
    /// The shell of a user build cannot signal heapprofd, so heapprofd dumps periodically and a label
    /// takes the next dump. Without this option, the period is 10 s with --detach, a sixtieth of
    /// --duration with that (at least 2 s, at most 10 s), and 5 s otherwise. The option without a
    /// value means 2 s. --continuous-dump replaces it. Builds that can dump on request ignore it.
    #[arg(
        long,
        value_name = "TIME",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "2s",
        value_parser = time,
        help_heading = "How to record", hide_short_help = true)]
    pub snapshots: Option<Duration>,
    /// Do not arm periodic dumps on user builds
    #[arg(long, conflicts_with = "snapshots", help_heading = "How to record")]
    pub no_snapshots: bool,
    /// Wait so long for the device to appear [default: do not wait]
    #[arg(
        long,
        value_name = "TIME",
        value_parser = crate::console::flags::time::positive_time,
        help_heading = "How to record",
        hide_short_help = true
    )]
    pub wait_device: Option<Duration>,
    /// Start and return; then: status, snapshot, stop
    #[arg(long, help_heading = "How to record")]
    pub detach: bool,
    /// Record again with a longer interval if the buffer overran
    #[arg(long, help_heading = "How to record", hide_short_help = true)]
    pub retry_overrun: bool,
    /// Make SELinux permissive while recording (needs root)
    #[arg(long, help_heading = "How to record", hide_short_help = true)]
    pub disable_selinux: bool,
    /// Record a program of this Linux host: -- PROGRAM ARGUMENTS
    ///
    /// It needs Perfetto's tracebox (or traced and perfetto) and libheapprofd_glibc_preload.so.
    /// heaptap starts the program after `--` with the library, records it and its children, and
    /// exits with the status of the program. docs/guide/host.md has the limits.
    #[arg(long, help_heading = "Programs of this host")]
    pub host: bool,
    /// heapprofd's preload library for glibc [default: that of --perfetto-dir]
    #[arg(
        long,
        value_name = "LIB",
        value_hint = clap::ValueHint::AnyPath,
        value_parser = crate::console::flags::names::existing(),
        requires = "host",
        help_heading = "Programs of this host",
        hide_short_help = true
    )]
    pub preload_library: Option<PathBuf>,
    /// Directory of a Perfetto build [default: PATH, then that of Perfetto's scripts]
    ///
    /// Perfetto's scripts keep their downloads in ~/.local/share/perfetto/prebuilts.
    #[arg(
        long,
        value_name = "DIR",
        value_hint = clap::ValueHint::DirPath,
        value_parser = crate::console::flags::names::existing(),
        requires = "host",
        help_heading = "Programs of this host",
        hide_short_help = true
    )]
    pub perfetto_dir: Option<PathBuf>,
    /// Program to record with --host, and its arguments
    #[arg(
        last = true,
        value_name = "PROGRAM",
        requires = "host",
        hide_short_help = true
    )]
    pub program: Vec<OsString>,
    #[command(flatten, next_help_heading = "How to record")]
    pub leave: NoReportArgs,
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
