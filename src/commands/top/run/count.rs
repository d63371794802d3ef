//! Counts and sizes only: a histogram of all objects of a dump, reachable or not. For an HPROF,
//! this is one pass over the file without a graph.

use std::collections::BTreeMap;

use super::java::{Counted, Grouping, TopReport, TopRequest, TopRow, grouping, limited};
use crate::heaps::java::facts::{Figures, HeapFacts};
use crate::heaps::java::heap::{JavaHeap, ProgressReporter};
use crate::heaps::java::open::{JavaFile, JavaOptions};
use crate::heaps::java::{JavaError, OpenedJava};
use crate::heaps::selector::JavaInput;
use heaptap_analyze::histogram::{Histogram, ObjectScope, Row, Sums, histogram};
use heaptap_analyze::label;
use heaptap_base::error::ErrorClass;
use heaptap_model::heap_graph::{DumpFacts, DumpSource, GraphBuilder, NoContents};
use heaptap_results::findings;

/// Counts the objects of a dump.
///
/// # Errors
/// Returns an error if the input does not contain a Java heap or cannot be read.
pub fn count(
    input: &JavaInput,
    opened: OpenedJava,
    options: JavaOptions,
    request: &TopRequest,
    progress: &ProgressReporter,
) -> Result<(TopReport, Option<ErrorClass>), JavaError> {
    // Without a graph there are no hierarchy, no heaps and no names to replace.
    let plain = matches!(request.by, Grouping::Class | Grouping::Package)
        && request.filter.heaps.is_empty()
        && options.names.mappings.is_empty()
        && options.names.variables.is_empty();
    let mut file = JavaFile::open(&input.path, opened, options.clone(), progress)?;
    file.list_dumps_of_hprof(&input.which);
    let at = file.choose(input.which.as_ref())?;
    if let Some(input) = file.hprof(at).filter(|_| plain) {
        progress.begin(&format!("counting {}", input.name));
        let read = file.hprof_options(at);
        let unreadable = |source| JavaError::Hprof {
            name: input.name.clone(),
            source,
        };
        let counted = android_hprof::histogram(&input.bytes, &read).map_err(unreadable)?;
        let header = android_hprof::records::Header::read(&input.bytes);
        let header = header.map_err(|error| unreadable(error.into()))?;
        let facts = DumpFacts {
            source: DumpSource::Hprof {
                version: header.version.to_owned(),
                id_bytes: header.id_size.bytes() as u8,
                android: header.is_android(),
            },
            time_ns: header.time_ms.saturating_mul(1_000_000),
            sizes: counted.sizes,
            number: counted.number,
            among: counted.among,
            losses: counted.losses.clone(),
            ..DumpFacts::default()
        };
        // A heap with only its facts.
        let builder = GraphBuilder::default();
        let graph = builder.finish(Vec::new(), Vec::new(), Box::new(NoContents), facts, false);
        if let Ok(graph) = graph {
            let mut heap = file.describe(at, graph);
            heap.findings.append(&mut file.missing);
            if counted.rows.is_empty() {
                return Err(JavaError::no_objects(&heap));
            }
            let class = findings::class(&heap.findings);
            return Ok((report(&heap, &of_rows(&counted, request), request), class));
        }
    }
    let mut heap = file.read(at)?;
    heap.findings.append(&mut file.missing);
    if heap.graph.is_empty() {
        return Err(JavaError::no_objects(&heap));
    }
    progress.begin("adding up");
    let by = grouping(request.by);
    let table = histogram(&heap.graph, ObjectScope::Everything, by, &request.filter);
    let class = heap.class();
    Ok((report(&heap, &table, request), class))
}

fn of_rows(counted: &android_hprof::Histogram, request: &TopRequest) -> Histogram {
    let mut groups: BTreeMap<&str, Sums> = BTreeMap::new();
    let mut total = Sums::default();
    for row in &counted.rows {
        let add = |sums: &mut Sums| {
            sums.count += row.objects;
            sums.shallow_bytes = sums.shallow_bytes.saturating_add(row.shallow_bytes);
        };
        add(&mut total);
        if request.filter.takes(&row.class) {
            let group = match request.by {
                Grouping::Package => label::package(&row.class),
                _ => &row.class,
            };
            add(groups.entry(group).or_default());
        }
    }
    let rows = groups.into_iter().map(|(name, sums)| Row {
        name: name.to_owned(),
        sums,
    });
    Histogram {
        rows: rows.collect(),
        total,
    }
}

fn report(heap: &JavaHeap, table: &Histogram, request: &TopRequest) -> TopReport {
    let rows = table.rows.iter().map(|row| TopRow {
        name: row.name.clone(),
        figures: Figures::own(&row.sums),
        ..TopRow::default()
    });
    let (rows, rows_total) = limited(rows.collect(), request);
    TopReport {
        heap: HeapFacts::from_heap(heap),
        by: request.by,
        sort: request.order,
        counted: Counted::All,
        reachable: None,
        unreachable: None,
        all: Some(Figures::own(&table.total)),
        matching: None,
        rows_total,
        rows,
    }
}
