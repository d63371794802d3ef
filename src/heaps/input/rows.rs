//! Names of rows in documents: functions, libraries, locations, stacks.

use serde::Serialize;

use crate::heaps::input::facts::{NO_FRAMES, StackFrame};
use heaptap_analyze::native::groups::{Groups, RowKey};
use heaptap_analyze::native::table::Key;
use heaptap_analyze::native::visible_tree::VisibleTree;
use heaptap_model::stacks::StackTable;

/// Creates the names of rows.
pub(crate) struct Namer<'a> {
    table: &'a StackTable,
    shown: &'a VisibleTree<'a>,
    groups: &'a Groups<'a>,
    /// Maximum number of frames of a stack; 0 means no limit.
    frames: usize,
}

/// Name and location of a row.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Located {
    pub name: String,
    /// File name of the library, for a function, line or callsite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub library: Option<String>,
    /// Source file, if known, for a line or callsite.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub file: Option<String>,
    /// Line in the source file.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u32>,
}

impl<'a> Namer<'a> {
    pub(crate) fn new(
        table: &'a StackTable,
        shown: &'a VisibleTree<'a>,
        groups: &'a Groups<'a>,
        frames: usize,
    ) -> Namer<'a> {
        Namer {
            table,
            shown,
            groups,
            frames,
        }
    }

    /// Returns the name of a row.
    pub(crate) fn name(&self, key: Key) -> String {
        match key {
            Key::Group(group) => self.groups.name(group).into_owned(),
            Key::Callsite(id) => match self.shown.frame(id) {
                Some(frame) => StackFrame::new(self.table, frame).function,
                None => NO_FRAMES.to_owned(),
            },
        }
    }

    /// Returns name and location of a row and, for a callsite, its stack.
    pub(crate) fn row(&self, key: Key) -> (Located, Option<Vec<StackFrame>>) {
        let (sample, stack) = match key {
            Key::Group(group) => (Some(self.groups.sample(group)), None),
            Key::Callsite(id) => {
                let most = match self.frames {
                    0 => usize::MAX,
                    frames => frames,
                };
                let stack = self.shown.stack(id).take(most);
                let stack = stack.map(|frame| StackFrame::new(self.table, frame));
                (self.shown.frame(id), Some(stack.collect()))
            }
        };
        let frame = sample.map(|sample| StackFrame::new(self.table, sample));
        let by = self.groups.by();
        let wanted = |wanted: bool| frame.as_ref().filter(|_| wanted);
        let of_code = matches!(by, RowKey::Callsite | RowKey::Function | RowKey::Line);
        let placed =
            wanted(matches!(by, RowKey::Callsite | RowKey::Line)).filter(|f| !f.file.is_empty());
        let located = Located {
            name: self.name(key),
            library: wanted(of_code)
                .map(|frame| frame.library.clone())
                .filter(|library| !library.is_empty()),
            file: placed.map(|frame| frame.file.clone()),
            line: placed.map(|frame| frame.line).filter(|line| *line > 0),
        };
        (located, stack)
    }
}

/// Sort order of rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Values of stacks that end there.
    #[default]
    #[serde(rename = "self")]
    Own,
    /// Values of stacks that contain it.
    Cumulative,
    Name,
}

impl Order {
    /// Returns the word as typed.
    pub fn name(self) -> &'static str {
        match self {
            Order::Own => "self",
            Order::Cumulative => "cumulative",
            Order::Name => "name",
        }
    }
}
