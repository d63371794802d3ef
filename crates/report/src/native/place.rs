//! Location of a callsite in tables: function, file and line or library; and its callers.

use super::super::html::Foreign;
use heaptap_analyze::native::groups::{file_of, function_of, library_name};
use heaptap_analyze::native::scope;
use heaptap_analyze::native::visible_tree::{VisibleId, VisibleTree};
use std::borrow::Cow;

/// Location of a callsite: function, file and line or library; and its callers.
pub(super) struct Place {
    pub(super) function: String,
    pub(super) at: String,
    callers: String,
}

/// Maximum number of callers shown with a callsite.
const CALLERS: usize = 4;

impl Place {
    pub(super) fn new(shown: &VisibleTree<'_>, id: VisibleId) -> Place {
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

    /// Formats the location as a table cell.
    pub(super) fn cell(&self) -> String {
        let callers = match self.callers.as_str() {
            "" => String::new(),
            callers => format!("<br><span class=\"note\">← {callers}</span>"),
        };
        format!("<b>{}</b>{callers}", self.function)
    }
}

/// Maximum length of a function name that can be shortened, in characters.
const NAME: usize = 72;

/// Shortens a name until it fits, least important parts first.
pub(super) fn fitting(name: &str) -> Cow<'_, str> {
    let mut shortest = Cow::Borrowed(name);
    for shorter in scope::shortened(name) {
        shortest = shorter;
        if shortest.chars().count() <= NAME {
            break;
        }
    }
    shortest
}

/// Returns a file with its nearest parent directories. Outer directories are the same throughout a
/// project.
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
