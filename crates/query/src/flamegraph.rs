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

mod graph;
mod native;
mod tree;

use std::sync::Arc;

use super::java::LazyHeaps;
use super::native::NativeHeaps;
use super::processes::Processes;
use super::table::{Argument, Catalog, Cell, Rows, Schema, TableError, columns, schema};
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

const TS: usize = 1;
const PROFILE_TYPE: usize = 16;
const TS_IN: usize = 17;
const TS_CONSTRAINT: usize = 18;
const UPID: usize = 19;
const UPID_GROUP: usize = 20;
const FOCUS: usize = 21;

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
        let asked = Asked::of(arguments)?;
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

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Sort {
    Native,
    Graph,
}

/// Arguments of the function.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Asked {
    sort: Sort,
    ts: i64,
    upids: Vec<i64>,
    focus: Option<String>,
}

impl Asked {
    fn of(arguments: &[Argument]) -> Result<Asked, TableError> {
        let wrong = |what: &str| {
            Err(TableError(format!(
                "experimental_flamegraph: {what}; write \
                 experimental_flamegraph('native', TS, NULL, UPID, NULL, NULL), with 'graph' for \
                 a Java heap"
            )))
        };
        let at = |column: usize| &arguments[column];
        // Of three arguments, the first is the time.
        let (sort, ts, upid, constraint) = match at(PROFILE_TYPE) {
            Argument::Int(_) => (
                at(TS_CONSTRAINT),
                at(PROFILE_TYPE),
                at(TS_IN),
                &Argument::Absent,
            ),
            sort => {
                let ts = match at(TS_IN) {
                    Argument::Absent => at(TS),
                    ts => ts,
                };
                (sort, ts, at(UPID), at(TS_CONSTRAINT))
            }
        };
        let sort = match sort {
            Argument::Text(sort) if sort == "native" => Sort::Native,
            Argument::Text(sort) if sort == "graph" => Sort::Graph,
            Argument::Text(sort) if sort == "perf" => {
                return wrong("CPU profile samples are not supported");
            }
            Argument::Text(_) => return wrong("the type must be 'native' or 'graph'"),
            _ => return wrong("the type is missing"),
        };
        let ts = match (ts, constraint) {
            (Argument::Int(ts), _) => *ts,
            (Argument::Absent | Argument::Null, Argument::Text(constraint)) => {
                let ts = constraint.strip_prefix("<=").map(str::trim);
                match ts.and_then(|ts| ts.parse().ok()) {
                    Some(ts) => ts,
                    None => {
                        return wrong("the only supported constraint is `<=` followed by a time");
                    }
                }
            }
            (Argument::Absent | Argument::Null, _) => return wrong("the time is missing"),
            _ => return wrong("the time must be an integer"),
        };
        let upids = match (upid, at(UPID_GROUP)) {
            (Argument::Int(upid), _) => vec![*upid],
            (Argument::Absent | Argument::Null, Argument::Text(group)) => {
                let upids = group.split(',').map(|upid| upid.trim().parse());
                match upids.collect() {
                    Ok(upids) => upids,
                    Err(_) => {
                        return wrong("a process group must be a comma-separated list of upids");
                    }
                }
            }
            _ => return wrong("the upid is missing"),
        };
        let focus = match at(FOCUS) {
            Argument::Text(focus) if !focus.is_empty() => Some(focus.clone()),
            Argument::Text(_) | Argument::Absent | Argument::Null => None,
            _ => return wrong("the focus must be text"),
        };
        Ok(Asked {
            sort,
            ts,
            upids,
            focus,
        })
    }
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
