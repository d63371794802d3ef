//! `heaptap_tree` and `heaptap_function`: own and cumulative figures of one dump, by callstack and
//! by function.

use std::sync::Arc;

use super::tree::{depths, function, library, text};
use super::{Stacks, VIEWS};
use crate::table::{Argument, Catalog, Cell, Column, Rows, Schema, TableError};
use heaptap_analyze::native::filter::Filter;
use heaptap_analyze::native::groups::{Groups, RowKey};
use heaptap_analyze::native::shown::Shown;
use heaptap_analyze::native::table::{Key, Table};
use heaptap_model::stacks::{Dump, FrameId, NodeId};

macro_rules! with_figures {
    ($($column:expr),* $(,)?) => {
        &[
            $($column,)*
            Column::int("size", "unreleased bytes that it allocated itself"),
            Column::int("count", "unreleased sampled allocations that it made itself"),
            Column::int("alloc_size", "bytes that it allocated itself"),
            Column::int("alloc_count", "sampled allocations that it made itself"),
            Column::int("cumulative_size", "unreleased bytes, including callees"),
            Column::int("cumulative_count", "unreleased sampled allocations, including callees"),
            Column::int("cumulative_alloc_size", "bytes allocated, including callees"),
            Column::int("cumulative_alloc_count", "sampled allocations, including callees"),
            Column::int("dump_id", "dump: `heaptap_dump.id`; default: the last one")
                .argument()
                .hidden(),
        ]
    };
}

static TREE: Schema = Schema {
    name: "heaptap_tree",
    module: None,
    about: "One dump as a tree of callstacks with own and cumulative figures: \
            heaptap_tree(dump_id).",
    columns: with_figures![
        Column::int("stack_id", "callsite: `heaptap_stack.id`").indexed(),
        Column::int("parent_id", "callsite that called it").indexed(),
        Column::int("depth", "0 for a root"),
        Column::text("name", "function"),
        Column::text("library", "path of the file that contains it"),
        Column::text("source_file", "source file; NULL if unknown"),
        Column::int("line_number", "line number; NULL if unknown"),
    ],
};
const TREE_FIGURES: usize = 7;

static FUNCTIONS: Schema = Schema {
    name: "heaptap_function",
    module: None,
    about: "One dump by function, with recursion counted once: heaptap_function(dump_id).",
    columns: with_figures![
        Column::text("name", "function"),
        Column::text("library", "path of the file that contains it"),
        Column::text(
            "kind",
            "plain, allocator, runtime (of Java), java, class (allocated)"
        ),
    ],
};
const FUNCTION_FIGURES: usize = 3;

/// Own and cumulative figures, each by view and then by row; `None` if the dump does not have
/// them.
struct Figures([Option<Vec<i64>>; 8]);

impl Figures {
    fn cell(&self, column: usize, row: usize, dump: usize) -> Cell<'static> {
        match self.0.get(column) {
            Some(values) => values.as_ref().map(|values| values[row]).into(),
            None => dump.into(),
        }
    }

    /// Collects the figures from sums over the columns of a dump.
    fn of(
        dump: &Dump,
        own: impl Fn(usize) -> Vec<i64>,
        cumulative: impl Fn(usize) -> Vec<i64>,
    ) -> Figures {
        let column = |at: usize| {
            let view = VIEWS[at % 4];
            let found = dump.measures.iter().position(|m| m.view == Some(view))?;
            Some(if at < 4 {
                own(found)
            } else {
                cumulative(found)
            })
        };
        Figures(std::array::from_fn(column))
    }
}

struct TreeRows {
    stacks: Arc<Stacks>,
    dump: usize,
    nodes: Vec<NodeId>,
    depths: Vec<u32>,
    figures: Figures,
}

impl TreeRows {
    fn of(stacks: &Arc<Stacks>, at: usize) -> TreeRows {
        let table = &stacks.profile().table;
        let dump = stacks.dump(at);
        let count = table.node_count();
        // Callsites with samples in them or below.
        let mut used = vec![false; count];
        for &leaf in &dump.values.nodes {
            for node in table.stack(leaf) {
                if std::mem::replace(&mut used[node.0 as usize], true) {
                    break;
                }
            }
        }
        let nodes: Vec<NodeId> = (1..count as u32)
            .map(NodeId)
            .filter(|node| used[node.0 as usize])
            .collect();
        let spread = |column: usize| {
            let mut sums = vec![0i64; count];
            let values = dump.values.columns[column].iter();
            for (node, value) in dump.values.nodes.iter().zip(values) {
                sums[node.0 as usize] = *value;
            }
            sums
        };
        let of_rows = |sums: &[i64]| nodes.iter().map(|node| sums[node.0 as usize]).collect();
        let figures = Figures::of(
            dump,
            |column| of_rows(&spread(column)),
            |column| {
                let mut sums = spread(column);
                for node in (1..count).rev() {
                    let parent = table.parent(NodeId(node as u32)).0 as usize;
                    sums[parent] = sums[parent].saturating_add(sums[node]);
                }
                of_rows(&sums)
            },
        );
        let all = depths(table);
        TreeRows {
            stacks: Arc::clone(stacks),
            dump: at,
            depths: nodes.iter().map(|node| all[node.0 as usize]).collect(),
            nodes,
            figures,
        }
    }
}

impl Rows for TreeRows {
    fn len(&self) -> usize {
        self.nodes.len()
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        let table = &self.stacks.profile().table;
        let node = self.nodes[row];
        let frame = || table.frame_of(node);
        let place = || frame().map(|frame| &table.frames()[frame.0 as usize]);
        match column {
            0 => node.0.checked_sub(1).into(),
            1 => table.parent(node).0.checked_sub(1).into(),
            2 => self.depths[row].into(),
            3 => table.name_of(node).into(),
            4 => frame()
                .and_then(|frame| library(table, function(table, frame)))
                .into(),
            5 => place().and_then(|place| text(table, place.file)).into(),
            6 => place()
                .map(|place| place.line)
                .filter(|&line| line > 0)
                .into(),
            _ => self.figures.cell(column - TREE_FIGURES, row, self.dump),
        }
    }
}

struct FunctionRows {
    stacks: Arc<Stacks>,
    dump: usize,
    /// One frame of each function.
    frames: Vec<FrameId>,
    figures: Figures,
}

impl FunctionRows {
    fn of(stacks: &Arc<Stacks>, at: usize) -> FunctionRows {
        let table = &stacks.profile().table;
        let dump = stacks.dump(at);
        let shown = Shown::of(table, &Filter::default(), &[&dump.values]);
        let groups = Groups::of(table, RowKey::Function);
        let sums = Table::of(&shown, &groups, &dump.values);
        let frames = sums.rows().filter_map(|row| match row.key {
            Key::Group(group) => Some(groups.sample(group)),
            Key::Callsite(_) => None,
        });
        FunctionRows {
            frames: frames.collect(),
            figures: Figures::of(
                dump,
                |column| sums.rows().map(|row| row.own[column]).collect(),
                |column| sums.rows().map(|row| row.cumulative[column]).collect(),
            ),
            stacks: Arc::clone(stacks),
            dump: at,
        }
    }
}

impl Rows for FunctionRows {
    fn len(&self) -> usize {
        self.frames.len()
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        let table = &self.stacks.profile().table;
        let of = function(table, self.frames[row]);
        match column {
            0 => table.text_of(of.name).into(),
            1 => library(table, of).into(),
            2 => Cell::text(of.kind.name()),
            _ => self.figures.cell(column - FUNCTION_FIGURES, row, self.dump),
        }
    }
}

/// Returns the dump in the arguments, or the last one without an argument.
fn dump_of(
    stacks: &Stacks,
    name: &str,
    arguments: &[Argument],
) -> Result<Option<usize>, TableError> {
    let count = stacks.facts.len();
    let wrong = || {
        TableError(format!(
            "{name} needs a dump ID from 0 to {}; run SELECT id, ts, process, heap_name FROM \
             heaptap_dump",
            count.saturating_sub(1)
        ))
    };
    match arguments.last() {
        None | Some(Argument::Absent | Argument::Null) => {
            let facts = &stacks.facts;
            let is_closed = facts.iter().rposition(|dump| !dump.open);
            Ok(is_closed.or(count.checked_sub(1)))
        }
        Some(Argument::Int(id)) => match usize::try_from(*id) {
            Ok(id) if id < count => Ok(Some(id)),
            _ => Err(wrong()),
        },
        Some(Argument::Real(_) | Argument::Text(_)) => Err(wrong()),
    }
}

struct Nothing;

impl Rows for Nothing {
    fn len(&self) -> usize {
        0
    }

    fn cell(&self, _: usize, _: usize) -> Cell<'_> {
        Cell::Null
    }
}

pub(super) fn add(catalog: &mut Catalog, stacks: &Arc<Stacks>) {
    let of = Arc::clone(stacks);
    catalog.function(&TREE, move |arguments| {
        Ok(match dump_of(&of, TREE.name, arguments)? {
            Some(dump) => Arc::new(TreeRows::of(&of, dump)),
            None => Arc::new(Nothing),
        })
    });
    let of = Arc::clone(stacks);
    catalog.function(&FUNCTIONS, move |arguments| {
        Ok(match dump_of(&of, FUNCTIONS.name, arguments)? {
            Some(dump) => Arc::new(FunctionRows::of(&of, dump)),
            None => Arc::new(Nothing),
        })
    });
}
