//! `heaptap_stack`: callstacks as a tree of named frames.

use std::sync::Arc;

use super::profile::Stacks;
use crate::once::read_once;
use crate::table::{Catalog, Cell, Model, Schema, columns, schema};
use heaptap_model::stacks::{FrameId, Function, NodeId, StackTable, TextId};

static STACKS: Schema = schema! {
    "heaptap_stack": "Callstacks as a tree of named frames, including inlined functions; callers \
        come before their callees.";
    id int row: "number of the row";
    parent_id int indexed: "callsite that called it; smaller than `id`";
    depth int: "distance from the root; 0 for a root";
    name text indexed: "function: demangled, deobfuscated, annotated";
    system_name text: "name in the recording or in the linked file";
    library text indexed: "path of the file that contains it";
    source_file text: "source file; NULL if unknown";
    line_number int: "line number; NULL if unknown";
    inlined int: "1 if the compiler inlined it into its caller";
    kind text: "plain, allocator, runtime (of Java), java, class (allocated)";
    stack text: "names from the root to here, separated by `;`";
};

/// Maximum bytes of a stack as text, because a hostile trace could ask for any amount.
const MAX_LENGTH: usize = 1 << 20;

/// Stacks with the depth of each callsite; roots and the node above them have 0.
pub(super) struct Tree {
    pub(super) stacks: Arc<Stacks>,
    depths: Vec<u32>,
}

pub(super) fn text(table: &StackTable, id: TextId) -> Option<&str> {
    (id != TextId::default()).then(|| table.text_of(id))
}

pub(super) fn function(table: &StackTable, frame: FrameId) -> &Function {
    let frame = &table.frames()[frame.0 as usize];
    &table.functions()[frame.function.0 as usize]
}

pub(super) fn library<'t>(table: &'t StackTable, function: &Function) -> Option<&'t str> {
    text(table, table.libraries()[function.library.0 as usize].path)
}

fn stack_text(table: &StackTable, leaf: NodeId) -> String {
    let mut names: Vec<&str> = Vec::new();
    let mut bytes = 0;
    for node in table.stack(leaf) {
        let name = table.name_of(node);
        bytes += name.len() + 1;
        if bytes > MAX_LENGTH {
            names.push("…");
            break;
        }
        names.push(name);
    }
    names.reverse();
    names.join(";")
}

/// Returns a cell of a callsite's row. The root does not have a frame, and so it does not have a row.
pub(super) fn cell(of: &Tree, row: usize, column: usize) -> Cell<'_> {
    let table = &of.stacks.profile().table;
    let node = NodeId(row as u32 + 1);
    let frame = || table.frame_of(node);
    let of_frame = || frame().map(|frame| function(table, frame));
    let place = || frame().map(|frame| &table.frames()[frame.0 as usize]);
    match column {
        0 => row.into(),
        1 => table.parent(node).0.checked_sub(1).into(),
        2 => of.depths[row + 1].into(),
        3 => table.name_of(node).into(),
        4 => of_frame().and_then(|of| text(table, of.system_name)).into(),
        5 => of_frame().and_then(|of| library(table, of)).into(),
        6 => place().and_then(|place| text(table, place.file)).into(),
        7 => place()
            .map(|place| place.line)
            .filter(|&line| line > 0)
            .into(),
        8 => Cell::flag(place().is_some_and(|place| place.inlined)),
        9 => of_frame().map(|of| of.kind.name()).into(),
        _ => stack_text(table, node).into(),
    }
}

fn distinct(of: &Tree, column: usize) -> Option<usize> {
    let table = &of.stacks.profile().table;
    match column {
        3 => Some(table.functions().len()),
        5 => Some(table.libraries().len()),
        _ => None,
    }
}

/// Adds the table and returns its model.
pub(super) fn add(catalog: &mut Catalog, stacks: &Arc<Stacks>) -> Model<Tree> {
    let stacks = Arc::clone(stacks);
    let tree = read_once(move || {
        let table = &stacks.profile().table;
        let mut depths = vec![0u32; table.node_count()];
        for node in 1..table.node_count() {
            let parent = table.parent(NodeId(node as u32));
            if parent != NodeId::ROOT {
                depths[node] = depths[parent.0 as usize].saturating_add(1);
            }
        }
        Ok(Tree {
            stacks: Arc::clone(&stacks),
            depths,
        })
    });
    catalog.counted_rows(&STACKS, &tree, |of| of.depths.len() - 1, cell, distinct);
    tree
}
