//! Search in long lists: an answer has the first rows that match, and where to go on.

use crate::explorer::Explorer;
use crate::objects::ObjectRow;
use heaptap_analyze::label;
use heaptap_model::heap_graph::{ClassIndex, ObjectIndex};
use serde::Serialize;
use std::cell::Cell;
use std::time::{Duration, Instant};

/// Request for matching objects.
#[derive(Debug, Clone)]
pub struct SearchQuery {
    pub list: SearchList,
    pub text: SearchText,
    /// Position in the list at which the search begins.
    pub from: usize,
    /// Maximum number of rows.
    pub limit: usize,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SearchText {
    /// The string or the name of the class contains it, in any case; empty for all.
    Part(String),
    /// The string is that of this object.
    Of(ObjectIndex),
}

/// List to search in, by retained size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SearchList {
    /// All reachable objects, by class.
    Objects,
    /// Strings, by text.
    Strings,
    /// Arrays, by class.
    Arrays,
}

/// Rows that match.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Found {
    /// Length of the list.
    pub total: u64,
    /// Position at which the search goes on; `None` at the end of the list.
    pub next: Option<usize>,
    pub rows: Vec<FoundRow>,
}

/// Object that matches.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct FoundRow {
    #[serde(flatten)]
    pub row: ObjectRow,
    /// Number of elements of an array, or of characters of a string.
    pub length: Option<u64>,
    /// Heap: `app`, `zygote`, `image`.
    pub heap: &'static str,
}

/// Time after which an answer has what was found up to then.
const PATIENCE: Duration = Duration::from_millis(40);
/// Work between looks at the clock: bytes of text, and as many for each object as a short text has.
const CLOCK_BYTES: usize = 32 << 10;
const OBJECT_BYTES: usize = 64;
const STRING: &str = "java.lang.String";

impl Explorer {
    /// Returns the next objects that match.
    pub fn search(&self, query: &SearchQuery) -> Found {
        let list = match query.list {
            SearchList::Objects => self.ranking().all(),
            SearchList::Strings => self.ranking().of_class(STRING),
            SearchList::Arrays => self.arrays(),
        };
        let (wanted, is_whole) = match &query.text {
            SearchText::Part(text) => (text.to_lowercase(), false),
            SearchText::Of(object) => match self.text(*object, usize::MAX) {
                Some(text) => (text, true),
                None => {
                    return Found {
                        total: list.len() as u64,
                        next: None,
                        rows: Vec::new(),
                    };
                }
            },
        };
        let is_class = match query.list {
            SearchList::Strings => Vec::new(),
            SearchList::Objects | SearchList::Arrays => self.matching_classes(&wanted),
        };
        let work = Cell::new(0);
        let matches = |object| match query.list {
            _ if wanted.is_empty() && !is_whole => true,
            SearchList::Strings => {
                let text = self.text(object, usize::MAX).unwrap_or_default();
                work.set(work.get() + text.len());
                match is_whole {
                    true => text == wanted,
                    false => text.to_lowercase().contains(&wanted),
                }
            }
            SearchList::Objects | SearchList::Arrays => {
                is_class[self.graph().class_of(object).at()]
            }
        };
        let began = Instant::now();
        let mut rows = Vec::new();
        let mut next = None;
        for (at, &object) in list.iter().enumerate().skip(query.from) {
            let is_late = work.get() >= CLOCK_BYTES && {
                work.set(0);
                began.elapsed() >= PATIENCE
            };
            if is_late || rows.len() >= query.limit {
                next = Some(at);
                break;
            }
            work.set(work.get() + OBJECT_BYTES);
            if matches(object) {
                let row = self.found(object);
                work.set(work.get() + row.length.unwrap_or(0) as usize);
                rows.push(row);
            }
        }
        Found {
            total: list.len() as u64,
            next,
            rows,
        }
    }

    fn matching_classes(&self, wanted: &str) -> Vec<bool> {
        let graph = self.graph();
        let classes = 0..graph.classes().len() as u32;
        classes
            .map(|class| {
                let name = label::class_name(graph, ClassIndex(class));
                name.to_lowercase().contains(wanted)
            })
            .collect()
    }

    fn found(&self, object: ObjectIndex) -> FoundRow {
        let row = self.row(object);
        let characters = || {
            let text = self.text(object, usize::MAX)?;
            Some(text.chars().count() as u64)
        };
        FoundRow {
            length: match row.text {
                Some(_) => characters(),
                None => self.length(object),
            },
            row,
            heap: self.graph().heap_of(object).name(),
        }
    }
}
