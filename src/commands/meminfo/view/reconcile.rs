//! `heaptap meminfo --reconcile`: the figures of heapprofd, malloc_info, meminfo and the kernel for
//! one process in one table, with their differences.

use serde::Serialize;

use super::Args;
use crate::commands::shared::blocking;
use crate::console::exit::Outcome;
use crate::console::flags::context::Context;
use crate::console::signals::watch_signals;
use crate::console::table::Table as Lines;
use crate::console::{Console, Style};
use crate::heaps::input::{self, DumpList, DumpScope, InputError, LookOptions, OpenedInput};
use crate::heaps::java::ProgressReporter;
use crate::heaps::reconcile::{self, Moment};
use crate::heaps::selector::JavaInput;
use android_memory::reconcile::{Difference, Figure, Table};
use heaptap_base::error::{ErrorClass, Failure};
use heaptap_base::untrusted::sanitize;
use heaptap_base::untrusted::shell::quoted_path;
use heaptap_capture::session::CaptureError;
use heaptap_input::ImportError;
use heaptap_results::lists::process_name;
use heaptap_results::timeline;

/// Maximum number of reasons shown for a missing table.
const WHYS: usize = 3;

/// Document of `--json`.
#[derive(Serialize)]
struct Document {
    tables: Vec<Table>,
}

/// Runs the command.
///
/// # Errors
/// Returns an error if the process does not run, or the recording does not contain figures.
pub(super) async fn run(
    ctx: &Context,
    args: &Args,
    input: Option<JavaInput>,
) -> Result<Outcome, Failure> {
    let Some(input) = input else {
        let targets = args.target.required()?.targets();
        let device = ctx.device().await?;
        ctx.console.say(
            "asking the app for its heap: it collects garbage once for that, and shows so in its \
             log",
        );
        let mut signals = watch_signals()?;
        let table = tokio::select! {
            table = reconcile::of_phone(device, &targets, ctx.globals.user) => table?,
            // The device removes its files when the connection ends.
            _ = signals.recv() => return Err(CaptureError::interrupted().into()),
        };
        return Ok(print(&ctx.console, vec![table]));
    };
    let asked = input.clone();
    let told = blocking::stepwise(ctx, move |_| reconcile::of_malloc_info(&asked.path));
    if let Some(table) = told.await? {
        return Ok(print(&ctx.console, vec![table]));
    }
    let asked = input.clone();
    let found = blocking::stepwise(ctx, move |progress| {
        of_directory(&asked, progress).map_err(with_inputs)
    });
    let tables = choose(found.await?, &input, args)?;
    Ok(print(&ctx.console, tables))
}

/// Returns the failure, for other files with the inputs that have figures.
fn with_inputs(error: InputError) -> Failure {
    let is_other = matches!(error, InputError::Import(ImportError::NotAHeap { .. }));
    let failure = Failure::from(error);
    match is_other {
        true => failure.with_help(
            "pass a recording directory (`heaptap record --with meminfo,smaps`), a trace, or the \
             XML of malloc_info",
        ),
        false => failure,
    }
}

fn print(console: &Console, tables: Vec<Table>) -> Outcome {
    if console.is_json() {
        console.json(&Document { tables });
        return Outcome::Done;
    }
    for (at, table) in tables.iter().enumerate() {
        if at > 0 {
            console.data("");
        }
        show(console, table);
    }
    Outcome::Done
}

fn of_directory(input: &JavaInput, progress: &ProgressReporter) -> Result<Vec<Moment>, InputError> {
    let options = LookOptions {
        errors: true,
        ..LookOptions::default()
    };
    let listed = match input::open(&input.path, &DumpScope::Default, &options, progress) {
        Ok(OpenedInput::Native(file, _)) => file.listed,
        // The system's figures are useful even without a profile.
        Ok(OpenedInput::Java(_)) | Err(InputError::NoHeap { .. } | InputError::Broken { .. }) => {
            DumpList::default()
        }
        Err(error) => return Err(error),
    };
    let known = timeline::beside(&input.path);
    Ok(reconcile::of_directory(
        &input.path,
        &listed,
        &known.timeline,
    ))
}

/// Returns the tables of the selected moment.
fn choose(all: Vec<Moment>, input: &JavaInput, args: &Args) -> Result<Vec<Table>, Failure> {
    let path = input.path.display();
    let mut of_process = all;
    let processes = args.target.filter();
    of_process.retain(|moment| {
        let table = &moment.table;
        processes.takes(Some(table.pid.into()), &table.process)
    });
    // A moment can be known although its files are missing or empty.
    let has_figures = |moment: &Moment| !moment.table.rows.is_empty();
    if !of_process.iter().any(has_figures) {
        let message = match processes.is_empty() {
            false => format!(
                "{path} holds no figures of {} to compare",
                sanitize(&processes.to_string())
            ),
            true => format!("{path} holds no figures of a process to compare"),
        };
        return Err(nothing(message, &of_process).with_help(
            "record with `heaptap record -n APP --with meminfo,smaps`: what the allocator, meminfo \
             and the kernel count of a process is kept at each label and at the end",
        ));
    }
    let meant = match args.moment.scope(input, DumpScope::Default) {
        DumpScope::All => of_process,
        DumpScope::Default | DumpScope::These(_) => {
            let which = args.moment.one(input.clone())?.which;
            let found = reconcile::choose(&input.path, of_process, which.as_ref());
            found.map_err(|missing| {
                let message = format!(
                    "{path} does not have figures of @{}: {}",
                    missing.which, missing.why
                );
                Failure::new(ErrorClass::Usage, "no-such-capture", message)
                    .with_help(missing.help())
            })?
        }
    };
    if !meant.iter().any(has_figures) {
        let at = match meant
            .first()
            .and_then(|moment| moment.capture.label.as_deref())
        {
            Some(label) => format!("at {}", sanitize(label)),
            None => "of its end".to_owned(),
        };
        let message = format!("{path} holds no figures {at}");
        return Err(nothing(message, &meant).with_help(format!(
            "`heaptap meminfo {} --reconcile --at all` shows the moments that have some",
            quoted_path(&input.path)
        )));
    }
    Ok(meant.into_iter().map(|moment| moment.table).collect())
}

/// Returns the failure for a missing table, with the known reasons.
fn nothing(mut message: String, moments: &[Moment]) -> Failure {
    let missing = moments
        .iter()
        .rev()
        .flat_map(|moment| &moment.table.missing);
    let mut whys: Vec<&str> = Vec::new();
    for missing in missing {
        if !whys.contains(&missing.why.as_str()) && whys.len() < WHYS {
            whys.push(&missing.why);
        }
    }
    if !whys.is_empty() {
        message.push_str(": ");
        message.push_str(&sanitize(&whys.join("; ")));
    }
    Failure::new(ErrorClass::Empty, "nothing-to-reconcile", message)
}

fn show(console: &Console, table: &Table) {
    let at = match &table.label {
        Some(label) => format!(" at {}", sanitize(label)),
        None => String::new(),
    };
    let who = process_name(table.pid.into(), &sanitize(&table.process));
    console.data(format_args!("{}{at}", console.styled(Style::Strong, who)));
    // Figures read seconds apart can differ for that reason.
    let is_apart = table.rows.iter().any(|row| row.apart_ms.is_some());
    let mut lines = match is_apart {
        true => Lines::new(&["bytes", "read", "figure"]),
        false => Lines::new(&["bytes", "figure"]),
    };
    for row in &table.rows {
        let mut cells = vec![row.amount()];
        if is_apart {
            cells.push(row.apart().unwrap_or_default());
        }
        lines.row(cells, row.name.clone());
        if matches!(
            row.figure,
            Figure::Profiled | Figure::HeapAlloc | Figure::NativeResident
        ) {
            lines.style(Style::Strong);
        }
        lines.remark(row.remark());
    }
    lines.show(console);
    for difference in &table.differences {
        show_difference(console, table, difference);
    }
    for missing in &table.missing {
        console.data("");
        console.data(format_args!(
            "{} {}",
            console.styled(Style::Warn, format!("{}:", missing.figure.label())),
            sanitize(&missing.why)
        ));
        if let Some(help) = &missing.help {
            console.data(format_args!(
                "  {} {}",
                console.styled(Style::Help, "→"),
                sanitize(help)
            ));
        }
    }
}

fn show_difference(console: &Console, table: &Table, difference: &Difference) {
    console.data("");
    console.data(format_args!(
        "{} → {}: {}, {}",
        table.name_of(difference.from),
        table.name_of(difference.to),
        console.styled(Style::Strong, difference.amount()),
        difference.about
    ));
    for cause in &difference.causes {
        console.data(format_args!("  - {}", sanitize(&cause.words())));
        if let Some(remedy) = &cause.remedy {
            console.data(format_args!(
                "    {} {remedy}",
                console.styled(Style::Help, "→")
            ));
        }
    }
}
