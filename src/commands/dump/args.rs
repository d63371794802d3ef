//! The flags of `heaptap dump`.

use crate::console::flags::sample_names::SampleNamesArg;
use crate::console::flags::target::{NamedTargetArgs, TargetArgs};
use crate::console::flags::time::{perfetto_seconds, perfetto_time, positive_time};
use clap::ValueHint;
use heaptap_base::units::ByteSize;
use heaptap_capture::config::{BitmapFormat, JavaSpec};
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// Flags of `dump`.
#[derive(Debug, clap::Args)]
#[command(before_help = "Examples:\n  \
    heaptap dump -n com.example.app                the Java heap now\n  \
    heaptap dump -n com.example.app -c 30s         every 30 seconds\n  \
    heaptap dump -n com.example.app --hprof -o x.hprof    an HPROF with values\n  \
    heaptap dump --package com.example.app         all processes of an app\n  \
    heaptap dump -n com.example.app --wait-for-oom --oom-wait-seconds 600")]
pub struct Args {
    #[command(flatten)]
    pub target: NamedTargetArgs,
    #[command(flatten)]
    pub capture: JavaArgs,
    #[command(flatten)]
    pub file: FileArgs,
    /// A new or empty directory
    ///
    /// With --hprof also a file that ends in .hprof. The default is heaptap-TARGET-TIME-SESSION in
    /// the current directory.
    #[arg(short, long, value_name = "DIR", value_hint = ValueHint::DirPath, help_heading = "How to dump")]
    pub output: Option<PathBuf>,
    /// Continue even if a process may not be profiled
    #[arg(long, help_heading = "How to dump")]
    pub no_check: bool,
    /// Start and return; then: status, stop
    #[arg(long, help_heading = "How to dump")]
    pub detach: bool,
    /// Print the config for `perfetto --txt -c -`, and exit
    #[arg(long, help_heading = "How to dump", hide_short_help = true)]
    pub print_config: bool,
    /// Names of the sample types
    #[arg(
        long,
        value_name = "WHOSE",
        value_enum,
        default_value_t,
        help_heading = "Results",
        hide_short_help = true
    )]
    pub sample_names: SampleNamesArg,
    /// Also write the dominator tree of Java heaps
    #[arg(long, help_heading = "Results", hide_short_help = true)]
    pub dominators: bool,
    /// R8 mapping file; may be repeated
    ///
    /// The file may be packed with gzip, zstd or ZIP, or be part of an app bundle. PACKAGE=FILE names
    /// its app; otherwise it applies to the apps that no other file is for. heaptap also uses PERFETTO_PROGUARD_MAP and
    /// Gradle's build/outputs/mapping.
    #[arg(long = "mapping", value_name = "FILE", value_hint = ValueHint::FilePath, help_heading = "Results")]
    pub mappings: Vec<OsString>,
}

/// java_heap_dump's options, under its letters and names.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "How to dump")]
pub struct JavaArgs {
    /// Dump repeatedly, such as every 5s
    ///
    /// Until stopped. Bare numbers from 1000 on are milliseconds, as in java_heap_dump.
    #[arg(short, long, value_name = "TIME", value_parser = perfetto_time)]
    pub continuous_dump: Option<Duration>,
    /// Buffer on the device [default: 256mb, less on small devices]
    #[arg(short, long, value_name = "SIZE", value_parser = ByteSize::parse)]
    pub buffer_size: Option<ByteSize>,
    /// Also record the memory mappings of the process
    #[arg(long)]
    pub dump_smaps: bool,
    /// Exit when the dump is done (the default from Android 12 on)
    #[arg(long, conflicts_with = "no_stop_when_done", hide_short_help = true)]
    pub stop_when_done: bool,
    /// Allow 20 s for the dump, as before Android 12
    #[arg(long, hide_short_help = true)]
    pub no_stop_when_done: bool,
    /// Do not record the list of packages
    #[arg(long, hide_short_help = true)]
    pub no_versions: bool,
    /// Dump when the app runs out of memory (Android 14+)
    ///
    /// -n may contain * and selects every matching app, running or not. heaptap dumps at the first
    /// OutOfMemoryError of a process.
    #[arg(long)]
    pub wait_for_oom: bool,
    /// Maximum time to wait for it; bare numbers are seconds [default: 60]
    #[arg(long, value_name = "TIME", value_parser = perfetto_seconds, requires = "wait_for_oom", hide_short_help = true)]
    pub oom_wait_seconds: Option<Duration>,
}

/// Heap files, by `am dumpheap`.
#[derive(Debug, Clone, Default, clap::Args)]
#[command(next_help_heading = "As a file")]
pub struct FileArgs {
    /// Write an HPROF with `am dumpheap`; the app must be debuggable
    #[arg(long, conflicts_with_all = [
        "continuous_dump", "buffer_size", "dump_smaps", "stop_when_done", "no_stop_when_done",
        "no_versions", "wait_for_oom", "print_config",
    ])]
    pub hprof: bool,
    /// Include bitmap contents in the HPROF (Android 15+)
    #[arg(
        long,
        value_name = "FORMAT",
        value_enum,
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "png",
        requires = "hprof",
    )]
    pub bitmaps: Option<BitmapArg>,
    /// Write the XML of malloc_info, with or without an HPROF
    #[arg(long, conflicts_with_all = [
        "continuous_dump", "buffer_size", "dump_smaps", "stop_when_done", "no_stop_when_done",
        "no_versions", "wait_for_oom", "print_config",
    ])]
    pub malloc_info: bool,
    /// Do not collect garbage before an HPROF
    #[arg(long, requires = "hprof", hide_short_help = true)]
    pub no_gc: bool,
    /// Give up after this time [default: 60s without growth of the file]
    #[arg(long, value_name = "TIME", value_parser = positive_time, hide_short_help = true)]
    pub timeout: Option<Duration>,
}

/// The format of bitmaps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum BitmapArg {
    /// Without loss
    Png,
    /// Smaller, at quality 90
    #[value(alias = "jpeg")]
    Jpg,
    /// Smaller still, at quality 90
    Webp,
}

impl From<BitmapArg> for BitmapFormat {
    fn from(format: BitmapArg) -> Self {
        match format {
            BitmapArg::Png => BitmapFormat::Png,
            BitmapArg::Jpg => BitmapFormat::Jpeg,
            BitmapArg::Webp => BitmapFormat::Webp,
        }
    }
}

impl JavaArgs {
    pub(super) fn spec(&self, target: &TargetArgs) -> JavaSpec {
        JavaSpec {
            targets: target.targets(),
            buffer_bytes: self.buffer_size.map(|size| size.0),
            // As in Perfetto's tool, 0 is none.
            continuous: self.continuous_dump.filter(|period| !period.is_zero()),
            dump_smaps: self.dump_smaps,
            stop_when_done: match (self.stop_when_done, self.no_stop_when_done) {
                (true, _) => Some(true),
                (_, true) => Some(false),
                _ => None,
            },
            packages_list: !self.no_versions,
            wait_for_oom: self
                .wait_for_oom
                .then(|| self.oom_wait_seconds.unwrap_or(OOM_WAIT)),
            ..JavaSpec::default()
        }
    }
}

/// As java_heap_dump waits.
pub(super) const OOM_WAIT: Duration = Duration::from_secs(60);
