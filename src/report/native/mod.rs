//! The static part of a page about sampled native heaps: what a reader without scripts gets, and
//! what is printed. The viewer shows the same numbers, and more of them.
//!
//! | file | owns |
//! |---|---|
//! | `summary` | where the memory went, warnings, what no profile sees, facts, commands |
//! | `grown` | what grew from the first dump of a heap to the last |
//! | `callsites` | the callsites that hold most |
//! | `dumps` | every dump with its sums; libraries without symbols |

mod callsites;
mod dumps;
mod grown;
mod summary;

use super::data::header::Header;
use super::html::{Foreign, Html};
use crate::analyze::native::groups::{file_of, function_of, library_name};
use crate::analyze::native::shown::{Shown, ShownId};
use crate::stacks::StackProfile;

/// What stands on top of every page: what it is about, warnings, where the memory went.
pub(super) fn head(html: &mut Html, header: &Header) {
    summary::head(html, header);
}

/// The sections about native heaps. `header` is that of the data: its dumps and series are those
/// of the profile.
pub(super) fn body(html: &mut Html, header: &Header, profile: &StackProfile) {
    grown::write(html, header, profile);
    callsites::write(html, header, profile);
    dumps::write(html, header);
    dumps::symbols(html, header);
}

/// What stands at the end of every page: what is not seen, how it was recorded, how to go on.
pub(super) fn foot(html: &mut Html, header: &Header) {
    summary::foot(html, header);
}

/// Where a callsite is: function, file and line or library; and who called it.
struct Place {
    function: String,
    at: String,
    callers: String,
}

/// Callers that are named beside a callsite.
const CALLERS: usize = 4;

impl Place {
    fn of(shown: &Shown<'_>, id: ShownId) -> Place {
        let table = shown.table();
        let mut stack = shown.stack(id);
        let Some(leaf) = stack.next() else {
            return Place {
                function: "<em>stacks without a frame</em>".to_owned(),
                at: String::new(),
                callers: String::new(),
            };
        };
        let function = function_of(table, leaf);
        let line = table.frames()[leaf.0 as usize].line;
        let library = library_name(table, function.library);
        let at = match (file_of(table, leaf), line) {
            ("", _) => Foreign(&library).to_string(),
            (file, 0) => Foreign(file).to_string(),
            (file, line) => Foreign(&format!("{file}:{line}")).to_string(),
        };
        let callers: Vec<String> = stack
            .by_ref()
            .take(CALLERS)
            .map(|frame| Foreign(table.text_of(function_of(table, frame).name)).to_string())
            .collect();
        let more = match stack.count() {
            0 => String::new(),
            more => format!(" ← {more} more"),
        };
        Place {
            function: Foreign(table.text_of(function.name)).to_string(),
            at,
            callers: format!("{}{more}", callers.join(" ← ")),
        }
    }

    /// As the cell of a table.
    fn cell(&self) -> String {
        let callers = match self.callers.as_str() {
            "" => String::new(),
            callers => format!("<br><span class=\"note\">← {callers}</span>"),
        };
        format!("<b>{}</b>{callers}", self.function)
    }
}
