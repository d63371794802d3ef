//! Parquet for DuckDB, pandas and data warehouses: one file per table, joined by IDs.
//!
//! | file | a row for each | columns |
//! |---|---|---|
//! | `dump` | dump | `id`, `dump` (its number), `label`, `pid`, `process`, `heap`, `ts`, `wall_ns`, `start_ts`, `interval_bytes`, `kind`, `unfinished` |
//! | `frame` | place in a function | `id`, `function`, `system_name`, `kind`, `library`, `build_id`, `file`, `line`, `inlined` |
//! | `callsite` | node of the tree of stacks | `id`, `parent`, `depth`, `frame` |
//! | `sample` | dump and callsite | `dump_id`, `ts`, `heap`, `callsite`, `alloc_bytes`, `alloc_n`, `free_bytes`, `free_n`, `live_bytes`, `live_n`, and other measures |
//! | `class` | Java dump and class | `dump_id`, `id`, `name`, `objects`, `shallow_bytes`, `native_bytes`, `retained_bytes`, `retained_n` |
//! | `object` | Java dump and object | `dump_id`, `id`, `class`, `heap`, `root`, `reachable`, `dominator`, `shallow_bytes`, `native_bytes`, `retained_bytes`, `retained_n` |
//!
//! `sample` is sorted by dump, then callsite. Unknown values are null. `views.sql` in the same
//! directory defines DuckDB views of all tables, including stacks as text and cumulative sizes.

use super::chosen::{Chosen, ChosenDump, Needed, headings};
use heaptap_model::heap_graph::{ClassIndex, Dominators, HeapGraph};
use heaptap_model::profile::DumpKind;
use heaptap_model::stacks::{Measure, NodeId, View};
use heaptap_tables::{
    Cell, Column, Holds, Schema, Table, always, maybe, unless_empty, unless_zero,
};
use std::io::{self, Write};

/// Version of the tables. New columns do not change it; a changed meaning increments it.
pub const VERSION: u32 = 1;
const SCHEMA: Schema = Schema {
    name: "heaptap-profile",
    version: VERSION,
    level: 3,
};

/// Views for DuckDB over all tables.
const VIEWS: &str = include_str!("views.sql");
/// Views over the tables of Java heaps, added if there are any.
const JAVA_VIEWS: &str = include_str!("java_views.sql");
/// Name of the file with the views.
pub const VIEWS_FILE: &str = "views.sql";

/// Destination of tables: creates a file for a name such as `frame.parquet` and receives it when
/// complete.
pub trait Files {
    /// File that is being written.
    type File: Write + Send;

    /// Creates the file of that name.
    ///
    /// # Errors
    /// Returns an error if the file cannot be written.
    fn create(&mut self, name: &str) -> io::Result<Self::File>;

    /// Closes a complete file.
    ///
    /// # Errors
    /// Returns an error if the remaining data cannot be written.
    fn finish(&mut self, file: Self::File) -> io::Result<()>;
}

/// Writes the tables of native heaps and class trees, and `views.sql`.
///
/// # Errors
/// Returns an error if a file cannot be written.
pub fn write<F: Files>(files: &mut F, chosen: &Chosen<'_>, java: bool) -> io::Result<()> {
    let needed = Needed::from_chosen(chosen);
    write_dumps(files, chosen)?;
    write_frames(files, chosen, &needed)?;
    write_callsites(files, chosen, &needed)?;
    write_samples(files, chosen, &needed)?;
    let mut views = files.create(VIEWS_FILE)?;
    views.write_all(VIEWS.as_bytes())?;
    if java {
        views.write_all(JAVA_VIEWS.as_bytes())?;
    }
    files.finish(views)
}

fn write_dumps<F: Files>(files: &mut F, chosen: &Chosen<'_>) -> io::Result<()> {
    let columns = vec![
        always("id", Holds::Int).counting_up(),
        always("dump", Holds::Int),
        maybe("label", Holds::Text),
        maybe("pid", Holds::Int),
        maybe("process", Holds::Text),
        maybe("heap", Holds::Text),
        maybe("ts", Holds::Int),
        maybe("wall_ns", Holds::Int),
        maybe("start_ts", Holds::Int),
        maybe("interval_bytes", Holds::Int),
        always("kind", Holds::Text),
        always("unfinished", Holds::Bool),
    ];
    let mut table = Table::new(files.create("dump.parquet")?, SCHEMA, "dump", columns)?;
    for (id, dump) in chosen.dumps.iter().enumerate() {
        let facts = &dump.dump.facts;
        table.row(&[
            (id as u64).into(),
            facts.number.into(),
            facts.label.as_deref().into(),
            unless_zero(facts.pid),
            unless_empty(&facts.process),
            unless_empty(&facts.heap),
            facts.time_ns.into(),
            facts.wall_time_ns.into(),
            facts.start_ns.into(),
            unless_zero(facts.sampling_interval_bytes),
            Cell::Text(facts.kind.name()),
            Cell::Bool(facts.unfinished),
        ])?;
    }
    let file = table.finish()?;
    files.finish(file)
}

fn write_frames<F: Files>(files: &mut F, chosen: &Chosen<'_>, needed: &Needed) -> io::Result<()> {
    let columns = vec![
        always("id", Holds::Int).counting_up(),
        always("function", Holds::Text),
        maybe("system_name", Holds::Text),
        always("kind", Holds::Text),
        maybe("library", Holds::Text),
        maybe("build_id", Holds::Text),
        maybe("file", Holds::Text),
        maybe("line", Holds::Int),
        always("inlined", Holds::Bool),
    ];
    let mut table = Table::new(files.create("frame.parquet")?, SCHEMA, "frame", columns)?;
    let stacks = chosen.table;
    for &id in &needed.frames {
        let frame = &stacks.frames()[id.0 as usize];
        let function = &stacks.functions()[frame.function.0 as usize];
        let library = &stacks.libraries()[function.library.0 as usize];
        table.row(&[
            needed.frame(id).into(),
            stacks.text_of(function.name).into(),
            unless_empty(stacks.text_of(function.system_name)),
            function.kind.name().into(),
            unless_empty(stacks.text_of(library.path)),
            unless_empty(stacks.text_of(library.build_id)),
            unless_empty(stacks.text_of(frame.file)),
            unless_zero(u64::from(frame.line)),
            Cell::Bool(frame.inlined),
        ])?;
    }
    let file = table.finish()?;
    files.finish(file)
}

fn write_callsites<F: Files>(
    files: &mut F,
    chosen: &Chosen<'_>,
    needed: &Needed,
) -> io::Result<()> {
    let columns = vec![
        always("id", Holds::Int).counting_up(),
        maybe("parent", Holds::Int).counting_up(),
        always("depth", Holds::Int),
        maybe("frame", Holds::Int),
    ];
    let mut table = Table::new(
        files.create("callsite.parquet")?,
        SCHEMA,
        "callsite",
        columns,
    )?;
    let mut depths: Vec<u32> = Vec::with_capacity(needed.nodes.len());
    for &node in &needed.nodes {
        let parent = (node != NodeId::ROOT).then(|| needed.node(chosen.table.parent(node)));
        // Parents come before their children.
        let depth = parent.map_or(0, |parent| depths[parent as usize] + 1);
        depths.push(depth);
        let frame = chosen.table.frame_of(node).map(|frame| needed.frame(frame));
        table.row(&[
            needed.node(node).into(),
            parent.into(),
            depth.into(),
            frame.into(),
        ])?;
    }
    let file = table.finish()?;
    files.finish(file)
}

fn write_samples<F: Files>(files: &mut F, chosen: &Chosen<'_>, needed: &Needed) -> io::Result<()> {
    let others: Vec<&Measure> = chosen.measures();
    let others: Vec<&Measure> = others.into_iter().filter(|m| m.view.is_none()).collect();
    let mut columns = vec![
        always("dump_id", Holds::Int),
        maybe("ts", Holds::Int),
        maybe("heap", Holds::Text),
        always("callsite", Holds::Int).counting_up(),
        maybe("alloc_bytes", Holds::Int),
        maybe("alloc_n", Holds::Int),
        maybe("free_bytes", Holds::Int),
        maybe("free_n", Holds::Int),
        maybe("live_bytes", Holds::Int),
        maybe("live_n", Holds::Int),
    ];
    for heading in headings(&others) {
        let name = column_name(&heading, &columns);
        columns.push(maybe(&name, Holds::Int));
    }
    let mut table = Table::new(files.create("sample.parquet")?, SCHEMA, "sample", columns)?;
    let mut cells = Vec::new();
    for (id, dump) in chosen.dumps.iter().enumerate() {
        let facts = &dump.dump.facts;
        let values = &dump.dump.values;
        let views = View::ALL.map(|view| column_of_view(dump, view));
        let [space, alloc_space, objects, alloc_objects] = views;
        let others: Vec<_> = others.iter().map(|m| dump.column_of(m)).collect();
        let frees = facts.kind == DumpKind::Cumulative;
        for row in dump.rows() {
            let at = |column: Option<usize>| match column {
                Some(column) => Cell::Int(values.columns[column][row]),
                None => Cell::Null,
            };
            let freed = |all: Option<usize>, live: Option<usize>| match (at(all), at(live)) {
                (Cell::Int(all), Cell::Int(live)) if frees => Cell::Int(all.saturating_sub(live)),
                _ => Cell::Null,
            };
            cells.clear();
            cells.extend([
                (id as u64).into(),
                facts.time_ns.into(),
                unless_empty(&facts.heap),
                needed.node(values.nodes[row]).into(),
                at(alloc_space),
                at(alloc_objects),
                freed(alloc_space, space),
                freed(alloc_objects, objects),
                at(space),
                at(objects),
            ]);
            cells.extend(others.iter().map(|&column| at(column)));
            table.row(&cells)?;
        }
    }
    let file = table.finish()?;
    files.finish(file)
}

fn column_of_view(dump: &ChosenDump<'_>, view: View) -> Option<usize> {
    let mut columns = dump.columns.iter().copied();
    columns.find(|&at| dump.dump.measures[at].view == Some(view))
}

/// Converts another tool's heading to an unused column name.
fn column_name(heading: &str, columns: &[Column]) -> String {
    let mut name: String = heading
        .chars()
        .map(|c| match c.is_ascii_alphanumeric() {
            true => c.to_ascii_lowercase(),
            false => '_',
        })
        .collect();
    if name.is_empty() {
        name.push_str("value");
    }
    while columns.iter().any(|column| column.name == name) {
        name.push('_');
    }
    name
}

/// Tables of Java heaps, written heap by heap.
pub struct JavaTables<F: Files> {
    classes: Table<F::File>,
    objects: Table<F::File>,
}

impl<F: Files> JavaTables<F> {
    /// Begins both tables.
    ///
    /// # Errors
    /// Returns an error if a file cannot be written.
    pub fn begin(files: &mut F) -> io::Result<JavaTables<F>> {
        let sizes = [
            always("shallow_bytes", Holds::Int),
            always("native_bytes", Holds::Int),
            maybe("retained_bytes", Holds::Int),
            maybe("retained_n", Holds::Int),
        ];
        let mut classes = vec![
            always("dump_id", Holds::Int),
            always("id", Holds::Int).counting_up(),
            always("name", Holds::Text),
            always("objects", Holds::Int),
        ];
        classes.extend(sizes.clone());
        let mut objects = vec![
            always("dump_id", Holds::Int),
            always("id", Holds::Int).counting_up(),
            always("class", Holds::Int),
            maybe("heap", Holds::Text),
            maybe("root", Holds::Text),
            always("reachable", Holds::Bool),
            maybe("dominator", Holds::Int),
        ];
        objects.extend(sizes);
        Ok(JavaTables {
            classes: Table::new(files.create("class.parquet")?, SCHEMA, "class", classes)?,
            objects: Table::new(files.create("object.parquet")?, SCHEMA, "object", objects)?,
        })
    }

    /// Adds all dumped objects of a heap; unreachable objects retain nothing. The counts of classes
    /// are those of reachable objects.
    ///
    /// # Errors
    /// Returns an error if a file cannot be written.
    pub fn add(
        &mut self,
        dump_id: u64,
        graph: &HeapGraph,
        dominators: &Dominators,
    ) -> io::Result<()> {
        #[derive(Clone, Copy, Default)]
        struct Sums {
            dumped: bool,
            objects: u64,
            shallow: u64,
            native: u64,
        }
        let mut sums = vec![Sums::default(); graph.classes().len()];
        for object in graph
            .objects()
            .filter(|&object| !graph.is_placeholder(object))
        {
            let ClassIndex(class) = graph.class_of(object);
            let (shallow, native) = (graph.shallow_bytes(object), graph.native_bytes(object));
            let is_reachable = dominators.is_reachable(object);
            let sums = &mut sums[class as usize];
            sums.dumped = true;
            if is_reachable {
                sums.objects += 1;
                sums.shallow = sums.shallow.saturating_add(shallow);
                sums.native = sums.native.saturating_add(native);
            }
            let retained = is_reachable.then(|| dominators.retained(object));
            let dominator = dominators.idom(object).map(|object| graph.id(object).0);
            self.objects.row(&[
                dump_id.into(),
                graph.id(object).0.into(),
                class.into(),
                unless_empty(graph.heap_of(object).name()),
                graph.root_kind(object).map(|root| root.name()).into(),
                Cell::Bool(is_reachable),
                dominator.into(),
                shallow.into(),
                native.into(),
                retained.map(|retained| retained.total_bytes()).into(),
                retained.map(|retained| retained.count).into(),
            ])?;
        }
        let retained = dominators.retained_by_class(graph);
        for (class, (sums, retained)) in (0u32..).zip(sums.iter().zip(retained)) {
            if !sums.dumped {
                continue;
            }
            self.classes.row(&[
                dump_id.into(),
                class.into(),
                graph.class(ClassIndex(class)).shown().into(),
                sums.objects.into(),
                sums.shallow.into(),
                sums.native.into(),
                retained.total_bytes().into(),
                retained.count.into(),
            ])?;
        }
        Ok(())
    }

    /// Ends both tables.
    ///
    /// # Errors
    /// Returns an error if the remaining data cannot be written.
    pub fn finish(self, files: &mut F) -> io::Result<()> {
        let classes = self.classes.finish()?;
        files.finish(classes)?;
        let objects = self.objects.finish()?;
        files.finish(objects)
    }
}
