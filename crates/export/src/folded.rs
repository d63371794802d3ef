//! Folded stacks: `root;caller;leaf 123`, a line a stack, as flamegraph.pl, inferno, speedscope
//! and Firefox Profiler read them. One column of one dump.
//!
//! Frames of one name are one frame. `;` in a name becomes `:`, a line end a blank.

use super::by_name::ByName;
use super::chosen::ChosenDump;
use super::text::folded_name;
use heaptap_model::stacks::StackTable;
use std::io::{self, Write};

/// Writes a column of a dump. Stacks that come to 0 are left out; a negative number, which only
/// profiles of differences have, stands as it is.
///
/// # Errors
/// Where `out` can't be written.
pub fn write(
    out: &mut impl Write,
    table: &StackTable,
    dump: &ChosenDump<'_>,
    column: usize,
) -> io::Result<()> {
    let tree = ByName::of(table, dump, column);
    let mut line = String::new();
    // Nodes yet to be written, each with the length of the stack above it.
    let mut todo: Vec<(u32, usize)> = tree.children(0).map(|node| (node, 0)).collect();
    while let Some((node, length)) = todo.pop() {
        line.truncate(length);
        if length > 0 {
            line.push(';');
        }
        let merged = &tree.nodes[node as usize];
        line.push_str(&folded_name(table.text_of(merged.name)));
        if merged.own != 0 {
            writeln!(out, "{line} {}", merged.own)?;
        }
        todo.extend(tree.children(node).map(|child| (child, line.len())));
    }
    Ok(())
}
