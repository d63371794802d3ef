//! Which stacks or objects count: `--focus` and `--ignore`, of `top`, `leaks` and `diff`.

use clap::Args;
use regex::Regex;

use super::pattern::pattern;
use crate::analyze::filter::Filter;
use crate::heap_graph::HeapKind;

/// Which stacks or objects count.
#[derive(Debug, Clone, Default, Args)]
pub struct FilterArgs {
    /// Only stacks with a frame that matches; of Java: only classes that match; may be repeated
    ///
    /// A frame matches by its function, its source file or its library. A pattern is
    /// case-sensitive only if it has a capital letter; (?i) and (?-i) override that.
    #[arg(long, visible_alias = "class", value_name = "REGEX", value_parser = pattern)]
    pub focus: Vec<Regex>,
    /// No stacks with a frame that matches; of Java: no classes that match; may be repeated
    #[arg(long, value_name = "REGEX", value_parser = pattern)]
    pub ignore: Vec<Regex>,
}

impl FilterArgs {
    /// The filter; of the whole heap, or one of the runtime's.
    pub fn filter(&self, heap: Option<HeapKind>) -> Filter {
        Filter {
            focus: self.focus.clone(),
            ignore: self.ignore.clone(),
            heap,
        }
    }
}
