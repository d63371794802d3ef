//! A YAML file as a tree of nodes with their places. Accepts what a scenario needs: one document
//! without anchors, aliases and tags, so that a small file cannot become a large tree.

use std::collections::HashMap;

use saphyr_parser::{Event, Parser, ScalarStyle, ScanError, Span};

use super::problems::{Problem, shown};

/// Maximum size of a file.
pub const MAX_BYTES: usize = 1 << 20;
/// Maximum depth of lists and maps.
const MAX_DEPTH: usize = 64;

/// A value of a YAML file, with its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Node {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    pub kind: Kind,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Scalar(String, Written),
    List(Vec<Node>),
    /// Keys are scalars and differ.
    Map(Vec<(Node, Node)>),
}

/// How a scalar is written, because that decides its type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Written {
    /// Without quotes: text, or a number, `true`, `null`.
    Plain,
    /// In quotes or as a block: text.
    Quoted,
    /// A variable was replaced: of any type.
    Variable,
    /// A variable in it is not set, which is reported already.
    Unset,
}

impl Node {
    /// Returns the text of a scalar.
    pub(super) fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Scalar(_, Written::Unset) => None,
            Kind::Scalar(text, _) => Some(text),
            _ => None,
        }
    }

    /// Returns the entry of a key.
    pub(super) fn entry(&self, name: &str) -> Option<&(Node, Node)> {
        let mut entries = self.entries().iter();
        entries.find(|(key, _)| key.text() == Some(name))
    }

    /// Returns the value of a key.
    pub(super) fn get(&self, name: &str) -> Option<&Node> {
        self.entry(name).map(|(_, value)| value)
    }

    /// Returns the text of a key's value.
    pub(super) fn text_of(&self, name: &str) -> Option<&str> {
        self.get(name).and_then(Node::text)
    }

    pub(super) fn owned_text_of(&self, name: &str) -> Option<String> {
        self.text_of(name).map(str::to_owned)
    }

    /// Returns the texts of a list, or the only one.
    pub(super) fn texts(&self) -> Vec<String> {
        let only = self.text().into_iter();
        let items = self.items().iter().filter_map(Node::text);
        only.chain(items).map(str::to_owned).collect()
    }

    /// Returns the entries of a map; none of other nodes.
    pub(super) fn entries(&self) -> &[(Node, Node)] {
        match &self.kind {
            Kind::Map(entries) => entries,
            _ => &[],
        }
    }

    /// Returns the items of a list; none of other nodes.
    pub(super) fn items(&self) -> &[Node] {
        match &self.kind {
            Kind::List(items) => items,
            _ => &[],
        }
    }

    /// Returns whether a variable in it is not set.
    pub(super) fn is_unset(&self) -> bool {
        matches!(self.kind, Kind::Scalar(_, Written::Unset))
    }

    /// Returns whether there is no value, as after `key:`.
    pub(super) fn is_null(&self) -> bool {
        matches!(&self.kind, Kind::Scalar(text, Written::Plain)
            if matches!(text.as_str(), "" | "~" | "null" | "Null" | "NULL"))
    }
}

/// Parses the only document of a file.
///
/// # Errors
/// Returns an error if the file is not YAML, or uses what a scenario does not accept.
pub(super) fn parse(text: &str) -> Result<Node, Problem> {
    if text.len() > MAX_BYTES {
        return Err(problem((1, 1), "the file is larger than 1 MiB"));
    }
    let mut tree = Tree::default();
    let mut parser = Parser::new_from_str(text);
    let mut last = (1, 1);
    while let Some(next) = parser.next_event() {
        let (event, span) = next.map_err(|error| tree.refuse(syntax_error(&error)))?;
        last = place(&span);
        tree.take(event, last)?;
    }
    match tree.root {
        Some(root) if !root.is_null() => Ok(root),
        _ => Err(problem(last, "the file is empty")),
    }
}

type Place = (usize, usize);

fn place(span: &Span) -> Place {
    (span.start.line().max(1), span.start.col() + 1)
}

fn problem((line, column): Place, message: impl Into<String>) -> Problem {
    Problem {
        line,
        column,
        path: String::new(),
        message: message.into(),
        help: None,
    }
}

fn with_help(at: Place, message: &str, help: &str) -> Problem {
    Problem {
        help: Some(help.to_owned()),
        ..problem(at, message)
    }
}

fn syntax_error(error: &ScanError) -> Problem {
    let at = (error.marker().line().max(1), error.marker().col() + 1);
    let info: String = error.info().chars().take(200).collect();
    let info = format!(
        "not valid YAML: {}",
        heaptap_base::untrusted::sanitize(&info)
    );
    match error.info() {
        info if info.contains("unknown anchor") => no_alias(at),
        text if text.contains("block scalar") => with_help(
            at,
            &info,
            "a text that begins with `>` or `|` must be in quotes",
        ),
        text if text.contains("mapping values") => {
            with_help(at, &info, "a text that contains `: ` must be in quotes")
        }
        _ => problem(at, info),
    }
}

fn no_alias(at: Place) -> Problem {
    with_help(
        at,
        "a scenario cannot have aliases",
        "a text that begins with `*` must be in quotes",
    )
}

/// The tree so far.
#[derive(Default)]
struct Tree {
    /// Open lists and maps, the innermost last.
    open: Vec<Open>,
    root: Option<Node>,
    documents: usize,
}

/// A list or map whose end was not seen yet.
struct Open {
    at: Place,
    contents: Contents,
}

enum Contents {
    List(Vec<Node>),
    Map {
        entries: Vec<(Node, Node)>,
        /// Keys seen, with their lines.
        keys: HashMap<String, usize>,
        /// Key whose value is next.
        key: Option<Node>,
    },
}

impl Tree {
    fn take(&mut self, event: Event<'_>, at: Place) -> Result<(), Problem> {
        let (anchor, tag) = match &event {
            Event::Scalar(_, _, anchor, tag) => (*anchor, tag.is_some()),
            Event::SequenceStart(anchor, tag) | Event::MappingStart(anchor, tag) => {
                (*anchor, tag.is_some())
            }
            _ => (0, false),
        };
        if anchor > 0 {
            return Err(self.refuse(with_help(
                at,
                "a scenario cannot have anchors",
                "a text that begins with `&` must be in quotes",
            )));
        }
        if tag {
            return Err(self.refuse(with_help(
                at,
                "a scenario cannot have tags",
                "a text that begins with `!` must be in quotes",
            )));
        }
        match event {
            Event::DocumentStart(_) => {
                self.documents += 1;
                match self.documents {
                    1 => Ok(()),
                    _ => Err(problem(at, "a file must have one document")),
                }
            }
            Event::Alias(_) => Err(self.refuse(no_alias(at))),
            Event::Scalar(text, style, ..) => {
                let written = match style {
                    ScalarStyle::Plain => Written::Plain,
                    _ => Written::Quoted,
                };
                self.add(at, Kind::Scalar(text.into_owned(), written))
            }
            Event::SequenceStart(..) => self.begin(at, Contents::List(Vec::new())),
            Event::MappingStart(..) => self.begin(
                at,
                Contents::Map {
                    entries: Vec::new(),
                    keys: HashMap::new(),
                    key: None,
                },
            ),
            Event::SequenceEnd | Event::MappingEnd => match self.open.pop() {
                Some(Open { at, contents }) => self.add(
                    at,
                    match contents {
                        Contents::List(items) => Kind::List(items),
                        Contents::Map { entries, .. } => Kind::Map(entries),
                    },
                ),
                None => Ok(()),
            },
            Event::Nothing | Event::StreamStart | Event::StreamEnd | Event::DocumentEnd => Ok(()),
        }
    }

    fn begin(&mut self, at: Place, contents: Contents) -> Result<(), Problem> {
        if self.open.len() >= MAX_DEPTH {
            let message = format!("lists and maps are nested more than {MAX_DEPTH} deep");
            return Err(problem(at, message));
        }
        if let Some(Open {
            contents: Contents::Map { key: None, .. },
            ..
        }) = self.open.last()
        {
            return Err(self.refuse(problem(at, "a key must be text")));
        }
        self.open.push(Open { at, contents });
        Ok(())
    }

    fn add(&mut self, (line, column): Place, kind: Kind) -> Result<(), Problem> {
        let node = Node { line, column, kind };
        let Some(open) = self.open.last_mut() else {
            self.root.get_or_insert(node);
            return Ok(());
        };
        let name = match &mut open.contents {
            Contents::List(items) => {
                items.push(node);
                return Ok(());
            }
            Contents::Map {
                entries,
                key: key @ Some(_),
                ..
            } => {
                entries.extend(key.take().map(|key| (key, node)));
                return Ok(());
            }
            Contents::Map { keys, key, .. } => {
                let name = node.text().unwrap_or_default().to_owned();
                *key = Some(node);
                match keys.insert(name.clone(), line) {
                    None => return Ok(()),
                    Some(first) => (name, first),
                }
            }
        };
        let message = format!(
            "`{}` occurs twice; first in line {}",
            shown(&name.0),
            name.1
        );
        Err(self.refuse(problem((line, column), message)))
    }

    /// Adds the path to an error.
    fn refuse(&self, problem: Problem) -> Problem {
        let mut path = String::new();
        for open in &self.open {
            match &open.contents {
                Contents::List(items) => path.push_str(&format!("[{}]", items.len())),
                Contents::Map { key, .. } => {
                    let dot = if path.is_empty() { "" } else { "." };
                    let key = key.as_ref().and_then(Node::text);
                    path.extend(key.map(|key| format!("{dot}{}", shown(key))));
                }
            }
        }
        Problem { path, ..problem }
    }
}
