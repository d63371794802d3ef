//! Result of a search: files with a library's symbols, best first, and all places that were
//! searched without success. Plain values; defines their order and their texts.

use super::names::LibraryQuery;
use super::reject_reason::RejectReason;
use super::source::Source;
use crate::symbolize::file::{Alone, Bytes, Knowledge, SupplementaryFiles};
use heaptap_base::units::BuildId;
use std::cmp::Reverse;
use std::fmt;
use std::sync::Arc;

/// Maximum number of attempts listed for a search; the rest is only counted.
const MAX_ATTEMPTS: usize = 4;

/// Kind of place, in search order.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Place {
    /// `--symbols`: a directory, a library, an archive.
    Symbols,
    /// A root of `PERFETTO_BINARY_PATH`.
    BinaryPath,
    /// The directory in `BREAKPAD_SYMBOL_DIR`.
    BreakpadDir,
    /// Outputs of Gradle and the NDK in a project.
    Project,
    /// `ANDROID_PRODUCT_OUT/symbols`, of a platform build.
    ProductOut,
    /// The path of the memory mapping, on this host.
    HostPath,
    /// A `.build-id` tree of this host: `/usr/lib/debug`, `~/.debug`.
    BuildIdTree,
    /// Libraries pulled from devices and fetched from servers before.
    Cache,
    /// A server of `DEBUGINFOD_URLS`.
    Debuginfod,
    /// The device itself. It is not searched: libraries are fetched into the cache.
    Device,
}

/// Words and names of the places, in their order.
const PLACES: [(&str, &str); 10] = [
    ("symbols", "--symbols"),
    ("binary-path", "PERFETTO_BINARY_PATH"),
    ("breakpad", "BREAKPAD_SYMBOL_DIR"),
    ("project", "Gradle project"),
    ("product-out", "ANDROID_PRODUCT_OUT"),
    ("host-path", "this host"),
    ("build-id-tree", ".build-id tree"),
    ("cache", "cache"),
    ("debuginfod", "debuginfod"),
    ("device", "the device"),
];

impl Place {
    /// Returns the stable word for scripts.
    pub fn word(self) -> &'static str {
        PLACES[self as usize].0
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(PLACES[*self as usize].1)
    }
}

/// Result of a search for one library.
#[derive(Debug, Default)]
pub struct Found {
    /// Usable files: verified ones first, then by amount of information, then in the order of the
    /// places.
    pub candidates: Vec<Candidate>,
    /// Places without a file, and files that cannot be used, in the order of the places.
    pub attempts: Vec<Attempt>,
    /// The closest match among the files that cannot be used.
    pub nearest: Option<Nearest>,
    /// Number of places searched.
    pub(super) searched: usize,
    /// Attempts in the current place.
    pub(super) of_this_search: usize,
}

/// File with symbols of the library.
#[derive(Debug, Clone)]
pub struct Candidate {
    /// Place where it was found.
    pub place: Place,
    /// Path for display: `out/app.apk!lib/arm64-v8a/libfoo.so` within an archive. Without control
    /// characters.
    pub path: String,
    /// Amount of information.
    pub knowledge: Knowledge,
    /// True if its build ID is the library's; otherwise only the name matches.
    pub verified: bool,
    /// Build ID that it must have when it is opened.
    pub(super) build_id: Option<BuildId>,
    /// Number of path components, counted from the end, that it shares with the library's path.
    pub(super) likeness: usize,
    pub(super) source: Source,
    /// Its surroundings, set at the end of the search.
    pub(super) around: Option<Arc<dyn SupplementaryFiles>>,
}

impl Candidate {
    /// Returns the file's bytes, mapped if possible. A compressed member of an archive is
    /// decompressed on each call, unless the search has cached it.
    ///
    /// # Errors
    /// Returns an error if it can no longer be read or has changed.
    pub fn open(&self) -> Result<Bytes, RejectReason> {
        self.source.open(self.build_id.as_ref())
    }

    /// Returns the lookup of files that this one refers to: next to it, and in all places that were
    /// searched for it.
    pub fn companions(&self) -> Arc<dyn SupplementaryFiles> {
        match &self.around {
            Some(around) => Arc::clone(around),
            None => Arc::new(Alone),
        }
    }

    /// Returns a digest of path, size and time that identifies this version of the file. Together
    /// with the build ID it is a key for data read from it.
    pub fn identity(&self) -> [u8; 32] {
        self.source.identity()
    }
}

/// Place that was searched without success.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attempt {
    pub place: Place,
    /// The file, or the root of the place if there was none. Without control characters.
    pub path: String,
    /// Reason why it was not used.
    pub why_not: RejectReason,
}

/// Closest match among the unusable files: same name, other build.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Nearest {
    pub place: Place,
    /// Path for display.
    pub path: String,
    /// Its build ID; empty if it does not have one.
    pub build_id: BuildId,
    /// Number of path components, counted from the end, that it shares with the library's path.
    pub(super) likeness: usize,
}

impl Found {
    /// Returns the number of verified files with DWARF, the best possible result.
    pub(super) fn full(&self) -> usize {
        let full = |c: &&Candidate| c.verified && c.knowledge == Knowledge::Dwarf;
        self.candidates.iter().filter(full).count()
    }

    /// Adds a candidate, unless the same file was added before.
    pub(super) fn add(&mut self, candidate: Candidate) {
        let same = |other: &Candidate| other.path == candidate.path;
        if self.candidates.iter().any(same) {
            return;
        }
        // Among files that match only by name, the directory name identifies the one for the right
        // processor.
        let rank = |c: &Candidate| {
            let likeness = if c.verified { 0 } else { c.likeness };
            (!c.verified, Reverse(likeness), Reverse(c.knowledge))
        };
        let of_new = rank(&candidate);
        let at = self.candidates.partition_point(|c| rank(c) <= of_new);
        self.candidates.insert(at, candidate);
    }

    /// Records an unused file once: it can be one of the five places and in the tree.
    pub(super) fn refuse(&mut self, place: Place, path: String, why_not: RejectReason) {
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
        if self.of_this_search <= MAX_ATTEMPTS {
            self.attempts.push(attempt);
        } else if let Some(last) = self.attempts.last_mut() {
            match &mut last.why_not {
                RejectReason::AndMore(count) => *count += 1,
                _ => {
                    *last = Attempt {
                        why_not: RejectReason::AndMore(2),
                        ..attempt
                    }
                }
            }
        }
    }

    /// Records a file with the library's name that cannot be used: it is another build, or its
    /// build is unknown.
    pub(super) fn refuse_build(&mut self, query: &LibraryQuery, near: Nearest) {
        let why_not = match (query.library.build_id.is_empty(), near.build_id.is_empty()) {
            (true, _) => RejectReason::NothingToCompare,
            (false, true) => RejectReason::NoBuildId,
            (false, false) => RejectReason::OtherBuildId(near.build_id.clone()),
        };
        self.refuse(near.place, near.path.clone(), why_not);
        // If two are equally close, the first stays, because its place comes first.
        let nearest = self.nearest.as_ref();
        let is_nearer = nearest.is_none_or(|nearest| near.likeness > nearest.likeness);
        if is_nearer && !query.library.build_id.is_empty() {
            self.nearest = Some(near);
        }
    }
}
