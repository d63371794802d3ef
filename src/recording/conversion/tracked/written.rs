//! Results of converting the stored lists of Java allocations: section of the manifest, warnings,
//! and exit code.

use crate::heaps::trace_findings::NOT_ASKED_FOR;
use heaptap_base::error::ErrorClass;
use heaptap_model::stacks::TRACKED_HEAP;
use heaptap_model::timeline::MissedReason;
use heaptap_results::manifest::{self, JavaAllocations, Manifest, TrackedDump};

/// Name of lists in the directory and the timeline.
pub(crate) const WHAT: &str = TRACKED_HEAP;
/// Kind of the finding about truncated names, with complete values.
pub(crate) const NAMES_CUT: &str = "java-allocations-names";

/// Returns whether a finding is about a trace without a heap, which is expected if runtimes tracked
/// the allocations.
pub(crate) fn is_of_trace(kind: &str) -> bool {
    [NOT_ASKED_FOR, "mapping-unused", "mapping-without-package"].contains(&kind)
}

/// Results for the lists of a recording.
#[derive(Debug)]
pub struct Written {
    pub(crate) section: JavaAllocations,
    pub(crate) warnings: Vec<manifest::Warning>,
    /// True if an R8 mapping named a class or a frame.
    pub(crate) names_changed: bool,
}

impl Written {
    /// Adds the results to a manifest made from the trace. Returns the exit code class, where
    /// `other` is that of the trace.
    pub fn enter(self, manifest: &mut Manifest, other: Option<ErrorClass>) -> Option<ErrorClass> {
        let class = self.class(other, None);
        // The trace intentionally contains no heap.
        let of_trace = |told: &manifest::Warning| is_of_trace(&told.kind);
        manifest.warnings.retain(|told| !of_trace(told));
        manifest.warnings.extend(self.warnings);
        manifest.java_allocations = Some(self.section);
        class
    }

    /// Replaces the results in the manifest of their directory: entries for unreadable lists are
    /// unchanged.
    pub(crate) fn replace(self, manifest: &mut Manifest) {
        let is_new = |told: &manifest::Warning| {
            let mut known = manifest.warnings.iter();
            !known.any(|known| (&known.kind, &known.message) == (&told.kind, &told.message))
        };
        let new: Vec<manifest::Warning> = self.warnings.into_iter().filter(is_new).collect();
        manifest.warnings.extend(new);
        if let Some(tracked) = &mut manifest.java_allocations {
            for dump in &mut tracked.dumps {
                let mut new = self.section.dumps.iter();
                let is_it = |new: &&TrackedDump| (new.pid, new.number) == (dump.pid, dump.number);
                if let Some(new) = new.find(is_it) {
                    dump.clone_from(new);
                }
            }
        }
    }

    /// Returns whether any profile was written.
    pub(crate) fn any(&self) -> bool {
        self.section.dumps.iter().any(|dump| dump.file.is_some())
    }

    /// Adds a warning if the list at the end was not fetched, because the connected heaptap was
    /// killed or did not wait.
    pub(crate) fn note_end(&mut self, beside: &manifest::Companions) {
        let lists = self.section.dumps.iter();
        let fetched = lists.clone().any(|dump| dump.label.is_none());
        let mut missed = beside.missed.iter();
        if fetched || missed.any(|missed| missed.what == WHAT && missed.label.is_none()) {
            return;
        }
        let message = "allocations before the end are missing because heaptap did not follow the \
                       recording to its end; the runtime might track until the app ends";
        self.warnings.push(
            manifest::Warning::new("java-allocations-end", message)
                .with_help("record again; the next recording stops tracking at its end"),
        );
    }

    /// Returns the exit code class: empty for a recording without profiles, incomplete if the last
    /// list is missing; `other` is that of the trace.
    pub(crate) fn class(
        &self,
        other: Option<ErrorClass>,
        beside: Option<&manifest::Companions>,
    ) -> Option<ErrorClass> {
        if !self.any() {
            let other = other.filter(|class| *class != ErrorClass::Empty);
            return ErrorClass::first_of(other.into_iter().chain([ErrorClass::Empty]));
        }
        let missed = beside.is_some_and(|beside| {
            let missed = beside.missed.iter();
            missed
                .clone()
                .any(|missed| missed.what == WHAT && missed.reason != Some(MissedReason::NoTarget))
        });
        let told = self.warnings.iter().any(|told| told.kind != NAMES_CUT);
        let missing = (missed || told).then_some(ErrorClass::Incomplete);
        // The trace intentionally contains no samples.
        let other = other.filter(|class| *class != ErrorClass::Empty);
        ErrorClass::first_of(other.into_iter().chain(missing))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_end_that_nobody_fetched_is_told_once() {
        let written = || Written {
            section: JavaAllocations::tracked(Vec::new()),
            warnings: Vec::new(),
            names_changed: false,
        };
        let mut alone = written();
        alone.note_end(&manifest::Companions::default());
        assert_eq!(alone.warnings[0].kind, "java-allocations-end");
        let mut told = written();
        let missed = manifest::CompanionMissed {
            what: WHAT.to_owned(),
            label: None,
            number: 1,
            reason: Some(MissedReason::NoTarget),
            why: String::new(),
        };
        told.note_end(&manifest::Companions {
            missed: vec![missed],
            ..manifest::Companions::default()
        });
        assert!(told.warnings.is_empty());
    }
}
