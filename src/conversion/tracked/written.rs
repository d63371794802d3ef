//! What the lists of Java allocations that a recording kept became: the manifest's section, what
//! is said of them, and what the exit code tells.

use crate::error::ErrorClass;
use crate::heaps::trace_findings::NOT_ASKED_FOR;
use crate::results::manifest::{self, JavaAllocations, Manifest, TrackedDump};
use crate::timeline::MissedReason;

/// What lists are called in the folder and the timeline.
pub(crate) const WHAT: &str = "java-allocations";
/// What is missing is names, no figures.
pub(crate) const NAMES_CUT: &str = "java-allocations-names";

/// What is said of a trace that was not to hold a heap, since runtimes tracked what was asked for.
pub(crate) fn is_of_trace(kind: &str) -> bool {
    [NOT_ASKED_FOR, "mapping-unused", "mapping-without-package"].contains(&kind)
}

/// What the lists of a recording became.
#[derive(Debug)]
pub struct Written {
    pub(crate) section: JavaAllocations,
    pub(crate) warnings: Vec<manifest::Warning>,
    /// Whether a mapping file gave a class or a frame its name.
    pub(crate) names_changed: bool,
}

impl Written {
    /// Puts it into a manifest that was made of the trace. What the exit code tells, where
    /// `other` is what the trace asks for.
    pub fn enter(self, manifest: &mut Manifest, other: Option<ErrorClass>) -> Option<ErrorClass> {
        let class = self.class(other, None);
        // That no heap is in the trace is what was asked for.
        let of_trace = |told: &manifest::Warning| is_of_trace(&told.kind);
        manifest.warnings.retain(|told| !of_trace(told));
        manifest.warnings.extend(self.warnings);
        manifest.java_allocations = Some(self.section);
        class
    }

    /// Puts it into the manifest of the folder that it was written to: what could not be read
    /// stays as it was.
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

    /// Whether any profile was written.
    pub(crate) fn any(&self) -> bool {
        self.section.dumps.iter().any(|dump| dump.file.is_some())
    }

    /// Says so where nobody fetched what belongs to the end: who held the connections was killed,
    /// or did not wait.
    pub(crate) fn note_end(&mut self, beside: &manifest::Companions) {
        let lists = self.section.dumps.iter();
        let fetched = lists.clone().any(|dump| dump.label.is_none());
        let mut missed = beside.missed.iter();
        if fetched || missed.any(|missed| missed.what == WHAT && missed.label.is_none()) {
            return;
        }
        self.warnings.push(manifest::Warning {
            kind: "java-allocations-end".to_owned(),
            message: "the allocations before the end were not fetched: heaptap did not follow the \
                      recording to its end; the runtime may track on until the app ends"
                .to_owned(),
            help: Some(
                "record again; the next recording switches tracking off at its end".to_owned(),
            ),
            pid: None,
            dumps: Vec::new(),
        });
    }

    /// What the exit code tells: of a recording without any profile that it is empty, of one whose
    /// last list is missing that it is incomplete; `other` is what the trace asks for.
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
        // A trace without samples is what was asked for.
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
