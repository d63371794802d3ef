//! Which stacks count and which of their frames are shown, in the terms of `go tool pprof`.
//! Owns the rules; `shown` applies them to a tree.
//!
//! A pattern matches a frame by its function's name, its source file or its library's path.
//!
//! | flag | meaning |
//! |---|---|
//! | focus | only stacks with a frame that matches |
//! | ignore | no stacks with a frame that matches |
//! | hide | frames that match are taken out; what they allocated themselves goes to their caller |
//! | show | frames that do not match are taken out |
//! | show_from | what calls the outermost frame that matches is taken out; only stacks with one |
//!
//! Focus and ignore see a stack as it is, the last sees it without hidden frames. A stack of
//! which hide and show leave no frame does not count. Beside that, allocators (`malloc`) and the
//! Java runtime's own frames are taken out unless `all_frames` is set or `show` names them, so
//! that the first line is whose memory it is; a stack of nothing else is kept, with the
//! runtime's frames, or as it is where there are only allocators.

use heaptap_model::stacks::{Frame, Kind, StackTable, TextId};
use regex::Regex;

/// What is looked at. Patterns of one kind are alternatives.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Only stacks with such a frame; of all, where there is none.
    pub focus: Vec<Regex>,
    /// No stacks with such a frame.
    pub ignore: Vec<Regex>,
    /// Frames to take out.
    pub hide: Vec<Regex>,
    /// Frames to keep; of all, where there is none.
    pub show: Vec<Regex>,
    /// Where stacks begin.
    pub show_from: Vec<Regex>,
    /// Show allocators and the Java runtime too.
    pub all_frames: bool,
}

impl Filter {
    /// Whether every stack counts.
    pub fn takes_all(&self) -> bool {
        self.focus.is_empty()
            && self.ignore.is_empty()
            && self.hide.is_empty()
            && self.show.is_empty()
            && self.show_from.is_empty()
    }

    /// What the filter says of each frame of a table, in order of their ids. Each text is
    /// matched once, however many frames have it.
    pub(super) fn verdicts(&self, table: &StackTable) -> Vec<Verdict> {
        let mut known = vec![None; table.text_count()];
        let verdicts = table.frames().iter();
        verdicts
            .map(|frame| self.verdict(table, frame, &mut known))
            .collect()
    }

    fn verdict(&self, table: &StackTable, frame: &Frame, known: &mut [Option<Matches>]) -> Verdict {
        let function = &table.functions()[frame.function.0 as usize];
        let library = &table.libraries()[function.library.0 as usize];
        let mut matches = Matches::default();
        if !self.takes_all() {
            for text in [function.name, frame.file, library.path] {
                matches = matches | self.matches(table, text, known);
            }
        }
        let shown = match self.show.is_empty() {
            true => Visibility::default_of(function.kind, self.all_frames),
            false if matches.has(SHOW) => Visibility::Plain,
            false => Visibility::Never,
        };
        Verdict {
            focus: matches.has(FOCUS),
            ignore: matches.has(IGNORE),
            start: matches.has(SHOW_FROM),
            visibility: match matches.has(HIDE) {
                true => Visibility::Never,
                false => shown,
            },
        }
    }

    fn matches(&self, table: &StackTable, id: TextId, known: &mut [Option<Matches>]) -> Matches {
        // An empty text is no name, file or path: nothing that could match.
        if id == TextId::default() {
            return Matches::default();
        }
        *known[id.0 as usize].get_or_insert_with(|| {
            let text = table.text_of(id);
            let kinds = [
                (&self.focus, FOCUS),
                (&self.ignore, IGNORE),
                (&self.hide, HIDE),
                (&self.show, SHOW),
                (&self.show_from, SHOW_FROM),
            ];
            let mut matches = Matches::default();
            for (patterns, kind) in kinds {
                if patterns.iter().any(|pattern| pattern.is_match(text)) {
                    matches = matches | kind;
                }
            }
            matches
        })
    }
}

/// A set of kinds of patterns.
#[derive(Debug, Clone, Copy, Default)]
struct Matches(u8);

const FOCUS: Matches = Matches(1);
const IGNORE: Matches = Matches(2);
const HIDE: Matches = Matches(4);
const SHOW: Matches = Matches(8);
const SHOW_FROM: Matches = Matches(16);

impl Matches {
    fn has(self, kind: Matches) -> bool {
        self.0 & kind.0 != 0
    }
}

impl std::ops::BitOr for Matches {
    type Output = Matches;

    fn bitor(self, other: Matches) -> Matches {
        Matches(self.0 | other.0)
    }
}

/// When a frame is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Visibility {
    /// Always.
    Plain,
    /// Where a stack has none of the above.
    Runtime,
    /// Where a stack has none of the above either.
    Allocator,
    /// Not at all.
    Never,
}

impl Visibility {
    fn default_of(kind: Kind, all_frames: bool) -> Visibility {
        match kind {
            _ if all_frames => Visibility::Plain,
            Kind::Plain | Kind::Java | Kind::Class => Visibility::Plain,
            Kind::Runtime => Visibility::Runtime,
            Kind::Allocator => Visibility::Allocator,
        }
    }
}

/// What a filter says of a frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Verdict {
    pub(super) focus: bool,
    pub(super) ignore: bool,
    pub(super) start: bool,
    pub(super) visibility: Visibility,
}
