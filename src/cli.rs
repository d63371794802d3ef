//! The command line: the global flags and the list of commands. Each command's own flags are in its
//! directory.

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _, Parser, Subcommand};

#[cfg(feature = "parquet")]
use crate::commands::archive;
#[cfg(feature = "sql")]
use crate::commands::query;
use crate::commands::{
    apps, check, completions, convert, devices, diff, doctor, dump, explore, gc, hprof, leaks,
    licenses, man, meminfo, open, paths, provoke, record, report, run, smaps, snapshot, status,
    stop, symbolize, top,
};
#[cfg(feature = "virtual-phone")]
use crate::commands::{demo, virtual_phone};
use crate::console::Console;
use crate::console::exit::{self, Outcome};
use crate::console::flags::context::Context;
use crate::console::flags::globals::Globals;
use crate::console::flags::typed::TypedOptions;
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::temp_cleanup;

/// The help of the program itself: the commands by task. `tests/grammar.rs` compares it with the
/// tree of commands.
fn root_help() -> String {
    let demo = match cfg!(feature = "virtual-phone") {
        true => "  heaptap demo                       see it work, no device needed\n",
        false => "",
    };
    let query = match cfg!(feature = "sql") {
        true => "  query      Ask with SQL\n",
        false => "",
    };
    let archive = match cfg!(feature = "parquet") {
        true => "archive, ",
        false => "",
    };
    let also = match cfg!(feature = "virtual-phone") {
        true => "demo, virtual-phone, ",
        false => "",
    };
    format!(
        "\
{{name}}: where the memory of an Android app went

{{usage-heading}} heaptap COMMAND [OPTIONS]

Start here:
{demo}  heaptap doctor                     are the host and the device ready?
  heaptap record -n com.example.app  record; `s` Enter: snapshot, Ctrl-C: end
  heaptap top DIR                    then: what holds the memory?

Set up:
  doctor     Is everything ready? Each finding with its fix
  devices    List devices; connect to one on the network
  apps       List packages, and which can be profiled
  check      Can these processes be profiled? If not, why

Record:
  record     Native heap: unreleased memory and its callstacks
  dump       Java heap, as a heap graph or HPROF
  provoke    Bring leaks out: rotate, leave and come back, trim memory
  run        Record the steps of a scenario, and judge its memory budgets
  snapshot   Label this moment of a running recording
  status     List recordings that run, or wait on a device
  stop       End a recording and fetch it

Read a recording, trace, pprof or HPROF:
  top        What holds the memory
  leaks      What leaks, and what grows from dump to dump
  diff       What changed between two dumps
  paths      What keeps Java objects alive
  report     All of it on one page
{query}  explore    Walk a Java heap in the browser

See a whole process, on the device or recorded:
  meminfo    How its memory divides, each row explained
  smaps      What it has mapped
  gc         Its garbage collections

Files:
  convert    To pprof, flame graphs, tables
  symbolize  Add function and Java names to a trace

Also: open, hprof, {archive}{also}completions, man, licenses.
All options: --help. For scripts: --json everywhere; exit codes: heaptap --help{{after-help}}"
    )
}

/// Additions of `heaptap --help`: the global options and the exit codes.
const ROOT_LONG_HELP: &str = "\
Options of every command: -s SERIAL, --adb-server HOST:PORT, --user ID, --virtual[=SPEC],
--json, --json-lines, -q, -v, --color WHEN, --threads N, --no-progress.
`heaptap record --help` explains them last.

Exit codes:
  0  done
  1  a bug in heaptap
  2  the command line is wrong, by itself or for this input
  3  no device, or several and none named
  4  no such process on the device, or it cannot be profiled
  5  the device refused or failed
  6  there is a result, and something is missing from it
  7  nothing there: no samples, or the input holds nothing of this kind
  8  an input cannot be used: missing, unreadable, of another kind, too damaged
  9  leak found or limit exceeded: --fail, --fail-over, query --timeout, --memory
 10  safe on the device, not fetched; `heaptap stop` fetches it
 11  the host cannot write, or listen on a port
 12  inconclusive: incomplete data, sampling error, no effect
130  interrupted before there was a result
docs/reference/errors.md lists the errors of each.";

/// Help of a command: its examples precede its options.
const COMMAND_HELP: &str = "\
{about-with-newline}
{usage-heading} {usage}

{before-help}{all-args}{after-help}";

/// The last line of a command's `-h`.
const MORE_HELP: &str = "Also: -s SERIAL, --json, -q, -v. All options: --help";

/// Examples that `-h` shows; `--help` shows all.
const SHORT_EXAMPLES: usize = 4;

/// The tree of commands for `--help`.
pub fn tree() -> clap::Command {
    Cli::command()
        .help_template(root_help())
        .mut_subcommands(dressed)
}

/// The tree of commands for `-h`: without the values of options.
pub fn short_tree() -> clap::Command {
    fn shortened(command: clap::Command) -> clap::Command {
        let command = command
            .mut_args(|arg| match arg.get_action().takes_values() {
                true => arg.hide_possible_values(true),
                false => arg,
            })
            .mut_subcommands(shortened);
        let is_hidden = |arg: &clap::Arg| arg.is_hide_set() || arg.is_hide_short_help_set();
        let is_bare = !command.has_subcommands() && command.get_arguments().all(is_hidden);
        match is_bare {
            // Without options, their place would be a blank block.
            true => {
                command.help_template(COMMAND_HELP.replace("{all-args}{after-help}", MORE_HELP))
            }
            false => command,
        }
    }
    tree().mut_subcommands(shortened)
}

fn dressed(command: clap::Command) -> clap::Command {
    let examples = command.get_before_help().map(ToString::to_string);
    let examples = examples.unwrap_or_default();
    let short: Vec<&str> = examples.lines().take(1 + SHORT_EXAMPLES).collect();
    let short = short.join("\n");
    let help = clap::Arg::new("help")
        .short('h')
        .long("help")
        .action(clap::ArgAction::Help)
        .help("Print help; -h prints a short one")
        .hide_short_help(true);
    let command = command
        .mut_subcommands(dressed)
        .help_template(COMMAND_HELP)
        .before_help(short)
        .before_long_help(examples)
        .disable_help_flag(true)
        .arg(help);
    match command.get_after_long_help().is_some() {
        true => command.after_help(MORE_HELP),
        // Otherwise clap also uses it for --help.
        false => command.after_help(MORE_HELP).after_long_help(""),
    }
}

/// Memory profiling of Android devices from the host: record, pull, decode, convert, explain.
#[derive(Debug, Parser)]
#[command(
    name = "heaptap",
    version = heaptap_results::manifest::version(),
    infer_long_args = false,
    arg_required_else_help = true,
    subcommand_required = true,
    after_long_help = ROOT_LONG_HELP
)]
pub struct Cli {
    #[command(flatten)]
    pub globals: Globals,
    /// Subcommand.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Check the host and the device, with a fix for each problem
    Doctor(doctor::Args),
    /// List the devices the adb server knows
    Devices(devices::Args),
    /// List the packages of the device, and which can be profiled
    Apps(apps::Args),
    /// Check whether processes can be profiled, with reasons and fixes
    Check(check::Args),
    /// Record a native heap profile
    Record(Box<record::Args>),
    /// Dump Java heaps
    Dump(Box<dump::Args>),
    /// Take a labeled snapshot in a running recording
    Snapshot(snapshot::Args),
    /// Show running, detached and lost recordings
    Status(status::Args),
    /// End a recording and fetch it
    Stop(stop::Args),
    /// Convert a trace recorded anywhere: to gzipped pprofs, to formats of other viewers, to tables
    Convert(convert::Args),
    /// Add recordings to a Parquet dataset of many builds and devices
    #[cfg(feature = "parquet")]
    Archive(archive::Args),
    /// Show what holds memory: functions, libraries, callsites; Java classes, objects
    Top(Box<top::Args>),
    /// Find leaks, growth between dumps, and wasted memory
    Leaks(Box<leaks::Args>),
    /// Compare two dumps by function, library or callsite; Java by class, path or leak
    Diff(Box<diff::Args>),
    /// Memory of processes by category: dumpsys meminfo, read and explained
    Meminfo(Box<meminfo::Args>),
    /// Memory mappings of a process: by row of meminfo, library or mapping
    Smaps(smaps::Args),
    /// Show paths from GC roots to Java objects: the shortest, all, or of one object
    Paths(paths::Args),
    /// Provoke leaks: rotate, leave and come back, trim, random input; settings are restored
    Provoke(provoke::Args),
    /// Ask with SQL: Perfetto's tables, over native and Java heaps
    #[cfg(feature = "sql")]
    Query(Box<query::Args>),
    /// Garbage collections of a log, a recording or a process: pauses, live set, findings
    Gc(gc::Args),
    /// Write one page about native and Java heaps: flame graphs, growth, leaks, paths
    Report(Box<report::Args>),
    /// Record the steps of a scenario, and judge its memory budgets
    Run(Box<run::Args>),
    /// Explore a Java heap in the browser: classes, objects, dominators, paths
    Explore(Box<explore::Args>),
    /// Open a trace in Perfetto's UI, or the report of anything, in the browser
    Open(open::Args),
    /// Add function and Java names to a trace
    Symbolize(symbolize::Args),
    /// Convert, describe or strip a Java heap dump in HPROF
    Hprof(hprof::Args),
    /// Serve the virtual phone to any adb client
    #[cfg(feature = "virtual-phone")]
    VirtualPhone(virtual_phone::Args),
    /// Record an example app on the virtual phone; no device needed
    #[cfg(feature = "virtual-phone")]
    Demo(demo::Args),
    /// Print a completion script for your shell
    Completions(completions::Args),
    /// Write man pages, one for each command
    Man(man::Args),
    /// Print the licenses of the software in heaptap
    Licenses(licenses::Args),
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
    temp_cleanup::remove();
    // A blocked read of a key or a socket must not delay the exit.
    runtime.shutdown_background();
    code
}

async fn run_typed(console: &Console, typed: Vec<OsString>) -> Result<Outcome, Failure> {
    let is_short = typed.iter().any(|word| word == "-h");
    let command = match is_short {
        true => short_tree(),
        false => tree(),
    };
    let mut command = command.color(console.clap_color());
    let parsed = command
        .try_get_matches_from_mut(&typed)
        .and_then(|matches| {
            let options = TypedOptions::new(&command, &matches);
            Ok((Cli::from_arg_matches(&matches)?, options))
        });
    let (cli, options) = match parsed {
        Ok(parsed) => parsed,
        Err(error) => return exit::usage::show(console, &error, &tree(), &typed),
    };
    cli.globals.limit_threads()?;
    let context = Context::new(console.clone(), cli.globals, options);
    let done = dispatch(&context, cli.command).await;
    done.map_err(|failure| {
        let mut failure = context.without_collect(failure);
        context.typed.keep_own_advice(&mut failure);
        let help = failure.help.as_deref();
        failure.help = help.map(|help| context.globals.with_device(help));
        failure
    })
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
        Command::Convert(args) => convert::run(ctx, args).await,
        #[cfg(feature = "parquet")]
        Command::Archive(args) => archive::run(ctx, args).await,
        Command::Diff(args) => diff::run(ctx, *args).await,
        Command::Smaps(args) => smaps::run(ctx, args).await,
        Command::Paths(args) => paths::run(ctx, args).await,
        Command::Provoke(args) => provoke::run(ctx, args).await,
        #[cfg(feature = "sql")]
        Command::Query(args) => query::run(ctx, *args).await,
        Command::Top(args) => top::run(ctx, *args).await,
        Command::Leaks(args) => leaks::run(ctx, *args).await,
        Command::Symbolize(args) => symbolize::run(ctx, args).await,
        Command::Meminfo(args) => meminfo::run(ctx, *args).await,
        Command::Hprof(args) => hprof::run(ctx, args).await,
        Command::Gc(args) => gc::run(ctx, args).await,
        Command::Report(args) => report::run(ctx, *args).await,
        Command::Run(args) => run::run(ctx, *args).await,
        Command::Explore(args) => explore::run(ctx, *args).await,
        Command::Open(args) => open::run(ctx, args).await,
        #[cfg(feature = "virtual-phone")]
        Command::VirtualPhone(args) => virtual_phone::run(ctx, args).await,
        #[cfg(feature = "virtual-phone")]
        Command::Demo(args) => demo::run(ctx, args).await,
        Command::Completions(args) => completions::run(ctx, args, tree()).await,
        Command::Man(args) => man::run(ctx, args, tree()).await,
        Command::Licenses(args) => licenses::run(ctx, args).await,
    }
}
