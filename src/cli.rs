//! What may be typed: the global flags and the list of commands. Each command's own flags
//! stand in its folder.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

#[cfg(feature = "sql")]
use crate::commands::query;
use crate::commands::{
    apps, check, collect, completions, convert, deobfuscate, devices, diff, doctor, dump, gc,
    hprof, leaks, meminfo, open, paths, provoke, reconcile, record, report, smaps, snapshot,
    status, stop, symbolize, top,
};
#[cfg(feature = "virtual-phone")]
use crate::commands::{demo, virtual_phone};
use crate::console::Console;
use crate::error::{ErrorClass, Failure};
use crate::exit::{self, Outcome};
use crate::flags::context::Context;
use crate::flags::globals::Globals;

/// What stands below the list of commands.
fn after_help() -> String {
    let demo = match cfg!(feature = "virtual-phone") {
        true => "  heaptap demo -o out                  see it work, no phone needed\n",
        false => "",
    };
    format!(
        "Start here:\n{demo}  \
        heaptap doctor                       are this computer and the phone ready?\n  \
        heaptap record -n com.example.app    record; `s` takes a snapshot, Ctrl-C ends it\n\n\
        Exit codes: 0 done, 2 usage, 3 no device, 4 not eligible, 5 device failed,\n\
        6 incomplete, 7 no samples, 8 damaged input, 9 over budget or leaking, 10 not fetched yet,\n\
        11 cannot write here, 12 too little data or within noise.\n\
        docs/errors.md has them all."
    )
}

/// Memory profiling of Android phones from the host: record, pull, decode, convert, explain.
#[derive(Debug, Parser)]
#[command(
    name = "heaptap",
    version = crate::results::manifest::version(),
    propagate_version = true,
    infer_long_args = false,
    arg_required_else_help = true,
    subcommand_required = true,
    after_help = after_help()
)]
pub struct Cli {
    /// Flags that every command takes.
    #[command(flatten)]
    pub globals: Globals,
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
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
    Snapshot(snapshot::Args),
    /// Show running, detached and lost recordings
    Status(status::Args),
    /// Stop a recording and collect it
    Stop(stop::Args),
    /// Fetch a recording that is still on its device
    Collect(collect::Args),
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
    Provoke(provoke::Args),
    /// Ask with SQL: Perfetto's tables, over native and Java heaps
    #[cfg(feature = "sql")]
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
    #[cfg(feature = "virtual-phone")]
    VirtualPhone(virtual_phone::Args),
    /// The main job on the virtual phone: no device needed
    #[cfg(feature = "virtual-phone")]
    Demo(demo::Args),
    /// Print a completion script for your shell
    Completions(completions::Args),
}

/// Runs the program on the arguments of this process.
pub fn run() -> ExitCode {
    let typed: Vec<OsString> = std::env::args_os().collect();
    let console = Console::from_raw_args(&typed);
    exit::note_panics();
    let runtime = match tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()
    {
        Ok(runtime) => runtime,
        Err(error) => {
            let failure = Failure::new(
                ErrorClass::Bug,
                "no-runtime",
                format!("could not start threads: {error}"),
            );
            return exit::finish(&console, Err(failure));
        }
    };
    let result = exit::catch_panics(|| runtime.block_on(run_typed(&console, typed)));
    let code = exit::finish(&console, result);
    // A blocked read of a key or a socket must not hold the exit.
    runtime.shutdown_background();
    code
}

async fn run_typed(console: &Console, typed: Vec<OsString>) -> Result<Outcome, Failure> {
    let command = Cli::command().color(console.clap_color());
    let cli = match command
        .try_get_matches_from(typed)
        .and_then(|matches| Cli::from_arg_matches(&matches))
    {
        Ok(cli) => cli,
        Err(error) => return exit::usage::show(console, &error, &Cli::command()),
    };
    let context = Context::new(console.clone(), cli.globals);
    let done = dispatch(&context, cli.command).await;
    done.map_err(|failure| context.without_collect(failure))
}

async fn dispatch(ctx: &Context, command: Command) -> Result<Outcome, Failure> {
    match command {
        Command::Doctor(args) => doctor::run(ctx, args).await,
        Command::Devices(args) => devices::run(ctx, args).await,
        Command::Apps(args) => apps::run(ctx, args).await,
        Command::Check(args) => check::run(ctx, args).await,
        Command::Record(args) => record::run(ctx, *args).await,
        Command::Dump(args) => dump::run(ctx, *args).await,
        Command::Snapshot(args) => snapshot::run(ctx, args).await,
        Command::Status(args) => status::run(ctx, args).await,
        Command::Stop(args) => stop::run(ctx, args).await,
        Command::Collect(args) => collect::run(ctx, args).await,
        Command::Convert(args) => convert::run(ctx, args).await,
        Command::Diff(args) => diff::run(ctx, *args).await,
        Command::Smaps(args) => smaps::run(ctx, args).await,
        Command::Reconcile(args) => reconcile::run(ctx, args).await,
        Command::Paths(args) => paths::run(ctx, args).await,
        Command::Provoke(args) => provoke::run(ctx, args).await,
        #[cfg(feature = "sql")]
        Command::Query(args) => query::run(ctx, *args).await,
        Command::Top(args) => top::run(ctx, *args).await,
        Command::Leaks(args) => leaks::run(ctx, *args).await,
        Command::Symbolize(args) => symbolize::run(ctx, args).await,
        Command::Deobfuscate(args) => deobfuscate::run(ctx, args).await,
        Command::Meminfo(args) => meminfo::run(ctx, *args).await,
        Command::Hprof(args) => hprof::run(ctx, args).await,
        Command::Gc(args) => gc::run(ctx, args).await,
        Command::Report(args) => report::run(ctx, *args).await,
        Command::Open(args) => open::run(ctx, args).await,
        #[cfg(feature = "virtual-phone")]
        Command::VirtualPhone(args) => virtual_phone::run(ctx, args).await,
        #[cfg(feature = "virtual-phone")]
        Command::Demo(args) => demo::run(ctx, args).await,
        Command::Completions(args) => completions::run(ctx, args, Cli::command()).await,
    }
}
