//! The tables that all dumps of a profile share: texts, libraries, functions, frames, and the
//! callsites. Append-only. IDs are dense and follow the order of first appearance, and a node's
//! parent always has a smaller ID than the node.

use super::calls::Calls;
use crate::profile::index::Seed;
use crate::profile::interned::{Interned, Texts};
use crate::profile::packed::PackedStacks;

/// Index of a text; 0 is the empty one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct TextId(pub u32);
/// Index of a [`Library`]; 0 is the unknown one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct LibraryId(pub u32);
/// Index of a [`Function`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FunctionId(pub u32);
/// Index of a [`Frame`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FrameId(pub u32);
/// Index of a callsite: a node of the tree, or a stack of the list. 0 is the root or the stack
/// without frames.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct NodeId(pub u32);

impl NodeId {
    /// Root of all stacks, which represents everything.
    pub const ROOT: NodeId = NodeId(0);
}

/// A mapped file.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Default)]
pub struct Library {
    /// Path on the device, as recorded; empty if unknown.
    pub path: TextId,
    /// GNU build ID in hexadecimal; empty if unknown.
    pub build_id: TextId,
}

/// Kind of a function in the search for the memory's owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
#[repr(u8)]
pub enum Kind {
    /// None of the following.
    #[default]
    Plain,
    /// Allocates memory for its caller: `malloc`, `operator new`, `std::allocator`.
    Allocator,
    /// Code of the Java runtime: interpreter, JNI stubs, entrypoints.
    Runtime,
    /// Java or Kotlin code in any execution mode.
    Java,
    /// Not code: the class of the allocated object, if a runtime records it.
    Class,
}

impl Kind {
    /// Returns the name in documents and tables.
    pub fn name(self) -> &'static str {
        match self {
            Kind::Plain => "plain",
            Kind::Allocator => "allocator",
            Kind::Runtime => "runtime",
            Kind::Java => "java",
            Kind::Class => "class",
        }
    }
}

/// Name of the only frame of a callsite that stands for all whose callstacks the trace lost.
pub const LOST_CALLSTACK: &str = "[callstack lost]";

/// A function of a library.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Function {
    /// Name for display: demangled, deobfuscated, annotated (` [jit]`) as in our pprofs.
    pub name: TextId,
    /// Recorded or linkage name; empty if it equals `name`.
    pub system_name: TextId,
    pub library: LibraryId,
    pub kind: Kind,
}

/// A location in a function, which can be inlined: one frame of a stack as displayed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Frame {
    pub function: FunctionId,
    /// Source file; empty if unknown.
    pub file: TextId,
    /// Line in `file`; 0 if unknown.
    pub line: u32,
    /// The compiler inlined the function into its caller.
    pub inlined: bool,
}

/// Texts, libraries, functions, frames, and callsites as a tree or a list. A list is made and summed
/// faster if few stacks have much in common, and takes less memory.
#[derive(Debug, Clone)]
pub struct StackTable {
    seed: Seed,
    texts: Texts,
    libraries: Interned<Library>,
    functions: Interned<Function>,
    frames: Interned<Frame>,
    nodes: Calls,
    list: Option<PackedStacks>,
}

impl Default for StackTable {
    fn default() -> Self {
        let mut table = StackTable {
            seed: Seed::default(),
            texts: Texts::default(),
            libraries: Interned::default(),
            functions: Interned::default(),
            frames: Interned::default(),
            nodes: Calls::default(),
            list: None,
        };
        table.library(Library::default());
        table
    }
}

fn pair(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

impl StackTable {
    pub fn text(&mut self, text: &str) -> TextId {
        TextId(self.texts.id(text))
    }

    pub fn library(&mut self, library: Library) -> LibraryId {
        let hash = self.seed.number(pair(library.path.0, library.build_id.0));
        LibraryId(self.libraries.id(hash, library))
    }

    pub fn function(&mut self, function: Function) -> FunctionId {
        let names = self
            .seed
            .number(pair(function.name.0, function.system_name.0));
        let rest = pair(function.library.0, function.kind as u32);
        let hash = self.seed.number(names ^ rest);
        FunctionId(self.functions.id(hash, function))
    }

    pub fn frame(&mut self, frame: Frame) -> FrameId {
        let place = self.seed.number(pair(frame.file.0, frame.line));
        let function = pair(frame.function.0, u32::from(frame.inlined));
        let hash = self.seed.number(place ^ function);
        FrameId(self.frames.id(hash, frame))
    }

    /// Returns the ID of a frame that has only a function name.
    pub fn bare_frame(&mut self, name: &str) -> FrameId {
        let function = Function {
            name: self.text(name),
            system_name: TextId::default(),
            library: LibraryId::default(),
            kind: Kind::Plain,
        };
        let function = self.function(function);
        self.frame(Frame {
            function,
            file: TextId::default(),
            line: 0,
            inlined: false,
        })
    }

    /// Returns the callsite of `frame` called from `parent`.
    pub fn child(&mut self, parent: NodeId, frame: FrameId) -> NodeId {
        debug_assert!(self.list.is_none(), "a list has no nodes");
        NodeId(self.nodes.child(parent.0, frame.0))
    }

    /// Returns a new callsite of `frame` called from `parent`, which has none yet.
    pub fn new_child(&mut self, parent: NodeId, frame: FrameId) -> NodeId {
        debug_assert!(self.list.is_none(), "a list has no nodes");
        NodeId(self.nodes.add(parent.0, frame.0))
    }

    /// Returns a table without callsites. It will have a list of stacks and not a tree.
    pub fn with_list() -> StackTable {
        let mut list = PackedStacks::default();
        list.id([]);
        StackTable {
            list: Some(list),
            ..StackTable::default()
        }
    }

    /// Returns the stacks by callsite, outermost frame first, if this is a table with a list. Such a
    /// table has no nodes.
    pub fn list(&self) -> Option<&PackedStacks> {
        self.list.as_ref()
    }

    /// Replaces all callsites with those of a tree, whose frames are in the table.
    pub fn set_tree(&mut self, calls: Calls) {
        self.nodes = calls;
        self.list = None;
    }

    /// Returns the callsite of a stack, given by its frames, outermost first.
    pub fn stack_of(&mut self, frames: &[FrameId]) -> NodeId {
        match &mut self.list {
            Some(list) => NodeId(list.id(frames.iter().map(|frame| frame.0))),
            None => frames
                .iter()
                .fold(NodeId::ROOT, |node, &frame| self.child(node, frame)),
        }
    }

    /// Returns the list, to add stacks.
    pub(super) fn list_mut(&mut self) -> Option<&mut PackedStacks> {
        self.list.as_mut()
    }

    /// Frees the memory that only new entries need. They are still possible in a tree.
    pub fn seal(&mut self) {
        self.nodes.seal();
        if let Some(list) = &mut self.list {
            list.seal();
        }
    }

    pub fn text_of(&self, id: TextId) -> &str {
        self.texts.get(id.0)
    }

    /// Returns all libraries, in order of their IDs.
    pub fn libraries(&self) -> &[Library] {
        self.libraries.all()
    }

    /// Returns all functions, in order of their IDs.
    pub fn functions(&self) -> &[Function] {
        self.functions.all()
    }

    /// Returns all frames, in order of their IDs.
    pub fn frames(&self) -> &[Frame] {
        self.frames.all()
    }

    /// Returns the number of texts.
    pub fn text_count(&self) -> usize {
        self.texts.len()
    }

    /// Returns the number of callsites, including the one without frames.
    pub fn callsite_count(&self) -> usize {
        let list = self.list.as_ref();
        list.map_or(self.node_count(), PackedStacks::len)
    }

    /// Returns the number of callsites of the tree, including the root.
    pub fn node_count(&self) -> usize {
        self.nodes.all().len()
    }

    /// Returns the caller of a callsite; the root for outermost callsites and for the root itself.
    pub fn parent(&self, node: NodeId) -> NodeId {
        debug_assert!(self.list.is_none(), "a list has no nodes");
        NodeId(self.nodes.all()[node.0 as usize].parent)
    }

    /// Returns the frame of a callsite; `None` for the root.
    pub fn frame_of(&self, node: NodeId) -> Option<FrameId> {
        debug_assert!(self.list.is_none(), "a list has no nodes");
        (node != NodeId::ROOT).then(|| FrameId(self.nodes.all()[node.0 as usize].frame))
    }

    /// Returns the function of a callsite; `None` for the root.
    pub fn function_of(&self, node: NodeId) -> Option<FunctionId> {
        let frame = self.frame_of(node)?;
        Some(self.frames.all()[frame.0 as usize].function)
    }

    /// Returns the displayed function name of a callsite; empty for the root.
    pub fn name_of(&self, node: NodeId) -> &str {
        match self.function_of(node) {
            Some(function) => self.text_of(self.functions.all()[function.0 as usize].name),
            None => "",
        }
    }

    /// Returns a callsite and its callers, leaf first, without the root.
    pub fn stack(&self, leaf: NodeId) -> impl Iterator<Item = NodeId> + '_ {
        let next = |node: &NodeId| Some(self.parent(*node));
        std::iter::successors(Some(leaf), next).take_while(|node| *node != NodeId::ROOT)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_stacks_share_their_nodes() {
        let mut table = StackTable::default();
        let (main, load) = (table.bare_frame("main"), table.bare_frame("load"));
        let root = table.child(NodeId::ROOT, main);
        let leaf = table.child(root, load);
        assert_eq!(table.child(NodeId::ROOT, main), root);
        assert_eq!(table.child(root, load), leaf);
        assert_ne!(
            table.child(root, main),
            root,
            "recursion is a node of its own"
        );
        let names: Vec<&str> = table.stack(leaf).map(|node| table.name_of(node)).collect();
        assert_eq!(names, ["load", "main"]);
        assert_eq!(table.name_of(NodeId::ROOT), "");
    }
}
