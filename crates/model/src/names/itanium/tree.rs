//! A name as a tree of nodes.

/// Maximum depth of nested names, types and expressions, for the stack. Names of real libraries
/// nest about 60 deep.
pub(super) const MAX_DEPTH: usize = 192;

/// Index of a node.
pub(super) type Id = u32;

/// Range of `Tree::lists`.
#[derive(Debug, Clone, Copy)]
pub(super) struct List(pub(super) u32, pub(super) u32);

/// Part of a name. Nodes refer to earlier nodes.
#[derive(Debug, Clone, Copy)]
pub(super) enum Node<'a> {
    Text(&'a str),
    /// Parts of a text.
    Sequence(List),
    /// Parts of an operation with two operands or more.
    Operation(List),
    /// A part of an operation, which has parentheses if it is one.
    Operand(Id),
    /// `a, b`: also the arguments that a pack consists of.
    Commas(List),
    /// `<a, b>`
    Arguments(List),
    /// `scope::name`
    Scoped(Id, Id),
    /// A name and its arguments.
    Template(Id, Id),
    /// `name[abi:tag]`
    Tagged(Id, Id),
    /// An abbreviated class of the standard library; with its arguments in names of constructors.
    Standard(usize, bool),
    /// A constructor (empty text) or a destructor (`~`) of a class.
    Structor(&'static str, Id),
    Function(Function),
    Pointer(Id),
    /// What is referred to, `&` or `&&`.
    Reference(Id, &'static str),
    /// A pointer to a member: class and type.
    Member(Id, Id),
    Array(Id, Id),
    Qualified(Id, &'static str),
    /// A parameter that stands for several arguments: one at a time is written.
    Pack(List),
    /// Its part is written once for each argument of the pack in it.
    Expansion(Id),
}

/// A function, or without name its type; the suffix has qualifiers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Function {
    pub(super) result: Option<Id>,
    pub(super) name: Option<Id>,
    pub(super) parameters: Id,
    pub(super) suffix: [&'static str; 3],
}

#[derive(Debug, Default)]
pub(super) struct Tree<'a> {
    pub(super) nodes: Vec<Node<'a>>,
    pub(super) lists: Vec<Id>,
}

impl<'a> Tree<'a> {
    pub(super) fn list(&self, list: List) -> &[Id] {
        &self.lists[list.0 as usize..list.1 as usize]
    }

    pub(super) fn node(&self, id: Id) -> Node<'a> {
        self.nodes[id as usize]
    }
}
