//! Macros of the library that walk over graphs. Their results are computed when a statement calls
//! them and are stored in a temporary table.

use std::collections::HashMap;

use rusqlite::types::Value;
use rusqlite::{Error, Statement, params_from_iter};

use crate::prepass::quoted;
use crate::table::{MacroCall, Work};
use heaptap_model::heap_graph::{
    ClassIndex, Dominators, DumpFacts, Follow, GraphBuilder, HeapKind, NewObject, NoContents,
    ObjectId, ObjectIndex, RootKind,
};

/// Programs of the macros in the library whose text is `$work`.
pub(super) const WORKS: [(&str, Work); 6] = [
    ("graph_reachable_bfs", |call| {
        reachable(call, Search::BreadthFirst)
    }),
    ("graph_reachable_dfs", |call| {
        reachable(call, Search::DepthFirst)
    }),
    ("graph_dominator_tree", dominator_tree),
    ("tree_structural_partition_by_group", partition),
    ("_graph_scan", scan),
    ("_graph_aggregating_scan", aggregating_scan),
];

/// Creates the result table of a call.
fn create(call: &MacroCall<'_>, columns: &[&str]) -> Result<(), Error> {
    let columns: Vec<String> = columns.iter().map(|name| quoted(name)).collect();
    let (table, columns) = (quoted(call.table), columns.join(", "));
    let sql = format!("CREATE TEMP TABLE {table} ({columns})");
    call.connection.execute_batch(&sql)
}

fn insertion(call: &MacroCall<'_>, columns: usize) -> String {
    let places = vec!["?"; columns].join(", ");
    format!("INSERT INTO temp.{} VALUES ({places})", quoted(call.table))
}

/// Creates the result table and fills it with pairs.
fn fill_pairs(
    call: &MacroCall<'_>,
    columns: [&str; 2],
    rows: impl Iterator<Item = (i64, Option<i64>)>,
) -> Result<(), Error> {
    create(call, &columns)?;
    let mut insert = call.connection.prepare(&insertion(call, 2))?;
    for row in rows {
        insert.execute(row)?;
    }
    Ok(())
}

fn failure(message: impl Into<String>) -> Error {
    Error::ModuleError(message.into())
}

/// Directed graph whose nodes are numbered densely, in order of their IDs.
struct Graph {
    nodes: Vec<i64>,
    starts: Vec<u32>,
    targets: Vec<u32>,
}

impl Graph {
    /// Reads the edges of a table with `source_node_id` and `dest_node_id`; adds the nodes
    /// `besides`.
    fn read(call: &MacroCall<'_>, table: &str, besides: &[i64]) -> Result<Graph, Error> {
        let sql = format!(
            "SELECT source_node_id, dest_node_id FROM {table}
             WHERE source_node_id IS NOT NULL AND dest_node_id IS NOT NULL"
        );
        let mut statement = call.ask(&sql)?;
        let mut rows = statement.query([])?;
        let mut edges: Vec<(i64, i64)> = Vec::new();
        while let Some(row) = rows.next()? {
            edges.push((row.get(0)?, row.get(1)?));
        }
        let mut nodes: Vec<i64> = besides.to_vec();
        nodes.extend(edges.iter().flat_map(|&(from, to)| [from, to]));
        nodes.sort_unstable();
        nodes.dedup();
        if u32::try_from(nodes.len().max(edges.len())).is_err() {
            return Err(failure("the graph has 2^32 or more nodes or edges"));
        }
        let mut graph = Graph {
            starts: vec![0; nodes.len() + 1],
            targets: vec![0; edges.len()],
            nodes,
        };
        let numbered: Vec<(u32, u32)> = edges
            .iter()
            .filter_map(|&(from, to)| Some((graph.number(from)?, graph.number(to)?)))
            .collect();
        drop(edges);
        for &(from, _) in &numbered {
            graph.starts[from as usize + 1] += 1;
        }
        for at in 1..graph.starts.len() {
            graph.starts[at] += graph.starts[at - 1];
        }
        let mut next = graph.starts.clone();
        for (from, to) in numbered {
            let place = &mut next[from as usize];
            graph.targets[*place as usize] = to;
            *place += 1;
        }
        Ok(graph)
    }

    fn number(&self, node: i64) -> Option<u32> {
        // In most graphs, node IDs are consecutive.
        let first = *self.nodes.first()?;
        let guess = usize::try_from(node.checked_sub(first)?).ok()?;
        if self.nodes.get(guess) == Some(&node) {
            return Some(guess as u32);
        }
        let found = self.nodes.binary_search(&node).ok()?;
        Some(found as u32)
    }

    fn targets(&self, node: u32) -> &[u32] {
        let at = node as usize;
        &self.targets[self.starts[at] as usize..self.starts[at + 1] as usize]
    }
}

/// Returns the numbers in the first column of a table.
fn numbers(call: &MacroCall<'_>, table: &str) -> Result<Vec<i64>, Error> {
    let mut statement = call.ask(&format!("SELECT * FROM {table}"))?;
    let rows = statement.query_map([], |row| row.get::<_, Option<i64>>(0))?;
    rows.filter_map(Result::transpose).collect()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Search {
    BreadthFirst,
    DepthFirst,
}

fn reachable(call: &MacroCall<'_>, search: Search) -> Result<(), Error> {
    let starts = numbers(call, &call.arguments[1])?;
    let graph = Graph::read(call, &call.arguments[0], &starts)?;
    let mut seen = vec![false; graph.nodes.len()];
    let mut found: Vec<(u32, Option<u32>)> = Vec::new();
    let starts = starts.into_iter().filter_map(|node| graph.number(node));
    match search {
        Search::BreadthFirst => {
            for node in starts {
                if !std::mem::replace(&mut seen[node as usize], true) {
                    found.push((node, None));
                }
            }
            let mut next = 0;
            while let Some(&(node, _)) = found.get(next) {
                next += 1;
                for &to in graph.targets(node) {
                    if !std::mem::replace(&mut seen[to as usize], true) {
                        found.push((to, Some(node)));
                    }
                }
            }
        }
        Search::DepthFirst => {
            for start in starts {
                // Nodes on the path, each with the index of its next edge.
                let mut way: Vec<(u32, usize)> = Vec::new();
                if !std::mem::replace(&mut seen[start as usize], true) {
                    found.push((start, None));
                    way.push((start, 0));
                }
                while let Some((node, edge)) = way.last_mut() {
                    let Some(&to) = graph.targets(*node).get(*edge) else {
                        way.pop();
                        continue;
                    };
                    *edge += 1;
                    if !std::mem::replace(&mut seen[to as usize], true) {
                        found.push((to, Some(*node)));
                        way.push((to, 0));
                    }
                }
            }
        }
    }
    let of = |node: u32| graph.nodes[node as usize];
    let rows = found
        .iter()
        .map(|&(node, parent)| (of(node), parent.map(of)));
    fill_pairs(call, ["node_id", "parent_node_id"], rows)
}

fn dominator_tree(call: &MacroCall<'_>) -> Result<(), Error> {
    let root = format!("SELECT {}", call.arguments[1]);
    let root: i64 = call.ask(&root)?.query_row([], |row| row.get(0))?;
    let graph = Graph::read(call, &call.arguments[0], &[root])?;
    // Object IDs begin at 1 because 0 is null.
    let id = |node: u32| ObjectId(u64::from(node) + 1);
    let mut builder = GraphBuilder::default();
    for node in 0..graph.nodes.len() as u32 {
        builder.object(NewObject {
            id: id(node),
            class: ClassIndex(0),
            shallow_bytes: 0,
            heap: HeapKind::Unknown,
        });
        for &to in graph.targets(node) {
            builder.reference(id(to));
        }
    }
    let number = graph.number(root).unwrap_or_default();
    builder.root(id(number), RootKind::Unknown, None, None);
    let facts = DumpFacts::default();
    let heap = builder.finish(Vec::new(), Vec::new(), Box::new(NoContents), facts, false);
    let heap = heap.map_err(|error| failure(error.to_string()))?;
    let dominators = Dominators::compute(&heap, Follow::default());
    let of = |object: ObjectIndex| graph.nodes[object.at()];
    let mut reached: Vec<ObjectIndex> = dominators.order().to_vec();
    reached.sort_unstable();
    let rows = reached
        .into_iter()
        .map(|object| (of(object), dominators.idom(object).map(of)));
    fill_pairs(call, ["node_id", "dominator_node_id"], rows)
}

/// Moves each node of a tree below its nearest ancestor of the same group.
fn partition(call: &MacroCall<'_>) -> Result<(), Error> {
    let sql = format!("SELECT id, parent_id, group_key FROM {}", call.arguments[0]);
    let mut statement = call.ask(&sql)?;
    let rows = statement.query_map([], |row| {
        Ok((
            row.get::<_, i64>(0)?,
            row.get::<_, Option<i64>>(1)?,
            row.get::<_, i64>(2)?,
        ))
    })?;
    let rows: Vec<(i64, Option<i64>, i64)> = rows.collect::<Result<_, _>>()?;
    let places: HashMap<i64, usize> = rows.iter().zip(0..).map(|(row, at)| (row.0, at)).collect();
    let mut below: Vec<Vec<u32>> = vec![Vec::new(); rows.len()];
    let mut roots = Vec::new();
    for (at, (_, parent, _)) in rows.iter().enumerate() {
        match parent.and_then(|parent| places.get(&parent)) {
            Some(&parent) => below[parent].push(at as u32),
            None => roots.push(at as u32),
        }
    }
    create(call, &["id", "parent_id", "group_key"])?;
    let mut insert = call.connection.prepare(&insertion(call, 3))?;
    // Nodes on the path, by group.
    let mut groups: HashMap<i64, Vec<i64>> = HashMap::new();
    let mut way: Vec<(u32, usize)> = Vec::new();
    for root in roots {
        let mut enter = Some(root);
        loop {
            if let Some(at) = enter.take() {
                let (id, _, group) = rows[at as usize];
                let of_group = groups.entry(group).or_default();
                insert.execute((id, of_group.last().copied(), group))?;
                of_group.push(id);
                way.push((at, 0));
            }
            let Some((at, child)) = way.last_mut() else {
                break;
            };
            match below[*at as usize].get(*child) {
                Some(&next) => {
                    *child += 1;
                    enter = Some(next);
                }
                None => {
                    let (_, _, group) = rows[*at as usize];
                    groups.get_mut(&group).map(Vec::pop);
                    way.pop();
                }
            }
        }
    }
    Ok(())
}

/// Returns the names in `(a, b, c)`.
fn column_list(text: &str) -> Vec<String> {
    let inside = text.trim().trim_start_matches('(').trim_end_matches(')');
    let names = inside.split(',').map(|name| name.trim().to_owned());
    names.filter(|name| !name.is_empty()).collect()
}

/// Replaces `$table` in a query.
fn with_table(query: &str, table: &str) -> String {
    const VARIABLE: &str = "$table";
    let mut text = String::new();
    let mut rest = query;
    while let Some(at) = rest.find(VARIABLE) {
        let (before, after) = rest.split_at(at);
        let after = &after[VARIABLE.len()..];
        text += before;
        let goes_on = after.starts_with(|c: char| c.is_alphanumeric() || c == '_');
        text += if goes_on { VARIABLE } else { table };
        rest = after;
    }
    text + rest
}

/// State of a scan: a table of the rows to pass on, and the query that computes the rows of the
/// next step from them.
struct Scan<'c> {
    call: &'c MacroCall<'c>,
    columns: Vec<String>,
    frontier: String,
    step: Statement<'c>,
    clear: Statement<'c>,
    insert: Statement<'c>,
}

/// Row: its node and the values of the columns.
type Row = (i64, Vec<Value>);

/// Maximum number of rows, because a scan over a cycle never ends.
const MAX_ROWS: usize = 1 << 27;

/// Returns `id` and the columns as a list for SQL.
fn names(columns: &[String]) -> String {
    let columns = columns.iter().map(|name| quoted(name));
    let all: Vec<String> = std::iter::once("id".to_owned()).chain(columns).collect();
    all.join(", ")
}

fn rows(statement: &mut Statement<'_>, columns: usize) -> Result<Vec<Row>, Error> {
    let rows = statement.query_map([], |row| {
        let values = (1..=columns).map(|at| row.get(at));
        Ok((row.get(0)?, values.collect::<Result<_, _>>()?))
    })?;
    rows.collect()
}

impl<'c> Scan<'c> {
    fn begin(call: &'c MacroCall<'c>) -> Result<Scan<'c>, Error> {
        let columns = column_list(&call.arguments[2]);
        let names = names(&columns);
        let frontier = format!("temp.{}", quoted(&format!("{}_step", call.table)));
        let connection = call.connection;
        connection.execute_batch(&format!("CREATE TABLE {frontier} ({names})"))?;
        let query = with_table(&call.arguments[3], &frontier);
        let places = vec!["?"; columns.len() + 1].join(", ");
        Ok(Scan {
            step: call.ask(&format!("SELECT {names} FROM {query}"))?,
            clear: connection.prepare(&format!("DELETE FROM {frontier}"))?,
            insert: connection.prepare(&format!("INSERT INTO {frontier} VALUES ({places})"))?,
            call,
            columns,
            frontier,
        })
    }

    /// Returns the initial rows from the table.
    fn first(&self, table: &str) -> Result<Vec<Row>, Error> {
        let sql = format!("SELECT {} FROM {table}", names(&self.columns));
        rows(&mut self.call.ask(&sql)?, self.columns.len())
    }

    /// Returns the rows that the query computes from the given rows.
    fn step<'r>(
        &mut self,
        from: impl Iterator<Item = (i64, &'r [Value])>,
    ) -> Result<Vec<Row>, Error> {
        self.clear.execute([])?;
        for (node, values) in from {
            let node = Value::Integer(node);
            let row = std::iter::once(&node).chain(values);
            self.insert.execute(params_from_iter(row))?;
        }
        rows(&mut self.step, self.columns.len())
    }

    fn end(self, all: &[Row]) -> Result<(), Error> {
        let Scan {
            call,
            columns,
            frontier,
            ..
        } = self;
        let columns = columns.iter().map(String::as_str);
        let columns: Vec<&str> = std::iter::once("id").chain(columns).collect();
        create(call, &columns)?;
        let mut insert = call.connection.prepare(&insertion(call, columns.len()))?;
        for (node, values) in all {
            let node = Value::Integer(*node);
            insert.execute(params_from_iter(std::iter::once(&node).chain(values)))?;
        }
        drop(insert);
        call.connection
            .execute_batch(&format!("DROP TABLE {frontier}"))
    }
}

fn scan(call: &MacroCall<'_>) -> Result<(), Error> {
    let mut scan = Scan::begin(call)?;
    let graph = Graph::read(call, &call.arguments[0], &[])?;
    let mut all = scan.first(&call.arguments[1])?;
    let mut from = 0;
    while from < all.len() {
        let handed_on = all[from..].iter().flat_map(|(node, values)| {
            let targets = graph.number(*node).map(|node| graph.targets(node));
            let targets = targets.unwrap_or_default().iter();
            targets.map(|&to| (graph.nodes[to as usize], values.as_slice()))
        });
        let next = scan.step(handed_on)?;
        from = all.len();
        all.extend(next);
        if all.len() > MAX_ROWS {
            return Err(failure(
                "_graph_scan!: too many rows; the graph probably has a cycle",
            ));
        }
    }
    scan.end(&all)
}

fn aggregating_scan(call: &MacroCall<'_>) -> Result<(), Error> {
    let mut scan = Scan::begin(call)?;
    let first = scan.first(&call.arguments[1])?;
    let nodes: Vec<i64> = first.iter().map(|row| row.0).collect();
    let graph = Graph::read(call, &call.arguments[0], &nodes)?;
    // By node: incoming edges that have not passed anything on yet, and the rows received.
    let mut waits = vec![0u32; graph.nodes.len()];
    for &to in &graph.targets {
        waits[to as usize] += 1;
    }
    let mut come: Vec<Vec<Vec<Value>>> = vec![Vec::new(); graph.nodes.len()];
    let mut done: Vec<Row> = Vec::new();
    let mut ready: Vec<u32> = (0..graph.nodes.len() as u32)
        .filter(|&node| waits[node as usize] == 0)
        .collect();
    for (node, values) in first {
        let Some(at) = graph.number(node) else {
            continue;
        };
        if waits[at as usize] == 0 {
            done.push((node, values));
        } else {
            come[at as usize].push(values);
        }
    }
    let mut from = 0;
    while !ready.is_empty() {
        let by_node = &done[from..];
        for (node, values) in by_node {
            let targets = graph.number(*node).map(|node| graph.targets(node));
            for &to in targets.unwrap_or_default() {
                come[to as usize].push(values.clone());
            }
        }
        from = done.len();
        let mut next = Vec::new();
        for node in ready {
            for &to in graph.targets(node) {
                let wait = &mut waits[to as usize];
                *wait -= 1;
                if *wait == 0 {
                    next.push(to);
                }
            }
        }
        let rows = next.iter().flat_map(|&node| {
            let rows = come[node as usize].iter();
            rows.map(move |values| (node, values.as_slice()))
        });
        let rows = rows.map(|(node, values)| (graph.nodes[node as usize], values));
        done.extend(scan.step(rows)?);
        for &node in &next {
            come[node as usize] = Vec::new();
        }
        ready = next;
    }
    scan.end(&done)
}
