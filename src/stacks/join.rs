//! Several profiles in one table of callsites, so that their numbers can be put side by side.

use std::collections::HashMap;

use super::dump::Values;
use super::fold;
use super::table::{
    Frame, FrameId, Function, FunctionId, Kind, Library, LibraryId, NodeId, StackTable, TextId,
};

/// What makes two frames of different profiles the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinBy {
    /// Everything: function, library and build ID, file, line. For parts of one recording.
    Exact,
    /// What stays from one build to the next: the names of function and library without
    /// versions, hashes and numbers of lambdas (see `fold`). Files, lines, inlining, and how
    /// Java code was run do not count. Addresses of frames without a name count only where all
    /// inputs have the library in one build.
    Name,
}

/// A table of several inputs.
#[derive(Debug, Clone, Default)]
pub struct Joined {
    /// All callsites of all inputs.
    pub table: StackTable,
    /// For each input the callsite here of each of its callsites.
    pub nodes: Vec<Vec<NodeId>>,
}

/// The library of all Java code when joined by name: a method may be interpreted out of its
/// APK on one side and compiled into memory on the other.
const JAVA: &str = "[java]";

/// Joins tables. Time and memory follow their sum.
pub fn join(inputs: &[&StackTable], by: JoinBy) -> Joined {
    let mut joined = Joined::default();
    match by {
        JoinBy::Exact => {
            for input in inputs {
                let nodes = take(&mut joined.table, input, |table, frame| {
                    exact(table, input, frame)
                });
                joined.nodes.push(nodes);
            }
        }
        JoinBy::Name => {
            let mut by_name = ByName {
                builds: builds(inputs),
                functions: HashMap::new(),
            };
            for input in inputs {
                let mut known = vec![None; input.functions().len()];
                let nodes = take(&mut joined.table, input, |table, frame| {
                    let function = frame.function;
                    let known = &mut known[function.0 as usize];
                    let function =
                        *known.get_or_insert_with(|| by_name.function(table, input, function));
                    table.frame(Frame {
                        function,
                        file: TextId::default(),
                        line: 0,
                        inlined: false,
                    })
                });
                joined.nodes.push(nodes);
            }
        }
    }
    joined
}

impl Values {
    /// The same numbers at the callsites of a joined table; what comes to lie at one callsite
    /// is added up (saturating).
    pub fn through(&self, nodes: &[NodeId]) -> Values {
        let mut order: Vec<(NodeId, u32)> = (0..)
            .zip(&self.nodes)
            .map(|(at, node)| (nodes[node.0 as usize], at))
            .collect();
        order.sort_unstable();
        let mut joined = Values {
            nodes: Vec::with_capacity(order.len()),
            columns: vec![Vec::with_capacity(order.len()); self.columns.len()],
        };
        for (node, at) in order {
            let is_same = joined.nodes.last() == Some(&node);
            if !is_same {
                joined.nodes.push(node);
            }
            for (to, from) in joined.columns.iter_mut().zip(&self.columns) {
                let value = from[at as usize];
                match to.last_mut() {
                    Some(sum) if is_same => *sum = sum.saturating_add(value),
                    _ => to.push(value),
                }
            }
        }
        joined
    }
}

/// Enters all callsites of an input; `enter` gives the frame here of one of its frames.
fn take(
    table: &mut StackTable,
    input: &StackTable,
    mut enter: impl FnMut(&mut StackTable, &Frame) -> FrameId,
) -> Vec<NodeId> {
    let mut frames: Vec<Option<FrameId>> = vec![None; input.frames().len()];
    let mut nodes = Vec::with_capacity(input.node_count());
    nodes.push(NodeId::ROOT);
    for node in 1..input.node_count() as u32 {
        let node = NodeId(node);
        let Some(frame) = input.frame_of(node) else {
            continue;
        };
        let at = frame.0 as usize;
        let frame = *frames[at].get_or_insert_with(|| enter(table, &input.frames()[at]));
        // Parents come before their children.
        let parent = nodes[input.parent(node).0 as usize];
        nodes.push(table.child(parent, frame));
    }
    nodes
}

fn exact(table: &mut StackTable, input: &StackTable, frame: &Frame) -> FrameId {
    let function = &input.functions()[frame.function.0 as usize];
    let library = &input.libraries()[function.library.0 as usize];
    let mut text = |id| table.text(input.text_of(id));
    let library = Library {
        path: text(library.path),
        build_id: text(library.build_id),
    };
    let function = Function {
        name: text(function.name),
        system_name: text(function.system_name),
        library: LibraryId::default(),
        kind: function.kind,
    };
    let file = text(frame.file);
    let library = table.library(library);
    let function = table.function(Function {
        library,
        ..function
    });
    table.frame(Frame {
        function,
        file,
        ..*frame
    })
}

/// Of each library by its folded name the build ID that all inputs agree on.
fn builds(inputs: &[&StackTable]) -> HashMap<String, Option<String>> {
    let mut builds: HashMap<String, Option<String>> = HashMap::new();
    for input in inputs {
        for library in input.libraries() {
            let name = fold::library(input.text_of(library.path)).into_owned();
            let build_id = input.text_of(library.build_id);
            let build_id = (!build_id.is_empty()).then(|| build_id.to_owned());
            let known = builds.entry(name).or_insert_with(|| build_id.clone());
            if *known != build_id {
                *known = None;
            }
        }
    }
    builds
}

struct ByName {
    builds: HashMap<String, Option<String>>,
    /// By name and library. Of functions that several builds see as different kinds the first
    /// says what they are.
    functions: HashMap<(TextId, LibraryId), FunctionId>,
}

impl ByName {
    fn function(
        &mut self,
        table: &mut StackTable,
        input: &StackTable,
        id: FunctionId,
    ) -> FunctionId {
        let function = &input.functions()[id.0 as usize];
        let is_java = function.kind == Kind::Java;
        let path = input.libraries()[function.library.0 as usize].path;
        let library = match is_java {
            true => JAVA.into(),
            false => fold::library(input.text_of(path)),
        };
        let recorded = input.text_of(function.name);
        let name = match offset_in(recorded, &library) {
            Some(_) if matches!(self.builds.get(&*library), Some(Some(_))) => recorded.into(),
            Some(module) => format!("{module}+?").into(),
            None => fold::function(recorded, is_java),
        };
        let path = table.text(&library);
        let library = table.library(Library {
            path,
            build_id: TextId::default(),
        });
        let name = table.text(&name);
        *self.functions.entry((name, library)).or_insert_with(|| {
            table.function(Function {
                name,
                system_name: TextId::default(),
                library,
                kind: function.kind,
            })
        })
    }
}

/// The library of a frame without a name, which is called `libfoo.so+0x1f0`.
fn offset_in<'a>(name: &'a str, library: &'a str) -> Option<&'a str> {
    let (module, offset) = match name.rsplit_once("+0x") {
        Some((_, offset)) => (library, offset),
        None => ("", name.strip_prefix("0x")?),
    };
    let is_offset = !offset.is_empty() && offset.bytes().all(|b| b.is_ascii_hexdigit());
    is_offset.then_some(module)
}
