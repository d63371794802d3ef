//! The static part of a page about sampled native heaps: what a reader without scripts gets, and
//! what is printed. The viewer shows the same numbers, and more of them.
//!
//! | file | owns |
//! |---|---|
//! | `summary` | where the memory went, warnings, what no profile sees, facts, commands |
//! | `grown` | what grew from the first dump of a heap to the last |
//! | `callsites` | the callsites that hold most |
//! | `moments` | memory at each label: how it divides, the Java heap, the profile |
//! | `figures` | the profile's, the allocator's and the system's figures side by side |
//! | `dumps` | every dump with its sums; libraries without symbols |

mod callsites;
mod dumps;
mod figures;
mod grown;
mod moments;
mod summary;

use super::data::header::Header;
use super::html::{Foreign, Html};
use heaptap_analyze::native::groups::{file_of, function_of, library_name};
use heaptap_analyze::native::scope;
use heaptap_analyze::native::shown::{Shown, ShownId};
use heaptap_model::stacks::StackProfile;
use std::borrow::Cow;

/// What stands on top of every page: what it is about, warnings, where the memory went.
pub(super) fn head(html: &mut Html, header: &Header) {
    summary::head(html, header);
}

/// The sections about native heaps. The header's dumps and series are those of the profile.
pub(super) fn body(html: &mut Html, header: &Header, profile: &StackProfile) {
    grown::write(html, header, profile);
    callsites::write(html, header, profile);
    moments::write(html, header);
    figures::write(html, header);
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
            (file, 0) => Foreign(last_parts(file)).to_string(),
            (file, line) => Foreign(&format!("{}:{line}", last_parts(file))).to_string(),
        };
        let name = |frame| fitting(table.text_of(function_of(table, frame).name));
        let callers: Vec<String> = stack
            .by_ref()
            .take(CALLERS)
            .map(|frame| Foreign(&name(frame)).to_string())
            .collect();
        let more = match stack.count() {
            0 => String::new(),
            more => format!(" ← {more} more"),
        };
        Place {
            function: Foreign(&name(leaf)).to_string(),
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

/// Characters of a function's name, where it can be shortened.
const NAME: usize = 72;

/// A name without what tells least, until it fits.
fn fitting(name: &str) -> Cow<'_, str> {
    let mut shortest = Cow::Borrowed(name);
    for shorter in scope::shortened(name) {
        shortest = shorter;
        if shortest.chars().count() <= NAME {
            break;
        }
    }
    shortest
}

/// A file and the folders right above it: what comes before is the same for all of a project.
fn last_parts(file: &str) -> &str {
    let mut cuts = file.rmatch_indices(['/', '\\']).map(|(at, _)| at + 1);
    cuts.nth(2).map_or(file, |at| &file[at..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_names_and_paths_keep_what_tells_most() {
        assert_eq!(last_parts("/home/me/app/src/cpp/a.cpp"), "src/cpp/a.cpp");
        assert_eq!(last_parts("a.cpp"), "a.cpp");
        assert_eq!(fitting("short(int)"), "short(int)");
        let long = format!("ns::f<{}>(int)", "std::string, ".repeat(20));
        assert!(fitting(&long).chars().count() <= NAME, "{}", fitting(&long));
        assert!(fitting(&long).contains("f<"), "{}", fitting(&long));
    }
}
