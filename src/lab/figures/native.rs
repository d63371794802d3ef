//! Unreleased native bytes at a label, of all stacks or of those through a library or function.

use std::collections::BTreeSet;
use std::path::Path;

use heaptap_lab::results::Excess;
use heaptap_lab::scenario::END;
use heaptap_lab::verdict::Measured;
use regex::Regex;

use crate::heaps::input::{self, DumpScope, LookOptions, NativeFile, OpenedInput};
use crate::heaps::java::ProgressReporter;
use crate::lab::state::{Figure, PARTS};
use heaptap_analyze::native::filter::Filter;
use heaptap_analyze::native::groups::{Groups, RowKey};
use heaptap_analyze::native::sampled::SampledColumn;
use heaptap_analyze::native::table::{Key, Table};
use heaptap_analyze::native::visible_tree::VisibleTree;
use heaptap_base::error::Classified as _;
use heaptap_model::profile::is_heap;
use heaptap_model::stacks::{Dump, Facts, View};
use heaptap_results::lists::join_list;

/// The native heaps of a run, at all its labels.
pub(super) struct Opened(NativeFile);

/// Opens all dumps of a run.
pub(super) fn open(directory: &Path) -> Result<Opened, String> {
    let progress = ProgressReporter::default();
    match input::open(
        directory,
        &DumpScope::All,
        &LookOptions::default(),
        &progress,
    ) {
        Ok(OpenedInput::Native(file, _)) => Ok(Opened(*file)),
        Ok(OpenedInput::Java(_)) => Err("the run has no native heap".to_owned()),
        Err(error) => Err(described(&error.facts().help, &error)),
    }
}

fn described(help: &Option<String>, error: &dyn std::fmt::Display) -> String {
    match help {
        Some(help) => format!("{error}; {help}"),
        None => error.to_string(),
    }
}

impl Opened {
    /// Sums the unreleased bytes of the stacks through a frame of `library` (a file name) or
    /// `function` (a regular expression), over all processes and heaps, or those of `heap`.
    pub(super) fn figure(
        &self,
        label: &str,
        library: Option<&str>,
        function: Option<&str>,
        heap: Option<&str>,
    ) -> Figure {
        let pattern = match (library, function) {
            (Some(library), _) => format!("(^|/){}$", regex::escape(library)),
            (None, Some(function)) => function.to_owned(),
            (None, None) => String::new(),
        };
        let focus = match pattern.as_str() {
            "" => Vec::new(),
            pattern => match Regex::new(pattern) {
                Ok(regex) => vec![regex],
                Err(error) => return Figure::missing(error.to_string()),
            },
        };
        let filter = Filter {
            focus,
            ..Filter::default()
        };
        let dumps = self.dumps_at(label);
        if dumps.is_empty() {
            return Figure::missing(format!("there is no native dump at {label}"));
        }
        let there = dumps.iter().map(|dump| dump.facts.heap.clone());
        let there: BTreeSet<String> = there.collect();
        let dumps: Vec<&Dump> = (dumps.into_iter())
            .filter(|dump| {
                heap.is_none_or(|heap| is_heap(heap, &dump.facts.heap, dump.facts.flags))
            })
            .collect();
        if let (true, Some(heap)) = (dumps.is_empty(), heap) {
            let there = join_list(there.into_iter());
            let why = format!("there is no dump of the heap {heap} at {label}, only of {there}");
            return Figure::missing(why);
        }
        // The dump of a process that exits is of what is left of it.
        let dumps: Vec<&Dump> = (dumps.into_iter())
            .filter(|dump| !dump.facts.flags.disconnected)
            .collect();
        if dumps.is_empty() {
            return Figure::missing(format!("the process exited before the dump at {label}"));
        }
        let frees = |dump: &&Dump| dump.measures.iter().any(|m| m.view == Some(View::Space));
        if !dumps.iter().any(frees) {
            return Figure::missing("the heap does not record frees");
        }
        let mut total = Measured {
            value: 0.0,
            samples: Some(0.0),
        };
        let mut parts = Vec::new();
        for dump in dumps {
            if let Err(why) = self.add(dump, &filter, &mut total, &mut parts) {
                return Figure::missing(why);
            }
        }
        if total.value == 0.0 && !filter.focus.is_empty() && !self.is_sampled(&filter) {
            let of = library.or(function).unwrap_or_default();
            return Figure::missing(format!("no sampled stack of the run goes through {of}"));
        }
        Figure::new(total.value, total.samples, parts)
    }

    /// Returns whether any dump has an allocation that the filter keeps, freed or not: a pattern that
    /// keeps none is likely a typing error.
    fn is_sampled(&self, filter: &Filter) -> bool {
        let profile = &self.0.profile;
        profile.dumps.iter().any(|dump| {
            let shown = VisibleTree::new(&profile.table, filter, &[&dump.values]);
            shown.totals(&dump.values).iter().any(|total| *total != 0)
        })
    }

    /// Returns the dump of each process and heap at a label; at the end, the last ones.
    fn dumps_at(&self, label: &str) -> Vec<&Dump> {
        let dumps = &self.0.profile.dumps;
        let is_it = |facts: &Facts| {
            let listed = self.0.listed.entry(facts);
            label == END || listed.is_some_and(|listed| listed.labels.iter().any(|l| l == label))
        };
        let facts = dumps.iter().map(|dump| &dump.facts).enumerate();
        let last = Facts::last_of_each(facts.filter(|(_, facts)| is_it(facts)));
        last.into_iter().map(|at| &dumps[at]).collect()
    }

    fn add(
        &self,
        dump: &Dump,
        filter: &Filter,
        total: &mut Measured,
        parts: &mut Vec<Excess>,
    ) -> Result<(), String> {
        let space = |measure: &heaptap_model::stacks::Measure| measure.view == Some(View::Space);
        let Some(at) = dump.measures.iter().position(space) else {
            // Another heap of the process records frees.
            return Ok(());
        };
        if dump.facts.unfinished {
            return Err("the dump is incomplete".to_owned());
        }
        let table = &self.0.profile.table;
        let shown = VisibleTree::new(table, filter, &[&dump.values]);
        let totals = shown.totals(&dump.values);
        let whole = |column: usize| totals[column] as f64;
        total.value += whole(at);
        total.samples = match (total.samples, SampledColumn::new(dump, at)) {
            (Some(samples), Some(column)) => Some(samples + whole(column.counts)),
            _ => None,
        };
        let groups = Groups::new(table, RowKey::Function);
        let rows = Table::new(&shown, &groups, &dump.values);
        for at_row in rows.ranked(PARTS, |row| row.own[at]) {
            let row = rows.row(at_row);
            let Key::Group(group) = row.key else { continue };
            if row.own[at] > 0 {
                parts.push(Excess::new(&groups.name(group), row.own[at] as f64));
            }
        }
        Ok(())
    }
}
