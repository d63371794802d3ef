//! `heaptap meminfo`: how the memory of processes divides, with what matters marked, and what
//! rows mean.

mod explain;
mod phone;
mod show;

use std::path::{Path, PathBuf};

use super::args::Args;
use super::live::view as live;
use crate::config::Targets;
use crate::console::{Console, save_file};
use crate::error::{ErrorClass, Failure};
use crate::exit::Outcome;
use crate::export::csv::cell;
use crate::flags::context::Context;
use crate::flags::named::Named;
use crate::system::meminfo::{self, Document, Question};
use crate::untrusted::sanitize;
use crate::views::blocking;

/// Runs the command.
///
/// # Errors
/// Where nothing runs that was asked for, the phone or the app does not answer, or a file holds
/// something else.
pub async fn run(ctx: &Context, mut args: Args) -> Result<Outcome, Failure> {
    let rows = rows_of(&mut args)?;
    // As with smaps, gc and reconcile, a recording or a text stands for itself.
    if !args.system && args.file.is_none() && Named::file_alone(&args.targets)?.is_some() {
        if args.all || args.details || args.local || args.save.is_some() {
            return Err(usage(
                "--all, --details, --local and --save are about a process that runs, not a file",
            ));
        }
        if args.live.every.is_some() {
            return Err(usage("--every is about a process that runs, not a file"));
        }
        args.file = args.targets.pop().map(PathBuf::from);
    }
    let whole = args.system || args.file.is_some();
    if whole && !args.targets.is_empty() {
        return Err(usage(
            "a target is of no use with --system or --file: they have processes of their own",
        ));
    }
    if (args.by.is_some() || args.top.is_some()) && !whole {
        return Err(usage(
            "--by and --top are about the whole phone: --system, or --file",
        ));
    }
    if !whole && args.targets.is_empty() {
        if rows.is_empty() {
            return Err(usage(
                "--explain wants a process whose rows it is to explain, or a row: --explain=Graphics",
            ));
        }
        // Rows alone mean the same on every phone.
        explain::rows(&ctx.console, None, &rows);
        return Ok(Outcome::Done);
    }
    if args.live.every.is_some() {
        return live::run(ctx, &args.live, targets(&args.targets), args.csv).await;
    }
    save_file::check(args.save.as_deref(), args.force)?;
    let document = match args.file.clone() {
        Some(path) => {
            blocking::stepwise(ctx, move |progress| {
                progress.begin("reading it");
                meminfo::read(&path)
            })
            .await?
        }
        None => ask(ctx, &args)
            .await
            .map_err(|failure| slip(failure, &args))?,
    };
    let console = &ctx.console;
    for trouble in &document.troubles {
        console.warn(format_args!("the phone could not tell all: {trouble}"));
    }
    if console.is_json() {
        console.json(&document);
    } else if args.csv {
        print_csv(console, &document);
    } else {
        let lists = phone::Lists::of(&args);
        match (!args.explain.is_empty(), rows.is_empty()) {
            (false, _) => show::show(console, &document, &lists, true),
            (true, true) => {
                // What a row means stands beside its size.
                show::show(console, &document, &lists, false);
                explain::all(console, &document);
            }
            (true, false) => explain::rows(console, Some(&document), &rows),
        }
        show::footer(console, &document);
    }
    Ok(match document.troubles.is_empty() {
        true => Outcome::Done,
        false => Outcome::Ended(ErrorClass::Incomplete),
    })
}

/// A process of Android's is called so: the row is `System`, or `--explain=system`.
const A_PROCESS: &str = "system";

/// Which rows are to be explained: those behind `--explain=`, and those among the targets, out of
/// which they are taken.
fn rows_of(args: &mut Args) -> Result<Vec<&'static str>, Failure> {
    let mut rows = Vec::new();
    for text in args.explain.iter().filter(|text| !text.is_empty()) {
        rows.push(explain::row_called(text).ok_or_else(|| no_row(text))?);
    }
    if args.explain.is_empty() {
        return Ok(rows);
    }
    args.targets.retain(|text| match explain::row_called(text) {
        Some(row) if text != A_PROCESS => {
            rows.push(row);
            false
        }
        _ => true,
    });
    // Alone it may be a process's name all the same: the phone knows.
    let is_alone = args.targets.len() == 1 && !args.system && args.file.is_none();
    let mut slips = args.targets.iter().filter(|text| is_slip(text));
    match slips.next() {
        Some(text) if !is_alone => Err(no_row(text)),
        _ => Ok(rows),
    }
}

/// Whether a target is more like a row's name.
fn is_slip(text: &str) -> bool {
    let name = text.strip_prefix('.').unwrap_or(text);
    let is_plain = !name.contains([':', '/', '*', '.']);
    is_plain && explain::row_like(text).is_some() && !Path::new(text).exists()
}

fn no_row(text: &str) -> Failure {
    let help = match explain::row_like(text) {
        Some(row) => format!("did you mean --explain=\"{row}\"? A process goes by its pid, too"),
        None => "--explain alone lists the rows that a process has".to_owned(),
    };
    usage(&format!("meminfo has no row {}", sanitize(text))).with_help(help)
}

/// What is no process may have been meant as a row.
fn slip(failure: Failure, args: &Args) -> Failure {
    let meant = args.targets.first().filter(|_| !args.explain.is_empty());
    match meant.filter(|text| failure.kind == "target-not-found" && is_slip(text)) {
        Some(text) => no_row(text),
        None => failure,
    }
}

fn usage(what: &str) -> Failure {
    Failure::new(ErrorClass::Usage, "usage", what)
}

async fn ask(ctx: &Context, args: &Args) -> Result<Document, Failure> {
    let question = Question {
        targets: targets(&args.targets),
        user: ctx.globals.user,
        all: args.all,
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

/// A name is a process's or a package's: the package's other processes are meant, too.
fn targets(typed: &[String]) -> Targets {
    let mut targets = Targets::default();
    for target in typed {
        if let Ok(pid) = target.parse::<u32>() {
            targets.pids.push(pid);
            continue;
        }
        targets.names.push(target.clone());
        if !target.contains([':', '/', '*']) {
            targets.packages.push(target.clone());
        }
    }
    targets
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
