//! `experimental_flamegraph`: a heap as a tree of frames with cumulative figures. Native heaps
//! are arranged by callstacks, Java heaps by shortest paths from roots.
//!
//! It accepts three forms, all of which Perfetto documents or has documented:
//!
//! ```sql
//! SELECT … FROM experimental_flamegraph WHERE ts = 5 AND upid = 1 AND profile_type = 'native'
//! SELECT … FROM experimental_flamegraph(5, 1, 'native')
//! SELECT … FROM experimental_flamegraph('native', 5, NULL, 1, NULL, NULL)
//! ```
//!
//! Arguments of a function go to hidden columns by position, so the second form has a time where
//! the third has the type. A number there means the second form.

mod arguments;
mod graph;
mod native;
mod tree;

use std::sync::Arc;

use super::java::LazyHeaps;
use super::native::NativeHeaps;
use super::processes::Processes;
use super::table::{Catalog, Cell, Rows, Schema, TableError, columns, schema};
use arguments::{Asked, Sort};
use tree::Flamegraph;

static SCHEMA: Schema = schema! {
    "experimental_flamegraph": "One heap dump as a tree of frames, with the own and cumulative \
        figures of each, selected by time, process and type ('native' or 'graph').";
    id int row: "number of the row";
    ts int argument: "requested time";
    depth int: "0 at the root";
    name text: "function or class";
    map_name text: "library; `JAVA` for classes";
    count int: "unreleased allocations or objects of this frame itself";
    cumulative_count int: "unreleased allocations or objects of this frame and all frames below";
    size int: "unreleased bytes or bytes of objects of this frame itself";
    cumulative_size int: "unreleased bytes or bytes of objects of this frame and all frames below";
    alloc_count int: "allocations of this frame itself, including freed ones";
    cumulative_alloc_count int: "allocations of this frame and all frames below";
    alloc_size int: "bytes allocated by this frame itself, including freed ones";
    cumulative_alloc_size int: "bytes allocated by this frame and all frames below";
    parent_id int indexed: "frame above; NULL for a root";
    source_file text: "source file, if known";
    line_number int: "line number, if known";
    profile_type text argument hidden: "`native` or `graph`";
    ts_in int argument hidden: "requested time";
    ts_constraint text argument hidden: "instead of a time: `<=` followed by a time";
    upid int argument hidden: "process";
    upid_group text argument hidden: "instead of a process: a comma-separated list";
    focus_str text argument hidden: "limit to stacks with this text in a function name";
};

/// Adds the function.
pub fn add(
    catalog: &mut Catalog,
    native: Option<&Arc<NativeHeaps>>,
    java: Option<&LazyHeaps>,
    processes: &Arc<Processes>,
) {
    let native = native.map(|heaps| native::Stacks::new(heaps, processes));
    let java = java.cloned();
    let stop = catalog.stop();
    catalog.function(&SCHEMA, move |arguments| {
        let asked = Asked::from_arguments(arguments)?;
        let frames = match asked.sort {
            Sort::Native => match &native {
                Some(stacks) => stacks.flamegraph(&asked, &stop)?,
                None => return Err(no_such("native heap")),
            },
            Sort::Graph => match &java {
                Some(heaps) => graph::flamegraph(&*heaps.get()?, &asked, &stop)?,
                None => return Err(no_such("Java heap")),
            },
        };
        Ok(Arc::new(Table {
            frames,
            ts: asked.ts,
        }))
    });
}

fn no_such(what: &str) -> TableError {
    TableError(format!(
        "experimental_flamegraph: the input does not contain a {what}"
    ))
}

struct Table {
    frames: Flamegraph,
    ts: i64,
}

impl Rows for Table {
    fn len(&self) -> usize {
        self.frames.len()
    }

    fn cell(&self, row: usize, column: usize) -> Cell<'_> {
        let frame = self.frames.frame(row);
        let (own, sums) = (&frame.own, &frame.sums);
        match column {
            0 => row.into(),
            1 => self.ts.into(),
            2 => frame.depth.into(),
            3 => Cell::text(self.frames.name(row)),
            4 => Cell::text(self.frames.map_name(row)),
            5 => own.count.into(),
            6 => sums.count.into(),
            7 => own.size.into(),
            8 => sums.size.into(),
            9 => own.alloc_count.into(),
            10 => sums.alloc_count.into(),
            11 => own.alloc_size.into(),
            12 => sums.alloc_size.into(),
            13 => frame.parent.into(),
            14 => self.frames.source_file(row).into(),
            15 => frame.line.into(),
            // Argument columns do not repeat the arguments.
            _ => Cell::Null,
        }
    }
}
