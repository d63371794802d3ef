//! `heaptap_tree` and `heaptap_function`: own and cumulative figures of one dump, by callstack and
//! by function.

use std::sync::Arc;

use super::profile::{Stacks, VIEWS};
use super::tree::{self, Tree, function, library};
use crate::table::{
    Argument, Catalog, Cell, Fixed, Model, Rows, Schema, TableError, columns, schema,
};
use heaptap_analyze::native::filter::Filter;
use heaptap_analyze::native::groups::{Groups, RowKey};
use heaptap_analyze::native::table::{Key, Table};
use heaptap_analyze::native::visible_tree::VisibleTree;
use heaptap_model::stacks::{Dump, FrameId, NodeId};

/// Describes a function over one dump: its own columns and those of the figures.
macro_rules! with_figures {
    ($($columns:tt)*) => {
        schema! {
            $($columns)*
            size int: "unreleased bytes that it allocated itself";
            count int: "unreleased sampled allocations that it made itself";
            alloc_size int: "bytes that it allocated itself";
            alloc_count int: "sampled allocations that it made itself";
            cumulative_size int: "unreleased bytes, including callees";
            cumulative_count int: "unreleased sampled allocations, including callees";
            cumulative_alloc_size int: "bytes allocated, including callees";
            cumulative_alloc_count int: "sampled allocations, including callees";
            dump_id int argument hidden: "dump: `heaptap_dump.id`; default: the last one";
        }
    };
}

static TREE: Schema = with_figures! {
    "heaptap_tree": "One dump as a tree of callstacks with own and cumulative figures: \
        heaptap_tree(dump_id).";
    stack_id int indexed: "callsite: `heaptap_stack.id`";
    parent_id int indexed: "callsite that called it";
    depth int: "0 for a root";
    name text: "function";
    library text: "path of the file that contains it";
    source_file text: "source file; NULL if unknown";
    line_number int: "line number; NULL if unknown";
};
const TREE_FIGURES: usize = 7;

static FUNCTIONS: Schema = with_figures! {
    "heaptap_function":
        "One dump by function, with recursion counted once: heaptap_function(dump_id).";
    name text: "function";
    library text: "path of the file that contains it";
    kind text: "plain, allocator, runtime (of Java), java, class (allocated)";
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
    fn new(
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
    tree: Arc<Tree>,
    dump: usize,
    nodes: Vec<NodeId>,
    figures: Figures,
}

impl TreeRows {
    fn new(tree: Arc<Tree>, at: usize) -> TreeRows {
        let table = &tree.stacks.profile().table;
        let dump = tree.stacks.dump(at);
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
        let figures = Figures::new(
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
        TreeRows {
            dump: at,
            nodes,
            figures,
            tree,
        }
    }
}

impl Rows for TreeRows {
    fn len(&self) -> usize {
        self.nodes.len()
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        let of_stack = |column| tree::cell(&self.tree, self.nodes[row].0 as usize - 1, column);
        match column {
            0..=3 => of_stack(column),
            4..=6 => of_stack(column + 1),
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
    fn new(stacks: &Arc<Stacks>, at: usize) -> FunctionRows {
        let table = &stacks.profile().table;
        let dump = stacks.dump(at);
        let shown = VisibleTree::new(table, &Filter::default(), &[&dump.values]);
        let groups = Groups::new(table, RowKey::Function);
        let sums = Table::new(&shown, &groups, &dump.values);
        let frames = sums.rows().filter_map(|row| match row.key {
            Key::Group(group) => Some(groups.sample(group)),
            Key::Callsite(_) => None,
        });
        FunctionRows {
            frames: frames.collect(),
            figures: Figures::new(
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

pub(super) fn add(catalog: &mut Catalog, stacks: &Arc<Stacks>, tree: Model<Tree>) {
    let of = Arc::clone(stacks);
    catalog.function(&TREE, move |arguments| {
        Ok(match dump_of(&of, TREE.name, arguments)? {
            Some(dump) => Arc::new(TreeRows::new(tree()?, dump)),
            None => Arc::new(Fixed::default()),
        })
    });
    let of = Arc::clone(stacks);
    catalog.function(&FUNCTIONS, move |arguments| {
        Ok(match dump_of(&of, FUNCTIONS.name, arguments)? {
            Some(dump) => Arc::new(FunctionRows::new(&of, dump)),
            None => Arc::new(Fixed::default()),
        })
    });
}
