//! The command line: flags, the console, exit codes. One file a command; each turns what was
//! typed into plain options, calls the use case in `app`, and shows what comes back.
//! Owns all printing of the program; nothing else prints.

mod apps;
mod args;
mod blocking;
mod capture_args;
mod check;
mod completions;
mod console;
mod context;
mod convert;
mod demo;
mod deobfuscate;
mod devices;
mod diff;
mod doctor;
mod dump;
mod exit;
mod export;
mod gate;
mod gc;
mod goal;
mod hprof;
mod java_args;
mod java_summary;
mod java_view;
mod keep;
mod keys;
mod leaks;
mod live;
mod meminfo;
mod missing;
mod named;
mod names_args;
mod native_args;
mod native_view;
mod open;
mod paths;
mod pattern;
mod progress;
mod provoke;
mod query;
mod reconcile;
mod record;
mod render;
mod report;
mod sessions;
mod signals;
mod smaps;
mod sparkline;
mod stack_args;
mod summary;
mod symbolize;
mod table;
mod top;
mod virtual_phone;
mod wrap;

pub use args::{Cli, Command, Globals};
pub use console::{Console, Style, Styled};
pub use context::Context;
pub use exit::Outcome;

use std::ffi::OsString;
use std::process::ExitCode;

use clap::{CommandFactory as _, FromArgMatches as _};

use crate::error::{ErrorClass, Failure};

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
        Err(error) => return render::usage(console, &error),
    };
    let context = Context::new(console.clone(), cli.globals);
    dispatch(&context, cli.command).await
}

async fn dispatch(ctx: &Context, command: Command) -> Result<Outcome, Failure> {
    match command {
        Command::Doctor(args) => doctor::run(ctx, args).await,
        Command::Devices(args) => devices::run(ctx, args).await,
        Command::Apps(args) => apps::run(ctx, args).await,
        Command::Check(args) => check::run(ctx, args).await,
        Command::Record(args) => record::run(ctx, *args).await,
        Command::Dump(args) => dump::run(ctx, *args).await,
        Command::Snapshot(args) => sessions::snapshot(ctx, args).await,
        Command::Status(args) => sessions::status(ctx, args).await,
        Command::Stop(args) => sessions::stop(ctx, args).await,
        Command::Collect(args) => sessions::collect(ctx, args).await,
        Command::Convert(args) => convert::run(ctx, args).await,
        Command::Diff(args) => diff::run(ctx, *args).await,
        Command::Smaps(args) => smaps::run(ctx, args).await,
        Command::Reconcile(args) => reconcile::run(ctx, args).await,
        Command::Paths(args) => paths::run(ctx, args).await,
        Command::Provoke(args) => provoke::run(ctx, args).await,
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
        Command::VirtualPhone(args) => virtual_phone::run(ctx, args).await,
        Command::Demo(args) => demo::run(ctx, args).await,
        Command::Completions(args) => completions::run(ctx, args).await,
    }
}
