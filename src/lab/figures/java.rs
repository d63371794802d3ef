//! Java objects of a class at a label, and leaks.

use std::path::Path;

use heaptap_lab::results::Excess;
use heaptap_lab::scenario::JavaMeasure;
use regex::Regex;

use super::super::steps::directory_of;
use super::others::selector;
use crate::heaps::java::{JavaFile, JavaHeap, JavaOptions, OpenedJava, ProgressReporter};
use crate::heaps::leaks::HiddenLeaks;
use crate::heaps::selector::DumpSelector;
use crate::lab::state::Figure;
use heaptap_analyze::filter::Filter;
use heaptap_analyze::histogram::{self, HistogramKey, ObjectScope, Row};
use heaptap_analyze::label;
use heaptap_analyze::leaks::{self, Certainty};
use heaptap_model::heap_graph::ClassIndex;

/// The Java heaps of a run.
pub(super) struct Heaps<'a> {
    directory: &'a Path,
    /// Its dumps, once they are listed.
    file: Option<Result<JavaFile, String>>,
    /// The heap read last: budgets of one label share it.
    read: Option<(String, Result<JavaHeap, String>)>,
}

impl<'a> Heaps<'a> {
    pub(super) fn new(directory: &'a Path) -> Heaps<'a> {
        Heaps {
            directory,
            file: None,
            read: None,
        }
    }

    fn at(&mut self, label: &str) -> Result<&JavaHeap, String> {
        if self.read.as_ref().is_none_or(|(of, _)| of != label) {
            // One heap is in memory at a time.
            self.read = None;
            let directory = self.directory;
            let dump = directory_of(directory, label);
            let heap = match dump.is_dir() {
                true => open(&dump).and_then(|mut file| read(&mut file, None)),
                false => match self.file.get_or_insert_with(|| open(directory)) {
                    Ok(file) => read(file, Some(&selector(label))),
                    Err(why) => Err(why.clone()),
                },
            };
            self.read = Some((label.to_owned(), heap));
        }
        match &self.read {
            Some((_, Ok(heap))) => Ok(heap),
            Some((_, Err(why))) => Err(why.clone()),
            None => Err("the Java heap was not read".to_owned()),
        }
    }

    /// Sums over the reachable objects of the classes that `pattern`, a name with `*`, matches.
    pub(super) fn classes(&mut self, label: &str, pattern: &str, measure: JavaMeasure) -> Figure {
        let heap = match self.at(label) {
            Ok(heap) => heap,
            Err(why) => return Figure::missing(why),
        };
        let words: Vec<String> = pattern.split('*').map(regex::escape).collect();
        let focus = match Regex::new(&format!("^{}$", words.join(".*"))) {
            Ok(regex) => vec![regex],
            Err(error) => return Figure::missing(error.to_string()),
        };
        let filter = Filter {
            focus,
            ..Filter::default()
        };
        let graph = &heap.graph;
        let mut classes = (0..).map(ClassIndex).take(graph.classes.len());
        let is_named = |class| filter.focus[0].is_match(label::class_name(graph, class));
        if !classes.any(is_named) {
            return Figure::missing(format!("no class of the heap matches {pattern}"));
        }
        let scope = ObjectScope::Reachable(heap.dominators());
        let found = histogram::histogram(&heap.graph, scope, HistogramKey::Class, &filter);
        let value = |row: &Row| match measure {
            JavaMeasure::Instances => row.sums.count as f64,
            JavaMeasure::Shallow => row.sums.shallow_bytes as f64,
            JavaMeasure::Retained => row.sums.retained.total_bytes() as f64,
        };
        let parts: Vec<Excess> = (found.rows.iter())
            .map(|row| Excess::new(&row.name, value(row)))
            .collect();
        if measure == JavaMeasure::Retained && parts.len() > 1 {
            return Figure::missing(format!(
                "{} classes match {pattern}, and what one retains can contain what another \
                 retains; name one class",
                parts.len()
            ));
        }
        Figure::sum_of(parts)
    }

    /// Counts the confirmed and likely leaks of the app; those of the platform do not count.
    pub(super) fn leaks(&mut self, label: &str) -> Figure {
        let heap = match self.at(label) {
            Ok(heap) => heap,
            Err(why) => return Figure::missing(why),
        };
        let found = leaks::find(&heap.graph);
        let counted = found
            .groups
            .iter()
            .filter(|group| group.library.is_none() && group.certainty != Certainty::Possible);
        let parts: Vec<Excess> = counted
            .map(|group| Excess::new(&group.class, group.leaks.len() as f64))
            .collect();
        match HiddenLeaks::new(heap, &found).filter(|_| parts.is_empty()) {
            None => Figure::sum_of(parts),
            Some(HiddenLeaks::NotCovered | HiddenLeaks::JavaSe) => {
                Figure::missing("the rules cover no class of the heap".to_owned())
            }
            Some(HiddenLeaks::Minified) => {
                let why = "class names are minified; give the R8 mapping with `--mapping`";
                Figure::missing(why.to_owned())
            }
        }
    }
}

fn open(directory: &Path) -> Result<JavaFile, String> {
    let progress = ProgressReporter::default();
    let options = JavaOptions::default();
    let opened = JavaFile::open(directory, OpenedJava::default(), options, &progress);
    opened.map_err(|error| error.to_string())
}

fn read(file: &mut JavaFile, which: Option<&DumpSelector>) -> Result<JavaHeap, String> {
    let at = file.choose(which);
    let at = at.map_err(|error| error.to_string())?;
    let heap = file.read(at).map_err(|error| error.to_string())?;
    match heap.class() {
        None => Ok(heap),
        Some(_) => {
            let why = heap.findings.first().map(|finding| finding.message.clone());
            Err(why.unwrap_or_else(|| "the Java heap is incomplete".to_owned()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_known_leak_of_the_platform_does_not_count() {
        let run = tempfile::tempdir().unwrap();
        let dump = directory_of(run.path(), "after");
        std::fs::create_dir_all(&dump).unwrap();
        let known = concat!(
            env!("CARGO_MANIFEST_DIR"),
            "/fixtures/hprof/known_leaks/toast_tn.hprof"
        );
        std::fs::copy(known, dump.join("toast_tn.hprof")).unwrap();
        let mut heaps = Heaps::new(run.path());
        let found = leaks::find(&heaps.at("after").unwrap().graph);
        assert!(found.groups.iter().all(|group| group.library.is_some()));
        assert!(!found.groups.is_empty());
        let figure = heaps.leaks("after");
        assert_eq!(figure.measured.map(|measured| measured.value), Some(0.0));
    }
}
