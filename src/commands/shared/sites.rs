//! Details of a growing callsite: location, growth, remedy, callers.

use crate::commands::shared::native::{self, shortened};
use crate::console::table::shorten;
use crate::console::wrap::filled;
use crate::console::{Console, Style};
use crate::heaps::growth::{HeapRow, MAX_ALLOCATORS, SiteRow};
use crate::heaps::input::facts::StackFrame;
use heaptap_analyze::native::own::is_library_function;
use heaptap_analyze::native::scope;
use heaptap_base::units::{ByteSize, counted};
use heaptap_base::untrusted;
use std::borrow::Cow;

/// Callers shown of a stack.
const CALLERS: usize = 4;

/// Prints a growing callsite: location, growth, remedy, callers. `elsewhere`: other rows of its
/// function.
pub(crate) fn show_site(
    console: &Console,
    lead: &str,
    site: &SiteRow,
    heaps: &[HeapRow],
    elsewhere: Option<String>,
) {
    let width = console.stdout_width().unwrap_or(usize::MAX);
    let indent = " ".repeat(lead.len());
    let name = match site.unit {
        "line" => format!(
            "{} ({})",
            site.own.function,
            counted(u64::from(site.callsites), "callsite", "callsites")
        ),
        _ => site.own.function.clone(),
    };
    let name = untrusted::sanitize(&name).into_owned();
    let room = width.saturating_sub(indent.len());
    let name = shorten(&name, room).unwrap_or(Cow::Borrowed(&name));
    console.data(format_args!(
        "{lead}{}",
        console.styled(Style::Strong, name)
    ));
    let mut about = vec![place(&site.own)];
    about.extend(through(site));
    if heaps.len() > 1 {
        about.push(format!("heap {}", site.heap));
    }
    about.extend(elsewhere);
    about.retain(|text| !text.is_empty());
    if !about.is_empty() {
        let about = untrusted::sanitize(&about.join(" · ")).into_owned();
        paragraph(console, &indent, &about, Style::Dim);
    }
    let freed = match site.freed_share {
        Some(share) if share < 0.005 => " · none of it freed".to_owned(),
        Some(share) => format!(" · {:.0}% of its allocations freed", share * 100.0),
        None => String::new(),
    };
    let heap = heaps.iter().find(|heap| heap.heap == site.heap);
    console.data(format_args!(
        "{indent}{:+} per iteration · {} unreleased at {}{freed}",
        site.growth_per_iteration.rate.shown(),
        site.held_estimate.shown(),
        untrusted::sanitize(heap.map_or("", last_dump)),
    ));
    paragraph(
        console,
        &format!("{indent}→ "),
        &untrusted::sanitize(&site.sentence),
        Style::Help,
    );
    let of_line = site.callers.iter().take(CALLERS).map(|caller| {
        let name = shortened(&caller.function);
        format!(
            "{name} ({})",
            counted(caller.callsites.into(), "callsite", "callsites")
        )
    });
    let of_line: Vec<String> = of_line.collect();
    if !of_line.is_empty() {
        let text = untrusted::sanitize(&of_line.join(", ")).into_owned();
        paragraph(console, &format!("{indent}called by "), &text, Style::Dim);
    }
    let callers: Vec<&str> = callers(site).map(|frame| frame.function.as_str()).collect();
    if !callers.is_empty() {
        for line in called_by(&callers, room) {
            console.laid_out(format_args!("{indent}{}", console.styled(Style::Dim, line)));
        }
    }
}

/// Returns the callers that are shown of a location, nearest first: those outside of the libraries
/// of C++ and Rust.
pub(crate) fn callers(site: &SiteRow) -> impl Iterator<Item = &StackFrame> {
    let own = site.stack.iter().position(|frame| *frame == site.own);
    let callers = site.stack.iter().skip(own.map_or(1, |at| at + 1));
    let callers = callers.filter(|frame| !is_library_function(&frame.function));
    callers.take(CALLERS)
}

/// Returns the functions that allocate, or their addresses, if they are not the location itself.
fn through(site: &SiteRow) -> Option<String> {
    if site.allocates != site.own {
        return Some(format!("through {}", site.allocates.function));
    }
    let own = &site.own.function;
    let others = site.allocators.iter().filter(|function| *function != own);
    let others: Vec<&str> = others.map(String::as_str).collect();
    let more = match site.allocators.len() < MAX_ALLOCATORS {
        true => "",
        false => " …",
    };
    (!others.is_empty()).then(|| format!("through {}{more}", others.join(", ")))
}

/// Returns by how many bytes all other rows shrank together, if these `rows` grew by more than the
/// `total`, beyond its upper limit `high`.
pub(crate) fn shrank_elsewhere(rows: f64, total: f64, high: f64) -> Option<ByteSize> {
    let by = rows - total;
    (rows > high.max(0.0) && by >= 1.0).then_some(ByteSize(by as u64))
}

/// Returns the name of the last compared dump: `@LABEL` or `@N`, of several inputs with its file.
pub(crate) fn last_dump(heap: &HeapRow) -> &str {
    heap.dumps.last().map_or("", |dump| &dump.brief)
}

/// Formats callers on one line, nearest first, or on several if they do not fit: template arguments
/// and parameters are dropped first, and names are never truncated.
pub(crate) fn called_by(callers: &[&str], room: usize) -> Vec<String> {
    let forms: Vec<Vec<Cow<'_, str>>> = callers
        .iter()
        .map(|name| scope::shortened(name).collect())
        .collect();
    let parts_of = |form: usize| {
        let names = forms.iter().filter_map(|forms| forms.get(form));
        let part = |(at, name): (usize, &Cow<'_, str>)| match at {
            0 => format!("called by {name}"),
            _ => format!("← {name}"),
        };
        names.enumerate().map(part).collect::<Vec<_>>()
    };
    // Without their scopes, functions would be hard to distinguish.
    for form in 0..=scope::WITHOUT_PARAMETERS {
        let line = parts_of(form).join(" ");
        if console::measure_text_width(&line) <= room {
            return vec![line];
        }
    }
    let parts = parts_of(scope::WITHOUT_PARAMETERS);
    filled(parts.iter().map(String::as_str), room)
}

/// `history.cc:42 libexample.so`.
pub(crate) fn place(frame: &StackFrame) -> String {
    let known = |text| Some(text).filter(|text: &&str| !text.is_empty());
    let line = Some(frame.line).filter(|line| *line > 0);
    native::place(known(&frame.library), known(&frame.file), line)
}

/// Prints styled text after a plain prefix.
pub(crate) fn paragraph(console: &Console, lead: &str, text: &str, style: Style) {
    console.data(format_args!("{lead}{}", console.styled(style, text)));
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_that_grow_by_more_than_the_total_tell_that_others_shrank() {
        let mib = |mib: f64| mib * 1_048_576.0;
        let shrank = |rows, total, high| shrank_elsewhere(mib(rows), mib(total), mib(high));
        assert_eq!(shrank(4.0, 3.0, 3.0), Some(ByteSize(1 << 20)));
        assert_eq!(shrank(1.0, -2.0, -1.5), Some(ByteSize(3 << 20)));
        assert_eq!(shrank(4.0, 3.8, 4.2), None, "within its error");
        assert_eq!(shrank(3.0, 3.0 - 1e-9, 3.0 - 1e-9), None, "rounding");
        assert_eq!(shrank(0.0, -3.0, -2.0), None, "no row grew");
    }
}
