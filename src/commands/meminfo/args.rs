//! The flags of `heaptap meminfo`.

use super::live::args::LiveArgs;
use crate::console::flags::limit::LimitArgs;
use crate::console::flags::moment::MomentArgs;
use crate::console::flags::target::TargetArgs;
use clap::ValueHint;
use std::ffi::OsString;
use std::path::PathBuf;

/// Flags of `meminfo`.
#[derive(Debug, clap::Args)]
#[command(
    before_help = "Examples:\n  \
    heaptap meminfo --package com.example.app          all its processes\n  \
    heaptap meminfo -n com.example.app --explain=Graphics    one row in depth\n  \
    heaptap meminfo -n com.example.app --every 1s      live, until Ctrl-C\n  \
    heaptap meminfo rec@login --reconcile              why the figures differ\n  \
    heaptap meminfo -n com.example.app --local         without a GC\n  \
    heaptap meminfo -n com.example.app --save before   for `heaptap diff`\n  \
    heaptap meminfo --system --by oom                  the whole device",
    after_long_help = "docs/guide/meminfo.md explains rows, columns and what asking costs."
)]
pub struct Args {
    /// Text of dumpsys meminfo, bug report, or recording; - for stdin
    ///
    /// Texts may be packed with gzip, zstd or xz, bug reports also a ZIP. INPUT@MOMENT chooses a moment of a recording.
    /// With --reconcile also the XML of malloc_info. With -n instead of INPUT, heaptap asks
    /// the device.
    #[arg(
        value_name = "INPUT",
        value_hint = ValueHint::AnyPath,
        required_unless_present_any = ["TargetArgs", "system", "explain"],
        conflicts_with_all = ["wide", "details", "local", "no_local", "system", "save", "every"],
    )]
    pub input: Option<OsString>,
    /// All columns: also shared and clean pages
    #[arg(long)]
    pub wide: bool,
    /// The parts of the Dalvik rows
    #[arg(long)]
    pub details: bool,
    /// Ask only the system, without a garbage collection
    ///
    /// The app then reports neither heap sizes nor objects.
    #[arg(long, overrides_with = "no_local")]
    pub local: bool,
    /// Ask the app too (the default without --every)
    #[arg(long, overrides_with = "local", hide_short_help = true)]
    pub no_local: bool,
    /// Explain the differences between figures
    ///
    /// Compares heapprofd, malloc_info, Heap Alloc and RSS of a process.
    #[arg(long, conflicts_with_all = [
        "wide", "details", "local", "no_local", "system", "by", "limit", "explain", "save", "csv",
        "every",
    ])]
    pub reconcile: bool,
    /// The whole device
    #[arg(long, conflicts_with_all = ["TargetArgs", "wide", "details", "local", "no_local"])]
    pub system: bool,
    /// Kind of rows: process, oom or category
    #[arg(long, value_name = "WHAT", conflicts_with = "every")]
    pub by: Option<ByArg>,
    #[command(flatten)]
    pub rows: LimitArgs,
    /// Explain the rows, or one: --explain=Graphics
    #[arg(
        long,
        value_name = "ROW",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        action = clap::ArgAction::Append,
    )]
    pub explain: Vec<String>,
    /// Save the text of the device to this file
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath, hide_short_help = true)]
    pub save: Option<PathBuf>,
    /// Overwrite existing files
    #[arg(long, requires = "save", hide_short_help = true)]
    pub force: bool,
    /// Print comma-separated values to stdout
    #[arg(long, conflicts_with_all = ["json", "json_lines", "explain"])]
    pub csv: bool,
    #[command(flatten)]
    pub target: TargetArgs,
    #[command(flatten)]
    pub moment: MomentArgs,
    #[command(flatten)]
    pub live: LiveArgs,
}

/// Grouping of the device's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum ByArg {
    /// Processes.
    Process,
    /// How soon processes may be killed, with the processes of each.
    Oom,
    /// Kinds of memory.
    Category,
}
