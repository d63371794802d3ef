//! `heaptap query`: SQL over an input, with statements from the command line, a file, standard
//! input or a prompt; or a copy of all tables as a database file.

use std::io::{IsTerminal as _, Read as _};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use serde_json::json;

use super::args::Args;
use super::run::{QueryFile, copy, open};
use crate::commands::shared::blocking;
use crate::console::exit::Outcome;
use crate::console::flags::context::Context;
use crate::heaps::java::{ProgressReporter, lying_in};
use crate::heaps::selector::JavaInput;
use execution::{PATIENCE, execute, wait};
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::unfinished::ExistingFile;
use heaptap_base::units::thousands;
use heaptap_base::untrusted::shell::quoted_path;
use heaptap_input::STDIN_NAME;
use heaptap_query::{CopiedTable, Database};
use heaptap_results::overwrite::{self, Replace};
use output::{Form, Output};
use prompt::Piece;

mod execution;
mod output;
mod prompt;

/// Runs the command.
///
/// # Errors
/// Returns an error if the input cannot be read or a statement fails.
pub async fn run(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    let console = &ctx.console;
    args.heap.refuse_java_parts("query")?;
    args.heap.refuse_kinds("query")?;
    let options = args.options();
    let input = JavaInput::parse(&args.input);
    let to = match args.output.clone() {
        Some(output) => {
            let replace = Replace::of_force(args.force);
            let existing = overwrite::check(&output, [&*input.path], replace)?;
            Some((output, existing))
        }
        None => None,
    };
    let sql = statements(&args)?;
    let asks = sql.is_none() && args.output.is_none();
    if sql
        .as_ref()
        .is_some_and(|sql| sql.contains("heap_graph") || sql.contains("heaptap_java"))
        && let Some(directory) = lying_in(&input.path)
    {
        let directory = quoted_path(&directory);
        console.note(format_args!(
            "the Java heaps of this recording have their own tables: `heaptap query {directory}`"
        ));
    }
    if asks && console.is_json() {
        let message = "the interactive prompt does not support `--json`";
        return Err(Failure::usage(message)
            .with_help("pass the statements: `heaptap query INPUT \"SELECT …\"`"));
    }
    let opened = blocking::stepwise(ctx, move |progress: &ProgressReporter| {
        open(&input, options, progress)
    })
    .await?;
    let class = opened.class();
    let QueryFile {
        database,
        findings,
        losses,
    } = opened;
    let form = Form::new(console, args.csv);
    if asks {
        console.findings(&findings);
    }
    let mut has_rows = false;
    let ended = match asks {
        true => prompt::converse(ctx, database, &losses, form).await,
        false => answer(ctx, database, sql, form, to, &mut has_rows).await,
    };
    // They are about rows: without any, the error of an invalid statement stands alone.
    if has_rows || !matches!(&ended, Err(error) if error.kind == "sql") {
        if !asks {
            console.findings(&findings);
        }
        console.findings(&losses.take());
    }
    ended?;
    Ok(Outcome::from_classes(
        class.into_iter().chain(losses.class()),
    ))
}

/// Runs the given statements and commands, and writes the requested copy. Sets `has_rows` if a
/// statement returned any.
async fn answer(
    ctx: &Context,
    mut database: Database,
    sql: Option<String>,
    form: Form,
    to: Option<(PathBuf, ExistingFile)>,
    has_rows: &mut bool,
) -> Result<(), Failure> {
    // Commands print text, so they are not accepted in output formats for programs.
    let pieces = match (sql, form) {
        (None, _) => Vec::new(),
        (Some(sql), Form::Table) => prompt::pieces(&sql),
        (Some(sql), _) => vec![Piece::Statements(sql)],
    };
    for piece in pieces {
        match piece {
            Piece::Command(command) => {
                if !prompt::dot(&ctx.console, &database, &command)? {
                    break;
                }
            }
            Piece::Statements(sql) => {
                let output = Output::new(ctx.console.clone(), form);
                let rows = output.counter();
                let (back, ran) = execute(ctx, database, sql, output, Some(PATIENCE)).await?;
                *has_rows |= rows.load(Ordering::Relaxed) > 0;
                ran?;
                database = back;
            }
        }
    }
    match to {
        Some(file) => write_copy(ctx, database, file).await,
        None => Ok(()),
    }
}

/// Returns the given statements; `None` for a prompt.
fn statements(args: &Args) -> Result<Option<String>, Failure> {
    if let Some(sql) = &args.sql {
        return Ok(Some(sql.clone()));
    }
    let from_stdin = args
        .file
        .as_deref()
        .is_some_and(|file| file.as_os_str() == "-")
        || args.file.is_none() && args.output.is_none() && !std::io::stdin().is_terminal();
    let unreadable = |name: &str, error: std::io::Error| {
        Failure::new(
            ErrorClass::BadInput,
            "sql-unreadable",
            format!("cannot read statements from {name}: {error}"),
        )
        .with_help("check the path and its permissions")
    };
    if from_stdin {
        if args.input == "-" {
            let message = "standard input cannot be both the input and the statements";
            return Err(Failure::usage(message)
                .with_help("pass the statements after the input, or in a file with `--file`"));
        }
        let mut sql = String::new();
        std::io::stdin()
            .lock()
            .read_to_string(&mut sql)
            .map_err(|error| unreadable(STDIN_NAME, error))?;
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

async fn write_copy(
    ctx: &Context,
    database: Database,
    (file, existing): (PathBuf, ExistingFile),
) -> Result<(), Failure> {
    let interrupter = database.interrupter();
    let name = file.display().to_string();
    let task = tokio::task::spawn_blocking(move || -> Result<Vec<CopiedTable>, Failure> {
        copy(&database, &file, existing)
    });
    let none = Arc::default();
    let interrupt = || interrupter.interrupt();
    let copied = wait(
        ctx,
        task,
        "copying tables",
        &none,
        interrupt,
        Some(PATIENCE),
    )
    .await?;
    let copied = copied?;
    let rows: u64 = copied.iter().map(|table| table.rows).sum();
    ctx.console.say(format_args!(
        "wrote {name}: {} tables, {} rows",
        copied.len(),
        thousands(rows)
    ));
    if ctx.console.is_json() {
        let table = |it: CopiedTable| json!({ "name": it.name, "rows": it.rows });
        let tables: Vec<_> = copied.into_iter().map(table).collect();
        ctx.console.json(&json!({ "file": name, "tables": tables }));
    }
    Ok(())
}
