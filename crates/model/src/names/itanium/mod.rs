//! Demangles the names of C++ functions, as the Itanium ABI mangles them, to the spelling of LLVM's
//! tools (`llvm-cxxfilt`, `llvm-symbolizer`), which Perfetto shows.
//!
//! `parse` reads a name into the nodes of `tree`, `types` and `expression` the types and expressions
//! in it, and `print` writes the nodes.
//! A type is written on both sides of a name (`int (*f())[2]`), and a pack of template arguments is
//! written where it is expanded: text that is put together while reading cannot express either.

mod expression;
mod parse;
mod print;
mod tables;
#[cfg(test)]
mod tests;
mod tree;
mod types;

/// Demangles a name that starts with `_Z` or `__Z`; `None` if it is not a mangled name, nests too
/// deep or becomes longer than `max_bytes`.
pub fn demangle(name: &str, max_bytes: usize) -> Option<String> {
    let (tree, root) = parse::parse(name)?;
    print::print(&tree, root, max_bytes)
}
