//! Folded stacks: `root;caller;leaf 123`, one line per stack, as read by flamegraph.pl, inferno,
//! speedscope and Firefox Profiler. One column of one dump.
//!
//! Frames with the same name are one frame. `;` in a name becomes `:`, a line end becomes a space.

use super::by_name::ByName;
use super::chosen::ChosenDump;
use super::text::folded_name;
use heaptap_model::stacks::StackTable;
use std::io::{self, Write};

/// Writes a column of a dump without stacks whose value is 0. Negative values, which only profiles
/// of differences have, are written as they are.
///
/// # Errors
/// Returns an error if `out` cannot be written.
pub fn write(
    out: &mut impl Write,
    table: &StackTable,
    dump: &ChosenDump<'_>,
    column: usize,
) -> io::Result<()> {
    let tree = ByName::new(table, dump, column);
    let mut line = String::new();
    // Nodes to write, each with the length of the stack above it.
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
