//! Shared parts of the views of native heaps: heading, sizes with their sampling error in columns,
//! one-line stacks, warnings.

use std::collections::BTreeSet;
use std::path::{PathBuf, is_separator};

use crate::commands::shared::java::Cell;
use crate::console::{Console, Style};
use crate::heaps::input::facts::{DumpFacts, Limits, StackFrame};
use crate::heaps::input::rows::Located;
use heaptap_analyze::native::own::is_library_function;
use heaptap_analyze::native::scope;
use heaptap_analyze::sampling::{Estimate, Form, Shown};
use heaptap_base::units::{ByteSize, thousands};
use heaptap_model::names::could_be_app;
use heaptap_model::profile::DumpKind;
use heaptap_results::findings::Finding;
use heaptap_results::lists::process_name;
use heaptap_results::unwinding;

/// Default number of callsites in JSON and CSV: a heap has hundreds of thousands.
pub(crate) const MAX_CALLSITES: usize = 1000;

/// Returns the heading of the name column for rows grouped `by`.
pub(crate) fn what_of(by: &str) -> &str {
    match by {
        "callsite" => "function, and its callers",
        "class" => "class or scope",
        by => by,
    }
}

/// Returns notes that explain error frames.
pub(crate) fn unwinder_notes(functions: impl Iterator<Item = impl AsRef<str>>) -> Vec<String> {
    let code = |function: &str| unwinding::code(function).map(str::to_owned);
    let codes: BTreeSet<String> = functions.filter_map(|f| code(f.as_ref())).collect();
    let note = |code: &String| {
        let why = unwinding::reason(code);
        format!("ERROR {code}: the callers are missing because {why}")
    };
    codes.iter().map(note).collect()
}

/// Returns a note if one of the dumps is of a process that was running when profiling began.
pub(crate) fn attached_note<'a>(
    dumps: impl Iterator<Item = &'a DumpFacts>,
) -> Option<&'static str> {
    let mut attached = dumps.filter(|dump| dump.is_attached).peekable();
    attached.peek()?;
    Some(match attached.any(|dump| could_be_app(&dump.process)) {
        true => "attached after start; earlier allocations are missing (record --launch has them)",
        false => "attached after start; earlier allocations are missing",
    })
}

/// Returns the heading of a view's column.
pub(crate) fn view_heading<'a>(dump: &DumpFacts, view: &'a str) -> &'a str {
    match view {
        "objects" if dump.counts_samples => "samples",
        "alloc_objects" if dump.counts_samples => "alloc_samples",
        view => view,
    }
}

/// Prints the heading of a dump.
pub(crate) fn heading(console: &Console, dump: &DumpFacts) {
    let mut about = Vec::new();
    if !dump.process.is_empty() || dump.pid > 0 {
        about.push(process_name(dump.pid, &dump.process));
    }
    if !dump.heap.is_empty() {
        about.push(dump.heap.clone());
    }
    if dump.dumps > 1 {
        about.push(format!("dump {} of {}", dump.number, dump.dumps));
    }
    about.push(match dump.sampling_interval_bytes {
        _ if dump.kind == DumpKind::JavaHeap => "Java heap".to_owned(),
        _ if dump.kind == DumpKind::Difference => "difference of two dumps".to_owned(),
        0 => "unknown sampling interval".to_owned(),
        1 => "every allocation recorded".to_owned(),
        bytes => format!("sampled every {}", ByteSize(bytes)),
    });
    match dump.kind {
        DumpKind::AtMaximum => about.push("when the heap was largest".to_owned()),
        DumpKind::AllocationsOnly => about.push("frees are unknown".to_owned()),
        DumpKind::Cumulative | DumpKind::JavaHeap | DumpKind::Difference => {}
    }
    if dump.is_attached {
        about.push("attached after start".to_owned());
    }
    if dump.flags.is_cut_short() {
        about.push("ended early: later data are missing".to_owned());
    }
    if dump.unfinished {
        about.push("incomplete: values are lower bounds".to_owned());
    }
    console.data(format_args!(
        "{}  {}",
        console.styled(Style::Strong, &dump.name),
        console.styled(Style::Dim, about.join(" · "))
    ));
}

/// Prints the warnings about inputs. `typed` precedes those that do not begin with one of the
/// `paths`.
pub(crate) fn warn(console: &Console, typed: &str, paths: &[PathBuf], warnings: &[Finding]) {
    for warning in warnings {
        let names_file = |path: &PathBuf| {
            let rest = warning.message.strip_prefix(&*path.to_string_lossy());
            rest.is_some_and(|rest| rest.starts_with(|c| c == ':' || is_separator(c)))
        };
        match paths.iter().any(names_file) {
            true => console.finding(warning, &warning.message),
            false => console.finding(warning, format_args!("{typed}: {}", warning.message)),
        }
    }
}

/// Formats a value in bytes or another unit; `-` for zero.
pub(crate) fn value(value: i64, unit: &str) -> String {
    match (value, unit) {
        (0, _) => "-".to_owned(),
        (value, "bytes") => {
            let sign = if value < 0 { "-" } else { "" };
            format!("{sign}{}", ByteSize(value.unsigned_abs()))
        }
        (value, _) => thousands(value),
    }
}

/// Formats sampled bytes and their error for two columns, with significant digits only.
pub(crate) fn estimated(bytes: i64, limits: Option<&Limits>) -> (String, String) {
    match limits {
        Some(limits) if bytes != 0 => parts(&limits.estimate.shown(), false),
        _ => (value(bytes, "bytes"), String::new()),
    }
}

/// Formats sampled bytes next to a part of them, `part` with `part_limits`: rounding never makes
/// the total smaller than its part.
pub(crate) fn beside(
    bytes: i64,
    limits: Option<&Limits>,
    (part, part_limits): (i64, Option<Limits>),
) -> String {
    match part_limits {
        Some(part_limits) if bytes != 0 && part != 0 => {
            let exact = Estimate::exact(bytes, 0);
            let estimate = limits.map_or(&exact, |limits| &limits.estimate);
            parts(&estimate.shown_beside(&part_limits.estimate.shown()), false).0
        }
        _ => estimated(bytes, limits).0,
    }
}

/// Formats an estimate as a value and its error.
pub(crate) fn parts(shown: &Shown, signed: bool) -> (String, String) {
    let (unit, d) = (shown.unit.name(), shown.decimals);
    let number = |x: f64| match signed {
        true => format!("{x:+.d$}"),
        false => format!("{x:.d$}"),
    };
    let limits = |low: f64, high: f64| match signed || low < 0.0 {
        true => format!("{} to {}", number(low), number(high)),
        false => format!("{}-{}", number(low), number(high)),
    };
    match shown.form {
        Form::Exact(value) => (format!("{} {unit}", number(value)), String::new()),
        Form::PlusMinus(value, half) => {
            (format!("{} {unit}", number(value)), format!("±{half:.d$}"))
        }
        Form::Range(value, low, high) => (format!("{} {unit}", number(value)), limits(low, high)),
        Form::Rough(value, low, high, _) => {
            (format!("~{} {unit}", number(value)), limits(low, high))
        }
        Form::Below(high) => ("-".to_owned(), format!("<{high:.d$} {unit}")),
    }
}

/// Formats a share for a column.
pub(crate) fn percent(share: Option<f64>) -> String {
    match share {
        None => "-".to_owned(),
        Some(share) => format!("{:.1}", share * 100.0),
    }
}

/// Returns the callers of a stack's leaf on one line: `← load ← main`.
pub(crate) fn callers(stack: &[StackFrame]) -> String {
    let names = caller_names(stack).map(|name| format!("← {name}"));
    names.collect::<Vec<_>>().join(" ")
}

/// Returns the callers of a stack's leaf, nearest first, functions only. Of more than two calls in a
/// row inside the libraries of C++ and Rust, only the outermost is shown, after `…`.
pub(crate) fn caller_names(stack: &[StackFrame]) -> impl Iterator<Item = String> {
    let callers = stack.get(1..).unwrap_or_default();
    let names = callers.chunk_by(|a, b| is_library(a) && is_library(b));
    let names = names.flat_map(|run| match run {
        [_, _, .., last] => vec!["…".to_owned(), shortened(&last.function)],
        run => run.iter().map(|f| shortened(&f.function)).collect(),
    });
    names.take(CALLERS)
}

fn is_library(frame: &StackFrame) -> bool {
    is_library_function(&frame.function)
}

/// Returns the shortest form of a function's name.
pub(crate) fn shortened(function: &str) -> String {
    let short = scope::shortened(function).last();
    let short = short.as_deref().unwrap_or(function);
    short.trim_start_matches('…').to_owned()
}

/// Callers in a line: more than fit.
const CALLERS: usize = 8;

/// Frames of a stack that are read for a line: enough to find callers outside of libraries.
pub(crate) const FRAMES: usize = 64;

/// Returns the location of a row's code: `cache.cpp:12 libcache.so`.
pub(crate) fn place(library: Option<&str>, file: Option<&str>, line: Option<u32>) -> String {
    let mut parts = Vec::new();
    if let Some(file) = file {
        let name = file.rsplit(['/', '\\']).next().unwrap_or(file);
        parts.push(match line {
            Some(line) => format!("{name}:{line}"),
            None => name.to_owned(),
        });
    }
    parts.extend(library.map(str::to_owned));
    parts.join(" ")
}

/// Returns name and location of a row as cells of CSV.
pub(crate) fn located_cells(at: &Located) -> [Cell<'_>; 4] {
    [
        Cell::Text(&at.name),
        Cell::text(at.library.as_deref()),
        Cell::text(at.file.as_deref()),
        Cell::maybe(at.line),
    ]
}

/// Returns the functions of a stack as a cell of CSV, leaf first.
pub(crate) fn stack_cell(stack: Option<&[StackFrame]>) -> String {
    let functions = stack.unwrap_or_default().iter();
    let functions: Vec<&str> = functions.map(|frame| frame.function.as_str()).collect();
    functions.join(";")
}

#[cfg(test)]
mod tests {
    use super::{StackFrame, callers, unwinder_notes};

    #[test]
    fn error_codes_of_the_unwinder_are_put_into_words() {
        let functions = [
            "main",
            "ERROR MEMORY_INVALID",
            "ERROR 2",
            "ERROR MEMORY_INVALID",
        ];
        assert_eq!(
            unwinder_notes(functions.into_iter()),
            [
                "ERROR 2: the callers are missing because unwinding failed",
                "ERROR MEMORY_INVALID: the callers are missing because the memory of the stack \
                 cannot be read",
            ]
        );
    }

    #[test]
    fn many_calls_inside_of_libraries_are_one_mark() {
        let line = |functions: &[&str]| {
            let frame = |function: &&str| StackFrame {
                function: (*function).to_owned(),
                library: String::new(),
                file: String::new(),
                line: 0,
            };
            callers(&functions.iter().map(frame).collect::<Vec<_>>())
        };
        let stack = [
            "alloc::vec::Vec<T,A>::grow",
            "alloc::vec::Vec<T,A>::push",
            "<alloc::vec::Vec<T> as core::iter::FromIterator<T>>::from_iter",
            "core::iter::Iterator::collect",
            "app::build::{{closure}}",
            "core::ops::FnOnce::call_once",
            "std::rt::lang_start",
            "main",
        ];
        assert_eq!(
            line(&stack),
            "← … ← collect ← build::{{closure}} ← call_once ← lang_start ← main"
        );
        assert_eq!(line(&["app::f"]), "");
        assert_eq!(line(&[]), "");
    }
}
