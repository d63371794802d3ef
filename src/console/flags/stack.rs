//! Filters of stacks and frames: the flags that views of native heaps share, with the terms of `go
//! tool pprof`, but in smart case.

use clap::Args;
use regex::Regex;

use super::pattern::pattern;
use crate::console::flags::conflicts::first_given;
use crate::console::flags::focus_ignore::FilterArgs;
use heaptap_analyze::native::filter::Filter;

/// Filter of frames.
#[derive(Debug, Clone, Default, Args)]
pub struct StackArgs {
    /// Remove matching frames; their bytes go to the caller; may be repeated
    #[arg(long, value_name = "REGEX", value_parser = pattern, hide_short_help = true)]
    pub hide: Vec<Regex>,
    /// Remove frames that do not match; may be repeated
    #[arg(long, value_name = "REGEX", value_parser = pattern, hide_short_help = true)]
    pub show: Vec<Regex>,
    /// Start stacks at the outermost matching frame; may be repeated
    #[arg(long, value_name = "REGEX", value_parser = pattern, hide_short_help = true)]
    pub show_from: Vec<Regex>,
    /// Show allocators (malloc, operator new) and frames of the Java runtime
    #[arg(long, hide_short_help = true)]
    pub all_frames: bool,
}

impl StackArgs {
    /// Returns the filter, with the flags shared with Java heaps.
    pub fn filter(&self, shared: &FilterArgs) -> Filter {
        Filter {
            focus: shared.focus.clone(),
            ignore: shared.ignore.clone(),
            hide: self.hide.clone(),
            show: self.show.clone(),
            show_from: self.show_from.clone(),
            all_frames: self.all_frames,
        }
    }

    /// Returns the first of these flags that was given.
    pub fn given(&self) -> Option<&'static str> {
        let flags = [
            (!self.hide.is_empty(), "--hide"),
            (!self.show.is_empty(), "--show"),
            (!self.show_from.is_empty(), "--show-from"),
            (self.all_frames, "--all-frames"),
        ];
        first_given(flags)
    }
}
