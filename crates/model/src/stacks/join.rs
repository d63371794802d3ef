//! Several profiles in one table of callsites, so that their numbers can be compared.

use std::collections::HashMap;

use super::dump::Values;
use super::fold;
use super::table::{
    Frame, FrameId, Function, FunctionId, Kind, Library, LibraryId, NodeId, StackTable, TextId,
};
use crate::names::nowhere;
use crate::profile::packed::{self, PackedStacks, Unnumbered};

/// Rule for matching frames of different profiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinBy {
    /// Match everything: function, library and build ID, file, line. For parts of one recording.
    Exact,
    /// Match stable parts across builds: the names of function and library without versions, hashes
    /// and numbers of lambdas (see `fold`). Ignored: files, lines, inlining, and the execution mode
    /// of Java code. Addresses of frames without a name are compared only if all inputs have the
    /// library in the same build.
    Name,
}

#[derive(Debug, Clone, Default)]
pub struct Joined {
    /// All callsites of all inputs.
    pub table: StackTable,
    /// For each input, the callsite in this table of each of its callsites.
    pub nodes: Vec<Vec<NodeId>>,
}

/// Library of all Java code when joined by name: a method can be interpreted from its APK on one
/// side and compiled into memory on the other.
const JAVA: &str = "[java]";

/// Joins tables. Time and memory are proportional to their total size. The result has a list if all
/// inputs have one, and a tree otherwise.
pub fn join(inputs: &[&StackTable], by: JoinBy) -> Joined {
    let mut joined = Joined::default();
    if !inputs.is_empty() && inputs.iter().all(|input| input.list().is_some()) {
        joined.table = StackTable::with_list();
    }
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
    joined.table.seal();
    joined
}

impl Values {
    /// Returns the same numbers at the callsites of a joined table; numbers of equal callsites are
    /// added up (saturating).
    pub fn through(&self, nodes: &[NodeId]) -> Values {
        let rows = self.nodes.iter().map(|node| nodes[node.0 as usize]);
        Values::sum(rows.zip(0..), self.columns.len(), |column, row| {
            self.columns[column][row as usize]
        })
    }
}

/// Adds all callsites of an input; `enter` returns the frame in this table of one of its frames.
fn take(
    table: &mut StackTable,
    input: &StackTable,
    mut enter: impl FnMut(&mut StackTable, &Frame) -> FrameId,
) -> Vec<NodeId> {
    let mut frames: Vec<Option<FrameId>> = vec![None; input.frames().len()];
    if let Some(list) = input.list() {
        for id in 0..list.len() as u32 {
            let mut packed = list.get(id);
            while let Some(at) = packed::first(&mut packed).map(|frame| frame as usize) {
                frames[at].get_or_insert_with(|| enter(table, &input.frames()[at]));
            }
        }
        return take_list(table, list, &frames);
    }
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

/// Adds all stacks of a list, whose frames have been entered. Packs some while those before get their
/// numbers.
fn take_list(
    table: &mut StackTable,
    list: &PackedStacks,
    frames: &[Option<FrameId>],
) -> Vec<NodeId> {
    let mut nodes = Vec::with_capacity(list.len());
    let Some(joined) = table.list_mut() else {
        // Another input has a tree.
        let mut stack: Vec<FrameId> = Vec::new();
        nodes.extend((0..list.len() as u32).map(|id| {
            stack.clear();
            stack.extend(frames_of(list, id, frames));
            table.stack_of(&stack)
        }));
        return nodes;
    };
    let starts = (0..list.len() as u32).step_by(PART);
    let pack = |_: &mut (), packed: &mut Unnumbered, start: u32| {
        for id in start..(list.len() as u32).min(start + PART as u32) {
            packed.push(frames_of(list, id, frames).map(|frame| frame.0));
        }
    };
    joined.add_parts(
        starts,
        || (),
        pack,
        |ids, ()| nodes.extend(ids.iter().copied().map(NodeId)),
    );
    nodes
}

/// Stacks that are packed at a time.
const PART: usize = if cfg!(test) { 3 } else { 1 << 14 };

/// Returns the frames of a stack in the joined table, outermost first.
fn frames_of(
    list: &PackedStacks,
    id: u32,
    frames: &[Option<FrameId>],
) -> impl Iterator<Item = FrameId> {
    let mut packed = list.get(id);
    std::iter::from_fn(move || {
        let at = packed::first(&mut packed)? as usize;
        Some(frames[at].expect("all frames have been entered"))
    })
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

/// Returns the build ID that all inputs agree on, by folded name of the library.
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
    /// Functions by name and library. If several builds have different kinds, the first is used.
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
        let is_java = matches!(function.kind, Kind::Java | Kind::Class);
        let path = input.libraries()[function.library.0 as usize].path;
        let library = match is_java {
            true => JAVA.into(),
            false => fold::library(input.text_of(path)),
        };
        let recorded = input.text_of(function.name);
        let name = match offset_in(recorded, &library) {
            Some(_) if matches!(self.builds.get(&*library), Some(Some(_))) => recorded.into(),
            Some(module) => nowhere(module).into(),
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

/// Returns the library of a frame without a name, such as `libfoo.so+0x1f0`.
fn offset_in<'a>(name: &'a str, library: &'a str) -> Option<&'a str> {
    let (module, offset) = match name.rsplit_once("+0x") {
        Some((_, offset)) => (library, offset),
        None => ("", name.strip_prefix("0x")?),
    };
    let is_offset = !offset.is_empty() && offset.bytes().all(|b| b.is_ascii_hexdigit());
    is_offset.then_some(module)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIB: &str = "/data/app/~~a==/com.x-b==/base.apk!libapp.so";

    struct Made {
        table: StackTable,
        values: Values,
    }

    impl Made {
        /// Creates stacks, root first, of function names in libraries; the value of each is its
        /// position + 1.
        fn of(stacks: &[Vec<(&str, &str)>], build_id: &str) -> Made {
            let mut table = StackTable::default();
            let mut sums = std::collections::BTreeMap::new();
            for (stack, value) in stacks.iter().zip(1..) {
                let mut node = NodeId::ROOT;
                for (name, path) in stack {
                    let library = Library {
                        path: table.text(path),
                        build_id: table.text(build_id),
                    };
                    let function = Function {
                        name: table.text(name),
                        system_name: TextId::default(),
                        library: table.library(library),
                        kind: Kind::of_function(path, name, name),
                    };
                    let frame = Frame {
                        function: table.function(function),
                        file: table.text("x.cc"),
                        line: value as u32,
                        inlined: false,
                    };
                    let frame = table.frame(frame);
                    node = table.child(node, frame);
                }
                *sums.entry(node).or_insert(0) += value;
            }
            let values = Values {
                nodes: sums.keys().copied().collect(),
                columns: vec![sums.into_values().collect()],
            };
            Made { table, values }
        }
    }

    /// Returns stacks, root first, with their values, of one column.
    fn rows(table: &StackTable, values: &Values) -> Vec<(Vec<String>, i64)> {
        let stack = |node| {
            let mut names: Vec<String> = table
                .stack(node)
                .map(|node| table.name_of(node).to_owned())
                .collect();
            names.reverse();
            names
        };
        let nodes = values.nodes.iter().zip(&values.columns[0]);
        nodes.map(|(&node, &value)| (stack(node), value)).collect()
    }

    #[test]
    fn two_builds_meet_in_the_names_of_functions_and_libraries() {
        let before = Made::of(
            &[
                vec![
                    ("main", LIB),
                    ("load() (.cold)", LIB),
                    ("libapp.so+0x10", LIB),
                ],
                vec![
                    ("main", LIB),
                    ("com.x.Main.run [interp]", "/data/app/x/base.apk"),
                ],
            ],
            "aa",
        );
        let other = "/data/app/~~c==/com.x-d==/lib/arm64/libapp.so";
        let after = Made::of(
            &[
                vec![
                    ("main", other),
                    ("load()", other),
                    ("libapp.so+0x20", other),
                ],
                vec![
                    ("main", other),
                    ("com.x.Main.run [jit]", "/memfd:jit-cache (deleted)"),
                ],
            ],
            "bb",
        );
        let joined = join(&[&before.table, &after.table], JoinBy::Name);
        let before = rows(&joined.table, &before.values.through(&joined.nodes[0]));
        let expected = [
            (vec!["main", "load()", "libapp.so+?"], 1),
            (vec!["main", "com.x.Main.run"], 2),
        ];
        let expected = expected.map(|(s, v)| (s.iter().map(|n| (*n).to_owned()).collect(), v));
        assert_eq!(before, expected);
        assert_eq!(
            before,
            rows(&joined.table, &after.values.through(&joined.nodes[1]))
        );
    }

    #[test]
    fn addresses_count_within_one_build() {
        let stacks = [vec![("libapp.so+0x10", LIB)], vec![("libapp.so+0x20", LIB)]];
        let (one, other) = (Made::of(&stacks, "aa"), Made::of(&stacks, "aa"));
        let joined = join(&[&one.table, &other.table], JoinBy::Name);
        assert_eq!(joined.table.node_count(), 3);
        let other = Made::of(&stacks, "bb");
        let joined = join(&[&one.table, &other.table], JoinBy::Name);
        assert_eq!(joined.table.node_count(), 2);
    }

    /// Returns the names of a stack of a list, outermost first.
    fn names(table: &StackTable, NodeId(id): NodeId) -> Vec<&str> {
        let mut packed = table.list().expect("it has a list").get(id);
        let frames = std::iter::from_fn(|| packed::first(&mut packed));
        let function =
            |frame: u32| &table.functions()[table.frames()[frame as usize].function.0 as usize];
        frames
            .map(|frame| table.text_of(function(frame).name))
            .collect()
    }

    #[test]
    fn lists_meet_in_equal_stacks_and_stay_lists() {
        let list = |from: usize| {
            let mut table = StackTable::with_list();
            for at in from..from + 20 {
                let stack = [at, at / 3, at % 4].map(|at| table.bare_frame(&format!("f{at}")));
                table.stack_of(&stack[at % 3..]);
            }
            table
        };
        let inputs = [list(0), list(7)];
        let joined = join(&[&inputs[0], &inputs[1]], JoinBy::Exact);
        for (input, nodes) in inputs.iter().zip(&joined.nodes) {
            assert_eq!(nodes.len(), input.callsite_count());
            for (id, node) in (0..).map(NodeId).zip(nodes) {
                assert_eq!(names(&joined.table, *node), names(input, id));
            }
        }
        let mut all: Vec<NodeId> = joined.nodes.concat();
        all.sort_unstable();
        all.dedup();
        assert_eq!(all.len(), joined.table.callsite_count());
        assert!(all.len() < inputs[0].callsite_count() + inputs[1].callsite_count() - 1);
    }

    fn stacks() -> impl Strategy<Value = Vec<Vec<(&'static str, &'static str)>>> {
        let name = prop::sample::select(vec![
            "main",
            "f",
            "f.cold",
            "f.llvm.7",
            "g()::'lambda0'()",
            "g()::'lambda'()",
            "libapp.so+0x10",
            "libapp.so+0x20",
            "0x77",
            "malloc",
            "com.x.A.run [jit]",
        ]);
        let path = prop::sample::select(vec![LIB, "/x/libapp.so.2", "/x/base.odex", ""]);
        prop::collection::vec(prop::collection::vec((name, path), 0..6), 0..20)
    }

    proptest! {
        /// Joining moves numbers without loss; parts of one recording stay the same.
        #[test]
        fn joining_loses_nothing(one in stacks(), other in stacks()) {
            let (one, other) = (Made::of(&one, "aa"), Made::of(&other, "bb"));
            let inputs = [&one.table, &other.table, &one.table];
            for by in [JoinBy::Exact, JoinBy::Name] {
                let joined = join(&inputs, by);
                prop_assert_eq!(&joined.nodes[0], &joined.nodes[2]);
                for (made, nodes) in [&one, &other].into_iter().zip(&joined.nodes) {
                    let through = made.values.through(nodes);
                    prop_assert!(through.nodes.is_sorted_by(|a, b| a < b));
                    let sum = |values: &Values| values.columns[0].iter().sum::<i64>();
                    prop_assert_eq!(sum(&through), sum(&made.values));
                    // Depth and callers stay the same.
                    for node in 0..made.table.node_count() as u32 {
                        let node = NodeId(node);
                        let parent = made.table.parent(node);
                        let here = nodes[node.0 as usize];
                        prop_assert_eq!(joined.table.parent(here), nodes[parent.0 as usize]);
                    }
                    if by == JoinBy::Exact {
                        let mut before = rows(&made.table, &made.values);
                        let mut after = rows(&joined.table, &through);
                        before.sort();
                        after.sort();
                        prop_assert_eq!(before, after);
                    }
                }
            }
        }
    }
}
