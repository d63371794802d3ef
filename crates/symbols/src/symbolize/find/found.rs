//! What a search ends in: files that hold a library's symbols, best first, and every place
//! where they were looked for in vain. Plain values; owns their order and their words.

use super::companions::Around;
use super::names::LibraryQuery;
use super::source::Source;
use super::why_not::WhyNot;
use crate::symbolize::file::{Alone, Bytes, Knowledge, SupplementaryFiles};
use heaptap_model::units::BuildId;
use std::cmp::Reverse;
use std::fmt;
use std::sync::Arc;

/// A search leaves at most so many attempts of its own; the rest is counted.
const MOST_ATTEMPTS: usize = 4;

/// A kind of place, in the order in which they are searched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// `--symbols`: a folder, a library, an archive.
    Symbols,
    /// A root of `PERFETTO_BINARY_PATH`.
    BinaryPath,
    /// The folder of `BREAKPAD_SYMBOL_DIR`.
    BreakpadDir,
    /// What Gradle and the NDK left in a project.
    Project,
    /// `ANDROID_PRODUCT_OUT/symbols`, of a platform build.
    ProductOut,
    /// The path of the mapping itself, on this host.
    HostPath,
    /// A `.build-id` tree of this host: `/usr/lib/debug`, `~/.debug`.
    BuildIdTree,
    /// Libraries pulled from devices and fetched from servers before.
    Cache,
    /// A server of `DEBUGINFOD_URLS`.
    Debuginfod,
    /// The phone itself. Nothing is searched there: libraries are fetched into the cache.
    Device,
}

impl Place {
    /// The stable word for it, for scripts.
    pub fn word(self) -> &'static str {
        match self {
            Place::Symbols => "symbols",
            Place::BinaryPath => "binary-path",
            Place::BreakpadDir => "breakpad",
            Place::Project => "project",
            Place::ProductOut => "product-out",
            Place::HostPath => "host-path",
            Place::BuildIdTree => "build-id-tree",
            Place::Cache => "cache",
            Place::Debuginfod => "debuginfod",
            Place::Device => "device",
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Place::Symbols => "--symbols",
            Place::BinaryPath => "PERFETTO_BINARY_PATH",
            Place::BreakpadDir => "BREAKPAD_SYMBOL_DIR",
            Place::Project => "Gradle project",
            Place::ProductOut => "ANDROID_PRODUCT_OUT",
            Place::HostPath => "this host",
            Place::BuildIdTree => ".build-id tree",
            Place::Cache => "cache",
            Place::Debuginfod => "debuginfod",
            Place::Device => "the phone",
        })
    }
}

/// The outcome of a search for one library.
#[derive(Debug, Default)]
pub struct Found {
    /// Files that may be used: verified ones first, then the one that knows most, then the
    /// order of the places.
    pub candidates: Vec<Candidate>,
    /// Where nothing was found, or something that may not be used, in order of the places.
    pub attempts: Vec<Attempt>,
    /// The file that comes closest among those that may not be used.
    pub nearest: Option<Nearest>,
    /// How many of the finder's searches were made.
    pub(super) searched: usize,
    /// Attempts of the search that is being made.
    pub(super) of_this_search: usize,
}

/// A file with symbols of the library.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// Where it was found.
    pub place: Place,
    /// The file, for people: `out/app.apk!lib/arm64-v8a/libfoo.so` within an archive. Free of
    /// control characters.
    pub path: String,
    /// How much it knows.
    pub knowledge: Knowledge,
    /// Whether its build ID is the library's; otherwise it has none and only its name matched.
    pub verified: bool,
    /// The build that it must be of when it is opened.
    pub(super) build_id: Option<BuildId>,
    /// How many components of its path, from the end, are those of the library's path.
    pub(super) likeness: usize,
    pub(super) source: Source,
    /// What lies around it; known once the search is over.
    pub(super) around: Option<Arc<Around>>,
}

impl Candidate {
    /// The file's bytes: a map of the file where possible. A compressed member of an archive
    /// is unpacked, at each call unless the search has kept what it unpacked.
    ///
    /// # Errors
    /// Where it can no longer be read or is no longer what it was.
    pub fn open(&self) -> Result<Bytes, WhyNot> {
        self.source.open(self.build_id.as_ref())
    }

    /// Finds the files that this one names and does not hold: beside it, and in all places that
    /// were searched for it.
    pub fn companions(&self) -> Arc<dyn SupplementaryFiles> {
        match &self.around {
            Some(around) => Arc::clone(around) as Arc<dyn SupplementaryFiles>,
            None => Arc::new(Alone),
        }
    }

    /// What tells this file from every other, and from itself after a change: a digest of its
    /// path, size and time. With the build ID a key for what was read from it.
    pub fn identity(&self) -> [u8; 32] {
        self.source.identity()
    }
}

/// A place where the symbols were looked for in vain.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    /// The kind of place.
    pub place: Place,
    /// The file, or the root of the place where there was none. Free of control characters.
    pub path: String,
    /// Why it was not used.
    pub why_not: WhyNot,
}

/// The nearest of the files that may not be used: the same name, another build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nearest {
    /// Where it was found.
    pub place: Place,
    /// The file, for people.
    pub path: String,
    /// The build ID that it has; empty where it has none.
    pub build_id: BuildId,
    /// How many components of its path, from the end, are those of the library's path.
    pub(super) likeness: usize,
}

impl Found {
    /// How many verified files with DWARF there are: nothing can be better than one.
    pub(super) fn full(&self) -> usize {
        let full = |c: &&Candidate| c.verified && c.knowledge == Knowledge::Dwarf;
        self.candidates.iter().filter(full).count()
    }

    /// Adds a candidate, unless the same file is there already.
    pub(super) fn add(&mut self, candidate: Candidate) {
        let same = |other: &Candidate| other.path == candidate.path;
        if self.candidates.iter().any(same) {
            return;
        }
        // Of files that only have the name, the one for the right processor is the one whose
        // folder has the right name too.
        let rank = |c: &Candidate| {
            let likeness = if c.verified { 0 } else { c.likeness };
            (!c.verified, Reverse(likeness), Reverse(c.knowledge))
        };
        let of_new = rank(&candidate);
        let at = self.candidates.partition_point(|c| rank(c) <= of_new);
        self.candidates.insert(at, candidate);
    }

    /// Notes a file that was not used, once: it may be one of the five places and in the tree.
    pub(super) fn refuse(&mut self, place: Place, path: String, why_not: WhyNot) {
        let of_this_search = self.attempts.iter().rev().take(self.of_this_search);
        if of_this_search
            .into_iter()
            .any(|attempt| attempt.path == path)
        {
            return;
        }
        let attempt = Attempt {
            place,
            path,
            why_not,
        };
        self.of_this_search += 1;
        if self.of_this_search <= MOST_ATTEMPTS {
            self.attempts.push(attempt);
        } else if let Some(last) = self.attempts.last_mut() {
            match &mut last.why_not {
                WhyNot::AndMore(count) => *count += 1,
                _ => {
                    *last = Attempt {
                        why_not: WhyNot::AndMore(2),
                        ..attempt
                    }
                }
            }
        }
    }

    /// Notes a file of the library's name that may not be used: it is another build of it, or
    /// nothing tells which.
    pub(super) fn refuse_build(&mut self, query: &LibraryQuery, near: Nearest) {
        let why_not = match (query.library.build_id.is_empty(), near.build_id.is_empty()) {
            (true, _) => WhyNot::NothingToCompare,
            (false, true) => WhyNot::NoBuildId,
            (false, false) => WhyNot::OtherBuildId(near.build_id.clone()),
        };
        self.refuse(near.place, near.path.clone(), why_not);
        if !query.library.build_id.is_empty() {
            self.come_near(near);
        }
    }

    fn come_near(&mut self, near: Nearest) {
        // Of two that are equally near the first stays: it is the better place.
        if self
            .nearest
            .as_ref()
            .is_none_or(|n| near.likeness > n.likeness)
        {
            self.nearest = Some(near);
        }
    }
}
