//! Filter of stacks or objects: `--focus` and `--ignore`, for `top`, `leaks` and `diff`.

use clap::Args;
use regex::Regex;

use super::pattern::pattern;
use heaptap_analyze::filter::Filter;
use heaptap_model::heap_graph::HeapKind;

/// Filter of stacks or objects.
#[derive(Debug, Clone, Default, Args)]
pub struct FilterArgs {
    /// Only matching stacks or Java classes; may be repeated
    ///
    /// Of several patterns, one must match. A stack matches if one of its shown frames does, by its
    /// function, source file or library. A pattern is case-sensitive only if it has a capital
    /// letter; (?i) and (?-i) override that.
    #[arg(long, value_name = "REGEX", value_parser = pattern)]
    pub focus: Vec<Regex>,
    /// No matching stacks or Java classes; may be repeated
    #[arg(long, value_name = "REGEX", value_parser = pattern)]
    pub ignore: Vec<Regex>,
}

impl FilterArgs {
    /// Returns the filter; an empty list of heaps means every heap.
    pub fn filter(&self, heaps: Vec<HeapKind>) -> Filter {
        Filter {
            focus: self.focus.clone(),
            ignore: self.ignore.clone(),
            heaps,
            by_represented: false,
        }
    }
}
