//! Leaks on the page: leaking objects and their holders.

use super::super::html::{Foreign, Html};
use heaptap_analyze::leaks::{Leaks, Reference, Shape, Status, Step};
use heaptap_base::units::{ByteSize, counted, thousands};
use std::borrow::Cow;

/// Maximum number of groups; the viewer has more.
const GROUPS: usize = 20;

/// Writes the section.
pub(super) fn write(html: &mut Html, leaks: &Leaks, number: usize) {
    html.add(format_args!("<h3 id=\"leaks{number}\">Leaks</h3>\n"));
    if leaks.groups.is_empty() {
        let text = match leaks.untold.is_empty() {
            true => "No leaks found: no reachable object is past the end of its lifecycle.",
            false => "No leaks found in what could be analyzed.",
        };
        html.add(format_args!("<p class=\"note\">{text}</p>\n"));
    }
    for group in leaks.groups.iter().take(GROUPS) {
        let whose = match &group.library {
            Some(known) => format!("; {}", known.title()),
            None => String::new(),
        };
        html.add(format_args!(
            "<details open><summary><span class=\"size\">{}</span>{} × {} \
             <span class=\"note\">{}, {}{}</span></summary>\n<p>{}</p>\n<pre>root: {}\n",
            ByteSize(group.kept.total_bytes()),
            thousands(group.leaks.len() as u64),
            Foreign(&group.class),
            group.what,
            group.certainty.name(),
            Foreign(&whose),
            Foreign(&group.advice),
            Foreign(&group.root),
        ));
        for step in shortened(&group.path) {
            let step = match step {
                Ok(step) => step,
                Err(left_out) => {
                    html.add(format_args!("  … {left_out} more\n"));
                    continue;
                }
            };
            left_out(html, step.left_out);
            html.add(format_args!("{}", Foreign(&named(step))));
            let status = match step.status {
                Status::Leaking => "leaks: ",
                Status::NotLeaking => "in use: ",
                Status::Unknown => "",
            };
            if !(status.is_empty() && step.reason.is_empty()) {
                html.add(format_args!(
                    "   <span class=\"note\">{status}{}</span>",
                    Foreign(&step.reason)
                ));
            }
            if let Some(name) = referred(step) {
                match step.suspect {
                    true => html.add(format_args!("\n  ↓ <mark>{}</mark>", Foreign(&name))),
                    false => html.add(format_args!("\n  ↓ {}", Foreign(&name))),
                }
            }
            html.add(format_args!("\n"));
        }
        html.add(format_args!("</pre></details>\n"));
    }
    let left_out = leaks.groups.len().saturating_sub(GROUPS);
    if left_out > 0 {
        html.add(format_args!(
            "<p class=\"note\">{} retain less and are left out.</p>\n",
            counted(left_out as u64, "group", "groups")
        ));
    }
    for unheld in &leaks.unheld {
        html.add(format_args!(
            "<p class=\"note\">{} × {} ({}): {}.</p>\n",
            thousands(unheld.count),
            Foreign(&unheld.class),
            unheld.kind.leaked(),
            unheld.verdict()
        ));
    }
    for untold in &leaks.untold {
        html.add(format_args!(
            "<p class=\"note\">Not analyzed: {}</p>\n",
            Foreign(untold)
        ));
    }
}

/// Returns the reference of a step to the next one, for display.
pub(super) fn referred(step: &Step) -> Option<String> {
    match &step.repeated {
        Some(repeated) => Some(repeated.text()),
        None => step.reference.as_ref().map(Reference::shown),
    }
}

/// Returns the class name of a step, with `class ` for class objects as in other views.
pub(super) fn named(step: &Step) -> Cow<'_, str> {
    match step.shape {
        Shape::Class => Cow::Owned(format!("class {}", step.class)),
        Shape::Instance | Shape::Array | Shape::Thread => Cow::Borrowed(&step.class),
    }
}

/// Writes the number of omitted steps of a path, if any.
fn left_out(html: &mut Html, steps: u64) {
    if steps > 0 {
        html.add(format_args!("  … {} more\n", thousands(steps)));
    }
}

/// Maximum number of steps shown of a path: start and end are sufficient for a long list.
const STEPS: usize = 40;

/// Returns the steps to show, with the number of omitted ones in the middle.
fn shortened<T>(steps: &[T]) -> impl Iterator<Item = Result<&T, usize>> {
    let left_out = steps.len().saturating_sub(STEPS);
    let (head, tail) = match left_out {
        0 => (steps, &steps[..0]),
        _ => (&steps[..STEPS / 2], &steps[STEPS / 2 + left_out..]),
    };
    let gap = (left_out > 0).then_some(Err(left_out));
    head.iter().map(Ok).chain(gap).chain(tail.iter().map(Ok))
}
