//! `heaptap_stack`: callstacks as a tree of named frames.

use std::sync::Arc;

use super::Stacks;
use crate::table::{Catalog, Cell, Column, Rows, Schema};
use heaptap_model::stacks::{FrameId, Function, NodeId, StackTable, TextId};

static STACKS: Schema = Schema {
    name: "heaptap_stack",
    module: None,
    about: "Callstacks as a tree of named frames, including inlined functions; callers come \
            before their callees.",
    columns: &[
        Column::id(),
        Column::int("parent_id", "callsite that called it; smaller than `id`").indexed(),
        Column::int("depth", "distance from the root; 0 for a root"),
        Column::text("name", "function: demangled, deobfuscated, annotated").indexed(),
        Column::text("system_name", "name in the recording or in the linked file"),
        Column::text("library", "path of the file that contains it").indexed(),
        Column::text("source_file", "source file; NULL if unknown"),
        Column::int("line_number", "line number; NULL if unknown"),
        Column::int("inlined", "1 if the compiler inlined it into its caller"),
        Column::text(
            "kind",
            "plain, allocator, runtime (of Java), java, class (allocated)",
        ),
        Column::text("stack", "names from the root to here, separated by `;`"),
    ],
};

/// Maximum bytes of a stack as text, because a hostile trace could ask for any amount.
const LONGEST: usize = 1 << 20;

struct Tree {
    stacks: Arc<Stacks>,
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

/// Returns the depths of all callsites; roots and the node above them have 0.
pub(super) fn depths(table: &StackTable) -> Vec<u32> {
    let mut depths = vec![0u32; table.node_count()];
    for node in 1..table.node_count() {
        let parent = table.parent(NodeId(node as u32));
        if parent != NodeId::ROOT {
            depths[node] = depths[parent.0 as usize].saturating_add(1);
        }
    }
    depths
}

fn stack_text(table: &StackTable, leaf: NodeId) -> String {
    let mut names: Vec<&str> = Vec::new();
    let mut bytes = 0;
    for node in table.stack(leaf) {
        let name = table.name_of(node);
        bytes += name.len() + 1;
        if bytes > LONGEST {
            names.push("…");
            break;
        }
        names.push(name);
    }
    names.reverse();
    names.join(";")
}

impl Rows for Tree {
    fn len(&self) -> usize {
        // The root does not have a frame, and so it does not have a row.
        self.depths.len() - 1
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        let table = &self.stacks.profile().table;
        let node = NodeId(row as u32 + 1);
        let frame = || table.frame_of(node);
        let of = || frame().map(|frame| function(table, frame));
        let place = || frame().map(|frame| &table.frames()[frame.0 as usize]);
        match column {
            0 => row.into(),
            1 => table.parent(node).0.checked_sub(1).into(),
            2 => self.depths[row + 1].into(),
            3 => table.name_of(node).into(),
            4 => of().and_then(|of| text(table, of.system_name)).into(),
            5 => of().and_then(|of| library(table, of)).into(),
            6 => place().and_then(|place| text(table, place.file)).into(),
            7 => place()
                .map(|place| place.line)
                .filter(|&line| line > 0)
                .into(),
            8 => Cell::flag(place().is_some_and(|place| place.inlined)),
            9 => of().map(|of| of.kind.name()).into(),
            _ => stack_text(table, node).into(),
        }
    }

    fn distinct(&self, column: usize) -> Option<usize> {
        let table = &self.stacks.profile().table;
        match column {
            3 => Some(table.functions().len()),
            5 => Some(table.libraries().len()),
            _ => None,
        }
    }
}

pub(super) fn add(catalog: &mut Catalog, stacks: &Arc<Stacks>) {
    let of = Arc::clone(stacks);
    catalog.table(&STACKS, move || {
        Ok(Arc::new(Tree {
            depths: depths(&of.profile().table),
            stacks: Arc::clone(&of),
        }))
    });
}
