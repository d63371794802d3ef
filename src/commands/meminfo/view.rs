//! `heaptap meminfo`: memory of processes by category, with important rows marked, and the meanings
//! of rows.

mod explain;
mod phone;
mod reconcile;
mod show;

use super::args::Args;
use super::live::view as live;
use crate::commands::shared::blocking;
use crate::console::exit::Outcome;
use crate::console::flags::context::Context;
use crate::console::flags::source;
use crate::console::{Console, save_file};
use crate::heaps::meminfo::{self, Document, Question};
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::untrusted::sanitize;
use heaptap_export::csv::cell;

/// Runs the command.
///
/// # Errors
/// Returns an error if no selected process runs, the device or app does not respond, or a file
/// contains something else.
pub async fn run(ctx: &Context, args: Args) -> Result<Outcome, Failure> {
    if let Some(input) = &args.input {
        args.moment.check([input])?;
    }
    let rows = rows_of(&args)?;
    let input = match &args.input {
        Some(typed) => Some(source::input("meminfo", typed)?),
        None => {
            args.moment.refuse_without_input()?;
            None
        }
    };
    if args.reconcile {
        return reconcile::run(ctx, &args, input).await;
    }
    let whole = args.system || input.is_some();
    let shapes_lists = args.by.is_some() || args.rows.limit.is_some();
    if shapes_lists && !whole {
        return Err(no_lists());
    }
    if !whole && args.target.is_empty() {
        if rows.is_empty() {
            return Err(Failure::usage(
                "`--explain` requires a process or a row, such as `--explain=Graphics`",
            ));
        }
        // Without a process, the meanings do not depend on the device.
        explain::rows(&ctx.console, None, &rows);
        return Ok(Outcome::Done);
    }
    if args.live.every.is_some() {
        return live::run(
            ctx,
            &args.live,
            args.target.targets(),
            args.no_local,
            args.csv,
        )
        .await;
    }
    save_file::check(args.save.as_deref(), args.force)?;
    let document = match input {
        Some(input) => {
            if !input.path.is_dir() && !args.moment.moments.is_empty() {
                return Err(Failure::usage(
                    "`--at` applies to recordings: a file has one moment",
                ));
            }
            let input = args.moment.one(input)?;
            let processes = args.target.filter();
            blocking::stepwise(ctx, move |progress| {
                progress.begin("reading it");
                meminfo::read(&input, &processes)
            })
            .await?
        }
        None => ask(ctx, &args).await?,
    };
    if shapes_lists && document.phone.is_none() {
        return Err(no_lists());
    }
    let console = &ctx.console;
    for trouble in &document.troubles {
        console.warn(format_args!(
            "the answer of the device is incomplete: {trouble}"
        ));
    }
    console.findings(&document.missing);
    if console.is_json() {
        console.json(&document);
    } else if args.csv {
        print_csv(console, &document);
    } else {
        let lists = phone::Lists::from_args(&args);
        match (!args.explain.is_empty(), rows.is_empty()) {
            (false, _) => show::show(console, &document, &lists, true),
            (true, true) => {
                // The meanings are shown with the sizes of the rows.
                show::show(console, &document, &lists, false);
                explain::all(console, &document);
            }
            (true, false) => explain::rows(console, Some(&document), &rows),
        }
        show::footer(console, &document, args.local);
    }
    Ok(match document.troubles.is_empty() {
        true => Outcome::Done,
        false => Outcome::Ended(ErrorClass::Incomplete),
    })
}

/// Returns the rows selected by `--explain=`.
fn rows_of(args: &Args) -> Result<Vec<&'static str>, Failure> {
    let named = args.explain.iter().filter(|text| !text.is_empty());
    named
        .map(|text| explain::row_called(text).ok_or_else(|| no_row(text)))
        .collect()
}

/// Returns the failure for options of lists, if the answer is not of the whole device.
fn no_lists() -> Failure {
    Failure::usage("`--by` and `-l` require `--system` or a text of the whole device")
}

fn no_row(text: &str) -> Failure {
    let help = match explain::row_like(text) {
        Some(row) => format!("did you mean `--explain=\"{row}\"`?"),
        None => "list the rows of a process with `--explain` alone".to_owned(),
    };
    Failure::usage(format!("meminfo does not have a row {}", sanitize(text))).with_help(help)
}

async fn ask(ctx: &Context, args: &Args) -> Result<Document, Failure> {
    let question = Question {
        targets: args.target.targets(),
        user: ctx.globals.user,
        all: args.wide,
        details: args.details,
        local: args.local,
    };
    let device = ctx.device().await?;
    let answer = meminfo::ask(device, &question).await?;
    if let Some(file) = &args.save {
        save_file::write(&ctx.console, file, &answer.text)?;
    }
    Ok(answer.document)
}

fn print_csv(console: &Console, document: &Document) {
    console.laid_out("process,pid,section,row,column,value,unit");
    for process in &document.processes {
        let name = process.name.as_deref().unwrap_or_default();
        let pid = process.pid.map(|pid| pid.to_string()).unwrap_or_default();
        for figure in process.figures() {
            console.laid_out(format_args!(
                "{},{pid},{},{},{},{},{}",
                cell(name),
                figure.section,
                cell(figure.row),
                cell(figure.column),
                figure.value,
                figure.unit
            ));
        }
    }
    let Some(phone) = &document.phone else {
        return;
    };
    for list in &phone.lists {
        for item in &list.items {
            let pid = item.pid.map(|pid| pid.to_string()).unwrap_or_default();
            let by = format!("{} by {}", list.measure, list.by);
            let name = cell(&item.name);
            let by = cell(&by);
            console.laid_out(format_args!(
                "{name},{pid},{by},{name},{},{},bytes",
                list.measure, item.bytes
            ));
            if let Some(swap) = item.swap {
                console.laid_out(format_args!("{name},{pid},{by},{name},swap,{swap},bytes"));
            }
        }
    }
    for line in &phone.ram {
        let name = cell(&line.name);
        if let Some(bytes) = line.bytes {
            console.laid_out(format_args!(",,ram,{name},total,{bytes},bytes"));
        }
        for (of, bytes) in &line.of {
            console.laid_out(format_args!(",,ram,{name},{},{bytes},bytes", cell(of)));
        }
    }
}
