//! What may be typed: the global flags and the list of commands. Each command's own flags
//! stand in its file.

use clap::{ArgAction, Args, Parser, Subcommand, ValueEnum};

use super::{
    apps, check, completions, convert, demo, deobfuscate, devices, diff, doctor, dump, gc, hprof,
    leaks, meminfo, open, paths, query, reconcile, record, report, sessions, smaps, symbolize, top,
    virtual_phone,
};

/// Memory profiling of Android phones from the host: record, pull, decode, convert, explain.
#[derive(Debug, Parser)]
#[command(
    name = "heaptap",
    version = crate::app::manifest::version(),
    propagate_version = true,
    infer_long_args = false,
    arg_required_else_help = true,
    subcommand_required = true,
    after_help = "Start here:\n  \
        heaptap demo -o out                  see it work, no phone needed\n  \
        heaptap doctor                       are this computer and the phone ready?\n  \
        heaptap record -n com.example.app    record; `s` takes a snapshot, Ctrl-C ends it\n\n\
        Exit codes: 0 done, 2 usage, 3 no device, 4 not eligible, 5 device failed,\n\
        6 incomplete, 7 no samples, 8 damaged input, 9 over budget or leaking, 10 not fetched yet,\n\
        11 cannot write here, 12 too little data or within noise.\n\
        docs/errors.md has them all."
)]
pub struct Cli {
    /// Flags that every command takes.
    #[command(flatten)]
    pub globals: Globals,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// Flags that every command takes.
#[derive(Debug, Clone, Default, Args)]
#[command(next_help_heading = "Global options")]
pub struct Globals {
    /// The device: a serial, usb:PATH, model:NAME or transport:ID
    ///
    /// Without it: ANDROID_SERIAL, else the only device connected.
    #[arg(short, long, global = true, value_name = "SERIAL")]
    pub serial: Option<String>,
    /// The adb server [default: as adb's own variables say, else 127.0.0.1:5037]
    ///
    /// Else ADB_SERVER_SOCKET (tcp:HOST:PORT), ANDROID_ADB_SERVER_ADDRESS and
    /// ANDROID_ADB_SERVER_PORT. A local server that does not answer is started.
    #[arg(long, global = true, value_name = "HOST:PORT")]
    pub adb_server: Option<String>,
    /// Android user or work profile
    #[arg(long, global = true, value_name = "ID")]
    pub user: Option<u32>,
    /// Use the built-in virtual phone in place of a device
    ///
    /// SPEC is a list such as android=14,build=user; see `heaptap virtual-phone --help`.
    #[arg(
        long = "virtual",
        global = true,
        value_name = "SPEC",
        num_args = 0..=1,
        require_equals = true,
        default_missing_value = "",
        conflicts_with_all = ["serial", "adb_server"],
    )]
    pub virtual_phone: Option<String>,
    /// One JSON document on stdout; words for people go to stderr
    #[arg(long, global = true)]
    pub json: bool,
    /// JSON lines on stdout: the events of a long command as they happen
    #[arg(long, global = true, conflicts_with = "json")]
    pub json_lines: bool,
    /// Say only what is wrong
    #[arg(short, long, global = true)]
    pub quiet: bool,
    /// Say more; twice for more still
    #[arg(short, long, global = true, action = ArgAction::Count)]
    pub verbose: u8,
    /// Colours
    #[arg(long, global = true, value_enum, value_name = "WHEN", default_value_t)]
    pub color: ColorWhen,
    /// No status line and no progress bars
    #[arg(long, global = true)]
    pub no_progress: bool,
}

/// When to use colours.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum ColorWhen {
    /// On a terminal, unless NO_COLOR is set.
    #[default]
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Are this computer and the phone ready? Each finding with its fix
    Doctor(doctor::Args),
    /// List the devices the adb server knows
    Devices(devices::Args),
    /// List the phone's packages and what may be profiled
    Apps(apps::Args),
    /// May these processes be profiled? Why not, and what would change it
    Check(check::Args),
    /// Record a native heap profile
    Record(Box<record::Args>),
    /// Dump Java heaps
    Dump(Box<dump::Args>),
    /// Take a labelled snapshot in a running recording
    Snapshot(sessions::SnapshotArgs),
    /// Show running, detached and lost recordings
    Status(sessions::StatusArgs),
    /// Stop a recording and collect it
    Stop(sessions::StopArgs),
    /// Fetch a recording that is still on its device
    Collect(sessions::CollectArgs),
    /// Convert a trace recorded anywhere: to gzipped pprofs, to formats of other viewers, to tables
    Convert(convert::Args),
    /// Where the memory went: by function, library, callsite; Java by class, object …
    Top(Box<top::Args>),
    /// What leaks, what grew between dumps, what is wasted
    Leaks(Box<leaks::Args>),
    /// What changed between two dumps: by function, library; Java by class, place, leaks
    Diff(Box<diff::Args>),
    /// How the memory of processes divides: dumpsys meminfo, read and explained
    Meminfo(Box<meminfo::Args>),
    /// What a process has mapped: by the rows of meminfo, by library, by mapping
    Smaps(smaps::Args),
    /// heapprofd, malloc_info, Heap Alloc and RSS side by side, and why they differ
    Reconcile(reconcile::Args),
    /// What holds Java objects: the path from a root, all paths merged, one object in full
    Paths(paths::Args),
    /// Provoke leaks: rotate, leave and come back, trim, random input; the phone is put back
    Provoke(super::provoke::Args),
    /// Ask with SQL: Perfetto's tables, over native and Java heaps
    Query(Box<query::Args>),
    /// Garbage collections of a log, a recording or a process: pauses, live set, what is wrong
    Gc(gc::Args),
    /// Write a page about native and Java heaps: flame graphs, what grew, leaks, ways to roots
    Report(Box<report::Args>),
    /// Open a trace in Perfetto's UI, or the report of anything, in the browser
    Open(open::Args),
    /// Look up functions, files and lines for a trace's frames; write them as packets
    Symbolize(symbolize::Args),
    /// Write Java names as packets that, behind the trace, deobfuscate it in any Perfetto tool
    Deobfuscate(deobfuscate::Args),
    /// Convert, describe or strip a Java heap dump in HPROF
    Hprof(hprof::Args),
    /// Serve the virtual phone to any adb client
    VirtualPhone(virtual_phone::Args),
    /// The main job on the virtual phone: no device needed
    Demo(demo::Args),
    /// Print a completion script for your shell
    Completions(completions::Args),
}
