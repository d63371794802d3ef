//! Filter rules for stacks and their frames, with the semantics of `go tool pprof`. `shown` applies
//! them to a tree.
//!
//! A pattern matches a frame by its function's name, its source file or its library's path.
//!
//! | flag | meaning |
//! |---|---|
//! | focus | only stacks with a matching frame |
//! | ignore | no stacks with a matching frame |
//! | hide | matching frames are removed; their own allocations count for their caller |
//! | show | frames that do not match are removed |
//! | show_from | callers of the outermost matching frame are removed; only stacks with one |
//!
//! Allocators (`malloc`) and the Java runtime's own frames are removed unless `all_frames` is set
//! or `show` matches them, so that the first frame is the owner of the memory. A stack of only such
//! frames keeps those of the runtime, or all if every frame is an allocator. Focus and ignore apply
//! to the frames that are left, because nearly every stack has `malloc`. show_from applies to those
//! that hide and show leave, too. A stack without any frame after hide and show does not count.

use heaptap_model::stacks::{Frame, Kind, StackTable, TextId};
use regex::Regex;

/// Filter of stacks and frames. Patterns of one kind are alternatives.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Stacks must have such a frame, if any patterns are given.
    pub focus: Vec<Regex>,
    /// Stacks must not have such a frame.
    pub ignore: Vec<Regex>,
    /// Frames to remove.
    pub hide: Vec<Regex>,
    /// Frames to keep; all if empty.
    pub show: Vec<Regex>,
    /// Frames at which stacks begin.
    pub show_from: Vec<Regex>,
    /// Whether allocators and the Java runtime are shown.
    pub all_frames: bool,
}

impl Filter {
    /// Returns whether every stack counts.
    pub fn takes_all(&self) -> bool {
        self.focus.is_empty()
            && self.ignore.is_empty()
            && self.hide.is_empty()
            && self.show.is_empty()
            && self.show_from.is_empty()
    }

    /// Returns the verdict on each frame of a table, by frame ID. Each text is matched once,
    /// regardless of the number of frames with it.
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
            start: matches.has(SHOW_FROM) && shown != Visibility::Never && !matches.has(HIDE),
            visibility: match matches.has(HIDE) {
                true => Visibility::Never,
                false => shown,
            },
            level: match shown {
                Visibility::Never => Visibility::default_of(function.kind, self.all_frames),
                shown => shown,
            },
        }
    }

    fn matches(&self, table: &StackTable, id: TextId, known: &mut [Option<Matches>]) -> Matches {
        // An empty text is not a name, file or path, so it cannot match.
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

/// Set of kinds of patterns.
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

/// Condition under which a frame is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Visibility {
    /// Always.
    Plain,
    /// In stacks without a frame above.
    Runtime,
    /// In stacks without any frame above.
    Allocator,
    Never,
}

/// Limits of visibility, until one shows a frame.
pub(super) const LEVELS: [Visibility; 3] = [
    Visibility::Plain,
    Visibility::Runtime,
    Visibility::Allocator,
];

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

/// Verdict of a filter on a frame.
#[derive(Debug, Clone, Copy)]
pub(super) struct Verdict {
    pub(super) focus: bool,
    pub(super) ignore: bool,
    /// Never of a frame that `hide` or `show` removes.
    pub(super) start: bool,
    pub(super) visibility: Visibility,
    /// Visibility without `hide` and `show`: patterns apply to the frames of the least level of
    /// their stack.
    pub(super) level: Visibility,
}
