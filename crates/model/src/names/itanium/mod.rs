//! Demangles the names of C++ functions, as the Itanium ABI mangles them, to the spelling of LLVM's
//! tools (`llvm-cxxfilt`, `llvm-symbolizer`), which Perfetto shows.
//!
//! `parse` reads a name into nodes, `types` and `expression` the types and expressions in it, and
//! `print` writes the nodes.
//! A type is written on both sides of a name (`int (*f())[2]`), and a pack of template arguments is
//! written where it is expanded: text that is put together while reading cannot express either.

mod expression;
mod parse;
mod print;
mod tables;
#[cfg(test)]
mod tests;
mod types;

/// Maximum depth of nested names, types and expressions, for the stack. Names of real libraries
/// nest about 60 deep.
const MAX_DEPTH: usize = 192;

/// Demangles a name that starts with `_Z` or `__Z`; `None` if it is not a mangled name, nests too
/// deep or becomes longer than `max_bytes`.
pub fn demangle(name: &str, max_bytes: usize) -> Option<String> {
    let (tree, root) = parse::parse(name)?;
    print::print(&tree, root, max_bytes)
}

/// Index of a node.
type Id = u32;

/// Range of `Tree::lists`.
#[derive(Debug, Clone, Copy)]
struct List(u32, u32);

/// Part of a name. Nodes refer to earlier nodes.
#[derive(Debug, Clone, Copy)]
enum Node<'a> {
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
struct Function {
    result: Option<Id>,
    name: Option<Id>,
    parameters: Id,
    suffix: [&'static str; 3],
}

#[derive(Debug, Default)]
struct Tree<'a> {
    nodes: Vec<Node<'a>>,
    lists: Vec<Id>,
}

impl<'a> Tree<'a> {
    fn list(&self, list: List) -> &[Id] {
        &self.lists[list.0 as usize..list.1 as usize]
    }

    fn node(&self, id: Id) -> Node<'a> {
        self.nodes[id as usize]
    }
}
