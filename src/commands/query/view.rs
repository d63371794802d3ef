//! `heaptap query`: SQL over an input, from the command line, a file, standard input or a
//! prompt; or all tables as a database file.

use std::ffi::OsString;
use std::io::{IsTerminal as _, Read as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use clap::ValueHint;
use serde::Serialize;

use super::run::{OpenError, QueryFile, QueryOptions, copy, open};
use crate::console::Console;
use crate::console::signals::watch_signals;
use crate::error::{ErrorClass, Failure};
use crate::exit::Outcome;
use crate::flags::context::Context;
use crate::flags::java::{JavaArgs, Sizes};
use crate::flags::names::existing;
use crate::flags::native::NativeArgs;
use crate::heap_graph::Follow;
use crate::heaps::java::{JavaInput, Steps};
use crate::query::{CopiedTable, Database, Limits, QueryError};
use crate::results::findings::Finding;
use crate::units::{ByteSize, parse_duration, thousands};
use crate::untrusted::shown;
use crate::views::blocking;
use output::{Form, Output};
use prompt::Piece;

mod output;
mod prompt;

/// Flags of `query`.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:\n  \
    heaptap query rec                                    a prompt; .help there says more\n  \
    heaptap query trace \"SELECT * FROM heaptap_dump\"     the dumps of a trace\n  \
    heaptap query rec -f growth.sql --csv > growth.csv\n  \
    heaptap query dump.hprof --to dump.sqlite            a database for other tools\n\n\
    Tables are Perfetto's and some of our own: docs/query.md lists them.")]
pub struct Args {
    /// A recording's folder, a trace, a pprof or an HPROF; `-` is standard input
    #[arg(value_name = "INPUT", value_hint = ValueHint::AnyPath)]
    pub input: OsString,
    /// Statements, separated by semicolons [default: a prompt, or standard input]
    #[arg(value_name = "SQL")]
    pub sql: Option<String>,
    /// Statements out of a file; `-` is standard input
    #[arg(short, long, value_name = "FILE", conflicts_with = "sql", value_hint = ValueHint::FilePath)]
    pub file: Option<PathBuf>,
    /// Comma-separated values on stdout
    #[arg(long, conflicts_with_all = ["json", "json_lines"])]
    pub csv: bool,
    /// Write all tables into a new SQLite database, after the statements if there are any
    #[arg(long, value_name = "FILE", value_hint = ValueHint::FilePath)]
    pub to: Option<PathBuf>,
    /// End a statement that runs longer [default: no limit]
    #[arg(long, value_name = "DURATION", value_parser = duration)]
    pub timeout: Option<Duration>,
    /// What SQLite may hold in memory
    #[arg(long, value_name = "SIZE", default_value = "4GiB", value_parser = ByteSize::parse)]
    pub memory: ByteSize,
    /// Only dumps of this process: a name (with *), or a process id
    #[arg(long, value_name = "NAME|PID")]
    pub process: Option<String>,
    /// Only this native heap
    #[arg(long, value_name = "HEAP")]
    pub heap: Option<String>,
    /// Mapping file of R8 or ProGuard for Java names; may be repeated
    #[arg(long = "mapping", value_name = "[PACKAGE=]FILE", value_hint = ValueHint::FilePath)]
    pub mappings: Vec<OsString>,
    /// Look for symbols here: folders, libraries, ZIPs, APKs; may be repeated
    #[arg(long, value_name = "PATH", value_hint = ValueHint::AnyPath, value_parser = existing())]
    pub symbols: Vec<PathBuf>,
    /// How shallow sizes of an HPROF come about [default: hotspot or dump, as it was written]
    #[arg(long, value_name = "MODEL", value_enum)]
    pub sizes: Option<Sizes>,
}

fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text, Duration::from_millis(1)).map_err(|error| error.to_string())
}

impl Args {
    fn options(&self) -> QueryOptions {
        let java = JavaArgs {
            process: self.process.clone(),
            mappings: self.mappings.clone(),
            sizes: self.sizes,
            ..JavaArgs::default()
        };
        let native = NativeArgs {
            heap: self.heap.clone(),
            symbols: self.symbols.clone(),
            ..NativeArgs::default()
        };
        QueryOptions {
            look: native.options(&java),
            java: java.options(Follow::default()),
            limits: Limits {
                time: self.timeout,
                memory_bytes: self.memory.0,
            },
        }
    }
}

/// Runs the command.
///
/// # Errors
/// Where the input can't be read, or a statement fails.
pub async fn run(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    let console = &ctx.console;
    let options = args.options();
    let input = JavaInput::parse(&args.input);
    let sql = statements(&args)?;
    let asks = sql.is_none() && args.to.is_none();
    if asks && console.is_json() {
        let message = "a prompt speaks no JSON";
        return Err(Failure::new(ErrorClass::Usage, "usage", message)
            .with_help("give the statements: heaptap query INPUT \"SELECT …\""));
    }
    let opened = blocking::stepwise(ctx, move |steps: &Steps| open(&input, options, steps)).await?;
    let class = opened.class();
    let QueryFile {
        database,
        findings,
        losses,
    } = opened;
    tell(console, &findings);
    let form = Form::of(console, args.csv);
    if asks {
        prompt::converse(ctx, database, form).await?;
        return Ok(Outcome::from(class));
    }
    let mut database = database;
    // Commands give text: where a program reads, they are no statements.
    let pieces = match (sql, form) {
        (None, _) => Vec::new(),
        (Some(sql), Form::Table) => prompt::pieces(&sql),
        (Some(sql), _) => vec![Piece::Statements(sql)],
    };
    for piece in pieces {
        match piece {
            Piece::Command(command) => {
                if !prompt::dot(console, &database, &command)? {
                    break;
                }
            }
            Piece::Statements(sql) => {
                let output = Output::new(console.clone(), form);
                let (back, ran) = execute(ctx, database, sql, output).await?;
                ran?;
                database = back;
            }
        }
    }
    if let Some(file) = args.to {
        write_copy(ctx, database, file).await?;
    }
    let lost = losses.take();
    tell(console, &lost);
    let lost = lost.iter().filter_map(|finding| finding.class);
    Ok(Outcome::of(class.into_iter().chain(lost)))
}

fn tell(console: &Console, findings: &[Finding]) {
    for finding in findings {
        console.finding(
            finding.kind,
            shown(&finding.message),
            finding.help.as_deref(),
        );
    }
}

/// The statements that were given; `None` for a prompt.
fn statements(args: &Args) -> Result<Option<String>, Failure> {
    if let Some(sql) = &args.sql {
        return Ok(Some(sql.clone()));
    }
    let from_stdin = args
        .file
        .as_deref()
        .is_some_and(|file| file.as_os_str() == "-")
        || args.file.is_none() && args.to.is_none() && !std::io::stdin().is_terminal();
    let unreadable = |name: &str, error: std::io::Error| {
        Failure::new(
            ErrorClass::Usage,
            "sql-unreadable",
            format!("cannot read statements from {name}: {error}"),
        )
    };
    if from_stdin {
        if args.input == "-" {
            let message = "standard input cannot be both the input and the statements";
            return Err(Failure::new(ErrorClass::Usage, "usage", message)
                .with_help("give the statements after the input, or in a file with -f"));
        }
        let mut sql = String::new();
        std::io::stdin()
            .lock()
            .read_to_string(&mut sql)
            .map_err(|error| unreadable("standard input", error))?;
        return Ok(Some(sql));
    }
    match &args.file {
        None => Ok(None),
        Some(file) => match std::fs::read_to_string(file) {
            Ok(sql) => Ok(Some(sql)),
            Err(error) => Err(unreadable(&file.display().to_string(), error)),
        },
    }
}

/// What came of statements: the database, to go on with, and what they came to.
type Ran = (Database, Result<(), Failure>);

/// Runs statements. A signal ends the one that runs; whoever asks twice does not wait for it.
async fn execute(
    ctx: &Context,
    mut database: Database,
    sql: String,
    mut output: Output,
) -> Result<Ran, Failure> {
    let interrupter = database.interrupter();
    let rows = output.counter();
    let task = tokio::task::spawn_blocking(move || {
        let ran = database.run(&sql, &mut output);
        let ran = ran.map(|_| output.finish());
        (database, ran.map_err(Failure::from))
    });
    wait(ctx, task, "running", &rows, || interrupter.interrupt()).await
}

async fn write_copy(ctx: &Context, database: Database, file: PathBuf) -> Result<(), Failure> {
    #[derive(Serialize)]
    struct Table {
        name: String,
        rows: u64,
    }
    #[derive(Serialize)]
    struct Copy {
        file: String,
        tables: Vec<Table>,
    }
    let interrupter = database.interrupter();
    let name = file.display().to_string();
    let task = tokio::task::spawn_blocking(move || -> Result<Vec<CopiedTable>, OpenError> {
        copy(&database, &file, &mut |_| {})
    });
    let none = Arc::default();
    let copied = wait(ctx, task, "copying tables", &none, || {
        interrupter.interrupt()
    })
    .await?;
    let copied = copied?;
    let rows: u64 = copied.iter().map(|table| table.rows).sum();
    ctx.console.say(format_args!(
        "wrote {name}: {} tables, {} rows",
        copied.len(),
        thousands(rows)
    ));
    if ctx.console.is_json() {
        let tables = copied.into_iter().map(|table| Table {
            name: table.name,
            rows: table.rows,
        });
        ctx.console.json(&Copy {
            file: name,
            tables: tables.collect(),
        });
    }
    Ok(())
}

/// How often the status line is drawn anew.
const TICK: Duration = Duration::from_millis(200);

/// Waits for a task of the database, with a status line as long as it has given no rows.
async fn wait<T>(
    ctx: &Context,
    mut task: tokio::task::JoinHandle<T>,
    what: &str,
    rows: &Arc<AtomicU64>,
    interrupt: impl Fn(),
) -> Result<T, Failure> {
    let status = ctx.console.status();
    let mut signals = watch_signals()?;
    let began = Instant::now();
    let mut asked = false;
    let result = loop {
        tokio::select! {
            result = &mut task => break Some(result),
            _ = signals.recv() => {
                if asked {
                    break None;
                }
                asked = true;
                interrupt();
            }
            () = tokio::time::sleep(TICK) => {
                let seconds = began.elapsed().as_secs();
                if rows.load(Ordering::Relaxed) > 0 {
                    status.finish_and_clear();
                } else if seconds > 0 {
                    ctx.console.set_status(&status, format_args!("{what} … {seconds} s"));
                }
            }
        }
    };
    status.finish_and_clear();
    match result {
        Some(Ok(result)) => Ok(result),
        Some(Err(error)) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            Err(error) => Err(Failure::new(
                ErrorClass::Interrupted,
                "interrupted",
                error.to_string(),
            )),
        },
        None => Err(QueryError::Interrupted.into()),
    }
}
