//! The page of a Java heap: gathers what it shows, and owns the file it goes to.

use super::java::{JavaError, JavaHeap, Steps};
use super::packet_files::WholeFile;
use crate::analyze::filter::Filter;
use crate::analyze::histogram::{Among, By, histogram};
use crate::analyze::holders::{self, Holders};

use crate::analyze::{label, largest, leaks, paths, tree, waste};
use crate::error::{Classified, ErrorClass};
use crate::heap_graph::{ClassIndex, ObjectIndex, Reachable, Referrers};
use crate::report::java::{self, JavaPage};
use std::cmp::Reverse;
use std::collections::HashMap;
use std::io::{self, Read as _, Write as _};
use std::path::{Path, PathBuf};

/// Objects that are listed with the way to each.
const LARGEST: usize = 40;
/// Rows of each table of waste.
const WASTE: usize = 15;
/// Classes of which is shown who holds them.
const HELD: usize = 12;
/// What retains less than this share of the heap is left out of the tree.
const LEAST_SHARE: u64 = 20_000;

/// Why there is no page.
#[derive(Debug, thiserror::Error)]
pub enum ReportError {
    /// The input holds no Java heap, or can't be read.
    #[error(transparent)]
    Java(#[from] JavaError),
    /// Something else would be overwritten.
    #[error("{} holds something that is no report of heaptap", .0.display())]
    Taken(PathBuf),
    /// The page can't be written.
    #[error("cannot write {}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

impl Classified for ReportError {
    fn class(&self) -> ErrorClass {
        match self {
            ReportError::Java(error) => error.class(),
            ReportError::Taken(_) => ErrorClass::Usage,
            ReportError::Write { .. } => ErrorClass::HostWrite,
        }
    }

    fn kind(&self) -> &'static str {
        match self {
            ReportError::Java(error) => error.kind(),
            ReportError::Taken(_) => "output-taken",
            ReportError::Write { .. } => "output-unwritable",
        }
    }

    fn help(&self) -> Option<String> {
        Some(match self {
            ReportError::Java(error) => return error.help(),
            ReportError::Taken(_) => "name another file, or --force to overwrite it".to_owned(),
            ReportError::Write { .. } => "make room there, or name another file with -o".to_owned(),
        })
    }
}

/// The file of a page, which has its name once it is whole.
pub struct ReportFile {
    file: WholeFile,
    path: PathBuf,
}

impl ReportFile {
    /// Opens it before the work begins, so that a place that can't be written costs none.
    ///
    /// # Errors
    /// Where it is the input, or another file than a report and `force` is not given, or can't
    /// be written.
    pub fn create(path: &Path, input: &Path, force: bool) -> Result<ReportFile, ReportError> {
        let real = |path: &Path| path.canonicalize().ok();
        // The folder of a recording keeps its files, whatever is asked for.
        let folder = path.canonicalize().ok();
        let folder = folder.as_deref().and_then(Path::parent);
        let is_input = real(path).is_some() && real(path) == real(input)
            || folder.is_some() && folder == real(input).as_deref();
        if !is_replaceable(path) && (is_input || !force) {
            return Err(ReportError::Taken(path.to_owned()));
        }
        match WholeFile::create(path) {
            Ok(file) => Ok(ReportFile {
                file,
                path: path.to_owned(),
            }),
            Err(source) => Err(ReportError::Write {
                path: path.to_owned(),
                source,
            }),
        }
    }

    /// Writes the page.
    ///
    /// # Errors
    /// Where it can't be written.
    pub fn finish(mut self, page: &str) -> Result<(), ReportError> {
        let written = self.file.write_all(page.as_bytes());
        let finished = written.and_then(|()| self.file.finish());
        finished.map_err(|source| ReportError::Write {
            path: self.path,
            source,
        })
    }
}

/// Whether nothing is lost with the file: it is not there, holds nothing, or is a report.
fn is_replaceable(path: &Path) -> bool {
    let Ok(metadata) = std::fs::metadata(path) else {
        return true;
    };
    if !metadata.is_file() || metadata.len() == 0 {
        return true;
    }
    let mut head = Vec::new();
    let read = std::fs::File::open(path).and_then(|file| file.take(1024).read_to_end(&mut head));
    let head = String::from_utf8_lossy(&head);
    read.is_ok() && head.contains("<meta name=\"generator\" content=\"heaptap")
}

/// The page of a heap, a whole HTML file. Blocks: computes paths, dominators and leaks.
pub fn java_page(heap: &JavaHeap, steps: &Steps) -> String {
    let graph = &heap.graph;
    let dominators = heap.dominators();
    steps.begin("writing the page");
    let everything = Filter::default();
    let by = |by| histogram(graph, Among::Reachable(dominators), by, &everything);
    let classes = by(By::Class);
    let garbage = graph
        .objects()
        .filter(|&object| !dominators.is_reachable(object))
        .fold((0, 0u64), |(count, bytes), object| {
            (count + 1, bytes.saturating_add(graph.shallow_bytes(object)))
        });
    let total = classes
        .total
        .shallow_bytes
        .saturating_add(classes.total.native_bytes);
    let large = largest::largest(graph, dominators, &everything, LARGEST, true);
    let reachable = Reachable::of(graph, heap.follow);
    let page = JavaPage {
        name: heap.name(),
        graph,
        warnings: heap
            .findings
            .iter()
            .map(|finding| (finding.message.clone(), finding.help.clone()))
            .collect(),
        packages: by(By::Package),
        garbage,
        largest: large
            .into_iter()
            .filter(|large| large.retained.total_bytes() >= total / 1000)
            .map(|large| {
                let way = paths::shortest(graph, heap.paths(), heap.follow, large.object);
                (large, way)
            })
            .collect(),
        leaks: leaks::find(graph),
        waste: waste::find(graph, &reachable, WASTE),
        tree: tree::merged(graph, dominators, total / LEAST_SHARE),
        held: held(heap, &classes.rows),
        classes,
    };
    java::render(&page)
}

/// Who holds the classes that have most bytes of their own.
fn held(heap: &JavaHeap, rows: &[crate::analyze::histogram::Row]) -> Vec<(String, Holders)> {
    let graph = &heap.graph;
    let mut rows: Vec<_> = rows.iter().collect();
    rows.sort_by_key(|row| {
        let own = row.sums.shallow_bytes.saturating_add(row.sums.native_bytes);
        (Reverse(own), &row.name)
    });
    rows.truncate(HELD);
    let place: HashMap<&str, usize> = rows
        .iter()
        .enumerate()
        .map(|(at, row)| (row.name.as_str(), at))
        .collect();
    let of_class: Vec<Option<usize>> = (0..graph.classes().len() as u32)
        .map(|class| {
            let name = label::class_name(graph, ClassIndex(class));
            place.get(name).copied()
        })
        .collect();
    let mut objects: Vec<Vec<ObjectIndex>> = vec![Vec::new(); rows.len()];
    for object in graph.objects() {
        if let Some(at) = of_class[graph.class_of(object).at()] {
            objects[at].push(object);
        }
    }
    let referrers = Referrers::of(graph, heap.follow);
    rows.iter()
        .zip(objects)
        .map(|(row, objects)| {
            let tree = holders::holders(
                graph,
                heap.dominators(),
                &referrers,
                heap.follow,
                &row.name,
                &objects,
            );
            (row.name.clone(), tree)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::heap_graph::{
        Class, DumpFacts, Follow, GraphBuilder, HeapKind, NewObject, NoContents, ObjectId, RootKind,
    };

    #[test]
    fn the_page_shows_who_retains_what_and_runs_nothing() {
        let mut builder = GraphBuilder::default();
        let mut object = |id, class, shallow_bytes, targets: &[u64]| {
            builder.object(NewObject {
                id: ObjectId(id),
                class: ClassIndex(class),
                shallow_bytes,
                heap: HeapKind::App,
            });
            for &target in targets {
                builder.reference(ObjectId(target));
            }
        };
        object(16, 0, 24, &[32]);
        object(32, 1, 5000, &[48, 64]);
        object(48, 2, 70_000, &[]);
        object(64, 2, 30_000, &[]);
        object(80, 2, 7, &[]);
        builder.root(ObjectId(16), RootKind::JniGlobal, None, None);
        let class = |name: &str| Class {
            name: name.to_owned(),
            ..Class::default()
        };
        let classes = vec![
            class("com.example.Cache"),
            class("evil</pre><script>alert(1)</script>\u{202e}"),
            class("byte[]"),
        ];
        let facts = DumpFacts {
            process: "com.example.<b>app".to_owned(),
            ..DumpFacts::default()
        };
        let graph = builder
            .finish(classes, Vec::new(), Box::new(NoContents), facts, false)
            .expect("it is small");
        let steps = Steps::default();
        let path = PathBuf::from("dump.hprof");
        let heap = JavaHeap::new(graph, path, 0, Follow::default(), steps.clone());
        let page = java_page(&heap, &steps);
        for expected in [
            "com.example.&lt;b&gt;app",
            "102.6 KiB",
            "evil&lt;/pre&gt;&lt;script&gt;",
            "JNI global",
            "No object was found that Android is done with",
            "<td class=\"n\">97.7 KiB</td>",
        ] {
            assert!(page.contains(expected), "{expected}: {page}");
        }
        for unwanted in [
            "<script", "\u{202e}", "http://", "https://", " onclick", "style=\"",
        ] {
            assert!(!page.contains(unwanted), "{unwanted}: {page}");
        }
        for tag in ["details", "table", "pre", "svg", "dl", "div"] {
            let opened = page.matches(&format!("<{tag}>")).count()
                + page.matches(&format!("<{tag} ")).count();
            assert_eq!(page.matches(&format!("</{tag}>")).count(), opened, "{tag}");
        }
    }

    #[test]
    fn only_reports_are_replaced_and_the_input_never() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = |name: &str| folder.path().join(name);
        std::fs::write(path("dump"), "JAVA PROFILE").expect("it can be written");
        std::fs::write(path("notes.html"), "<p>mine").expect("it can be written");
        let create = |name: &str, force| ReportFile::create(&path(name), &path("dump"), force);
        assert!(matches!(
            create("notes.html", false),
            Err(ReportError::Taken(_))
        ));
        assert!(matches!(create("dump", true), Err(ReportError::Taken(_))));
        let of_folder = ReportFile::create(&path("dump"), folder.path(), true);
        assert!(matches!(of_folder, Err(ReportError::Taken(_))));
        let page = "<!doctype html><meta name=\"generator\" content=\"heaptap 1\">";
        for (name, force) in [
            ("new.html", false),
            ("new.html", false),
            ("notes.html", true),
        ] {
            let file = create(name, force).expect("it may be written");
            file.finish(page).expect("it is written");
            assert_eq!(
                std::fs::read_to_string(path(name)).expect("it is there"),
                page
            );
        }
    }
}
